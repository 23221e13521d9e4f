"""Deliver one callback: classified retry with a fresh token per send, and a plain word on each refusal."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from relay_client.documents.report import Sent
from relay_client.http import Answer, TransportError, request_json
from relay_client.protocol.callback import CallbackBody
from relay_client.protocol.shape import dump

# The relay may take 47 s for one callback (three tries towards its dashboard); ours is longer.
REQUEST_SECONDS = 60.0
TOTAL_SECONDS = 300.0
MAX_ATTEMPTS = 5
_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 60.0
_RETRIED = frozenset({408, 429}) | frozenset(range(500, 600))

EXPLANATIONS: dict[int, str] = {
    400: "the relay does not accept the callback as it stands; its answer says which field or transition. "
    "`completed` needs an `in_progress` before it with the same `row` and attempt",
    401: "the relay does not accept the token: check that `relay-url` and `audience` belong to the same relay",
    403: "the relay knows the token but not this pipeline: ask the relay's operators to register it",
    404: "there is no relay at this address: `relay-url` must end in /github/callback",
    405: "there is no relay at this address: `relay-url` must end in /github/callback",
    413: "the callback is larger than the relay takes: report fewer failed tests",
    429: "too many callbacks in a minute: report one row per matrix, not one per shard",
}
IGNORED = (
    "the relay accepted the request and stored nothing, because this repository may not report yet. Check "
    "that it is on the allowlist at level L2 or above, spelled exactly like that (capitals count)"
)


@dataclass(frozen=True)
class Pace:
    """Time, replaceable in tests. `jitter` gives a number in 0…1."""

    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random


def deliver(url: str, body: CallbackBody, mint: Callable[[], str], pace: Optional[Pace] = None) -> Sent:
    """Send a callback until it is answered for good, or time or attempts are used up.

    Retried are transport errors, 408, 429 and 5xx: there the relay may not have stored anything. Any other
    answer is final. `mint` is called for each send: a token lives five minutes. Raises TokenError.
    """
    pace = pace or Pace()
    value = dump(body)
    status = body.workflow.status
    end = pace.clock() + TOTAL_SECONDS
    last = Sent(url, status, "undelivered", 0)
    for attempt in range(1, MAX_ATTEMPTS + 1):
        wait: Optional[float] = None
        seconds = min(REQUEST_SECONDS, max(end - pace.clock(), 1.0))
        try:
            answer = request_json("POST", url, deadline_seconds=seconds, bearer=mint(), body=value)
        except TransportError as error:
            last = Sent(url, status, "undelivered", attempt, None, f"{error.reason}. {error.hint}".strip())
        else:
            last = Sent(url, status, judge(answer), attempt, answer.status, _bounded(answer))
            if last.delivery != "undelivered":
                return last
            wait = answer.retry_after_seconds(time.time())
        wait = _pause(attempt, pace) if wait is None else wait
        if attempt == MAX_ATTEMPTS or pace.clock() + wait > end:
            return last
        pace.sleep(wait)
    return last


def judge(answer: Answer) -> str:
    """What an answer means for the callback: one of documents.report.DELIVERIES."""
    if answer.status in _RETRIED:
        return "undelivered"
    if answer.status == 200 and isinstance(answer.body, dict):
        if answer.body.get("status") == "ignored":
            return "ignored"
        if answer.body.get("ok") is True:
            return "delivered"
    return "refused"


def explain(sent: Sent) -> str:
    """What a person should do about a callback that did not arrive."""
    if sent.delivery == "ignored":
        return IGNORED
    if sent.http_status is None:
        return "the relay cannot be reached from this runner"
    if sent.http_status == 200:
        return "something that is not the relay answered (a proxy's page?): check `relay-url` and HTTPS_PROXY"
    if sent.http_status >= 500:
        return "the relay failed; its operators can see why"
    if sent.http_status in range(300, 400):
        return (
            "the address redirects, and a token follows no redirect: write the final address in `relay-url`"
        )
    return EXPLANATIONS.get(sent.http_status, "the relay's answer says why")


def _pause(attempt: int, pace: Pace) -> float:
    """Exponential backoff with full jitter, in seconds."""
    longest: float = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2 ** (attempt - 1))
    return longest * pace.jitter()


def _bounded(answer: Answer) -> str:
    detail = answer.body.get("detail") if isinstance(answer.body, dict) else None
    return (detail if isinstance(detail, str) else answer.text)[:2_000]
