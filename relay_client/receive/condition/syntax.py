"""Read a condition. Pure: text in, a tree out.

    condition  = both { "or" both }
    both       = negation { "and" negation }
    negation   = "not" negation | "(" condition ")" | term
    term       = FLAG | "sample" PERCENT "%" | FIELD "is" value { "," value }

Keywords are lower case. A value is a glob: a bare word, or any text in double quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Union

from relay_client.errors import BadCondition

MAX_CHARACTERS = 2_000
MAX_DEPTH = 20

# name: what it is true for. The documentation's table is made of these.
FLAGS = {
    "push": "a push of a branch or a tag",
    "pull_request": "an event of a pull request that has not landed",
    "landed": "a pull request that was closed by landing: `closed` with the label `Merged`",
    "draft": "a pull request that its author calls a draft",
    "trusted": "code that has landed, or whose author is one of `trusted-authors`, or that somebody let run",
}
FIELDS = {
    "action": "what happened to the pull request: opened, reopened, synchronize, closed, labeled",
    "label": "one of the labels of the pull request",
    "added": "the label that was just added (PyTorch's relay sends no dispatch for that, others may)",
    "author": "what the author is to the upstream repository, such as member or first_time_contributor",
    "base": "the branch that the pull request wants to land on",
    "ref": "the ref that was pushed, such as refs/heads/main or refs/tags/ciflow/trunk/*",
    "changed": "one of the files that changed since the merge base (asks git for them)",
}
_WORDS = frozenset({"and", "or", "not", "is", "sample"})
_TOKEN = re.compile(r'\s*(?:(?P<quoted>"[^"\n]*")|(?P<mark>[(),])|(?P<word>[^\s(),"]+))')


@dataclass(frozen=True)
class Flag:
    name: str


@dataclass(frozen=True)
class Sample:
    """True for a share of all subjects, in per cent, the same ones each time."""

    percent: float


@dataclass(frozen=True)
class Is:
    """True if a value of the field matches one of the globs."""

    field: str
    globs: tuple[str, ...]


@dataclass(frozen=True)
class Not:
    inner: Condition


@dataclass(frozen=True)
class And:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Condition, ...]


Condition = Union[Flag, Sample, Is, Not, And, Or]


@dataclass(frozen=True)
class _Token:
    text: str
    column: int
    quoted: bool = False


def read_condition(text: str) -> Condition:
    """Raises BadCondition, which points at the column (from 1)."""
    if len(text) > MAX_CHARACTERS:
        raise BadCondition(
            "when is too long.",
            seen=f"{len(text)} characters",
            fix=f"when: at most {MAX_CHARACTERS} characters",
        )
    hidden = next((at for at, one in enumerate(text) if not one.isprintable() and one not in "\n\t"), None)
    if hidden is not None:
        # It could make a reviewer read another condition than the one that decides.
        raise BadCondition(
            "when has a character that cannot be seen.",
            seen=f"U+{ord(text[hidden]):04X} in column {hidden + 1}",
            fix="when: without that character",
        )
    reader = _Reader(text, _tokens(text))
    tree = reader.condition(0)
    if reader.peek().text or reader.peek().quoted:
        raise reader.wrong("`and`, `or` or the end")
    return tree


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            column = at + len(text[at:]) - len(text[at:].lstrip()) + 1
            raise _bad(text, column, text[column - 1], 'a closing `"`')
        kind = str(match.lastgroup)
        value = match[kind]
        tokens.append(
            _Token(value[1:-1] if kind == "quoted" else value, match.start(kind) + 1, kind == "quoted")
        )
        at = match.end()
    return [*tokens, _Token("", len(text) + 1)]


class _Reader:
    """Recursive descent over the tokens; the last one is empty."""

    def __init__(self, text: str, tokens: list[_Token]) -> None:
        self._text = text
        self._tokens = tokens
        self._at = 0

    def peek(self) -> _Token:
        return self._tokens[self._at]

    def take(self, word: str) -> bool:
        found = self.peek().text == word and not self.peek().quoted
        self._at += found
        return found

    def condition(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            raise self.wrong(f"at most {MAX_DEPTH} parentheses and `not` inside each other")
        parts = [self._both(depth)]
        while self.take("or"):
            parts.append(self._both(depth))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self, depth: int) -> Condition:
        parts = [self._negation(depth)]
        while self.take("and"):
            parts.append(self._negation(depth))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _negation(self, depth: int) -> Condition:
        if self.take("not"):
            if depth > MAX_DEPTH:
                raise self.wrong(f"at most {MAX_DEPTH} parentheses and `not` inside each other")
            return Not(self._negation(depth + 1))
        if self.take("("):
            inner = self.condition(depth + 1)
            if not self.take(")"):
                raise self.wrong("`and`, `or` or `)`")
            return inner
        return self._term()

    def _term(self) -> Condition:
        token = self.peek()
        if not token.quoted and token.text in FLAGS:
            self._at += 1
            return Flag(token.text)
        if self.take("sample"):
            return self._sample()
        if token.quoted or token.text not in FIELDS:
            raise self.wrong(f"a term: {', '.join((*FLAGS, *FIELDS, 'sample'))}")
        self._at += 1
        if not self.take("is"):
            raise self.wrong("`is`")
        globs = [self._value()]
        while self.take(","):
            globs.append(self._value())
        return Is(token.text, tuple(globs))

    def _value(self) -> str:
        token = self.peek()
        bare = token.text and token.text not in _WORDS and token.text not in ("(", ")", ",")
        if not (token.quoted or bare):
            raise self.wrong('a value; put it in "quotes" if it is a word of this language')
        self._at += 1
        return token.text

    def _sample(self) -> Condition:
        match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)%", self.peek().text)
        if match is None or float(match[1]) > 100:
            raise self.wrong("a share such as 10%")
        self._at += 1
        return Sample(float(match[1]))

    def wrong(self, expected: str) -> BadCondition:
        token = self.peek()
        return _bad(self._text, token.column, token.text or "the end", expected)


def _bad(text: str, column: int, found: str, expected: str) -> BadCondition:
    line = " ".join(text.split("\n"))
    return BadCondition(
        "when cannot be understood.",
        seen=f"{found} in column {column} of: {line}",
        fix=f"when: {line[: column - 1]}… here must stand {expected}",
    )
