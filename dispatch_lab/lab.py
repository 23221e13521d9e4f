"""The whole flow on one machine: upstream, stand-in GitHub, a real relay process, downstreams, real workflow runs.

A webhook goes in with `send`; what GitHub would do with the relay's dispatches is done by `act`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import yaml

from crcr.home import HOME
from dispatch_lab.errors import LabError
from dispatch_lab.events import Delivery
from dispatch_lab.github import StandInGitHub, new_app_key
from dispatch_lab.issuer import Issuer
from dispatch_lab.runner import WorkflowRun, WorkflowRunner
from dispatch_lab.serving import listen, serve
from dispatch_lab.small_upstream import submodule_rewrites
from dispatch_lab.upstream import Upstream, make_upstream
from relay_client.protocol.vocabulary import CALLBACK_PATH, UPSTREAM_REPOSITORY, WEBHOOK_PATH

TOOLKIT = Path(__file__).resolve().parent.parent
ALLOWLIST_PATH = ".github/allowlist.yml"
_APP_ID = "lab-app"
_SECRET = "the lab's webhook secret"  # noqa: S105 - nothing outside this machine uses it
_START_SECONDS = 20.0


@dataclass(frozen=True)
class Downstream:
    """A repository that takes part: its name on GitHub, its files, its level, and its workflow file."""

    repository: str
    files: Path
    level: str = "L2"
    workflow_path: str = ".github/workflows/crcr.yml"


@dataclass
class Lab:
    """A lab that is up. `finished` are the workflow runs that ended, oldest first."""

    upstream: Upstream
    relay_url: str
    github: StandInGitHub
    issuer: Issuer
    folder: Path
    finished: list[WorkflowRun] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def send(self, delivery: Delivery) -> dict[str, Any]:
        """Deliver a webhook to the relay and return its answer. Raises LabError when it is refused."""
        answer = requests.post(
            self.relay_url + WEBHOOK_PATH,
            data=delivery.body,
            headers=dict(delivery.headers(_SECRET)),
            timeout=30,
        )
        if answer.status_code != 200:
            raise LabError(
                "The relay refused the webhook.",
                f"HTTP {answer.status_code}: {answer.text[:500]}",
                f"read {self.folder / 'relay.log'}",
            )
        result: dict[str, Any] = answer.json()
        return result

    def wait_for_runs(self, count: int, seconds: float) -> list[WorkflowRun]:
        """The finished runs once there are `count`. Raises LabError past the time."""
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.finished) >= count, seconds):
                raise LabError(
                    "A workflow run did not end.",
                    f"{len(self.finished)} of {count} after {seconds:.0f} s",
                    f"read the logs below {self.folder / 'runs'}",
                )
            return list(self.finished)

    def page(self, path: str) -> str:
        """A page of the dashboard as HTML."""
        answer = requests.get(self.relay_url + path, timeout=30)
        answer.raise_for_status()
        return answer.text

    def data(self, path: str) -> dict[str, Any]:
        """The same page as JSON."""
        answer = requests.get(f"{self.relay_url}{path}.json", timeout=30)
        answer.raise_for_status()
        result: dict[str, Any] = answer.json()
        return result


@contextlib.contextmanager
def lab(
    folder: Path,
    wheel: Path,
    wheelhouse: Path,
    downstreams: tuple[Downstream, ...],
    progress: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
    make: Callable[[Path, Path], Upstream] = make_upstream,
) -> Iterator[Lab]:
    """Bring everything up below `folder`, and take it down again. Raises LabError.

    `environment`: further variables of the machines that the workflows run on. `make`: makes the upstream.
    """
    folder.mkdir(parents=True, exist_ok=True)
    upstream = make(wheel, folder / "upstream.git")
    progress(f"upstream made: main is {upstream.main[:12]}")
    checkouts = {downstream.repository: _checkout(downstream, folder) for downstream in downstreams}
    by_name = {downstream.repository: downstream for downstream in downstreams}
    issuer_at, api_at = listen(), listen()
    issuer = Issuer(issuer_at.url)
    key = new_app_key()
    run_ids = itertools.count(1001)
    with contextlib.ExitStack() as stack:
        relay_url = _free_address()
        runner = WorkflowRunner(
            toolkit=TOOLKIT,
            home=HOME,
            folder=folder / "runs",
            api_url=api_at.url,
            oidc_request_url=issuer.request_url,
            mint_request_token=issuer.mint_request_token,
            environment=_machine(upstream, wheelhouse) | dict(environment or {}),
            variables={
                "CRCR_RELAY_URL": relay_url + CALLBACK_PATH,
                "CRCR_WHEEL_CACHE": str(folder / "wheel-cache"),
            },
            progress=progress,
        )

        def on_dispatch(repository: str, event_type: str, client_payload: dict[str, Any]) -> None:
            run = runner.run(
                repository,
                checkouts[repository],
                by_name[repository].workflow_path,
                "repository_dispatch",
                dispatch_event(repository, event_type, client_payload),
                run_id=next(run_ids),
            )
            with up.changed:
                up.finished.append(run)
                up.changed.notify_all()

        github = StandInGitHub(
            app_id=_APP_ID,
            app_public_key=key.public,
            installed=[*by_name, UPSTREAM_REPOSITORY],
            files={UPSTREAM_REPOSITORY: {ALLOWLIST_PATH: allowlist(downstreams)}},
            on_dispatch=on_dispatch,
        )
        up = Lab(upstream, relay_url, github, issuer, folder)
        stack.enter_context(serve(issuer.app, issuer_at))
        stack.enter_context(serve(github.app, api_at))
        stack.enter_context(_relay(folder, relay_url, api_at.url, issuer, key.private))
        stack.enter_context(github)
        progress(f"relay up at {relay_url}")
        yield up


def dispatch_event(repository: str, event_type: str, client_payload: Mapping[str, Any]) -> dict[str, Any]:
    """The event file of a `repository_dispatch` run (docs.github.com, "Webhook events and payloads")."""
    owner, _, name = repository.partition("/")
    return {
        "action": event_type,
        "branch": "main",
        "client_payload": dict(client_payload),
        "repository": {
            "full_name": repository,
            "name": name,
            "owner": {"login": owner},
            "default_branch": "main",
        },
        "sender": {"login": "crcr-relay[bot]", "type": "Bot"},
    }


def allowlist(downstreams: tuple[Downstream, ...]) -> str:
    """The upstream's allowlist file with these downstreams in it."""
    levels: dict[str, list[str]] = {}
    for downstream in downstreams:
        levels.setdefault(downstream.level, []).append(downstream.repository)
    return yaml.safe_dump(levels)


