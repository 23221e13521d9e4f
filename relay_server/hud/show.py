"""How values read on a page. Pure functions; the templates use them as filters."""

from __future__ import annotations

from datetime import datetime, timezone
from urllib.parse import urlsplit

MARKS = {
    # verdict: (mark, words); a verdict reads without colour
    "success": ("✓", "success"),
    "failure": ("✗", "failure"),
    "timed_out": ("⧗", "timed out"),
    "cancelled": ("⊘", "cancelled"),
    "skipped": ("–", "skipped"),
    "neutral": ("○", "neutral"),
    "in_progress": ("◔", "in progress"),
}
_TEXT_CHARACTERS = 300


def mark(verdict: str) -> str:
    """The sign of a verdict."""
    return MARKS.get(verdict, ("?", ""))[0]


def words(verdict: str) -> str:
    """The words of a verdict."""
    return MARKS.get(verdict, ("", verdict))[1]


def duration(seconds: float | None) -> str:
    """`12 s`, `3 min 05 s`, `2 h 10 min`; a dash when unknown."""
    if seconds is None:
        return "–"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s" if whole or not seconds else "under 1 s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def when(timestamp: float) -> str:
    """Epoch seconds as UTC, to the minute."""
    return datetime.fromtimestamp(timestamp, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def iso(timestamp: float) -> str:
    """Epoch seconds for `<time datetime>`."""
    return datetime.fromtimestamp(timestamp, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def percent(rate: float | None) -> str:
    """Rounded down, so that only a faultless record reads 100 %."""
    return "–" if rate is None else f"{int(rate * 100)} %"


def short(text: str, characters: int = _TEXT_CHARACTERS) -> str:
    """Bounded, for text that a downstream may have made as long as it likes."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def branch(ref: str) -> str:
    """A ref without its common prefix."""
    return ref.removeprefix("refs/heads/").removeprefix("refs/")


def safe_link(url: str | None) -> str:
    """The address if a browser may be sent there: http or https, no credentials in it; else empty."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return ""
    return url or "" if parts.scheme in ("http", "https") and parts.netloc and "@" not in parts.netloc else ""


FILTERS = {
    each.__name__: each for each in (mark, words, duration, when, iso, percent, short, branch, safe_link)
}
