"""Gate 3: how often. A sliding minute per repository; a refused call does not count, so waiting always helps."""

from __future__ import annotations

import math

from relay_server.refusal import Refusal, explain
from relay_server.store import Store

WINDOW_SECONDS = 60.0


def check(repository: str, store: Store, *, limit: int, now: float) -> None:
    """Count this call. Raises Refusal 429 with Retry-After in whole seconds (RFC 9110, 10.2.3)."""
    wait = store.count_call(repository, now=now, window=WINDOW_SECONDS, limit=limit)
    if wait is None:
        return
    seconds = max(1, math.ceil(wait))
    detail = explain(
        f"rate limit exceeded for {repository}",
        seen=f"{limit} callbacks within {WINDOW_SECONDS:.0f} s, which is the limit",
        fix=f"wait {seconds} s (Retry-After) and send this callback again; report few rows, not every shard",
    )
    raise Refusal(429, detail, {"Retry-After": str(seconds)})
