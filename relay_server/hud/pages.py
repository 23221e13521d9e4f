"""The pages: each as HTML and, at the same address with `.json`, as JSON.

Nothing is loaded from elsewhere and no script runs; the one style sheet stands in the page and is allowed by
its hash, so that a saved page looks like the served one.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from relay_server.allowlist import Allowlist, AllowlistError
from relay_server.relay import Relay
from relay_server.version import service_version

from . import queries
from .show import FILTERS

_MAX_NUMBER = 2**31 - 1
_TESTS_SHOWN = 50  # failed tests of one row
_STYLE = (Path(__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}

# `None` stands for "nothing is known of it": 404.
Query = Callable[[Relay, Request], Any]


def routes() -> list[Route]:
    """The routes of the dashboard. `.json` comes first: a repository name may hold a dot."""
    table: list[tuple[str, str, Query]] = [
        ("/crcr", "overview.html", _overview),
        ("/crcr/{owner}/{name}", "repository.html", _repository),
        ("/pr/{number:int}", "pull_request.html", _pull_request),
    ]
    return [
        route
        for path, template, query in table
        for route in (
            Route(path + ".json", _endpoint(query, _as_json)),
            Route(path, _endpoint(query, _as_html(template))),
        )
    ]


def render(template: str, page: Any) -> str:
    """The HTML of a page: one of the dataclasses of `queries`."""
    return _ENVIRONMENT.get_template(template).render(page=page)


def _endpoint(query: Query, show: Callable[[Any], Response]) -> Callable[[Request], Awaitable[Response]]:
    def blocking(request: Request) -> Response:
        page = query(request.app.state.relay, request)
        if page is None:
            raise HTTPException(404, "No such page, or nothing is known of it yet")
        return show(page)

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(blocking, request)

    return endpoint


def _as_json(page: Any) -> Response:
    return JSONResponse(asdict(page), headers=SECURITY_HEADERS)


def _as_html(template: str) -> Callable[[Any], Response]:
    return lambda page: HTMLResponse(render(template, page), headers=SECURITY_HEADERS)


def _overview(relay: Relay, _: Request) -> queries.Overview:
    return queries.overview(relay.store, _allowlist(relay), relay.settings.upstream)


def _repository(relay: Relay, request: Request) -> queries.RepositoryPage | None:
    name = f"{request.path_params['owner']}/{request.path_params['name']}"
    return queries.repository_page(relay.store, _allowlist(relay), relay.settings.upstream, name)


def _pull_request(relay: Relay, request: Request) -> queries.PullRequestPage | None:
    number: int = request.path_params["number"]
    if not 0 < number <= _MAX_NUMBER:
        return None
    return queries.pull_request_page(relay.store, relay.settings.upstream, number)


def _allowlist(relay: Relay) -> Allowlist:
    """The pages work without an allowlist; they then show no level."""
    try:
        return relay.allowlist.current()
    except AllowlistError:
        return Allowlist()


_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_ENVIRONMENT.filters.update(FILTERS)
_ENVIRONMENT.globals.update(
    style=Markup(_STYLE),  # noqa: S704 - our own file
    version=service_version(),
    rows_shown=queries.ROWS_SHOWN,
    tests_shown=_TESTS_SHOWN,
)
