"""A stand-in for the part of GitHub's REST API that a relay uses, with GitHub's checks and error bodies.

It follows GitHub Docs: "REST API endpoints for GitHub Apps" (installation, access tokens), "Generating a JSON Web
Token (JWT) for a GitHub App", "Create a repository dispatch event", "Get repository content", "Create a check
run". Messages that the docs do not give are quoted from public reports of real answers, named where they stand.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dispatch_lab.errors import LabError

TOKEN_SECONDS = 3600  # "Installation tokens expire one hour from the time you create them"
JWT_SECONDS = 600  # "no more than 10 minutes into the future"
MAX_EVENT_TYPE = 100
MAX_PROPERTIES = 10
MAX_PAYLOAD_BYTES = 64 * 1024  # "The total size of the JSON payload must be less than 64KB"
_PARALLEL_RUNS = 8
_DOCS = "https://docs.github.com/rest"
_CHECK_STATUSES = ("queued", "in_progress", "completed")

OnDispatch = Callable[[str, str, dict[str, Any]], None]


@dataclass(frozen=True)
class Dispatch:
    """A `repository_dispatch` that was accepted."""

    repository: str
    event_type: str
    client_payload: dict[str, Any]


@dataclass(frozen=True)
class AppKey:
    """The key pair of a GitHub App, as PEM."""

    private: str
    public: str


def new_app_key() -> AppKey:
    """Make the key that GitHub would make when an App is registered."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return AppKey(private.decode(), public.decode())


class _Problem(Exception):
    """An error answer in GitHub's shape."""

    def __init__(self, status: int, message: str, page: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.page = status, message, page


@dataclass(frozen=True)
class _Token:
    expires_at: float
    repositories: frozenset[str]


@dataclass
class _State:
    """What happened so far; `changed` is notified at each dispatch."""

    dispatches: list[Dispatch] = field(default_factory=list)
    check_runs: list[dict[str, Any]] = field(default_factory=list)
    tokens: dict[str, _Token] = field(default_factory=dict)
    errors: list[BaseException] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)


