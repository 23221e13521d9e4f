"""The token request: as GitHub documents it, and silent about every secret."""

from __future__ import annotations

import pytest
from local_http import LocalServer, Reply
from step import Step

from relay_client.errors import CrcrError, NoTokenPermission, TokenUnavailable
from relay_client.protocol.vocabulary import AUDIENCE
from relay_client.token import mint
from relay_client.token.mint import REQUEST_TOKEN, REQUEST_URL, mint_token

SECRET = "request-secret"
TOKEN = "aGVhZA.cGF5bG9hZA.c2ln"
PATH = "/token"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mint, "_PAUSE_SECONDS", 0.0)


def environment(server: LocalServer, query: str = "?api-version=2.0") -> dict[str, str]:
    return {REQUEST_URL: server.url + PATH + query, REQUEST_TOKEN: SECRET}


def failing(server: LocalServer, kind: type[CrcrError]) -> CrcrError:
    with pytest.raises(kind) as caught:
        mint_token(environment(server), AUDIENCE, 20)
    assert SECRET not in caught.value.text()
    assert TOKEN not in caught.value.text()
    return caught.value


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("?api-version=2.0", "/token?api-version=2.0&audience=a%20b%26c%2Fd%3De"),
        ("", "/token?audience=a%20b%26c%2Fd%3De"),
    ],
)
def test_the_audience_is_added_to_what_the_address_already_asks(
    server: LocalServer, query: str, path: str
) -> None:
    server.answer(PATH, Reply(200, {"count": 1, "value": TOKEN}))
    assert mint_token(environment(server, query), "a b&c/d=e", 20) == TOKEN
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("GET", path, b"")
    assert request.headers["authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize("missing", [REQUEST_URL, REQUEST_TOKEN])
@pytest.mark.parametrize("value", [None, ""])
def test_without_permission_the_error_names_the_lines_to_add(
    server: LocalServer, missing: str, value: object
) -> None:
    given = {name: text for name, text in environment(server).items() if name != missing}
    with pytest.raises(NoTokenPermission) as caught:
        mint_token({**given, **({missing: ""} if value == "" else {})}, AUDIENCE, 20)
    assert caught.value.seen == f"{missing} is not set"
    assert "permissions: { id-token: write }" in caught.value.fix
    assert server.requests == []


@pytest.mark.parametrize(
    ("reply", "seen", "requests"),
    [
        (Reply(401, {"message": "no"}), "HTTP 401, JSON without a token in `value`", 1),
        (Reply(403, b"<html>"), "HTTP 403, no JSON", 1),
        (Reply(404, {}), "HTTP 404, JSON without a token in `value`", 1),
        (Reply(302, {}, {"Location": "http://127.0.0.1:9/"}), "HTTP 302, JSON without a token in `value`", 1),
        (Reply(500, {}), "HTTP 500", 3),
        (Reply(503, b"<html>"), "HTTP 503", 3),
        (Reply(200, b"<html>a.b.c</html>"), "HTTP 200, no JSON", 1),
        (Reply(200, {"value": None}), "HTTP 200, JSON without a token in `value`", 1),
        (Reply(200, {"value": "only.two"}), "HTTP 200, JSON without a token in `value`", 1),
        (Reply(200, {"value": TOKEN + "\n::error::x"}), "HTTP 200, JSON without a token in `value`", 1),
        (Reply(200, [TOKEN]), "HTTP 200, JSON without a token in `value`", 1),
        (Reply(400, {"value": TOKEN}), "HTTP 400, JSON without a token in `value`", 1),
    ],
)
def test_an_answer_without_a_token_is_described_and_not_quoted(
    server: LocalServer, reply: Reply, seen: str, requests: int
) -> None:
    server.answer(PATH, reply)
    error = failing(server, TokenUnavailable)
    assert error.seen == seen
    assert len(server.requests) == requests


def test_a_service_that_recovers_gives_the_token(server: LocalServer) -> None:
    server.answer(PATH, lambda _: None, Reply(500), Reply(200, {"value": TOKEN}))
    assert mint_token(environment(server), AUDIENCE, 20) == TOKEN
    assert len(server.requests) == 3


def test_a_service_that_cannot_be_reached_is_named_by_what_to_check() -> None:
    with pytest.raises(TokenUnavailable) as caught:
        mint_token({REQUEST_URL: "http://127.0.0.1:9/x", REQUEST_TOKEN: SECRET}, AUDIENCE, 20)
    assert "connection failed" in caught.value.seen
    assert "self-hosted" in caught.value.fix


def test_a_silent_service_is_left_at_the_deadline_in_all(server: LocalServer) -> None:
    server.answer(PATH, lambda _: server.ending.wait() and None)
    with pytest.raises(TokenUnavailable):
        mint_token(environment(server), AUDIENCE, 0.3)
    assert len(server.requests) == 1


def test_the_verb_masks_the_token_before_it_hands_it_over(server: LocalServer, step: Step) -> None:
    server.answer(PATH, Reply(200, {"value": TOKEN}))
    ended = step.run("token", **environment(server))
    assert ended.exit_code == 0
    assert ended.outputs == {"token": TOKEN}
    assert ended.stdout.splitlines()[0] == f"::add-mask::{TOKEN}"
    assert (ended.stdout + ended.stderr + ended.summary).count(TOKEN) == 1
    assert SECRET not in ended.everything
    assert f"audience={AUDIENCE}" in server.requests[0].path


def test_the_verb_says_what_to_add_when_the_job_may_not(step: Step) -> None:
    ended = step.run("token")
    assert ended.exit_code == NoTokenPermission.exit_code
    (command,) = ended.commands
    assert "permissions: { id-token: write }" in command.data
    assert "id-token: write" in ended.summary
    assert ended.outputs == {}


def test_off_github_no_token_is_printed(server: LocalServer, step: Step) -> None:
    ended = step.run("token", GITHUB_ACTIONS=None, **environment(server))
    assert ended.exit_code == 2
    assert server.requests == []
