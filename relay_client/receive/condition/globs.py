"""Globs of `when:`. `*` and `?` stay between slashes, `**` does not, and `a/**/b` is `a/b` too.

All ways to match are followed side by side: the time is pattern times text. A regular expression would try them one
after the other, and it is strangers who name the files, branches and labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|.", re.DOTALL)


def glob_matches(glob: str, text: str) -> bool:
    """Whether the whole text is of the form of the glob."""
    parts = _PARTS.findall(glob)
    # A state is how many parts are matched already; n + 0.5 stands inside the folders of a `**/`, after n parts.
    states = _entered(parts, [0])
    for character in text:
        if not states:
            return False
        states = _entered(parts, _after(parts, states, character))
    return len(parts) in states


def _after(parts: list[str], states: set[float], character: str) -> Iterable[float]:
    for state in states:
        matched = int(state)
        part = parts[matched] if matched < len(parts) else ""
        if part == "**/":
            yield matched + 0.5
            if character == "/":
                yield matched + 1
        elif part == "**" or (part == "*" and character != "/"):
            yield matched
        elif part == character or (part == "?" and character != "/"):
            yield matched + 1


def _entered(parts: list[str], states: Iterable[float]) -> set[float]:
    """With the states that need no further character: what may be empty is."""
    found: set[float] = set()
    for state in states:
        found.add(state)
        while state == int(state) and state < len(parts) and parts[int(state)] in ("*", "**", "**/"):
            state += 1
            found.add(state)
    return found
