"""`commit: nightly`: one run tests one commit, in all its attempts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from small_upstream import Upstream
from step import Step


class Api(BaseHTTPRequestHandler):
    created = ""
    bearer: ClassVar[list[str]]

    def do_GET(self) -> None:
        self.bearer.append(self.headers.get("Authorization", ""))
        found = self.path == "/repos/example-downstream/backend/actions/runs/77" and self.created
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"created_at": self.created}).encode())

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[Any]:
    class Mine(Api):
        bearer: ClassVar[list[str]] = []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_every_attempt_tests_the_nightly_of_the_first(step: Step, upstream: Upstream, api: Any) -> None:
    step.environment["GITHUB_API_URL"] = f"http://127.0.0.1:{api.server_port}"
    step.arrive({"schedule": "0 8 * * *"})
    api.RequestHandlerClass.created = "1970-01-01T02:05:00Z"  # 7,500 s: the first nightly is there
    for attempt in ("1", "2"):
        outputs = step.run("receive", GITHUB_RUN_ATTEMPT=attempt, CRCR_GITHUB_TOKEN="a-token").outputs
        assert (outputs["commit"], outputs["event-type"]) == (upstream.base, "nightly")
        assert outputs["delivery-id"] == upstream.base
        assert outputs["trust"] == "landed"
    assert api.RequestHandlerClass.bearer == ["Bearer a-token"] * 2


def test_a_later_attempt_that_cannot_know_the_first_fails_instead_of_testing_another_commit(
    step: Step, upstream: Upstream, api: Any
) -> None:
    step.arrive({"schedule": "0 8 * * *"})
    ended = step.run("receive", GITHUB_RUN_ATTEMPT="1")
    assert ended.outputs["commit"] == upstream.main
    assert [command.name for command in ended.commands] == ["warning", "notice"]
    for url in (f"http://127.0.0.1:{api.server_port}", "http://127.0.0.1:1"):
        ended = step.run("receive", GITHUB_RUN_ATTEMPT="2", GITHUB_API_URL=url)
        assert ended.exit_code == 31
        assert "first attempt" in ended.stdout
