"""One relay for all tests that only need one; `own_world` for those that need it in a certain state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from relay_world import World, running, stand_in

from dispatch_lab.github import AppKey, new_app_key
from dispatch_lab.issuer import Issuer
from dispatch_lab.serving import listen, serve


@pytest.fixture(scope="session")
def app_key() -> AppKey:
    return new_app_key()


@pytest.fixture(scope="session")
def issuer() -> Iterator[Issuer]:
    listener = listen()
    issuer = Issuer(listener.url)
    with serve(issuer.app, listener):
        yield issuer


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, app_key: AppKey, issuer: Issuer) -> Iterator[World]:
    with (
        stand_in(app_key) as github,
        running(tmp_path_factory.mktemp("relay"), app_key, issuer, github) as made,
    ):
        yield made


@pytest.fixture
def own_world(tmp_path: Path, app_key: AppKey, issuer: Issuer) -> Iterator[Callable[..., World]]:
    """Make a relay of one's own: `own_world(section={...}, github={...}, api=wrap)`."""
    with ExitStack() as stack:

        def make(github: dict[str, Any] | None = None, api: Any = None, **sections: Any) -> World:
            made = stack.enter_context(stand_in(app_key, **(github or {})))
            wrapped = api(made.app) if api else None
            return stack.enter_context(running(tmp_path, app_key, issuer, made, wrapped, **sections))

        yield make
