"""A relay on this machine that misbehaves as told, and remembers what it took: the production rules, no more."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any, Callable, Optional

from local_http import Answering, LocalServer, Reply, Request

from relay_client.report.deliver import Pace

PATH = "/github/callback"


@dataclass
class Clock:
    """Time that passes only when somebody sleeps."""

    now: float = 1_000.0
    jitter: float = 1.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    @property
    def pace(self) -> Pace:
        return Pace(self.sleep, lambda: self.now, lambda: self.jitter)


class BadRelay(LocalServer):
    """Each request meets the next fault, and none when they are used up. `until`: dead before that time."""

    def __init__(
        self, faults: Sequence[str] = (), clock: Optional[Clock] = None, dead_until: float = 0.0
    ) -> None:
        super().__init__()
        self.faults = list(faults)
        self.clock = clock or Clock()
        self.dead_until = dead_until
        self.called_at: list[float] = []
        self.tokens: list[str] = []
        # What became of each row, by its key; and every step that was taken, in order.
        self.rows: dict[tuple[Any, ...], str] = {}
        self.taken: list[str] = []

    @property
    def address(self) -> str:
        return self.url + PATH

    def busiest_minute(self) -> int:
        """The most calls within any sixty seconds of the clock."""
        return max(
            (sum(0 <= later - when < 60 for later in self.called_at) for when in self.called_at), default=0
        )

    def take(self, request: Request) -> Answering:
        self.requests.append(request)
        if request.method == "GET":
            return Reply(200, {"value": f"h.p{len(self.requests)}.s"})
        self.called_at.append(self.clock.now)
        self.tokens.append(request.headers["authorization"])
        if self.clock.now < self.dead_until:
            return hang_up
        fault = self.faults.pop(0) if self.faults else ""
        return FAULTS[fault](self, request)

    def store(self, request: Request) -> Reply:
        """The production relay's rules (test-infra, callback_handler.py): no step twice, none out of turn."""
        workflow = request.json["workflow"]
        key = (workflow["run_id"], workflow["run_attempt"], workflow["job_name"])
        legal = {"in_progress": None, "completed": "in_progress"}[workflow["status"]]
        if self.rows.get(key) != legal:
            return Reply(
                400, {"detail": f"callback rejected: invalid state transition status={workflow['status']}"}
            )
        self.rows[key] = workflow["status"]
        self.taken.append(workflow["status"])
        return Reply(200, {"ok": True, "status": workflow["status"]})


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True
    handler.connection.close()


def drip(handler: BaseHTTPRequestHandler) -> None:
    """A header that never ends."""
    try:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(200):
            handler.wfile.write(b"x")
            time.sleep(0.02)
    except OSError:
        pass


def half(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"ok": true')


def _then(answer: Answering) -> Callable[[BadRelay, Request], Answering]:
    """The relay takes the callback, and its answer is lost on the way."""

    def serve(relay: BadRelay, request: Request) -> Answering:
        relay.store(request)
        return answer

    return serve


def _only(answer: Answering) -> Callable[[BadRelay, Request], Answering]:
    return lambda _relay, _request: answer


FAULTS: dict[str, Callable[[BadRelay, Request], Answering]] = {
    "": lambda relay, request: relay.store(request),
    "reset": _only(hang_up),
    "taken, then reset": _then(hang_up),
    "slow headers": _only(drip),
    "taken, then slow headers": _then(drip),
    "half an answer": _only(half),
    "taken, then half an answer": _then(half),
    "429": _only(Reply(429, {"detail": "rate limit exceeded"})),
    "429 with Retry-After": _only(Reply(429, {"detail": "slow"}, {"Retry-After": "17"})),
    "429 for an hour": _only(Reply(429, {"detail": "slow"}, {"Retry-After": "3600"})),
    "500": _only(Reply(500, {"detail": "no"})),
    "taken, then 500": _then(Reply(500, {"detail": "HUD failed, retry"})),
    "taken, then 502": _then(Reply(502, b"<html>Bad Gateway</html>")),
    "503": _only(Reply(503, {"detail": "redis temporary outage"})),
    "401": _only(Reply(401, {"detail": "expired"})),
    "403": _only(Reply(403, {"detail": "unknown pipeline"})),
    "413": _only(Reply(413, {"detail": "too large"})),
    "HTML": _only(Reply(200, b"<html>sign in</html>")),
    "redirect": _only(Reply(302, {}, {"Location": "http://127.0.0.1:9/"})),
    "ignored": _only(Reply(200, {"ok": True, "status": "ignored"})),
}
