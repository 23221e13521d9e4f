"""Callbacks in: the five gates, and what each says when it refuses."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests
from relay_world import (
    L1,
    L2,
    L3,
    L4,
    NIGHTLY,
    TIMEOUT,
    World,
    job,
    pull_request,
    push,
    report,
    running,
    sha,
    stand_in,
)

from dispatch_lab.github import AppKey
from dispatch_lab.issuer import Issuer
from relay_client.protocol.vocabulary import AUDIENCE, UPSTREAM_REPOSITORY

COUNTS = {"passed": 128, "failed": 1, "skipped": 4}


def rows(world: World, envelope: dict[str, Any]) -> list[dict[str, Any]]:
    number = envelope["payload"]["pull_request"]["number"]
    found: list[dict[str, Any]] = world.get(f"/pr/{number}.json").json()["rows"]
    return found


@pytest.fixture
def envelope(world: World) -> dict[str, Any]:
    return world.dispatch(pull_request())


# Identity


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("expired", ["has expired", "exp=20", "mint a fresh token"]),
        ("wrong audience", ["another audience", 'aud="https://github.com/', f"&audience={AUDIENCE}"]),
        ("unknown issuer", ["unsupported issuer", 'iss="https://issuer.example"']),
        ("wrong algorithm", ["another algorithm", 'alg="HS256"', "RS256"]),
        ("bad signature", ["signature does not fit"]),
        ("unknown key", ["does not publish", "kid="]),
        ("no repository", ["no repository claim"]),
    ],
)
def test_each_bad_token_is_told_apart(
    world: World, envelope: dict[str, Any], kind: str, words: list[str]
) -> None:
    token = world.issuer.mint_bad(kind, job(L2), AUDIENCE)
    answer = world.callback(report(envelope), token=token)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    detail = answer.json()["detail"]
    assert all(word in detail for word in [*words, "Seen: ", "Fix: "]), detail
    assert token not in detail
    assert rows(world, envelope) == []


@pytest.mark.parametrize(
    ("authorization", "words"),
    [(None, "no Authorization header"), ("Basic abc", "without a Bearer token"), ("Bearer x.y", "not a JWT")],
)
def test_no_token_says_which_permission_is_missing(
    world: World, authorization: str | None, words: str
) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    answer = requests.post(world.url + "/github/callback", data="{}", headers=headers, timeout=TIMEOUT)
    assert answer.status_code == 401
    assert words in answer.json()["detail"]


def test_keys_that_cannot_be_fetched_are_not_the_callers_fault(
    own_world: Callable[..., World], issuer: Issuer
) -> None:
    dead = {"issuer": issuer.url, "jwks_url": "http://127.0.0.1:9/jwks"}
    world = own_world(oidc={"issuers": [dead]})
    answer = world.callback({})
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "127.0.0.1:9" in answer.json()["detail"]


# Allowlist


@pytest.mark.parametrize(
    ("repository", "words"), [(L1, "at level L1"), ("not/listed", "not on the allowlist")]
)
def test_l1_and_unlisted_are_ignored_and_told_so(world: World, repository: str, words: str) -> None:
    answer = world.callback(b"not even JSON", repository)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["ok"], body["status"]) == (True, "ignored")
    assert words in body["detail"]


@pytest.mark.parametrize("repository", [L2, L3, L4, L2.lower(), L2.upper()])
def test_levels_from_l2_report_however_their_name_is_spelt(world: World, repository: str) -> None:
    envelope = world.dispatch(pull_request())
    assert world.callback(report(envelope), repository).json() == {"ok": True, "status": "in_progress"}
    assert rows(world, envelope)[0]["repository"].lower() == repository.lower()


# Rate


def test_the_101st_call_in_a_minute_waits(own_world: Callable[..., World]) -> None:
    world = own_world(limits={})
    token = world.token(L2)
    with requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {token}"
        answers = [
            session.post(world.url + "/github/callback", data=b"{}", timeout=TIMEOUT) for _ in range(102)
        ]
    assert [each.status_code for each in answers] == [400] * 100 + [429] * 2
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert answers[-1].json()["detail"].startswith(f"rate limit exceeded for {L2}")
    assert world.callback(b"{}", L3).status_code == 400  # the limit is each repository's own


# Body


@pytest.mark.parametrize(
    ("change", "member"),
    [
        ({"status": "done"}, "workflow.status"),
        ({"name": ""}, "workflow.name"),
        ({"run_id": None}, "workflow.run_id"),
        ({"check_run_id": None}, "workflow.check_run_id"),
        ({"job_name": None}, "workflow.job_name"),
        ({"run_attempt": 10**18}, "workflow.run_attempt"),
        ({"conclusion": "success"}, "workflow.conclusion"),
        ({"test_results": [1, 2]}, "workflow.test_results"),
    ],
)
def test_a_wrong_member_is_named(
    world: World, envelope: dict[str, Any], change: dict[str, Any], member: str
) -> None:
    answer = world.callback(report(envelope, **change))
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(member)
    assert "allowed is" in answer.json()["detail"]


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b"", b'{"event_type": NaN}', b'{"a": 1e999}', b"9" * 4000, b'"\xff"']
)
def test_bad_json_is_refused(world: World, raw: bytes) -> None:
    assert world.callback(raw).status_code == 400


def test_a_body_over_two_megabytes_is_refused(world: World) -> None:
    answer = world.callback(b" " * 2_000_001)
    assert answer.status_code == 413
    assert "2000000 bytes" in answer.json()["detail"]


def test_paths_and_methods(world: World, envelope: dict[str, Any]) -> None:
    assert world.get("/github/callback").status_code == 405
    assert world.callback(report(envelope), path="/github/callback/").status_code == 200


# Lifecycle


def test_in_progress_then_completed_makes_one_row(world: World, envelope: dict[str, Any]) -> None:
    assert world.callback(report(envelope)).json() == {"ok": True, "status": "in_progress"}
    done = report(envelope, "completed", conclusion="failure", test_results=COUNTS)
    assert world.callback(done).json() == {"ok": True, "status": "completed"}
    (row,) = rows(world, envelope)
    assert (row["verdict"], row["passed"], row["failed"], row["skipped"], row["total"]) == (
        "failure",
        128,
        1,
        4,
        133,
    )
    assert row["commit"] == envelope["payload"]["pull_request"]["head"]["sha"]
    assert row["queue_seconds"] >= 0
    assert row["execution_seconds"] >= 0


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (["completed"], "completed came before in_progress"),
        (["in_progress", "in_progress again"], "in progress already"),
        (["in_progress", "completed", "completed again"], "completed already"),
        (["in_progress", "completed", "in_progress again"], "this row is completed"),
    ],
)
def test_steps_out_of_turn_are_refused(
    world: World, envelope: dict[str, Any], sent: list[str], words: str
) -> None:
    answers = [
        world.callback(report(envelope, each.split()[0], check_run_id="8" if "again" in each else "7"))
        for each in sent
    ]
    assert [each.status_code for each in answers] == [200] * (len(sent) - 1) + [400]
    detail = answers[-1].json()["detail"]
    assert detail.startswith("invalid state transition")
    assert words in detail
    assert 'job_name="test (py3.12:npu)"' in detail


def test_an_identical_retry_is_answered_as_before(world: World, envelope: dict[str, Any]) -> None:
    first, last = report(envelope), report(envelope, "completed")
    for body in (first, last):
        assert world.callback(body).json() == {"ok": True, "status": body["workflow"]["status"]}
    for body in (first, last):  # also a retry of the first that arrives after the last
        shuffled = json.dumps(dict(reversed(body.items()))).encode()
        assert world.callback(shuffled).json() == {
            "ok": True,
            "status": body["workflow"]["status"],
            "replayed": True,
        }
    assert [row["status"] for row in rows(world, envelope)] == ["completed"]


def test_identical_callbacks_at_once_make_one_transition(world: World, envelope: dict[str, Any]) -> None:
    answers: list[dict[str, Any]] = []
    barrier = threading.Barrier(8)
    body, token = report(envelope), world.token()

    def send() -> None:
        barrier.wait(10)
        answers.append(world.callback(body, token=token).json())

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(answers) == 8
    assert all(each["ok"] for each in answers)
    assert sum("replayed" not in each for each in answers) == 1
    assert len(rows(world, envelope)) == 1


def test_rows_differ_by_job_attempt_and_run(world: World, envelope: dict[str, Any]) -> None:
    for run_id, attempt, name in [("100", 1, "a:b"), ("100", 1, "a"), ("100", 2, "a"), ("a-uuid:1", 1, "a")]:
        body = report(envelope, run_id=run_id, run_attempt=attempt, job_name=name)
        token = world.issuer.mint(job(L2), AUDIENCE, run_id=None)
        assert world.callback(body, token=token).status_code == 200
    found = {(row["run_id"], row["run_attempt"], row["job"]) for row in rows(world, envelope)}
    assert found == {("100", 1, "a:b"), ("100", 1, "a"), ("100", 2, "a"), ("a-uuid:1", 1, "a")}


def test_without_a_dispatch_there_is_no_row(world: World, envelope: dict[str, Any]) -> None:
    answer = world.callback(report({**envelope, "delivery_id": "0-never-sent"}))
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("no matching dispatch record")
    assert world.callback(report(envelope), NIGHTLY).status_code == 400  # dispatched, but not to them


def test_restart_keeps_state(tmp_path: Path, app_key: AppKey, issuer: Issuer) -> None:
    with stand_in(app_key) as github, running(tmp_path, app_key, issuer, github) as world:
        envelope = world.dispatch(pull_request())
        assert world.callback(report(envelope)).status_code == 200
        before = rows(world, envelope)
    with stand_in(app_key) as github, running(tmp_path, app_key, issuer, github) as world:
        assert rows(world, envelope) == before
        guid = envelope["delivery_id"]
        again = world.webhook(envelope["payload"], guid=guid).json()["dispatched"]
        assert all(each["replayed"] for each in again)
        assert world.callback(report(envelope)).json()["replayed"] is True
        assert world.callback(report(envelope, "completed")).status_code == 200


def test_a_broken_database_is_503_and_shows_in_health(own_world: Callable[..., World]) -> None:
    world = own_world()
    envelope = world.dispatch(pull_request())
    world.relay.store.close()
    answer = world.callback(report(envelope))
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert "nothing was stored" in answer.json()["detail"]
    assert world.get("/healthz").status_code == 503


def test_a_fault_of_the_relay_is_500_and_tells_nothing_of_its_inside(
    own_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = own_world()

    def broken(*_: Any) -> None:
        raise RuntimeError("a secret of the inside")

    monkeypatch.setattr(world.relay.store, "row", broken)
    answer = world.callback(report(world.dispatch(pull_request())))
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "A fault of the relay" in answer.json()["detail"]


# Provenance


@pytest.mark.parametrize(
    ("path", "value", "member"),
    [
        (("pull_request", "head", "sha"), sha("another"), "payload.pull_request.head.sha"),
        (("repository", "full_name"), "some/fork", "payload.repository.full_name"),
        (("pull_request", "head"), None, "payload.pull_request.head"),
    ],
)
def test_the_echo_must_be_what_was_dispatched(
    world: World, envelope: dict[str, Any], path: tuple[str, ...], value: Any, member: str
) -> None:
    body = report(envelope)
    *parents, last = path
    target = body["payload"]
    for name in parents:
        target = target[name]
    target[last] = value
    answer = world.callback(body)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(member)
    assert rows(world, envelope) == []


def test_the_event_type_must_be_what_was_dispatched(world: World) -> None:
    envelope = world.dispatch(push(), "push")
    both = {**envelope["payload"], **pull_request()}
    answer = world.callback(report({**envelope, "event_type": "pull_request", "payload": both}))
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith("event_type")


def test_the_token_must_be_of_the_reported_run(world: World, envelope: dict[str, Any]) -> None:
    answer = world.callback(report(envelope), token=world.token(run_id=999))
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith('workflow.run_id: found "100"; allowed is "999"')


def test_a_minimal_echo_is_enough(world: World, envelope: dict[str, Any]) -> None:
    payload = envelope["payload"]
    small = {
        "repository": {"full_name": UPSTREAM_REPOSITORY},
        "pull_request": {"head": {"sha": payload["pull_request"]["head"]["sha"]}},
    }
    assert world.callback(report({**envelope, "payload": small})).status_code == 200


# Self-reports


def self_report(commit: str, event_type: str = "nightly", **changed: Any) -> dict[str, Any]:
    payload = {"repository": {"full_name": UPSTREAM_REPOSITORY}, "head_sha": commit}
    envelope = {"event_type": event_type, "delivery_id": commit, "payload": payload}
    return report(envelope, **{"status": "completed", **changed})


@pytest.mark.parametrize("event_type", ["nightly", "periodic"])
def test_a_self_report_needs_no_dispatch_and_may_be_replaced(world: World, event_type: str) -> None:
    body = self_report(sha(event_type), event_type)
    assert world.callback(body, NIGHTLY).json() == {"ok": True, "status": "completed"}
    assert world.callback(body, NIGHTLY).json()["replayed"] is True
    changed = self_report(sha(event_type), event_type, conclusion="failure")
    assert world.callback(changed, NIGHTLY).json() == {"ok": True, "status": "completed"}
    found = [
        row
        for row in world.get(f"/crcr/{NIGHTLY}.json").json()["rows"]
        if row["delivery_id"] == sha(event_type)
    ]
    assert [(row["event"], row["verdict"], row["queue_seconds"]) for row in found] == [
        (event_type, "failure", None)
    ]


@pytest.mark.parametrize(
    ("body", "member"),
    [
        (self_report(sha(1), status="in_progress", conclusion=None), "workflow.status"),
        (self_report("not-a-sha"), "delivery_id"),
        (
            {**self_report(sha(1)), "payload": {"repository": {"full_name": "some/fork"}}},
            "payload.repository",
        ),
        ({**self_report(sha(1)), "delivery_id": sha(2)}, "payload.head_sha"),
    ],
)
def test_a_wrong_self_report_names_the_member(world: World, body: dict[str, Any], member: str) -> None:
    answer = world.callback(body, NIGHTLY)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(member)
