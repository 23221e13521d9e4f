"""Options of a verb: the command line over the environment over the default, and an exact word on each error."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

from crcr.verbs import VERBS
from relay_client.errors import UsageError
from relay_client.runner.options import add_arguments, default_text, kebab, option, read_options, variable


@dataclass(frozen=True)
class Sample:
    needed: str = option("What it is for")
    colour: str = option("", default="red", one_of=("red", "blue"))
    some_words: tuple[str, ...] = option("", default=("a",), words=True)
    some_lines: tuple[str, ...] = option("", default=())
    some_flag: bool = option("", default=False)
    minutes: float = option("", default=15.0)
    folder: Optional[Path] = option("", default=None)
    some_kinds: tuple[str, ...] = option("", default=(), words=True, one_of=("x", "y"))


def read(given: Optional[dict[str, str]] = None, **environment: str) -> Sample:
    return read_options(Sample, {"needed": "n", **(given or {})}, environment)


def test_the_command_line_wins_over_the_environment_and_that_over_the_default() -> None:
    assert read().colour == "red"
    assert read(CRCR_COLOUR="blue").colour == "blue"
    assert read({"colour": "red"}, CRCR_COLOUR="blue").colour == "red"


@pytest.mark.parametrize("empty", ["", " ", "\n"])
def test_an_empty_variable_means_not_given(empty: str) -> None:
    """Composite actions hand over every input, used or not."""
    assert read(CRCR_COLOUR=empty, CRCR_MINUTES=empty, CRCR_SOME_FLAG=empty, CRCR_FOLDER=empty) == read()
    with pytest.raises(UsageError, match="needed is not given"):
        read_options(Sample, {}, {"CRCR_NEEDED": empty})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("some_words", " a, b\n c,, ", ("a", "b", "c")),
        ("some_lines", "one, with a comma\n\n  two \n", ("one, with a comma", "two")),
        ("some_flag", "True", True),
        ("some_flag", " false\n", False),
        ("minutes", "0.5", 0.5),
        ("minutes", " 3 ", 3.0),
        ("folder", "a b/c", Path("a b/c")),
        ("colour", " blue\n", "blue"),
        ("some_kinds", "x y", ("x", "y")),
    ],
)
def test_texts_become_values(name: str, text: str, value: object) -> None:
    assert getattr(read({name: text}), name) == value
    assert getattr(read(**{variable(name): text}), name) == value


def test_a_home_folder_is_written_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read({"folder": "~/x"}).folder == tmp_path / "x"


@pytest.mark.parametrize(
    ("name", "text", "seen", "fix"),
    [
        ("colour", "green", '"green"', "colour: one of red, blue"),
        ("colour", "red\n::error::x", '"red\\n::error::x"', "colour: one of red, blue"),
        ("some_flag", "yes", '"yes"', "some-flag: true or false"),
        ("minutes", "soon", '"soon"', "minutes: a number"),
        ("minutes", "0", '"0"', "minutes: a number above 0"),
        ("minutes", "-1", '"-1"', "minutes: a number above 0"),
        ("minutes", "nan", '"nan"', "minutes: a number above 0"),
        ("minutes", "inf", '"inf"', "minutes: a number above 0"),
        ("some_kinds", "x z", '"z"', "some-kinds: one of x, y"),
        ("folder", "~nobody-has-this-name/x", '"~nobody-has-this-name/x"', "folder: a path"),
    ],
)
def test_a_wrong_value_is_shown_with_what_is_allowed(name: str, text: str, seen: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        read({name: text})
    assert (caught.value.what, caught.value.seen) == (f"{kebab(name)} has a value that is not allowed.", seen)
    assert caught.value.fix.startswith(fix)


def test_a_missing_option_is_named_as_input_argument_and_variable() -> None:
    with pytest.raises(UsageError) as caught:
        read_options(Sample, {}, {})
    assert caught.value.what == "needed is not given."
    assert caught.value.seen == "neither --needed nor $CRCR_NEEDED"
    assert "`needed: …`" in caught.value.fix
    assert "What it is for" in caught.value.fix


@dataclass(frozen=True)
class ShellSample:
    places: tuple[str, ...] = option("", default=(), positional=True)
    quick: bool = option("", default=False, flag=True)


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ([], {}, ShellSample()),
        (["a b", "c,d"], {}, ShellSample(("a b", "c,d"))),
        (["--quick", "a"], {}, ShellSample(("a",), quick=True)),  # the flag does not eat the place
        (["a", "--quick", "b"], {}, ShellSample(("a", "b"), quick=True)),
        ([], {"CRCR_PLACES": "a\nb", "CRCR_QUICK": "true"}, ShellSample(("a", "b"), quick=True)),
        (["a"], {"CRCR_PLACES": "b", "CRCR_QUICK": "false"}, ShellSample(("a",))),
    ],
)
def test_positional_options_and_flags(
    arguments: list[str], environment: dict[str, str], expected: ShellSample
) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, (ShellSample,))
    given = vars(parser.parse_intermixed_args(arguments))
    assert read_options(ShellSample, given, environment) == expected


def test_an_option_that_several_classes_share_is_added_once() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser, (Sample, Sample))
    assert parser.parse_args(["--needed", "x"]).needed == "x"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_every_default_can_be_read_back_from_its_text(verb: Any) -> None:
    """The actions write the default into the input: it must come back as the same value."""
    for cls in verb.load().OPTIONS:
        rules = {field.name: field for field in cls.__dataclass_fields__.values()}
        needed = {
            variable(name): (*field.metadata["rule"].one_of, "x")[0]
            for name, field in rules.items()
            if not default_text(field)
        }
        texts = {variable(name): default_text(field) for name, field in rules.items()}
        plain = read_options(cls, {}, needed)
        assert read_options(cls, {}, {**texts, **needed}) == plain
