"""The shape engine: one declaration, exact errors, and values of strangers shown safely."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

import pytest

from relay_client.protocol.shape import ShapeError, dump, json_schema, member, parse, show


@dataclass(frozen=True)
class Inner:
    number: int = member("", minimum=0)


@dataclass(frozen=True)
class Sample:
    """One member for every kind of rule."""

    word: str = member("", one_of=("red", "blue"))
    code: str = member("", pattern=r"[0-9a-f]{4}", expects="four hexadecimal digits")
    count: int = member("", default=1, minimum=1)
    digits: int = member("", default=1, minimum=1, digits_accepted=True)
    ratio: float = member("", default=0.0, minimum=0)
    flag: bool = member("", default=False)
    short: str = member("", default="", max_length=3)
    items: tuple[str, ...] = member("", default=(), max_length=2)
    inner: Optional[Inner] = member("", default=None)
    inners: tuple[Inner, ...] = member("", default=())
    free: Mapping[str, Any] = member("", default=None)
    kind: Optional[str] = member("", default=None, one_of=("x",))
    rare: Optional[int] = member("", default=None, omit_none=True)


GOOD: dict[str, Any] = {"word": "red", "code": "00ff"}
# Whole numbers that every JSON reader takes: RFC 7493, 2.2.
SAFE = 2**53 - 1


@pytest.mark.parametrize(
    ("name", "value", "field", "found", "allowed"),
    [
        ("word", "green", "word", '"green"', "one of red, blue"),
        ("word", None, "word", "null", "one of red, blue"),
        ("word", ["red"], "word", '["red"]', "one of red, blue"),
        ("code", "00f", "code", '"00f"', "four hexadecimal digits"),
        ("code", "00ff\n", "code", '"00ff\\n"', "four hexadecimal digits"),
        ("code", "x00ff", "code", '"x00ff"', "four hexadecimal digits"),
        ("code", 1234, "code", "1234", "four hexadecimal digits"),
        ("count", 0, "count", "0", "a whole number, 1 or more"),
        ("count", True, "count", "true", "a whole number, 1 or more"),
        ("count", "1", "count", '"1"', "a whole number, 1 or more"),
        ("count", 1.5, "count", "1.5", "a whole number, 1 or more"),
        ("count", SAFE + 1, "count", str(SAFE + 1), f"a whole number, 1 or more, at most {SAFE}"),
        ("digits", "0", "digits", "0", "a whole number, 1 or more"),
        ("digits", "-1", "digits", '"-1"', "a whole number, 1 or more"),
        ("digits", "٣", "digits", '"\\u0663"', "a whole number, 1 or more"),
        ("digits", "1" * 19, "digits", f'"{"1" * 19}"', "a whole number, 1 or more"),
        ("ratio", "1", "ratio", '"1"', "a number, 0 or more"),
        ("ratio", False, "ratio", "false", "a number, 0 or more"),
        ("ratio", float("nan"), "ratio", "NaN", "a number, 0 or more"),
        ("ratio", float("inf"), "ratio", "Infinity", "a number, 0 or more"),
        ("flag", 1, "flag", "1", "true or false"),
        ("flag", "true", "flag", '"true"', "true or false"),
        ("short", "four", "short", '"four"', "text of at most 3 characters"),
        ("items", "ab", "items", '"ab"', "a JSON array of at most 2 items"),
        ("items", ["a", "b", "c"], "items", "3 items", "a JSON array of at most 2 items"),
        ("items", ["a", 1], "items[1]", "1", "text"),
        ("inner", [], "inner", "[]", "a JSON object"),
        ("inner", {}, "inner.number", "nothing", "a whole number, 0 or more"),
        ("inner", {"number": -1}, "inner.number", "-1", "a whole number, 0 or more"),
        (
            "inners",
            [{"number": 1}, {"number": None}],
            "inners[1].number",
            "null",
            "a whole number, 0 or more",
        ),
        ("free", [1], "free", "[1]", "a JSON object"),
        ("kind", "y", "kind", '"y"', "one of x, or null"),
        ("rare", "y", "rare", '"y"', "a whole number, or null"),
    ],
)
def test_an_error_names_the_field_what_was_found_and_what_is_allowed(
    name: str, value: object, field: str, found: str, allowed: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        parse(Sample, {**GOOD, name: value})
    assert (caught.value.field, caught.value.found, caught.value.allowed) == (field, found, allowed)
    assert str(caught.value) == f"{field}: found {found}; allowed is {allowed}"


@pytest.mark.parametrize("name", ["word", "code"])
def test_a_missing_member_without_a_default_is_an_error(name: str) -> None:
    with pytest.raises(ShapeError) as caught:
        parse(Sample, {key: value for key, value in GOOD.items() if key != name}, "top")
    assert (caught.value.field, caught.value.found) == (f"top.{name}", "nothing")


@pytest.mark.parametrize("value", [None, [], "text", 1, True])
def test_only_an_object_is_a_document(value: object) -> None:
    with pytest.raises(ShapeError) as caught:
        parse(Sample, value)
    assert (caught.value.field, caught.value.allowed) == ("(the document)", "a JSON object")


def test_members_that_are_not_known_are_ignored() -> None:
    tomorrow = {**GOOD, "new": 1, "inner": {"number": 2, "newer": []}}
    assert parse(Sample, tomorrow) == parse(Sample, {**GOOD, "inner": {"number": 2}})


def test_defaults_stand_for_what_is_left_out() -> None:
    assert parse(Sample, GOOD) == Sample("red", "00ff")


@pytest.mark.parametrize(
    ("name", "value", "parsed"),
    [
        ("digits", "007", 7),
        ("digits", 7, 7),
        ("ratio", 2, 2),
        ("count", 3.0, 3),  # JSON has one kind of number: 3.0 is a whole one
        ("items", [], ()),
        ("kind", None, None),
        ("count", SAFE, SAFE),
    ],
)
def test_the_same_value_written_otherwise_is_taken(name: str, value: object, parsed: object) -> None:
    taken = getattr(parse(Sample, {**GOOD, name: value}), name)
    assert (taken, type(taken)) == (parsed, type(parsed))


def test_what_is_dumped_can_be_parsed_again_and_none_is_left_out_where_asked() -> None:
    sample = Sample("red", "00ff", items=("a",), inners=(Inner(1), Inner(2)), free={"a": [{"b": None}]})
    value = json.loads(json.dumps(dump(sample)))
    assert parse(Sample, value) == sample
    assert "rare" not in value
    assert value["kind"] is None
    assert list(value)[:2] == ["word", "code"]


def test_free_json_is_passed_through_however_deep_it_is() -> None:
    free: dict[str, Any] = {}
    for _ in range(5_000):
        free = {"deeper": free}
    sample = parse(Sample, {**GOOD, "free": free})
    assert dump(sample)["free"] is free


@pytest.mark.parametrize(
    "hostile",
    [
        "line\nbreak",
        "carriage\rreturn",
        "\x1b[31mred",
        "\u202eright to left",
        "\u2028separator",
        "\x00",
        "\ud800 half a pair",
        "::error::no\n::error::yes",
        "x" * 10_000_000,
        {"key\n": "value\n"},
        ["\n"] * 1_000,
        {1, 2},
        b"bytes\n",
        object(),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_a_hostile_value_is_shown_on_one_short_line_of_printable_ascii(hostile: object) -> None:
    shown = show(hostile)
    assert len(shown) <= 100
    assert all(" " <= character <= "~" or character == "…" for character in shown)


@pytest.mark.parametrize("deep", [500, 5_000, 200_000])
def test_a_deep_value_is_shown_too(deep: int) -> None:
    value: Any = 1
    for _ in range(deep):
        value = [value]
    assert len(show(value)) <= 100
    while isinstance(value, list):  # taken apart here: freeing it in one go would be another recursion
        value = value.pop()


def test_the_schema_says_what_the_members_say() -> None:
    schema = json_schema(Sample, "Sample")
    assert schema["required"] == ["word", "code"]
    properties = schema["properties"]
    assert properties["word"]["enum"] == ["red", "blue"]
    assert properties["code"]["pattern"] == "^(?:[0-9a-f]{4})$"
    assert (properties["count"]["minimum"], properties["count"]["maximum"]) == (1, SAFE)
    assert properties["items"]["maxItems"] == 2
    assert properties["short"]["maxLength"] == 3
    assert "additionalProperties" not in schema
