"""Deliver callbacks: classified retry with a fresh token per send, and a plain word on each refusal.

A request whose answer was lost may have been taken. The retry of it is then answered "invalid state transition":
that is no refusal but the answer that was lost.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Optional

from relay_client.documents.report import Sent
from relay_client.http import Answer, TransportError, request_json
from relay_client.protocol.callback import CallbackBody
from relay_client.protocol.shape import dump

# The relay may take 47 s for one callback (three tries towards its dashboard); ours is longer.
REQUEST_SECONDS = 60.0
# The tests wait for the first report, nobody for the last; the report job of the template has 15 minutes.
TOTAL_SECONDS = {"in_progress": 120.0, "completed": 480.0}
# For all callbacks of one report together.
REPORT_SECONDS = 600.0
MAX_ATTEMPTS = 12
# To one relay, whatever happens. The production relay allows 100 a minute to all rows of a repository together.
CALLS_PER_MINUTE = 6
_MINUTE = 60.0
_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 60.0
# Rows that were told to wait do not all come back in the same moment.
_SPREAD_SECONDS = 2.0
_RETRIED = frozenset({408, 429}) | frozenset(range(500, 600))
# A gateway gave up, not the relay: what is behind it may have taken the callback.
_GATEWAY = frozenset({408, 502, 503, 504})
# Both the production relay and ours say so (test-infra, callback_handler.py).
_TRANSITION = "invalid state transition"
LOST_BEHIND = (
    "the relay noted this report, failed to hand it on, and takes no second one: re-run the job, so that a new "
    "attempt reports again"
)

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


@dataclass(frozen=True)
class Ended:
    """How the sending of one callback ended. `lost_answer`: an earlier try may have been taken.

    `wrong_turn`: the relay says that the row does not stand where this callback would take it on from.
    """

    sent: Sent
    lost_answer: bool = False
    wrong_turn: bool = False


class Courier:
    """Brings callbacks to one relay. `mint` is called for each send: a token lives five minutes."""

    def __init__(self, url: str, mint: Callable[[], str], pace: Optional[Pace] = None) -> None:
        self._url = url
        self._mint = mint
        self._pace = pace or Pace()
        self._calls: list[float] = []

    def report(
        self, body: CallbackBody, start: Optional[CallbackBody] = None, *, start_first: bool = False
    ) -> Sent:
        """Deliver a callback. `start` is the in_progress of the same row: it is sent when the relay misses it, and
        `start_first` sends it in any case, for an attempt whose first job was not run again. Raises TokenError.
        """
        until = self._pace.clock() + REPORT_SECONDS
        started: Optional[Ended] = None
        if start is not None and start_first:
            started = self.send(start, until)
        ended = self.send(body, until)
        if not ended.wrong_turn:
            return ended.sent
        if start is not None and started is None:
            started = self.send(start, until)
            if started.sent.delivery == "delivered":
                again = self.send(body, until)
                sent = replace(again.sent, attempts=ended.sent.attempts + again.sent.attempts)
                return (
                    sent if again.sent.delivery == "delivered" else self._settled(replace(again, sent=sent))
                )
        return self._settled(ended)

    def _settled(self, ended: Ended) -> Sent:
        """A row that stands where our own lost request took it is delivered."""
        if ended.wrong_turn and ended.lost_answer:
            return replace(ended.sent, delivery="delivered")
        return ended.sent

    def send(self, body: CallbackBody, until: float = math.inf) -> Ended:
        """Send one callback until it is answered for good, or time or attempts are used up.

        Retried are transport errors, 408, 429 and 5xx, and once 401: the token may have expired on its way. Any
        other answer is final.
        """
        pace, value, status = self._pace, dump(body), body.workflow.status
        end = min(pace.clock() + TOTAL_SECONDS[status], until)
        last = Sent(self._url, status, "undelivered", 0)
        lost_answer = failed_behind = minted_again = False
        for attempt in range(1, MAX_ATTEMPTS + 1):
            wait = self._turn()
            if pace.clock() + wait > end:
                break
            pace.sleep(wait)
            self._calls.append(pace.clock())
            seconds = min(REQUEST_SECONDS, max(end - pace.clock(), 1.0))
            wait = _pause(attempt, pace)
            try:
                answer = request_json(
                    "POST", self._url, deadline_seconds=seconds, bearer=self._mint(), body=value
                )
            except TransportError as error:
                lost_answer = lost_answer or error.maybe_arrived
                why = f"{error.reason}. {error.hint}".strip()
                last = Sent(self._url, status, "undelivered", attempt, None, why)
            else:
                last = Sent(self._url, status, judge(answer), attempt, answer.status, _bounded(answer))
                if answer.status == 401 and not minted_again:
                    minted_again = True
                elif last.delivery != "undelivered":
                    wrong_turn = answer.status == 400 and _TRANSITION in last.answer.lower()
                    if wrong_turn and failed_behind and not lost_answer:
                        last = replace(last, answer=f"{LOST_BEHIND} ({last.answer})"[:2_000])
                    ended = Ended(last, lost_answer, wrong_turn and not (failed_behind and not lost_answer))
                    return self._of_start(ended) if status == "in_progress" else ended
                lost_answer = lost_answer or answer.status in _GATEWAY
                failed_behind = failed_behind or answer.status == 500
                asked = answer.retry_after_seconds(time.time())
                if asked is not None:
                    wait = asked + _SPREAD_SECONDS * pace.jitter()
            if attempt == MAX_ATTEMPTS or pace.clock() + wait > end:
                break
            pace.sleep(wait)
        return Ended(last, lost_answer)

    def _of_start(self, ended: Ended) -> Ended:
        return replace(ended, sent=self._settled(ended))

    def _turn(self) -> float:
        """Seconds until another call is allowed."""
        now = self._pace.clock()
        self._calls = [when for when in self._calls if now - when < _MINUTE]
        if len(self._calls) < CALLS_PER_MINUTE:
            return 0.0
        return self._calls[-CALLS_PER_MINUTE] + _MINUTE - now


def deliver(url: str, body: CallbackBody, mint: Callable[[], str], pace: Optional[Pace] = None) -> Sent:
    """Deliver one callback whose other one somebody else sends. Raises TokenError."""
    return Courier(url, mint, pace).report(body)


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
    if sent.answer.startswith(LOST_BEHIND):
        return LOST_BEHIND
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
