"""Webhooks in, dispatches out."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from relay_world import (
    ALLOWLIST,
    L1,
    L2,
    L3,
    L4,
    NIGHTLY,
    World,
    pull_request,
    push,
    report,
    sha,
    signature,
)

from relay_server.trim import LIMIT_BYTES

SUBSCRIBED = [L1, L2, L3, L4]


def repositories(answer: Any) -> list[str]:
    return [each["repo"] for each in answer.json()["dispatched"]]


@pytest.mark.parametrize("action", ["opened", "reopened", "synchronize", "closed"])
def test_pull_request_is_dispatched_to_everyone_subscribed(world: World, action: str) -> None:
    guid, payload = str(uuid.uuid4()), {**pull_request(), "action": action}
    answer = world.webhook(payload, guid=guid)
    assert answer.status_code == 200
    assert answer.json() == {"ok": True, "dispatched": [{"repo": each} for each in SUBSCRIBED], "failed": []}
    sent = [each for each in world.github.dispatches if each.client_payload["delivery_id"] == guid]
    assert sorted(each.repository for each in sent) == sorted(SUBSCRIBED)
    for each in sent:
        assert each.event_type == "pull_request"
        assert each.client_payload == {"event_type": "pull_request", "delivery_id": guid, "payload": payload}


def test_every_pushed_ref_is_dispatched_deletions_too(world: World) -> None:
    for payload in (push("refs/tags/ciflow/trunk/1"), push("refs/heads/x", after="0" * 40, deleted=True)):
        answer = world.webhook(payload, event="push")
        assert repositories(answer) == SUBSCRIBED


def test_a_deleted_fork_is_no_obstacle(world: World) -> None:
    payload = pull_request()
    payload["pull_request"]["head"]["repo"] = None
    assert repositories(world.webhook(payload)) == SUBSCRIBED


@pytest.mark.parametrize(
    ("event", "change", "why"),
    [
        ("issues", {}, "events are not relayed"),
        ("check_run", {"action": "rerequested"}, "events are not relayed"),
        ("pull_request", {"action": "edited"}, "action"),
        ("pull_request", {"repository": {"full_name": "somebody/else"}}, "is not pytorch/pytorch"),
    ],
)
def test_what_concerns_nobody_is_ignored_and_says_why(
    world: World, event: str, change: dict[str, Any], why: str
) -> None:
    answer = world.webhook({**pull_request(), **change}, event=event)
    assert answer.status_code == 200
    assert answer.json()["ignored"] is True
    assert why in answer.json()["detail"]


def test_upstream_name_is_case_insensitive(world: World) -> None:
    payload = {**pull_request(), "repository": {"full_name": "PyTorch/PyTorch"}}
    assert repositories(world.webhook(payload)) == SUBSCRIBED


@pytest.mark.parametrize(
    ("headers", "status", "words"),
    [
        ({"X_Hub_Signature_256": None}, 400, "X-Hub-Signature-256 is missing"),
        ({"X_Hub_Signature_256": "sha256=" + "0" * 64}, 401, "does not fit the body"),
        ({"X_Hub_Signature_256": "é"}, 401, "does not fit the body"),
        ({"X_GitHub_Delivery": None}, 400, "X-GitHub-Delivery"),
        ({"X_GitHub_Delivery": "../etc"}, 400, "X-GitHub-Delivery"),
    ],
)
def test_bad_deliveries_are_refused(
    world: World, headers: dict[str, str | None], status: int, words: str
) -> None:
    encoded = {name: value.encode() if value else value for name, value in headers.items()}
    answer = world.webhook(pull_request(), **encoded)  # type: ignore[arg-type]
    assert answer.status_code == status
    assert words in answer.json()["detail"]


def test_another_secret_is_refused(world: World) -> None:
    raw = json.dumps(pull_request()).encode()
    answer = world.webhook(raw, X_Hub_Signature_256=signature(raw, "another secret"))
    assert answer.status_code == 401
    assert "same webhook secret" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "not valid JSON"),
        (b'{"a": NaN}', "NaN"),
        (b"[" * 100_000, "nested too deeply"),
        (b"\xff", "not valid JSON"),
        (json.dumps({"t": "\ud800"}).encode(), "not valid JSON"),
    ],
)
def test_bad_json_is_refused(world: World, raw: bytes, words: str) -> None:
    answer = world.webhook(raw)
    assert answer.status_code == 400
    assert words in answer.json()["detail"]


def test_an_event_without_a_commit_names_the_member(world: World) -> None:
    payload = pull_request()
    payload["pull_request"]["head"]["sha"] = "abc"
    answer = world.webhook(payload)
    assert answer.status_code == 400
    assert "payload.pull_request.head.sha" in answer.json()["detail"]


def test_method_and_path_are_exact(world: World) -> None:
    assert world.get("/github/webhook").status_code == 405
    answer = world.get("/github/elsewhere")
    assert answer.status_code == 404
    assert "/github/elsewhere" in answer.json()["detail"]


def test_redelivery_does_not_dispatch_twice(world: World) -> None:
    guid, payload = str(uuid.uuid4()), pull_request()
    first, again = (world.webhook(payload, guid=guid) for _ in range(2))
    assert first.status_code == again.status_code == 200
    assert repositories(first) == repositories(again)
    assert all(each["replayed"] for each in again.json()["dispatched"])
    sent = [each for each in world.github.dispatches if each.client_payload["delivery_id"] == guid]
    assert len(sent) == len(SUBSCRIBED)


def test_redeliveries_at_once_dispatch_once(world: World) -> None:
    guid, payload = str(uuid.uuid4()), pull_request()
    threads = [
        threading.Thread(target=world.webhook, args=(payload,), kwargs={"guid": guid}) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    sent = [each for each in world.github.dispatches if each.client_payload["delivery_id"] == guid]
    assert len(sent) == len(SUBSCRIBED)


def test_redelivery_tries_again_where_it_failed(own_world: Callable[..., World]) -> None:
    gate = Gate(refuse={L3})
    world = own_world(api=gate.around)
    guid, payload = str(uuid.uuid4()), pull_request()
    first = world.webhook(payload, guid=guid).json()
    assert [each["repo"] for each in first["failed"]] == [L3]
    assert "HTTP 500" in first["failed"][0]["error"]
    gate.refuse.clear()
    again = world.webhook(payload, guid=guid)
    assert again.json()["failed"] == []
    sent = [each.repository for each in world.github.dispatches]
    assert sorted(sent) == sorted(SUBSCRIBED)


def test_502_when_every_dispatch_fails(own_world: Callable[..., World]) -> None:
    world = own_world(github={"installed": ["pytorch/pytorch"]})
    answer = world.webhook(pull_request())
    assert answer.status_code == 502
    body = answer.json()
    assert body["ok"] is False
    assert body["dispatched"] == []
    assert [each["repo"] for each in body["failed"]] == SUBSCRIBED
    assert all("App is not installed there" in each["error"] for each in body["failed"])


def test_installation_tokens_are_reused_and_renewed_when_revoked(own_world: Callable[..., World]) -> None:
    world = own_world(allowlist={"refresh_seconds": 3600})
    for _ in range(3):
        assert repositories(world.webhook(pull_request())) == SUBSCRIBED
    assert world.github.tokens_minted == len(SUBSCRIBED) + 1  # and one to read the allowlist
    world.github.forget_tokens()
    assert repositories(world.webhook(pull_request())) == SUBSCRIBED


def test_a_dead_downstream_does_not_delay_the_rest(own_world: Callable[..., World]) -> None:
    gate = Gate(hold={L2})
    world = own_world(api=gate.around, fanout={"answer_seconds": 1})
    try:
        started = time.monotonic()
        answer = world.webhook(pull_request())
        assert time.monotonic() - started < 4
        assert repositories(answer) == [L1, L3, L4]
        assert answer.json()["failed"] == [{"repo": L2, "error": "not sent within 1 s; still trying"}]
    finally:
        gate.released.set()


def test_a_callback_faster_than_the_dispatch_answer_is_taken(own_world: Callable[..., World]) -> None:
    """The downstream may report before GitHub's 204 has reached the relay."""
    answers: list[int] = []
    world: World

    def report_at_once(repository: str, event_type: str, client_payload: dict[str, Any]) -> None:
        if repository == L2:
            answers.append(world.callback(report(client_payload)).status_code)

    gate = Gate(after={L2})
    world = own_world(api=gate.around, github={"on_dispatch": report_at_once})
    gate.until = lambda: bool(answers)
    assert repositories(world.webhook(pull_request())) == SUBSCRIBED
    assert answers == [200]


