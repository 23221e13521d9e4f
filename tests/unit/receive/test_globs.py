"""The globs of `when:`, against the same rules as a regular expression, and against texts that would take it hours."""

from __future__ import annotations

import itertools
import re

import pytest

from relay_client.receive.condition.globs import glob_matches


def as_regular_expression(glob: str) -> str:
    rules = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        rules.get(part) or re.escape(part) for part in re.findall(r"\*\*/|\*\*|\*|\?|.", glob, re.DOTALL)
    )


@pytest.mark.parametrize(
    ("glob", "yes", "no"),
    [
        ("torch/csrc/**", ("torch/csrc/x.cpp", "torch/csrc/a/b"), ("torch/csrc", "torch/a", "a/torch/csrc/x")),
        ("release/*", ("release/2.14",), ("release/2.14/x", "release", "xrelease/1")),
        ("**/test_*.py", ("test_a.py", "test/inductor/test_a.py"), ("test/a.py", "test/test_a.pyc", "atest_a.py")),
        ("a/**/b", ("a/b", "a/x/b", "a/x/y/b"), ("ab", "a/xb", "a/b/c")),
        ("**", ("", "a", "a/b", "a\nb"), ()),
        ("*", ("", "a"), ("a/b",)),
        ("?", ("a",), ("", "/", "ab")),
        ("v2.14", ("v2.14",), ("v2x14",)),
        ("[a]", ("[a]",), ("a",)),
    ],
)  # fmt: skip
def test_a_glob(glob: str, yes: tuple[str, ...], no: tuple[str, ...]) -> None:
    assert [text for text in yes if not glob_matches(glob, text)] == []
    assert [text for text in no if glob_matches(glob, text)] == []


def test_all_short_globs_mean_what_the_rules_say() -> None:
    texts = ["".join(text) for size in range(5) for text in itertools.product("a/b", repeat=size)]
    globs = ["".join(glob) for size in range(5) for glob in itertools.product(("a", "/", "*", "**", "**/", "?"), repeat=size)]  # fmt: skip
    wrong = []
    for glob in globs:
        pattern = re.compile(as_regular_expression(glob), re.DOTALL)
        wrong += [(glob, text) for text in texts if glob_matches(glob, text) != bool(pattern.fullmatch(text))]
    assert wrong == []


def test_no_text_takes_for_ever() -> None:
    """With backtracking this needs some 10^20 steps: the test would not end."""
    assert not glob_matches("**a" * 8 + "**b", "a" * 1_000)
    assert not glob_matches("**/a/" * 8 + "b", "a/" * 500)
