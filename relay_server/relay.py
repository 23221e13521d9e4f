"""The parts of a running relay, put together once from the settings."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .allowlist import AllowlistCache, AllowlistError
from .github import GitHubApp, GitHubError
from .settings import Settings
from .signing_keys import SigningKeys
from .store import Store, StoreUnavailable
from .store.sqlite import SQLiteStore


@dataclass(frozen=True)
class Relay:
    """What the handlers work with."""

    settings: Settings
    store: Store
    signing_keys: SigningKeys
    allowlist: AllowlistCache
    github: GitHubApp
    executor: ThreadPoolExecutor
    now: Callable[[], float]  # seconds since the epoch

    def close(self) -> None:
        """Let dispatches under way note their outcome, then release the database."""
        self.executor.shutdown(wait=True, cancel_futures=True)
        self.store.close()

    def health(self) -> dict[str, Any]:
        """The JSON of `GET /healthz`: whether callbacks and webhooks can be served now."""
        try:
            self.store.totals()
            store = "ok"
        except StoreUnavailable as error:
            store = str(error)
        try:
            allowlist = self.allowlist.current()
        except AllowlistError:
            allowlist = None
        return {
            "ok": store == "ok" and allowlist is not None,
            "store": store,
            "allowlist": {
                "entries": len(allowlist.entries) if allowlist else 0,
                "left_out": list(allowlist.problems) if allowlist else [],
                "error": self.allowlist.last_error,
            },
        }


def assemble(settings: Settings, now: Callable[[], float] = time.time) -> Relay:
    """Open the database and prepare the rest. Nothing is fetched before the first request needs it."""
    github = GitHubApp(
        settings.github.api_url,
        settings.github.app_id,
        settings.app_private_key,
        settings.github.timeout_seconds,
    )
    return Relay(
        settings=settings,
        store=SQLiteStore(Path(settings.database)),
        signing_keys=SigningKeys(
            {each.issuer: each.jwks_url for each in settings.oidc.issuers}, settings.oidc.timeout_seconds
        ),
        allowlist=AllowlistCache(_allowlist_reader(settings, github), settings.allowlist.refresh_seconds),
        github=github,
        executor=ThreadPoolExecutor(settings.fanout.parallel, thread_name_prefix="dispatch"),
        now=now,
    )


def _allowlist_reader(settings: Settings, github: GitHubApp) -> Callable[[], str]:
    file, path = settings.allowlist.file, settings.allowlist.path

    def from_file() -> str:
        try:
            return Path(str(file)).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AllowlistError(f"{file}: {type(error).__name__}") from None

    def from_github() -> str:
        try:
            return github.read_file(settings.upstream, path)
        except GitHubError as error:
            raise AllowlistError(str(error)) from None

    return from_file if file is not None else from_github