@pytest.mark.parametrize(
    ("payload", "steps"),
    [
        (pull_request(body="long " * 13_000), ["texts"]),
        (push(commits=[{"id": sha(n), "modified": ["a/b" * 40] * 9} for n in range(99)]), ["texts", "files"]),
        (
            pull_request(**{f"{n}_url": "https://api.github.com/" + "x" * 900 for n in range(99)}),
            ["texts", "files", "links"],
        ),
        (
            pull_request(requested_reviewers=[{"login": "x" * 99}] * 999),
            ["texts", "files", "links", "minimum"],
        ),
    ],
)
def test_an_oversized_event_is_trimmed_and_dispatched(
    world: World, payload: dict[str, Any], steps: list[str]
) -> None:
    event = "push" if "ref" in payload else "pull_request"
    envelope = world.dispatch(payload, event)
    assert set(envelope) == {"event_type", "delivery_id", "payload"}
    assert envelope["payload"]["crcr_trimmed"] == steps
    assert len(json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode()) <= LIMIT_BYTES
    assert envelope["payload"]["repository"]["full_name"] == "pytorch/pytorch"
    if event == "pull_request":
        kept = envelope["payload"]["pull_request"]
        assert kept["head"] == payload["pull_request"]["head"]
        assert kept["labels"] == payload["pull_request"]["labels"]
    assert world.callback(report(envelope)).status_code == 200