class StandInGitHub:
    """`app` is the ASGI application. Use as a context manager: its end waits for `on_dispatch` calls.

    `installed`: the `owner/repo` names that have the App. `files`: text by path, by repository.
    `on_dispatch(repository, event_type, client_payload)` is called in a thread, after GitHub's 204.
    """

    def __init__(
        self,
        *,
        app_id: str,
        app_public_key: str,
        installed: Collection[str],
        files: Mapping[str, Mapping[str, str]] | None = None,
        on_dispatch: OnDispatch | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app_id = app_id
        self._public_key = app_public_key
        self._installed = {name.lower(): name for name in installed}
        self._files = {name.lower(): dict(paths) for name, paths in (files or {}).items()}
        self._on_dispatch = on_dispatch
        self._clock = clock
        self._state = _State()
        self._runs = ThreadPoolExecutor(_PARALLEL_RUNS, thread_name_prefix="on_dispatch")
        repository = "/repos/{owner}/{name}"
        self.app = Starlette(
            routes=[
                Route(f"{repository}/installation", self._installation),
                Route(
                    "/app/installations/{id:int}/access_tokens", self._create_access_token, methods=["POST"]
                ),
                Route(f"{repository}/dispatches", self._create_dispatch, methods=["POST"]),
                Route(repository + "/contents/{path:path}", self._contents),
                Route(f"{repository}/check-runs", self._create_check_run, methods=["POST"]),
            ],
            exception_handlers={_Problem: _problem, 404: _not_found},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def dispatches(self) -> list[Dispatch]:
        """Every accepted dispatch, in order."""
        with self._state.changed:
            return list(self._state.dispatches)

    @property
    def check_runs(self) -> list[dict[str, Any]]:
        """Every created check run, in order, with its repository as `repository`."""
        return list(self._state.check_runs)

    @property
    def tokens_minted(self) -> int:
        """How many installation tokens were created."""
        return len(self._state.tokens)

    def wait_for_dispatches(self, count: int, timeout: float = 10) -> list[Dispatch]:
        """The dispatches, once there are `count`. Raises LabError after `timeout` seconds."""
        state = self._state
        with state.changed:
            if not state.changed.wait_for(lambda: len(state.dispatches) >= count, timeout):
                seen = f"{len(state.dispatches)} of {count} within {timeout:g} s"
                raise LabError(
                    "Dispatches are missing", seen, "Read the relay's log; its webhook answer says why"
                )
            return list(state.dispatches)

    def forget_tokens(self) -> None:
        """Revoke every installation token, as reinstalling the App does."""
        self._state.tokens.clear()

    def close(self) -> None:
        """Wait for `on_dispatch` calls under way. Raises the first error that one of them raised."""
        self._runs.shutdown(wait=True)
        if self._state.errors:
            raise self._state.errors[0]

    async def _installation(self, request: Request) -> Response:
        """GitHub Docs: "Get a repository installation for the authenticated app"."""
        page = "/apps/apps#get-a-repository-installation-for-the-authenticated-app"
        self._require_app(request, page)
        repository = _repository(request)
        if repository not in self._installed:
            raise _Problem(404, "Not Found", page)
        owner = repository.partition("/")[0]
        return JSONResponse(
            {
                "id": _number(owner),
                "account": {"login": owner, "type": "Organization"},
                "app_id": _number(self._app_id),
                "repository_selection": "selected",
                "permissions": {"checks": "write", "contents": "write", "metadata": "read"},
            }
        )

    async def _create_access_token(self, request: Request) -> Response:
        """GitHub Docs: "Create an installation access token for an app"."""
        page = "/apps/apps#create-an-installation-access-token-for-an-app"
        self._require_app(request, page)
        identifier = request.path_params["id"]
        covered = {name for name in self._installed if _number(name.partition("/")[0]) == identifier}
        if not covered:
            raise _Problem(404, "Not Found", page)
        wanted = (await _json(request, page) if await request.body() else {}).get("repositories")
        if wanted is not None:
            chosen = {
                name for name in covered if name.partition("/")[2] in {str(each).lower() for each in wanted}
            }
            if len(chosen) != len(wanted):
                message = (
                    "There is at least one repository that does not exist or is not accessible to the parent"
                    " installation."
                )
                raise _Problem(422, message, page)
            covered = chosen
        token, expires_at = f"ghs_{secrets.token_urlsafe(48)}", self._clock() + TOKEN_SECONDS
        self._state.tokens[token] = _Token(expires_at, frozenset(covered))
        answer = {
            "token": token,
            "expires_at": datetime.fromtimestamp(expires_at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "permissions": {"checks": "write", "contents": "write", "metadata": "read"},
            "repository_selection": "selected",
        }
        return JSONResponse(answer, status_code=201)

    async def _create_dispatch(self, request: Request) -> Response:
        """GitHub Docs: "Create a repository dispatch event". Then `on_dispatch` is called in a thread."""
        page = "/repos/repos#create-a-repository-dispatch-event"
        repository = self._require_installation(request, page)
        event_type, client_payload = check_dispatch(await request.body(), await _json(request, page), page)
        dispatch = Dispatch(repository, event_type, client_payload)
        with self._state.changed:
            self._state.dispatches.append(dispatch)
            self._state.changed.notify_all()
        if self._on_dispatch is not None:
            self._runs.submit(self._run, self._on_dispatch, dispatch)
        return Response(status_code=204)

    def _run(self, on_dispatch: OnDispatch, dispatch: Dispatch) -> None:
        try:
            on_dispatch(dispatch.repository, dispatch.event_type, dispatch.client_payload)
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever closes the stand-in
            self._state.errors.append(error)

    async def _contents(self, request: Request) -> Response:
        """GitHub Docs: "Get repository content", for files: JSON with base64, or the raw media type."""
        page = "/repos/contents#get-repository-content"
        repository = self._require_installation(request, page)
        path = request.path_params["path"]
        text = self._files.get(repository.lower(), {}).get(path)
        if text is None:
            raise _Problem(404, "Not Found", page)
        data = text.encode()
        accepted = request.headers.get("Accept", "")
        if "application/vnd.github.raw" in accepted:
            return Response(data, media_type="application/vnd.github.raw+json; charset=utf-8")
        return JSONResponse(
            {
                "type": "file",
                "encoding": "base64",
                "size": len(data),
                "name": path.rpartition("/")[2],
                "path": path,
                "content": base64.encodebytes(data).decode(),
                "sha": hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest(),
            }
        )

    async def _create_check_run(self, request: Request) -> Response:
        """GitHub Docs: "Create a check run"."""
        page = "/checks/runs#create-a-check-run"
        repository = self._require_installation(request, page)
        body = await _json(request, page)
        missing = [name for name in ("name", "head_sha") if not isinstance(body.get(name), str)]
        status = body.get("status", "completed" if body.get("conclusion") else "queued")
        if missing or status not in _CHECK_STATUSES or (status == "completed" and not body.get("conclusion")):
            seen = f"missing {missing}, status {status!r}, conclusion {body.get('conclusion')!r}"
            raise _Problem(422, f"Invalid request.\n\n{seen}", page)
        run = {**body, "status": status, "id": len(self._state.check_runs) + 1, "repository": repository}
        self._state.check_runs.append(run)
        return JSONResponse(run, status_code=201)

    def _require_app(self, request: Request, page: str) -> None:
        """Verify the App's JWT as GitHub does. The messages are GitHub's own."""
        try:
            claims = jwt.decode(
                _bearer(request),
                self._public_key,
                algorithms=["RS256"],
                options={"require": ["iss", "iat", "exp"], "verify_exp": False, "verify_iat": False},
            )
        except jwt.PyJWTError:
            raise _Problem(401, "A JSON web token could not be decoded", page) from None
        now = self._clock()
        if str(claims["iss"]) != self._app_id:
            raise _Problem(404, "Integration not found", page)
        if not isinstance(claims["exp"], int) or claims["exp"] < now:
            what = "must be a numeric value representing the future time at which the assertion expires"
            raise _Problem(401, f"'Expiration time' claim ('exp') {what}", page)
        if claims["exp"] > now + JWT_SECONDS:
            raise _Problem(401, "'Expiration time' claim ('exp') is too far in the future", page)
        if not isinstance(claims["iat"], int) or claims["iat"] > now:
            what = "must be an Integer representing the time that the assertion was issued"
            raise _Problem(401, f"'Issued at' claim ('iat') {what}", page)

    def _require_installation(self, request: Request, page: str) -> str:
        """Check the installation token, and return the repository's name as it is really spelt."""
        token = self._state.tokens.get(_bearer(request))
        if token is None or token.expires_at <= self._clock():
            raise _Problem(401, "Bad credentials", page)
        repository = _repository(request)
        if repository not in token.repositories:
            raise _Problem(403, "Resource not accessible by integration", page)
        return self._installed[repository]


def check_dispatch(raw: bytes, body: Mapping[str, Any], page: str) -> tuple[str, dict[str, Any]]:
    """GitHub's limits on a dispatch. Texts: github/docs#16469, mvasigh/dispatch-action#23, prowler#12370,
    peter-evans/repository-dispatch#28 quote real answers."""
    event_type, payload = body.get("event_type"), body.get("client_payload", {})
    if not isinstance(event_type, str) or not event_type:
        raise _Problem(422, 'Invalid request.\n\n"event_type" wasn\'t supplied.', page)
    if len(event_type) > MAX_EVENT_TYPE:
        supplied = f"Only {MAX_EVENT_TYPE} characters are allowed; {len(event_type)} were supplied."
        raise _Problem(422, f"Invalid request.\n\n{supplied}", page)
    if not isinstance(payload, dict):
        raise _Problem(
            422, f"Invalid request.\n\nFor 'properties/client_payload', {payload!r} is not an object.", page
        )
    if len(payload) > MAX_PROPERTIES:
        supplied = f"No more than {MAX_PROPERTIES} properties are allowed; {len(payload)} were supplied."
        raise _Problem(422, f"Invalid request.\n\n{supplied}", page)
    if len(raw) >= MAX_PAYLOAD_BYTES:
        raise _Problem(422, "client_payload is too large.", page)
    return event_type, payload


def _bearer(request: Request) -> str:
    """GitHub takes `Bearer` and `token` alike."""
    scheme, _, value = request.headers.get("Authorization", "").partition(" ")
    return value.strip() if scheme.lower() in ("bearer", "token") else ""


def _repository(request: Request) -> str:
    return f"{request.path_params['owner']}/{request.path_params['name']}".lower()


async def _json(request: Request, page: str) -> dict[str, Any]:
    try:
        value = await request.json()
    except ValueError:
        raise _Problem(400, "Problems parsing JSON", page) from None
    if not isinstance(value, dict):
        raise _Problem(400, "Body should be a JSON object", page)
    return value


def _number(name: str) -> int:
    """A made-up id that is the same each time."""
    return zlib.crc32(name.lower().encode())


async def _problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, _Problem)
    body = {"message": error.message, "documentation_url": _DOCS + error.page, "status": str(error.status)}
    return JSONResponse(body, status_code=error.status)


async def _not_found(_: Request, __: Exception) -> Response:
    return JSONResponse(
        {"message": "Not Found", "documentation_url": _DOCS, "status": "404"}, status_code=404
    )
