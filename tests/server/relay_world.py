"""A relay with everything around it that it talks to, all over real HTTP on loopback ports."""

from __future__ import annotations

import copy
import hashlib
import hmac
import itertools
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from dispatch_lab.github import AppKey, StandInGitHub
from dispatch_lab.issuer import Issuer
from dispatch_lab.runner import JobIdentity
from dispatch_lab.serving import serve
from relay_client.protocol import vocabulary as words
from relay_server.app import create_app
from relay_server.relay import Relay
from relay_server.settings import Settings, make_settings

SECRET = "webhook secret"
APP_ID = "Iv23liRelayApp"
TIMEOUT = 15

L1, L2, L3, L4, NIGHTLY = (
    "starter/backend",
    "Backend/One",
    "stable/backend",
    "mature/backend",
    "nightly/backend",
)
ALLOWLIST = f"""
L1:
  - {L1}
L2:
  - {L2}
  - {NIGHTLY}: {{events: [nightly], oncalls: [somebody]}}
L3:
  npu:
    {L3}: [someone, else]
L4:
  - {L4}: "@a, @b"
"""
UPSTREAM_ALLOWLIST = {words.UPSTREAM_REPOSITORY: {".github/allowlist.yml": ALLOWLIST}}

_numbers = itertools.count(1)


def sha(seed: object) -> str:
    return hashlib.sha1(str(seed).encode()).hexdigest()


def pull_request(number: int | None = None, **changed: Any) -> dict[str, Any]:
    """A pull_request webhook with the members that matter, and a few that do not."""
    number = next(_numbers) if number is None else number
    event = {
        "action": "synchronize",
        "number": number,
        "repository": {
            "full_name": words.UPSTREAM_REPOSITORY,
            "html_url": "https://github.com/pytorch/pytorch",
        },
        "sender": {"login": "author"},
        "pull_request": {
            "number": number,
            "title": f"Pull request {number}",
            "body": "Why, and how.",
            "url": f"https://api.github.com/repos/pytorch/pytorch/pulls/{number}",
            "author_association": "MEMBER",
            "labels": [{"name": "module: privateuse1"}],
            "head": {"sha": sha(number), "ref": "topic", "repo": {"full_name": "author/pytorch"}},
            "base": {"sha": sha("base"), "ref": "main", "repo": {"full_name": words.UPSTREAM_REPOSITORY}},
        },
    }
    event["pull_request"].update(changed)
    return event


def push(ref: str = "refs/heads/main", after: str | None = None, **changed: Any) -> dict[str, Any]:
    number = next(_numbers)
    return {
        "ref": ref,
        "before": sha("before"),
        "after": after or sha(("push", number)),
        "deleted": False,
        "repository": {"full_name": words.UPSTREAM_REPOSITORY},
        "commits": [],
        **changed,
    }


def job(repository: str, run_id: int = 100, **changed: Any) -> JobIdentity:
    values: dict[str, Any] = {
        "repository": repository,
        "workflow": "CRCR",
        "workflow_path": ".github/workflows/crcr.yml",
        "job": "report",
        "run_id": run_id,
        "run_attempt": 1,
        "check_run_id": 7,
        "ref": "refs/heads/main",
        "sha": sha("downstream"),
        "event_name": "repository_dispatch",
    }
    return JobIdentity(**{**values, **changed})


def report(envelope: dict[str, Any], status: str = "in_progress", **changed: Any) -> dict[str, Any]:
    """A callback body for a dispatch, as today's public action writes it."""
    workflow = {
        "schema_version": "1",
        "status": status,
        "conclusion": None if status == "in_progress" else "success",
        "name": "CRCR",
        "url": "https://github.com/backend/one/actions/runs/100",
        "job_name": "test (py3.12:npu)",
        "check_run_id": "7",
        "run_id": "100",
        "run_attempt": "1",
        "started_at": "2026-12-01T08:00:00.000001Z",
        "completed_at": None if status == "in_progress" else "2026-12-01T08:05:00.000001Z",
        **changed,
    }
    return {**copy.deepcopy(envelope), "workflow": workflow}


@dataclass(frozen=True)
class World:
    """The relay's address and its surroundings."""

    url: str
    issuer: Issuer
    github: StandInGitHub
    settings: Settings
    relay: Relay

    def get(self, path: str) -> requests.Response:
        return requests.get(self.url + path, timeout=TIMEOUT)

    def webhook(
        self, payload: Any, *, event: str = "pull_request", guid: str | None = None, **headers: str | None
    ) -> requests.Response:
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        sent: dict[str, str | None] = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": guid or str(uuid.uuid4()),
            "X-Hub-Signature-256": signature(raw),
            "Content-Type": "application/json",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        kept = {name: value for name, value in sent.items() if value is not None}
        return requests.post(self.url + "/github/webhook", data=raw, headers=kept, timeout=TIMEOUT)

    def dispatch(self, payload: dict[str, Any], event: str = "pull_request") -> dict[str, Any]:
        """Send a webhook and return the envelope that every subscribed downstream got."""
        guid = str(uuid.uuid4())
        answer = self.webhook(payload, event=event, guid=guid)
        assert answer.status_code == 200, answer.text
        return next(
            each.client_payload
            for each in self.github.dispatches
            if each.client_payload["delivery_id"] == guid
        )

    def token(self, repository: str = L2, run_id: int = 100) -> str:
        return self.issuer.mint(job(repository, run_id), words.AUDIENCE)

    def callback(
        self, body: Any, repository: str = L2, *, token: str | None = None, path: str = "/github/callback"
    ) -> requests.Response:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token or self.token(repository)}"}
        return requests.post(self.url + path, data=raw, headers=headers, timeout=TIMEOUT)


def signature(raw: bytes, secret: str = SECRET) -> str:
    return "sha256=" + hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()


def settings_for(folder: Path, key: AppKey, issuer: Issuer, api_url: str, **sections: Any) -> Settings:
    value = {
        "database": "relay.sqlite3",
        "github": {"app_id": APP_ID, "api_url": api_url, "timeout_seconds": 5},
        "oidc": {"issuers": [{"issuer": issuer.url, "jwks_url": issuer.jwks_url}]},
        "limits": {"calls_per_minute": 100_000},
        **sections,
    }
    return make_settings(value, webhook_secret=SECRET, app_private_key=key.private, folder=folder)


@contextmanager
def stand_in(key: AppKey, **changed: Any) -> Iterator[StandInGitHub]:
    values = {
        "app_id": APP_ID,
        "app_public_key": key.public,
        "installed": [words.UPSTREAM_REPOSITORY, L1, L2, L3, L4, NIGHTLY],
        "files": UPSTREAM_ALLOWLIST,
    }
    with StandInGitHub(**{**values, **changed}) as github:
        yield github


@contextmanager
def running(
    folder: Path, key: AppKey, issuer: Issuer, github: StandInGitHub, api: Any = None, **sections: Any
) -> Iterator[World]:
    """A relay, and its GitHub (or `api`, an ASGI application around it), for as long as the block lasts."""
    with serve(api or github.app) as api_url:
        settings = settings_for(folder, key, issuer, api_url, **sections)
        app = create_app(settings)
        with serve(app) as url:
            yield World(url, issuer, github, settings, app.state.relay)
