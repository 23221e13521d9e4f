"""Read what ccache and sccache say of themselves, in their machine-readable forms. No I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional

# ccache's counters of compilations that it could not serve. Links and preprocessor runs are not among them.
_CCACHE_UNCACHED = (
    "bad_compiler_arguments", "bad_input_file", "bad_output_file", "compile_failed", "compiler_check_failed",
    "compiler_produced_empty_output", "compiler_produced_no_output", "could_not_find_compiler",
    "could_not_use_modules", "could_not_use_precompiled_header", "disabled", "error_hashing_extra_file",
    "internal_error", "missing_cache_file", "modified_input_file", "multiple_source_files", "output_to_stdout",
    "preprocessor_error", "unsupported_code_directive", "unsupported_compiler_option",
    "unsupported_environment_variable", "unsupported_source_encoding", "unsupported_source_language",
)  # fmt: skip
_MOST = 10**9


@dataclass(frozen=True)
class Counted:
    """Compilations by what became of them: served, compiled and stored, or none of the cache's business."""

    hits: int
    misses: int
    uncached: int

    @property
    def rate(self) -> Optional[float]:
        """Hits per hundred of what could be cached; None when there was nothing."""
        asked = self.hits + self.misses
        return 100 * self.hits / asked if asked else None

    def describe(self) -> str:
        if self.rate is None:
            return "nothing was compiled through it"
        # Rounded down: only all is 100 %.
        told = f"{self.hits} hits, {self.misses} misses, {int(self.rate)} % from the cache"
        return f"{told}, {self.uncached} not cacheable" if self.uncached else told


def read_ccache(text: str) -> Optional[Counted]:
    """What `ccache --print-stats` printed: a counter and its value on each line, a tab between them."""
    counters = {}
    for line in text.splitlines():
        name, _, value = line.partition("\t")
        if value.isdecimal() and len(value) < 20:
            counters[name] = int(value)
    if "cache_miss" not in counters:
        return None
    hits = counters.get("direct_cache_hit", 0) + counters.get("preprocessed_cache_hit", 0)
    return Counted(
        min(hits, _MOST),
        min(counters["cache_miss"], _MOST),
        min(sum(counters.get(name, 0) for name in _CCACHE_UNCACHED), _MOST),
    )


def read_sccache(text: str) -> Optional[Counted]:
    """What `sccache --show-stats --stats-format=json` printed."""
    try:
        stats = json.loads(text)["stats"]
        return Counted(
            _total(stats["cache_hits"]),
            _total(stats["cache_misses"]),
            _count(stats["requests_not_cacheable"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _total(by_language: Any) -> int:
    return min(sum(_count(value) for value in by_language["counts"].values()), _MOST)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ValueError("not a count")
    return value


READERS = {"ccache": read_ccache, "sccache": read_sccache}
COMMANDS = {
    "ccache": ("--print-stats",),
    "sccache": ("--show-stats", "--stats-format=json"),
}
