"""Frozen dataclasses to JSON and back, with exact errors, and the JSON Schema of each.

A dataclass declares its members with `member(...)`. One declaration gives the parser, the serialiser
and the schema, so the three cannot disagree. Unknown members are ignored: the wire grows by optional
fields, and yesterday's reader must accept tomorrow's writer.

Patterns are written so that Python's `re` and ECMA 262 (what JSON Schema asks for) read them alike: [0-9]
for \\d, [\\s\\S] for "any character".
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any, Optional, TypeVar, Union

T = TypeVar("T")

_SHOWN_CHARACTERS = 100
# Beyond this a whole number does not survive every JSON reader (RFC 7493, 2.2).
_LARGEST_INTEGER = 2**53 - 1


class ShapeError(ValueError):
    """A member of a JSON value is not what the contract allows.

    `field` is its dotted path, `found` a bounded rendering of what stood there, `allowed` the rule in words.
    """

    def __init__(self, field: str, found: str, allowed: str) -> None:
        super().__init__(f"{field}: found {found}; allowed is {allowed}")
        self.field = field
        self.found = found
        self.allowed = allowed


@dataclass(frozen=True)
class Rule:
    """What one member allows, beyond its type."""

    doc: str
    one_of: tuple[str, ...] = ()
    pattern: Optional[str] = None
    expects: Optional[str] = None
    minimum: Optional[int] = None
    maximum: Optional[int] = None
    max_length: Optional[int] = None
    digits_accepted: bool = False
    omit_none: bool = False


def member(
    doc: str,
    *,
    default: Any = MISSING,
    one_of: tuple[str, ...] = (),
    pattern: Optional[str] = None,
    expects: Optional[str] = None,
    minimum: Optional[int] = None,
    maximum: Optional[int] = None,
    max_length: Optional[int] = None,
    digits_accepted: bool = False,
    omit_none: bool = False,
) -> Any:
    """Declare a member: `pattern` must match the whole text and is put in words by `expects`;
    `max_length` counts characters or items; `digits_accepted` also takes an integer written as text;
    `omit_none` leaves the member out of the JSON instead of writing null.
    """
    rule = Rule(doc, one_of, pattern, expects, minimum, maximum, max_length, digits_accepted, omit_none)
    return dataclasses.field(default=default, metadata={"rule": rule})


def show(value: object) -> str:
    """Render an untrusted value for an error message: one line, printable ASCII, bounded."""
    if value is MISSING:
        return "nothing"
    try:
        text = json.dumps(value)
    except RecursionError:
        text = f"a {type(value).__name__}, nested too deeply to be shown"
    except (TypeError, ValueError):
        text = ascii(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"


def parse(cls: type[T], value: object, where: str = "") -> T:
    """Build a `cls` from decoded JSON. Raises ShapeError naming the first member that is wrong."""
    if not isinstance(value, Mapping):
        raise ShapeError(where or "(the document)", show(value), "a JSON object")
    hints = typing.get_type_hints(cls)
    members: dict[str, Any] = {}
    for field in dataclasses.fields(typing.cast(Any, cls)):
        path = f"{where}.{field.name}" if where else field.name
        found = value.get(field.name, MISSING)
        if found is MISSING:
            if field.default is MISSING:
                raise ShapeError(path, "nothing", _allowed(hints[field.name], _rule(field)))
            continue
        members[field.name] = _parse_value(hints[field.name], _rule(field), found, path)
    return cls(**members)


def dump(instance: object) -> Any:
    """The JSON value of an instance: members in declaration order, free JSON as it is."""
    if dataclasses.is_dataclass(instance) and not isinstance(instance, type):
        return {
            field.name: dump(getattr(instance, field.name))
            for field in dataclasses.fields(instance)
            if not (_rule(field).omit_none and getattr(instance, field.name) is None)
        }
    if isinstance(instance, tuple):
        return [dump(item) for item in instance]
    return instance  # a scalar, or free JSON


def json_schema(cls: type[Any], title: str) -> dict[str, Any]:
    """The JSON Schema (2020-12) that says what `parse(cls, …)` accepts."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": (cls.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " "),
        **_object_schema(cls),
    }


def _rule(field: dataclasses.Field[Any]) -> Rule:
    rule = field.metadata.get("rule")
    return rule if isinstance(rule, Rule) else Rule(doc="")


def _optional_of(hint: Any) -> Optional[Any]:
    """The X of Optional[X], or None."""
    if typing.get_origin(hint) is Union:
        inner = [item for item in typing.get_args(hint) if item is not type(None)]
        if len(inner) == 1 and len(typing.get_args(hint)) == 2:
            return inner[0]
    return None


_SCALARS: dict[Any, tuple[tuple[type, ...], str, str]] = {
    # annotation: (accepted Python types, in words, JSON Schema type)
    str: ((str,), "text", "string"),
    int: ((int,), "a whole number", "integer"),
    float: ((int, float), "a number", "number"),
    bool: ((bool,), "true or false", "boolean"),
}


