"""Read one JUnit file as a stream of test cases: constant memory, hostile XML refused, broken XML said.

What could be read before a file breaks counts; that it broke is said, and success is refused for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Optional
from xml.parsers import expat  # DOCTYPE and entities are refused below, before they mean anything

from relay_client.protocol.vocabulary import MAX_MESSAGE_CHARACTERS, MAX_STACKTRACE_CHARACTERS
from relay_client.report.junit.names import Name, of_junit
from relay_client.report.junit.text import UnreadableText, chunks, legal

MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_DEPTH = 32
MAX_ATTRIBUTES = 64
# A tag with its attributes, a comment: the parser holds one of them in memory.
MAX_TOKEN_BYTES = 4 * 1024 * 1024

# Child of <testcase>: what it makes of the case. pytest, xmlrunner, PyTorch's conftest (rerun), surefire.
_OUTCOMES = {
    "failure": "failed",
    "error": "failed",
    "rerunFailure": "failed",
    "rerunError": "failed",
    "skipped": "skipped",
}
_TRIED_AGAIN = frozenset({"rerun", "flakyFailure", "flakyError", "rerunFailure", "rerunError"})
_EXPECTED = frozenset({"pytest.xfail", "xfail"})


class Case(NamedTuple):
    """One `<testcase>`. `again` says that the writer itself ran the test more than once."""

    test: Name
    outcome: str
    message: str = ""
    trace: str = ""
    seconds: Optional[float] = None
    again: bool = False


@dataclass(frozen=True)
class Scan:
    """How the reading ended: `broken` is empty, or says why the file cannot be trusted to be whole."""

    cases: int
    broken: str = ""


class _Refused(UnreadableText):
    """What it holds is no report."""


def scan(path: Path, take: Callable[[Case], None]) -> Scan:
    """Hand every case of a file to `take`, in the order of the file. Never raises for what the file holds."""
    reader = _Reader(take)
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not path.is_file():
                return Scan(0, "it is not a plain file")
            size = os.fstat(file.fileno()).st_size
            if size > MAX_FILE_BYTES:
                return Scan(0, f"it has {size} bytes; the limit is {MAX_FILE_BYTES}")
            reader.read(legal(chunks(file)))
    except OSError as error:
        return Scan(reader.cases, f"it cannot be opened: {error.strerror}")
    except UnreadableText as refused:
        return Scan(reader.cases, str(refused))
    except expat.ExpatError as error:
        what = expat.ErrorString(error.code)
        return Scan(reader.cases, f"it is not whole XML: {what} in line {error.lineno}")
    return Scan(reader.cases, "; ".join(reader.complaints[:3]))


class _Suite:
    """One `<testsuite>`: how many failures and errors it announced, and how many came."""

    def __init__(self, announced: Optional[int]) -> None:
        self.announced = announced
        self.bad = 0


class _Reader:
    """The state between two events of the parser."""

    def __init__(self, take: Callable[[Case], None]) -> None:
        self.cases = 0
        self.complaints: list[str] = []
        self._take = take
        self._open: list[str] = []
        self._suites: list[_Suite] = []
        self._text: Optional[list[str]] = None
        self._kept = 0
        self._attributes: dict[str, str] = {}
        self._outcome, self._message, self._trace, self._again = "passed", "", "", False
        self._parser = parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._doctype

    def read(self, pieces: Iterable[bytes]) -> None:
        fed = 0
        for piece in pieces:
            self._parser.Parse(piece, False)
            fed += len(piece)
            if fed - self._parser.CurrentByteIndex > MAX_TOKEN_BYTES:
                raise _Refused(f"one tag of it is longer than {MAX_TOKEN_BYTES} bytes")
        self._parser.Parse(b"", True)

    def _doctype(self, *_: object) -> None:
        raise _Refused("it declares a document type or entities, which no test report needs")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._open and tag not in ("testsuites", "testsuite"):
            raise _Refused("it is not a JUnit report: its first tag is neither testsuites nor testsuite")
        self._open.append(tag)
        if len(self._open) > MAX_DEPTH or len(attributes) > MAX_ATTRIBUTES:
            raise _Refused(f"it nests deeper than {MAX_DEPTH} or has more than {MAX_ATTRIBUTES} attributes")
        if tag == "testsuite":
            self._suites.append(_Suite(_announced(attributes)))
        elif tag == "testcase":
            self._clear(attributes)
        elif len(self._open) > 1 and self._open[-2] == "testcase":
            self._child(tag, attributes)

    def _child(self, tag: str, attributes: dict[str, str]) -> None:
        self._again = self._again or tag in _TRIED_AGAIN
        if tag in ("failure", "error") and self._suites:
            self._suites[-1].bad += 1  # pytest announces each, also two of one test
        outcome = _OUTCOMES.get(tag)
        if outcome == "skipped" and (attributes.get("type") or "").lower() in _EXPECTED:
            outcome = "xfailed"
        # The worst child counts, and the first of the worst is told.
        if (
            outcome is None
            or self._outcome == "failed"
            or (outcome != "failed" and self._outcome != "passed")
        ):
            return
        self._outcome = outcome
        self._message = attributes.get("message", "")[:MAX_MESSAGE_CHARACTERS]
        self._text, self._kept = [], 0

    def _end(self, tag: str) -> None:
        self._open.pop()
        if tag == "testcase":
            self._finish()
        elif tag == "testsuite":
            suite = self._suites.pop()
            if suite.announced is not None and suite.announced > suite.bad:
                self.complaints.append(
                    f"a suite announces {suite.announced} failures and errors, and holds {suite.bad}"
                )
        elif self._text is not None and self._open and self._open[-1] == "testcase":
            self._trace = "".join(self._text)[-MAX_STACKTRACE_CHARACTERS:]
            self._text = None

    def _characters(self, text: str) -> None:
        if self._text is None:
            return
        self._text.append(text[-MAX_STACKTRACE_CHARACTERS:])
        self._kept += len(self._text[-1])
        if self._kept > 4 * MAX_STACKTRACE_CHARACTERS:
            self._text = ["".join(self._text)[-MAX_STACKTRACE_CHARACTERS:]]
            self._kept = MAX_STACKTRACE_CHARACTERS

    def _clear(self, attributes: dict[str, str]) -> None:
        self._attributes = attributes
        self._outcome, self._message, self._trace, self._again = "passed", "", "", False

    def _finish(self) -> None:
        attributes = self._attributes
        name = of_junit(attributes.get("classname") or "", attributes.get("name") or "")
        if not name.name:
            self.complaints.append("a test of it has no name")
        self.cases += 1
        if not self._message and self._trace:
            self._message = self._trace.strip().splitlines()[-1][:MAX_MESSAGE_CHARACTERS]
        self._take(
            Case(
                name, self._outcome, self._message, self._trace, _seconds(attributes.get("time")), self._again
            )
        )


def _announced(attributes: dict[str, str]) -> Optional[int]:
    """Failures and errors that the suite's head says it has. pytest counts each, xmlrunner too."""
    numbers = [attributes.get(name, "0").strip() or "0" for name in ("failures", "errors")]
    if not all(number.isascii() and number.isdecimal() and len(number) <= 9 for number in numbers):
        return None
    return sum(map(int, numbers))


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None
