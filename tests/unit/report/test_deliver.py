"""Which answer means what, how often it is tried, and with which token: against a real server."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from local_http import LocalServer, Reply

from relay_client.protocol.callback import CallbackBody, WorkflowReport
from relay_client.report.deliver import Pace, deliver, explain

# What the 120 seconds of a first report leave room for, with the longest pauses.
TRIES = 6
PATH = "/github/callback"
BODY = CallbackBody("pull_request", "guid", {}, WorkflowReport("in_progress", "CRCR", "test", "1-1", "1"))
OK = Reply(200, {"ok": True, "status": "in_progress"})


@dataclass
class Clock:
    """Time that passes only when somebody sleeps."""

    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    @property
    def pace(self) -> Pace:
        return Pace(self.sleep, lambda: self.now, lambda: 1.0)


class Mint:
    """Gives another token each time, as a token service does."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return f"token-{self.count}"


@pytest.mark.parametrize(
    ("reply", "delivery", "attempts", "word"),
    [
        (OK, "delivered", 1, ""),
        (Reply(200, {"ok": True, "status": "ignored", "detail": "L1"}), "ignored", 1, "allowlist"),
        (Reply(200, b"<html>proxy</html>"), "refused", 1, "proxy"),
        (Reply(200, ["ok"]), "refused", 1, "proxy"),
        (Reply(400, {"detail": "completed came before in_progress"}), "refused", 1, "in_progress"),
        (Reply(401, {"detail": "no"}), "refused", 2, "audience"),
        (Reply(403, {"detail": "no"}), "refused", 1, "register"),
        (Reply(404, {"detail": "no"}), "refused", 1, "/github/callback"),
        (Reply(405, {"detail": "no"}), "refused", 1, "/github/callback"),
        (Reply(413, {"detail": "no"}), "refused", 1, "larger"),
        (Reply(302, {}, {"Location": "http://127.0.0.1:9/"}), "refused", 1, "redirect"),
        (Reply(408, {}), "undelivered", TRIES, ""),
        (Reply(429, {"detail": "slow"}), "undelivered", TRIES, "one row per matrix"),
        (Reply(500, {}), "undelivered", TRIES, "operators"),
        (Reply(503, {}), "undelivered", TRIES, "operators"),
    ],
)
def test_what_an_answer_means(
    server: LocalServer, reply: Reply, delivery: str, attempts: int, word: str
) -> None:
    mint = Mint()
    sent = deliver(server.answer(PATH, reply), BODY, mint, Clock().pace)
    assert (sent.delivery, sent.attempts, sent.http_status) == (delivery, attempts, reply.status)
    assert len(server.asked(PATH)) == mint.count == attempts
    assert delivery == "delivered" or word in explain(sent)


def test_a_relay_that_recovers_gets_the_callback_with_a_fresh_token(server: LocalServer) -> None:
    sent = deliver(server.answer(PATH, Reply(500, {}), Reply(429, {}), OK), BODY, Mint(), Clock().pace)
    assert (sent.delivery, sent.attempts) == ("delivered", 3)
    tokens = [request.headers["authorization"] for request in server.asked(PATH)]
    assert tokens == ["Bearer token-1", "Bearer token-2", "Bearer token-3"]


def test_retry_after_is_obeyed(server: LocalServer) -> None:
    clock = Clock()
    deliver(server.answer(PATH, Reply(429, {}, {"Retry-After": "17"}), OK), BODY, Mint(), clock.pace)
    assert 17.0 <= sum(clock.slept) <= 19.0


def test_a_wait_longer_than_the_whole_budget_is_not_begun(server: LocalServer) -> None:
    clock = Clock()
    sent = deliver(server.answer(PATH, Reply(429, {}, {"Retry-After": "3600"})), BODY, Mint(), clock.pace)
    assert (sent.delivery, sent.attempts, sum(clock.slept)) == ("undelivered", 1, 0.0)


def test_a_relay_that_is_not_there_is_tried_and_named() -> None:
    sent = deliver("http://127.0.0.1:9" + PATH, BODY, Mint(), Clock().pace)
    assert (sent.delivery, sent.attempts, sent.http_status) == ("undelivered", TRIES, None)
    assert "connection failed" in sent.answer
    assert "reached" in explain(sent)
