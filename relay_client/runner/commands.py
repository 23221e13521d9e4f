"""What a step says to its runner: outputs, masks, groups, annotations, summary.

Text that goes into a workflow command or a file command may be a stranger's: it is escaped here, once.
Source: docs.github.com, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Optional, TextIO

from relay_client.errors import CrcrError, InternalError
from relay_client.runner.context import RunContext

# GitHub refuses a step summary above 1 MiB; what is cut here is in the documents.
MAX_SUMMARY_BYTES = 1024 * 1024
_CUT = "\n\n… cut here\n"
_WORTH_SAYING_SECONDS = 1.0
_MAX_ANNOTATION_CHARACTERS = 4_000


class Commands:
    """The small vocabulary of the log. Off GitHub the same calls print for a terminal."""

    def __init__(self, context: RunContext, stream: Optional[TextIO] = None) -> None:
        self._github = context.on_github
        self._environment = context.environment
        self._stream = stream or sys.stdout

    def line(self, text: str) -> None:
        """Print our own text, which may quote a stranger's: no line of it can become a command."""
        for part in text.splitlines() or [""]:
            self._write(_defused(part))

    def leave_stdout(self) -> None:
        """From here on talk on standard error: standard output is for the program that reads the result."""
        self._stream = sys.stderr

    def notice(self, text: str, title: str = "") -> None:
        self._annotate("notice", text, title)

    def warning(self, text: str, title: str = "", file: str = "", line: int = 0) -> None:
        self._annotate("warning", text, title, file, line)

    def error(self, text: str, title: str = "", file: str = "", line: int = 0) -> None:
        self._annotate("error", text, title, file, line)

    def failure(self, error: CrcrError) -> None:
        """Show an error to the person who must mend it: in the annotation and in the summary."""
        self.error(error.text(), title=f"crcr: {type(error).__name__}", file=error.file, line=error.line)
        self.summary(f"### ❌ {markdown_text(error.what)}\n\n{markdown_block(error.text())}\n")

    @contextlib.contextmanager
    def group(self, title: str) -> Iterator[None]:
        """Fold what is printed inside, and say how long it took. Groups do not nest on GitHub: do not nest them."""
        self._write(f"::group::{_escape_data(title)}" if self._github else f"── {_defused(title)}")
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - started
            if seconds >= _WORTH_SAYING_SECONDS:
                self._write(f"({seconds:.1f} s)")
            if self._github:
                self._write("::endgroup::")

    @contextlib.contextmanager
    def foreign_output(self) -> Iterator[TextIO]:
        """A stretch of the log in which the runner obeys no command: for a stranger's output."""
        token = os.urandom(16).hex()
        if self._github:
            self._write(f"::stop-commands::{token}")
        try:
            yield self._stream
        finally:
            if self._github:
                # A program may have left the line unfinished; the command must start a line.
                self._write(f"\n::{token}::")

    def mask(self, secret: str) -> None:
        """Keep a value out of every later log line. Called before the value goes anywhere."""
        if self._github:
            self._write(f"::add-mask::{_escape_data(secret)}")

    def output(self, name: str, value: str) -> None:
        """Set an output of the step."""
        if self._github:
            self._append("GITHUB_OUTPUT", _file_command(name, value))
        else:
            self.line(f"{name}={value}")

    def summary(self, markdown: str) -> None:
        """Add to the summary of the job. Off GitHub nothing is printed twice: the log has it."""
        if not self._github:
            return
        path = self._environment.get("GITHUB_STEP_SUMMARY")
        if path:
            room = MAX_SUMMARY_BYTES - (Path(path).stat().st_size if Path(path).exists() else 0)
            text = _unicode(markdown) + "\n"
            if len(text.encode()) > room:
                kept = room - len(_CUT.encode())
                text = text.encode()[:kept].decode(errors="ignore") + _CUT if kept >= 0 else ""
            self._append("GITHUB_STEP_SUMMARY", text)

    def _annotate(self, kind: str, text: str, title: str, file: str = "", line: int = 0) -> None:
        if not self._github:
            self.line(f"{kind}: {text}")
            return
        properties = {"file": file, "line": str(line) if file and line else "", "title": title}
        given = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items() if value)
        self._write(
            f"::{kind}{' ' if given else ''}{given}::{_escape_data(text[:_MAX_ANNOTATION_CHARACTERS])}"
        )

    def _append(self, variable: str, text: str) -> None:
        path = self._environment.get(variable)
        if not path:
            raise InternalError(
                f"The runner gave no {variable} file.",
                seen=f"{variable} is not set although GITHUB_ACTIONS=true",
                fix="run the step in a GitHub Actions job",
            )
        with Path(path).open("a", encoding="utf-8", newline="\n") as file:
            file.write(_unicode(text))

    def _write(self, text: str) -> None:
        self._stream.write(_unicode(text) + "\n")
        self._stream.flush()


_MARKUP = {ord(character): f"&#{ord(character)};" for character in "\\`*_{}[]()#+-.!|~@:/$"}
_MARKUP.update({ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"})


def markdown_text(text: str) -> str:
    """A stranger's words inside a Markdown line: nothing in it is markup, a mention or HTML."""
    one_line = " ".join(text.split())
    return one_line.translate(_MARKUP)


def markdown_block(text: str) -> str:
    """A stranger's words as a code block that they cannot close."""
    longest = 0
    run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _unicode(text: str) -> str:
    """Text that has bytes. JSON may hold half a surrogate pair, which no file and no log takes."""
    return text.encode(errors="replace").decode()


def _escape_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _defused(text: str) -> str:
    """The runner takes a line for a command when it starts with `::`, after blanks too, or holds `##[`."""
    flat = text.replace("\r", " ").replace("\n", " ").replace("##[", "## [")
    return flat.replace("::", ": :", 1) if flat.lstrip().startswith("::") else flat


def _file_command(name: str, value: str) -> str:
    delimiter = f"crcr_{os.urandom(16).hex()}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"
