"""Delivery to a relay that misbehaves: nothing lost, nothing taken twice, never more calls than documented."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bad_relay import BadRelay, Clock

from relay_client.protocol.callback import CallbackBody, WorkflowReport
from relay_client.report import deliver as delivering
from relay_client.report.deliver import (
    CALLS_PER_MINUTE,
    LOST_BEHIND,
    REPORT_SECONDS,
    TOTAL_SECONDS,
    Courier,
    explain,
)

START = CallbackBody("push", "guid", {}, WorkflowReport("in_progress", "CRCR", "test", "1-1", "1"))
END = replace(START, workflow=replace(START.workflow, status="completed", conclusion="success"))
KEY = ("1", 1, "test")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "REQUEST_SECONDS", 0.3)


def courier(relay: BadRelay) -> Courier:
    tokens = iter(range(1, 1_000))
    return Courier(relay.address, lambda: f"token-{next(tokens)}", relay.clock.pace)


HEALED = [
    ["reset"],
    ["taken, then reset"],
    ["slow headers"],
    ["taken, then slow headers"],
    ["half an answer"],
    ["taken, then half an answer"],
    ["429"],
    ["429 with Retry-After"],
    ["429", "429", "429"],
    ["500"],
    ["503", "500"],
    ["taken, then 502"],
    ["401"],
    ["reset", "429 with Retry-After", "401", "500", "taken, then half an answer"],
    ["taken, then reset", "500", "reset"],
]


@pytest.mark.parametrize("jitter", [0.0, 1.0])
@pytest.mark.parametrize("faults", HEALED, ids=", ".join)
@pytest.mark.parametrize("status", ["in_progress", "completed"])
def test_a_relay_that_recovers_has_the_report_once(status: str, faults: list[str], jitter: float) -> None:
    with BadRelay(faults, Clock(jitter=jitter)) as relay:
        body, steps = START, ["in_progress"]
        if status == "completed":
            relay.rows[KEY], relay.taken = "in_progress", ["in_progress"]
            body, steps = END, ["in_progress", "completed"]
        sent = courier(relay).report(body, None if body is START else START)
        assert sent.delivery == "delivered"
        assert relay.taken == steps
        assert relay.busiest_minute() <= CALLS_PER_MINUTE
        assert len(set(relay.tokens)) == len(relay.tokens)


@pytest.mark.parametrize(
    ("fault", "delivery", "calls", "word"),
    [
        ("403", "refused", 1, "register"),
        ("413", "refused", 1, "larger"),
        ("HTML", "refused", 1, "proxy"),
        ("redirect", "refused", 1, "redirect"),
        ("ignored", "ignored", 1, "allowlist"),
        ("429 for an hour", "undelivered", 1, "row per matrix"),
    ],
)
def test_an_answer_for_good_is_not_argued_with(fault: str, delivery: str, calls: int, word: str) -> None:
    with BadRelay([fault] * 5) as relay:
        sent = courier(relay).report(START)
        assert (sent.delivery, len(relay.called_at), relay.taken) == (delivery, calls, [])
        assert word in explain(sent)


def test_a_second_401_is_no_accident() -> None:
    with BadRelay(["401", "401"]) as relay:
        sent = courier(relay).report(START)
        assert (sent.delivery, len(relay.called_at)) == ("refused", 2)


def test_retry_after_is_waited_for_and_a_little_more() -> None:
    with BadRelay(["429 with Retry-After"]) as relay:
        courier(relay).report(START)
        assert 17 < relay.called_at[1] - relay.called_at[0] <= 19


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("body", [START, END], ids=["in_progress", "completed"])
def test_a_relay_that_is_dead_for_ten_minutes_loses_nothing(body: CallbackBody, jitter: float) -> None:
    clock = Clock(jitter=jitter)
    began = clock.now
    with BadRelay(clock=clock, dead_until=began + 600) as relay:
        if body is END:
            relay.rows[KEY] = "in_progress"
        sent = courier(relay).report(body)
        assert (sent.delivery, relay.taken) == ("undelivered", [])
        assert clock.now - began <= TOTAL_SECONDS[body.workflow.status]
        assert 2 < relay.busiest_minute() <= CALLS_PER_MINUTE
        clock.now = began + 600
        assert courier(relay).report(body).delivery == "delivered"
        assert relay.taken == [body.workflow.status]


def test_a_start_that_the_relay_misses_is_sent_before_the_end() -> None:
    """The receive job died, or its report never arrived."""
    with BadRelay() as relay:
        sent = courier(relay).report(END, START)
        assert (sent.delivery, relay.taken) == ("delivered", ["in_progress", "completed"])
        assert sent.attempts == 2


def test_a_later_attempt_sends_its_start_first() -> None:
    with BadRelay() as relay:
        assert courier(relay).report(END, START, start_first=True).delivery == "delivered"
        assert [request.json["workflow"]["status"] for request in relay.requests] == [
            "in_progress",
            "completed",
        ]


def test_a_start_that_is_there_already_does_no_harm() -> None:
    with BadRelay() as relay:
        relay.rows[KEY] = "in_progress"
        assert courier(relay).report(END, START, start_first=True).delivery == "delivered"
        assert relay.taken == ["completed"]


def test_an_answer_that_was_lost_is_told_from_a_start_that_never_came() -> None:
    """Both are `invalid state transition` to the production relay: only one of them is a delivery."""
    with BadRelay(["reset"]) as relay:
        assert courier(relay).report(END, START).delivery == "delivered"
        assert relay.taken == ["in_progress", "completed"]


def test_a_row_that_another_job_completed_is_a_refusal() -> None:
    with BadRelay() as relay:
        relay.rows[KEY] = "completed"
        sent = courier(relay).report(END, START)
        assert (sent.delivery, relay.taken) == ("refused", [])
        assert "in_progress" in explain(sent)


@pytest.mark.parametrize("body", [START, END], ids=["in_progress", "completed"])
def test_a_report_that_the_relay_lost_behind_itself_is_no_delivery(body: CallbackBody) -> None:
    """The production relay notes the step, fails towards its dashboard with 500, and refuses the retry it asks for."""
    with BadRelay(["taken, then 500"]) as relay:
        if body is END:
            relay.rows[KEY] = "in_progress"
        sent = courier(relay).report(body, None if body is START else START)
        assert sent.delivery == "refused"
        assert explain(sent) == LOST_BEHIND


def test_all_callbacks_of_one_report_share_a_limit_of_time_and_of_calls() -> None:
    clock = Clock(jitter=0.0)
    began = clock.now
    with BadRelay(["429"] * 100, clock) as relay:
        courier(relay).report(END, START, start_first=True)
        assert relay.busiest_minute() <= CALLS_PER_MINUTE
        assert clock.now - began <= REPORT_SECONDS
