"""The options of a verb: one frozen dataclass gives the command line, the environment and the action's inputs.

An option `torch-wheel` is `--torch-wheel` on the command line, `CRCR_TORCH_WHEEL` in the environment and
`torch-wheel` among the inputs of an action. Composite actions hand over every input, used or not, so an
empty variable means "not given".
"""

from __future__ import annotations

import argparse
import dataclasses
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, Optional, TypeVar

from relay_client.errors import UsageError
from relay_client.protocol.shape import show

O = TypeVar("O")

_TRUE = {"true": True, "false": False}


@dataclass(frozen=True)
class OptionRule:
    """What one option allows. `words` splits at white space and commas instead of at line ends;
    `shell_only` keeps it out of the actions, where it would mean nothing. `positional` ones are given
    without a name; a `flag` is given by its name alone.
    """

    doc: str
    one_of: tuple[str, ...] = ()
    words: bool = False
    shell_only: bool = False
    positional: bool = False
    flag: bool = False


def option(
    doc: str,
    *,
    default: Any = MISSING,
    one_of: tuple[str, ...] = (),
    words: bool = False,
    shell_only: bool = False,
    positional: bool = False,
    flag: bool = False,
) -> Any:
    """Declare an option. Without a default it must be given."""
    rule = OptionRule(doc, one_of, words, shell_only, positional, flag)
    return dataclasses.field(default=default, metadata={"rule": rule})


@dataclass(frozen=True)
class StageOptions:
    """What every stage takes."""

    run_dir: Optional[Path] = option(
        "Folder where the stages leave their documents (default: crcr in the runner's temporary folder)",
        default=None,
        shell_only=True,
    )


def kebab(name: str) -> str:
    return name.replace("_", "-")


def variable(name: str) -> str:
    return "CRCR_" + name.upper()


def default_text(field: dataclasses.Field[Any]) -> str:
    """A default as an action's input spells it. Empty when there is none."""
    value = field.default
    if value is MISSING or value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return (" " if field.metadata["rule"].words else "\n").join(value)
    return str(value)


def add_arguments(parser: argparse.ArgumentParser, classes: Iterable[type[Any]]) -> None:
    """Give a parser the options of several classes; an option they share is added once."""
    seen: set[str] = set()
    for cls in classes:
        for field in dataclasses.fields(cls):
            if field.name in seen:
                continue
            seen.add(field.name)
            rule: OptionRule = field.metadata["rule"]
            allowed = f" [{' | '.join(rule.one_of)}]" if rule.one_of else ""
            text = f"{rule.doc}{allowed} (${variable(field.name)})".replace("%", "%%")
            if rule.positional:
                parser.add_argument(field.name, nargs="*", help=text, metavar=kebab(field.name).upper())
            elif rule.flag:
                parser.add_argument("--" + kebab(field.name), help=text, action="store_const", const="true")
            else:
                parser.add_argument("--" + kebab(field.name), help=text, metavar="VALUE")


def read_options(cls: type[O], given: Mapping[str, Any], environment: Mapping[str, str]) -> O:
    """Build the options from the command line, then the environment, then defaults. Raises UsageError."""
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(typing.cast(Any, cls)):
        text = given.get(field.name)
        if isinstance(text, list):  # positional: none given is an empty list
            text = "\n".join(text) if text else None
        if text is None:
            text = environment.get(variable(field.name), "")
            text = text if text.strip() else None
        if text is None:
            if field.default is MISSING:
                raise UsageError(
                    f"{kebab(field.name)} is not given.",
                    seen=f"neither --{kebab(field.name)} nor ${variable(field.name)}",
                    fix=f"add `{kebab(field.name)}: …` to the step ({field.metadata['rule'].doc})",
                )
            continue
        values[field.name] = _convert(field.name, hints[field.name], field.metadata["rule"], text)
    return cls(**values)


def _convert(name: str, hint: Any, rule: OptionRule, text: str) -> Any:
    inner = [item for item in typing.get_args(hint) if item is not type(None)]
    if typing.get_origin(hint) is typing.Union and len(inner) == 1:
        hint = inner[0]
    if typing.get_origin(hint) is tuple:
        items = text.replace(",", " ").split() if rule.words else [line.strip() for line in text.splitlines()]
        return tuple(_checked(name, rule, item) for item in items if item)
    if hint is bool:
        if text.strip().lower() not in _TRUE:
            raise _wrong(name, text, "true or false")
        return _TRUE[text.strip().lower()]
    if hint is float:
        try:
            number = float(text)
        except ValueError:
            raise _wrong(name, text, "a number") from None
        if not 0 < number < 1e6:
            raise _wrong(name, text, "a number above 0")
        return number
    if hint is Path:
        try:
            return Path(text).expanduser()
        except RuntimeError:
            raise _wrong(name, text, "a path; the home folder of ~ is not known here") from None
    return _checked(name, rule, text.strip())


def _checked(name: str, rule: OptionRule, text: str) -> str:
    if rule.one_of and text not in rule.one_of:
        raise _wrong(name, text, "one of " + ", ".join(rule.one_of))
    return text


def _wrong(name: str, text: str, allowed: str) -> UsageError:
    return UsageError(
        f"{kebab(name)} has a value that is not allowed.", seen=show(text), fix=f"{kebab(name)}: {allowed}"
    )
