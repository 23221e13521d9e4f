"""Find the compiler's first error in a build log: the one that explains, before the ones that follow from it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

# gcc and clang, then nvcc and MSVC, as pip and ninja pass their lines on (indented, coloured).
_FORMS = (
    re.compile(r"^\s*(?P<file>[^\s:][^:]*):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<message>.+)$"),
    re.compile(
        r"^\s*(?P<file>\S[^()]*)\((?P<line>\d+)(?:,\d+)?\): (?:fatal )?error(?: [A-Z]+\d+)?: (?P<message>.+)$"
    ),
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LONGEST_LINE = 4_000


@dataclass(frozen=True)
class CompilerError:
    """One error: file as the compiler spelled it, line from 1, and its words."""

    file: str
    line: int
    message: str

    def seen_from(self, workspace: Optional[Path]) -> CompilerError:
        """The same error with its file as the repository names it: GitHub shows an annotation only there."""
        if workspace is None or not self.file.startswith(f"{workspace}/"):
            return self
        return replace(self, file=self.file[len(f"{workspace}/") :])

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


def first_error(lines: Iterable[str]) -> Optional[CompilerError]:
    """The first compiler error among the lines of a log, or None."""
    for text in lines:
        if "error" not in text or len(text) > _LONGEST_LINE:
            continue
        plain = _COLOUR.sub("", text.rstrip("\n"))
        for form in _FORMS:
            match = form.match(plain)
            if match:
                return CompilerError(match["file"], int(match["line"]), match["message"].strip())
    return None
