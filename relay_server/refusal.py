"""How the relay says no: a status, and a detail that tells what was wrong, what we saw, what to change."""

from __future__ import annotations

from collections.abc import Mapping


class Refusal(Exception):
    """The request is answered with `status` and the body `{"detail": …}`. Nothing was changed by it."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


def explain(what: str, *, seen: str = "", fix: str = "") -> str:
    """One detail text out of its three parts. `seen` is already rendered and bounded (`shape.show`)."""
    parts = [what.rstrip(".") + "."]
    if seen:
        parts.append(f"Seen: {seen}.")
    if fix:
        parts.append(f"Fix: {fix.rstrip('.')}.")
    return " ".join(parts)