def _machine(upstream: Upstream, wheelhouse: Path) -> dict[str, str]:
    """The variables of the lab's runners: pip finds the wheels that are here, git the upstream that is here.

    Both are what an operator behind a proxy sets too; the workflow file stays as it is.
    """
    # The workflow's own interpreter: the one the wheels are for, and not the tool's environment.
    python = Path(sys.executable).resolve().parent
    rewrites = [
        (f"url.{upstream.url}.insteadOf", f"https://github.com/{UPSTREAM_REPOSITORY}.git"),
        *submodule_rewrites(upstream),
    ]
    settings = {
        f"GIT_CONFIG_{kind}_{number}": text
        for number, pair in enumerate(rewrites)
        for kind, text in zip(("KEY", "VALUE"), pair, strict=True)
    }
    return {
        "PATH": f"{python}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheelhouse),
        "PIP_NO_CACHE_DIR": "1",
        # git clones submodules over file:// only where it is told to.
        "GIT_ALLOW_PROTOCOL": "file:https:http",
        "GIT_CONFIG_COUNT": str(len(rewrites)),
        **settings,
    }


def _checkout(downstream: Downstream, folder: Path) -> Path:
    """The downstream as a git repository with one commit."""
    place = folder / "downstreams" / downstream.repository
    ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info", ".pytest_cache")
    shutil.copytree(downstream.files, place, ignore=ignored)
    identity = ["-c", "user.name=Lab", "-c", "user.email=lab@lab.invalid"]
    for command in (["init", "--quiet", "--initial-branch=main"], ["add", "--all"],
                    [*identity, "commit", "--quiet", "--message=The downstream"]):  # fmt: skip
        subprocess.run(["git", *command], cwd=place, check=True, capture_output=True, timeout=60)
    return place


@contextlib.contextmanager
def _relay(folder: Path, url: str, api_url: str, issuer: Issuer, private_key: str) -> Iterator[None]:
    """`crcr-relay serve` as a process of its own, until the block ends."""
    key_file, config = folder / "app.pem", folder / "relay.yml"
    key_file.write_text(private_key, encoding="ascii")
    key_file.chmod(0o600)
    settings = {
        "database": "relay.sqlite",
        "github": {"app_id": _APP_ID, "api_url": api_url},
        "oidc": {"issuers": [{"issuer": issuer.url, "jwks_url": issuer.jwks_url}]},
    }
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")
    environment = {
        **os.environ,
        "CRCR_RELAY_WEBHOOK_SECRET": _SECRET,
        "CRCR_RELAY_APP_PRIVATE_KEY_FILE": str(key_file),
        "NO_PROXY": "127.0.0.1",
    }
    port = url.rpartition(":")[2]
    command = [sys.executable, "-m", "relay_server.cli", "serve", "--config", str(config), "--port", port]
    with (folder / "relay.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=TOOLKIT, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _wait_until_up(process, url, folder / "relay.log")
            yield
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            key_file.unlink(missing_ok=True)


def _wait_until_up(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(requests.RequestException):
            if requests.get(f"{url}/healthz", timeout=2).status_code == 200:
                return
        time.sleep(0.1)
    tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
    raise LabError("The relay did not start.", " | ".join(tail) or "no log", f"read {log}")


def _free_address() -> str:
    listener = listen()
    listener.socket.close()
    return listener.url
