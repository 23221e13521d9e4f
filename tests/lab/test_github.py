"""The stand-in refuses what GitHub refuses, in GitHub's words."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
import requests

from dispatch_lab.github import AppKey, StandInGitHub, new_app_key
from dispatch_lab.serving import serve

APP = "Iv23liApp"
FILES = {"up/stream": {".github/allowlist.yml": "L1: [a/b]\n"}}
arrived = threading.Event()


@pytest.fixture(scope="module")
def key() -> AppKey:
    return new_app_key()


@pytest.fixture(scope="module")
def github(key: AppKey) -> Iterator[StandInGitHub]:
    with StandInGitHub(
        app_id=APP,
        app_public_key=key.public,
        installed=["up/stream", "Down/Stream", "down/other"],
        files=FILES,
        on_dispatch=lambda *_: arrived.set(),
    ) as made:
        yield made


@pytest.fixture(scope="module")
def url(github: StandInGitHub) -> Iterator[str]:
    with serve(github.app) as address:
        yield address


def app_jwt(key: AppKey, **changed: Any) -> str:
    now = int(time.time())
    claims = {"iss": APP, "iat": now - 60, "exp": now + 540, **changed}
    return jwt.encode(claims, key.private, algorithm="RS256")


def call(method: str, url: str, token: str, **options: Any) -> requests.Response:
    headers = {"Authorization": f"Bearer {token}", **options.pop("headers", {})}
    return requests.request(method, url, headers=headers, timeout=10, **options)


def installation_token(url: str, key: AppKey, repository: str, **body: Any) -> str:
    found = call("GET", f"{url}/repos/{repository}/installation", app_jwt(key)).json()
    answer = call("POST", f"{url}/app/installations/{found['id']}/access_tokens", app_jwt(key), json=body)
    assert answer.status_code == 201
    assert answer.json()["expires_at"].endswith("Z")
    return str(answer.json()["token"])


@pytest.mark.parametrize(
    ("changed", "status", "message"),
    [
        ({"exp": int(time.time()) + 900}, 401, "too far in the future"),
        ({"exp": int(time.time()) - 1}, 401, "'Expiration time' claim"),
        ({"iat": int(time.time()) + 300}, 401, "'Issued at' claim"),
        ({"iss": "another"}, 404, "Integration not found"),
    ],
)
def test_a_bad_app_jwt_is_refused(
    url: str, key: AppKey, changed: dict[str, Any], status: int, message: str
) -> None:
    answer = call("GET", f"{url}/repos/up/stream/installation", app_jwt(key, **changed))
    assert answer.status_code == status
    assert message in answer.json()["message"]
    assert answer.json()["documentation_url"].startswith("https://docs.github.com/rest/apps")


def test_an_app_jwt_must_be_signed_with_the_apps_own_key_by_rs256(url: str, key: AppKey) -> None:
    address = f"{url}/repos/up/stream/installation"
    claims = {"iss": APP, "iat": 0, "exp": int(time.time()) + 60}
    secret = "long enough for HS256, and no key at all"
    for token in (app_jwt(new_app_key()), jwt.encode(claims, secret, algorithm="HS256"), "", "x"):
        answer = call("GET", address, token)
        assert answer.status_code == 401
        assert answer.json()["message"] == "A JSON web token could not be decoded"


def test_a_dispatch_is_taken_and_handed_on(url: str, key: AppKey, github: StandInGitHub) -> None:
    token = installation_token(url, key, "down/stream")
    body = {"event_type": "push", "client_payload": {"a": 1}}
    answer = call("POST", f"{url}/repos/down/stream/dispatches", token, json=body)
    assert (answer.status_code, answer.content) == (204, b"")
    assert arrived.wait(10)
    (dispatch,) = github.wait_for_dispatches(1)
    assert (dispatch.repository, dispatch.event_type, dispatch.client_payload) == (
        "Down/Stream",
        "push",
        {"a": 1},
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, '"event_type" wasn\'t supplied'),
        ({"event_type": "x" * 101}, "Only 100 characters are allowed; 101 were supplied."),
        (
            {"event_type": "x", "client_payload": {str(n): n for n in range(11)}},
            "No more than 10 properties are allowed; 11 were supplied.",
        ),
        ({"event_type": "x", "client_payload": {"a": "x" * 65_536}}, "client_payload is too large."),
        ({"event_type": "x", "client_payload": [1]}, "is not an object"),
    ],
)
def test_a_dispatch_beyond_the_limits_is_422(url: str, key: AppKey, body: Any, message: str) -> None:
    token = installation_token(url, key, "down/stream")
    answer = call("POST", f"{url}/repos/down/stream/dispatches", token, json=body)
    assert answer.status_code == 422
    assert message in answer.json()["message"]
    assert "create-a-repository-dispatch-event" in answer.json()["documentation_url"]


def test_a_token_reaches_only_what_it_was_made_for(url: str, key: AppKey) -> None:
    narrow = installation_token(url, key, "down/stream", repositories=["Stream"])
    wide = installation_token(url, key, "down/stream")
    body = {"event_type": "x"}
    statuses = [
        call("POST", f"{url}/repos/{name}/dispatches", token, json=body).status_code
        for token in (narrow, wide, "ghs_invented")
        for name in ("down/stream", "down/other", "up/stream")
    ]
    assert statuses == [204, 403, 403, 204, 204, 403, 401, 401, 401]


def test_no_installation_no_token(url: str, key: AppKey) -> None:
    assert call("GET", f"{url}/repos/no/body/installation", app_jwt(key)).status_code == 404
    assert call("POST", f"{url}/app/installations/1/access_tokens", app_jwt(key)).status_code == 404
    found = call("GET", f"{url}/repos/up/stream/installation", app_jwt(key)).json()
    address = f"{url}/app/installations/{found['id']}/access_tokens"
    assert call("POST", address, app_jwt(key), json={"repositories": ["other"]}).status_code == 422


def test_contents_come_as_json_and_raw(url: str, key: AppKey) -> None:
    token = installation_token(url, key, "up/stream")
    address = f"{url}/repos/up/stream/contents/.github/allowlist.yml"
    described = call("GET", address, token).json()
    assert base64.b64decode(described["content"]) == b"L1: [a/b]\n"
    assert (described["encoding"], described["size"], described["name"]) == ("base64", 10, "allowlist.yml")
    raw = call("GET", address, token, headers={"Accept": "application/vnd.github.raw+json"})
    assert raw.text == "L1: [a/b]\n"
    assert call("GET", address + "x", token).status_code == 404


def test_check_runs_are_kept(url: str, key: AppKey, github: StandInGitHub) -> None:
    token = installation_token(url, key, "up/stream")
    address = f"{url}/repos/up/stream/check-runs"
    run = {"name": "crcr/a/b", "head_sha": "0" * 40, "status": "completed", "conclusion": "success"}
    assert call("POST", address, token, json=run).status_code == 201
    assert call("POST", address, token, json={**run, "conclusion": None}).status_code == 422
    assert [each["name"] for each in github.check_runs] == ["crcr/a/b"]


def test_an_error_in_on_dispatch_reaches_whoever_closes(key: AppKey) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("the run broke")

    github = StandInGitHub(app_id=APP, app_public_key=key.public, installed=["a/b"], on_dispatch=broken)
    with serve(github.app) as url:
        token = installation_token(url, key, "a/b")
        call("POST", f"{url}/repos/a/b/dispatches", token, json={"event_type": "x"})
    with pytest.raises(RuntimeError, match="the run broke"):
        github.close()