def _parse_value(hint: Any, rule: Rule, found: object, path: str) -> Any:
    inner = _optional_of(hint)
    if inner is not None and found is None:
        return None
    kind = hint if inner is None else inner
    if dataclasses.is_dataclass(kind):
        return parse(typing.cast(Any, kind), found, path)
    allowed = _allowed(hint, rule)
    if typing.get_origin(kind) is tuple:
        return _parse_items(typing.get_args(kind)[0], rule, found, path, allowed)
    if typing.get_origin(kind) is not None:  # Mapping[str, Any]: free JSON
        if not isinstance(found, Mapping):
            raise ShapeError(path, show(found), allowed)
        return found
    return _parse_scalar(kind, rule, found, path, allowed)


def _parse_items(item_hint: Any, rule: Rule, found: object, path: str, allowed: str) -> tuple[Any, ...]:
    if not isinstance(found, (list, tuple)) or (rule.max_length is not None and len(found) > rule.max_length):
        seen = f"{len(found)} items" if isinstance(found, (list, tuple)) else show(found)
        raise ShapeError(path, seen, allowed)
    return tuple(_parse_value(item_hint, Rule(""), item, f"{path}[{i}]") for i, item in enumerate(found))


def _parse_scalar(hint: Any, rule: Rule, found: object, path: str, allowed: str) -> Any:
    accepted, _, _ = _SCALARS[hint]
    if rule.digits_accepted and isinstance(found, str) and re.fullmatch(r"[0-9]{1,18}", found):
        found = int(found)
    if hint is int and isinstance(found, float) and found.is_integer():
        found = int(found)  # JSON has one kind of number: 3.0 is a whole one
    wrong = (
        not isinstance(found, accepted)
        or (isinstance(found, bool) and hint is not bool)
        or (isinstance(found, float) and not math.isfinite(found))  # Python's reader takes NaN for JSON
        or (isinstance(found, str) and not _text_fits(rule, found))
        or (rule.minimum is not None and isinstance(found, (int, float)) and found < rule.minimum)
    )
    if wrong:
        raise ShapeError(path, show(found), allowed)
    largest = _largest(hint, rule)
    if largest is not None and abs(typing.cast(int, found)) > largest:
        raise ShapeError(path, show(found), f"{allowed}, at most {largest}")
    return found


def _largest(hint: Any, rule: Rule) -> Optional[int]:
    """The largest absolute value of a whole number."""
    return (rule.maximum or _LARGEST_INTEGER) if hint is int else None


def _text_fits(rule: Rule, text: str) -> bool:
    return (
        (not rule.one_of or text in rule.one_of)
        and (rule.pattern is None or re.fullmatch(rule.pattern, text) is not None)
        and (rule.max_length is None or len(text) <= rule.max_length)
    )


def _allowed(hint: Any, rule: Rule) -> str:
    inner = _optional_of(hint)
    if inner is not None:
        return f"{_allowed(inner, rule)}, or null"
    if rule.one_of:
        return "one of " + ", ".join(rule.one_of)
    if rule.expects:
        return rule.expects
    if dataclasses.is_dataclass(hint) or (typing.get_origin(hint) is not tuple and hint not in _SCALARS):
        return "a JSON object"
    words = "a JSON array" if typing.get_origin(hint) is tuple else _SCALARS[hint][1]
    if rule.minimum is not None:
        words += f", {rule.minimum} or more"
    if rule.max_length is not None:
        words += f" of at most {rule.max_length} " + (
            "items" if typing.get_origin(hint) is tuple else "characters"
        )
    return words


def _digits_pattern(rule: Rule) -> str:
    """Digits as `parse` takes them: eighteen at most, and a value of one or more where the rule asks for it."""
    return "^(?=0*[1-9])[0-9]{1,18}$" if rule.minimum == 1 else "^[0-9]{1,18}$"


def _object_schema(cls: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    return {
        "type": "object",
        "properties": {field.name: _value_schema(hints[field.name], _rule(field)) for field in fields},
        "required": [field.name for field in fields if field.default is MISSING],
    }


def _value_schema(hint: Any, rule: Rule) -> dict[str, Any]:
    described = {"description": rule.doc} if rule.doc else {}
    inner = _optional_of(hint)
    if inner is not None:
        return {
            **described,
            "anyOf": [_value_schema(inner, dataclasses.replace(rule, doc="")), {"type": "null"}],
        }
    if dataclasses.is_dataclass(hint):
        return {**described, **_object_schema(typing.cast(Any, hint))}
    origin = typing.get_origin(hint)
    if origin is tuple:
        limit = {} if rule.max_length is None else {"maxItems": rule.max_length}
        return {
            **described,
            "type": "array",
            "items": _value_schema(typing.get_args(hint)[0], Rule("")),
            **limit,
        }
    if origin is not None:
        return {**described, "type": "object"}
    return {**described, **_scalar_schema(hint, rule)}


def _scalar_schema(hint: Any, rule: Rule) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": _SCALARS[hint][2]}
    if rule.one_of:
        schema["enum"] = list(rule.one_of)
    if rule.pattern is not None:
        schema["pattern"] = f"^(?:{rule.pattern})$"
    largest = _largest(hint, rule)
    if largest is not None:
        schema["minimum"], schema["maximum"] = -largest, largest
    if rule.minimum is not None:
        schema["minimum"] = rule.minimum
    if rule.max_length is not None:
        schema["maxLength"] = rule.max_length
    if rule.digits_accepted:
        return {"anyOf": [schema, {"type": "string", "pattern": _digits_pattern(rule)}]}
    return schema
