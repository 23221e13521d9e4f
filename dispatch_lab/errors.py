"""The one error a user of the lab meets: what went wrong, what was seen, and what to change."""

from __future__ import annotations


class LabError(Exception):
    """The lab refuses or cannot go on.

    ``what``: one sentence, the thing that is wrong. ``seen``: the evidence (a line, a value, a tail of output).
    ``fix``: what the user changes.
    """

    def __init__(self, what: str, seen: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.seen = seen
        self.fix = fix

    def __str__(self) -> str:
        return f"{self.what}\n  seen: {self.seen}\n  fix:  {self.fix}"
