"""The GitHub App that the relay acts as: installation tokens, dispatches, file contents.

Sources (GitHub Docs): "Generating a JSON Web Token (JWT) for a GitHub App", "Generating an installation access
token for a GitHub App", REST "Create a repository dispatch event", REST "Get repository content".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import jwt
import requests

from relay_client.protocol.shape import show

from .trim import encode

_API_VERSION = "2022-11-28"
_JWT_SECONDS = 540  # GitHub allows ten minutes; one is left for clocks that differ
_JWT_BACKDATED_SECONDS = 60  # GitHub's own advice against clock drift
_RENEW_BEFORE_SECONDS = 300  # a token this close to its end is not used for a new call


class GitHubError(Exception):
    """GitHub did not do what was asked. The text is fit for logs and answers: it holds no secret."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


@dataclass
class _Access:
    """The installation token of one repository, and the lock under which it is renewed."""

    token: str = ""
    expires_at: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


class GitHubApp:
    """Safe to call from many threads. Each call waits at most `timeout` seconds for each answer of GitHub."""

    def __init__(
        self,
        api_url: str,
        app_id: str,
        private_key: str,
        timeout: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api = api_url.rstrip("/")
        self._app_id = app_id
        self._private_key = private_key
        self._timeout = timeout
        self._clock = clock
        self._accesses: dict[str, _Access] = {}
        self._accesses_lock = threading.Lock()

    def dispatch(self, repository: str, event_type: str, client_payload: dict[str, Any]) -> None:
        """Create a `repository_dispatch` event. Raises GitHubError."""
        body = {"event_type": event_type, "client_payload": client_payload}
        self._as_installation("POST", repository, "dispatches", body=body)

    def read_file(self, repository: str, path: str) -> str:
        """The text of a file on the default branch. Raises GitHubError."""
        return self._as_installation(
            "GET", repository, f"contents/{path}", accept="application/vnd.github.raw+json"
        ).text

    def _as_installation(
        self,
        method: str,
        repository: str,
        path: str,
        *,
        body: Any = None,
        accept: str = "application/vnd.github+json",
    ) -> requests.Response:
        url = f"/repos/{repository}/{path}"
        try:
            return self._call(method, url, self._token(repository), body, accept)
        except GitHubError as error:
            if error.status != 401:
                raise
        # Revoked before its time (the App was reinstalled): a new token, once.
        self._access(repository).expires_at = 0.0
        return self._call(method, url, self._token(repository), body, accept)

    def _access(self, repository: str) -> _Access:
        with self._accesses_lock:
            return self._accesses.setdefault(repository.lower(), _Access())

    def _token(self, repository: str) -> str:
        access = self._access(repository)
        with access.lock:
            if access.expires_at - _RENEW_BEFORE_SECONDS < self._clock():
                access.token, access.expires_at = self._new_token(repository)
            return access.token

    def _new_token(self, repository: str) -> tuple[str, float]:
        """A token for this one repository: a leak of it would reach nothing else."""
        app = self._app_jwt()
        installation = self._call("GET", f"/repos/{repository}/installation", app)
        try:
            path = f"/app/installations/{int(installation.json()['id'])}/access_tokens"
            answer = self._call("POST", path, app, {"repositories": [repository.partition("/")[2]]}).json()
            return str(answer["token"]), datetime.fromisoformat(answer["expires_at"]).timestamp()
        except (ValueError, KeyError, TypeError) as error:
            text = f"an installation token for {repository}: GitHub's answer has another shape"
            raise GitHubError(f"{text} ({type(error).__name__})") from None

    def _app_jwt(self) -> str:
        now = int(self._clock())
        claims = {"iat": now - _JWT_BACKDATED_SECONDS, "exp": now + _JWT_SECONDS, "iss": self._app_id}
        return jwt.encode(claims, self._private_key, algorithm="RS256")

    def _call(
        self,
        method: str,
        path: str,
        token: str,
        body: Any = None,
        accept: str = "application/vnd.github+json",
    ) -> requests.Response:
        headers = {
            "Accept": accept,
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "X-GitHub-Api-Version": _API_VERSION,
            "User-Agent": "crcr-relay",
        }
        try:
            answer = requests.request(
                method,
                self._api + path,
                headers=headers,
                data=None if body is None else encode(body),
                timeout=self._timeout,
                allow_redirects=False,  # a credential goes only where the settings say
            )
        except requests.Timeout:
            raise GitHubError(f"{method} {path}: no answer within {self._timeout:g} s") from None
        except requests.RequestException as error:
            raise GitHubError(f"{method} {path}: {type(error).__name__}") from None
        if answer.status_code >= 300:
            reason = _HINTS.get((answer.status_code, path.rpartition("/")[2]), "")
            text = f"{method} {path}: HTTP {answer.status_code} {_message(answer)}{reason}"
            raise GitHubError(text, answer.status_code)
        return answer


_HINTS = {
    # (status, end of the path): what it usually means
    (
        404,
        "installation",
    ): ". The relay's GitHub App is not installed there: install it, or correct the allowlist",
    (307, "dispatches"): ". The repository has moved: correct the allowlist",
    (301, "dispatches"): ". The repository has moved: correct the allowlist",
}


def _message(answer: requests.Response) -> str:
    try:
        return show(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"({len(answer.content)} bytes that are not GitHub's JSON)"