def test_an_oversized_multibyte_title_and_body_still_fit(world: World) -> None:
    envelope = world.dispatch(pull_request(title="火" * 256, body="火" * 65_000))
    assert envelope["payload"]["pull_request"]["title"] == "火" * 256
    assert len(envelope["payload"]["pull_request"]["body"]) == 1024


def test_nightly_only_repositories_get_no_dispatch(world: World) -> None:
    world.dispatch(pull_request())
    assert NIGHTLY not in {each.repository for each in world.github.dispatches}


def test_without_an_allowlist_the_webhook_is_not_lost(own_world: Callable[..., World]) -> None:
    world = own_world(github={"files": {}})
    answer = world.webhook(pull_request())
    assert answer.status_code == 503
    assert "There is no allowlist yet" in answer.json()["detail"]
    assert world.get("/healthz").status_code == 503


def test_the_last_good_allowlist_is_kept(own_world: Callable[..., World]) -> None:
    files = {"pytorch/pytorch": {".github/allowlist.yml": ALLOWLIST}}
    gate = Gate()
    world = own_world(github={"files": files}, api=gate.around, allowlist={"refresh_seconds": 0})
    assert repositories(world.webhook(pull_request())) == SUBSCRIBED
    gate.refuse_paths.add("allowlist.yml")
    assert repositories(world.webhook(pull_request())) == SUBSCRIBED
    health = world.get("/healthz")
    assert health.status_code == 200
    assert "HTTP 500" in health.json()["allowlist"]["error"]


class Gate:
    """An ASGI application around the stand-in that holds or refuses requests about some repositories."""

    def __init__(
        self, hold: set[str] | None = None, refuse: set[str] | None = None, after: set[str] | None = None
    ) -> None:
        self.hold, self.refuse, self.after = hold or set(), refuse or set(), after or set()
        self.refuse_paths: set[str] = set()
        self.released = threading.Event()
        self.until: Callable[[], bool] = lambda: True

    def around(self, app: Any) -> Any:
        import anyio

        async def gated(scope: Any, receive: Any, send: Any) -> None:
            path = scope.get("path", "")
            if any(path == f"/repos/{name}/dispatches" for name in self.hold):
                await anyio.to_thread.run_sync(self.released.wait, 10)
            if any(path == f"/repos/{name}/dispatches" for name in self.refuse) or any(
                path.endswith(end) for end in self.refuse_paths
            ):
                await send({"type": "http.response.start", "status": 500, "headers": []})
                await send({"type": "http.response.body", "body": b"oops"})
                return

            async def delayed(message: Any) -> None:
                if any(path == f"/repos/{name}/dispatches" for name in self.after):
                    with anyio.move_on_after(5):
                        while not self.until():
                            await anyio.sleep(0.01)
                await send(message)

            await app(scope, receive, delayed)

        return gated
