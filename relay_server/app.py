"""The HTTP face of the relay: routes, body limits, and how errors look. Blocking work runs in threads."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from relay_client.protocol import vocabulary as words

from . import callback, webhook
from .hud import pages
from .refusal import Refusal, explain
from .relay import Relay, assemble
from .settings import Settings
from .store import StoreUnavailable
from .version import describe

log = logging.getLogger(__name__)


def create_app(settings: Settings) -> Starlette:
    """The relay as an ASGI application. It opens the database now and closes it when the server stops."""
    relay = assemble(settings)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(relay.close)

    app = Starlette(
        routes=[
            Route(words.WEBHOOK_PATH, _webhook, methods=["POST"]),
            Route(words.CALLBACK_PATH, _callback, methods=["POST"]),
            # Production's published address ends in a slash, which production itself answers with 404.
            Route(words.CALLBACK_PATH + "/", _callback, methods=["POST"]),
            Route("/version", _version),
            Route("/healthz", _healthz),
            *pages.routes(),
        ],
        exception_handlers={
            Refusal: _refusal,
            StoreUnavailable: _store_unavailable,
            HTTPException: _http_exception,
            Exception: _unexpected,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.relay = relay
    return app


async def _webhook(request: Request) -> Response:
    relay: Relay = request.app.state.relay
    raw = await _body(request, relay.settings.limits.webhook_bytes)
    answer = await run_in_threadpool(webhook.handle, relay, webhook.Delivery.of(request.headers), raw)
    return JSONResponse(dict(answer.body), status_code=answer.status)


async def _callback(request: Request) -> Response:
    relay: Relay = request.app.state.relay
    raw = await _body(request, relay.settings.limits.callback_bytes)
    authorization = request.headers.get("Authorization")
    return JSONResponse(await run_in_threadpool(partial(callback.handle, relay, authorization, raw)))


async def _version(_: Request) -> Response:
    return JSONResponse(describe())


async def _healthz(request: Request) -> Response:
    relay: Relay = request.app.state.relay
    health = await run_in_threadpool(relay.health)
    return JSONResponse(health, status_code=200 if health["ok"] else 503)


async def _body(request: Request, limit: int) -> bytes:
    """The body, read no further than `limit` bytes. Raises Refusal 413."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            fix = "send fewer or shorter failed_tests_detail entries"
            raise Refusal(
                413, explain(f"The body is larger than {limit} bytes", fix=fix), {"Connection": "close"}
            )
        chunks.append(chunk)
    return b"".join(chunks)


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return JSONResponse({"detail": error.detail}, status_code=error.status, headers=error.headers)


async def _store_unavailable(_: Request, error: Exception) -> Response:
    log.error("the store is unavailable", exc_info=error)
    detail = explain(
        "The relay's database is unavailable, so nothing was stored", fix="send the request again later"
    )
    return JSONResponse({"detail": detail}, status_code=503, headers={"Retry-After": "15"})


async def _http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{error.detail}: {request.method} {request.url.path}"
    return JSONResponse({"detail": detail}, status_code=error.status_code, headers=error.headers)


async def _unexpected(_: Request, __: Exception) -> Response:
    # Starlette raises the error again after this answer, and uvicorn logs it with its traceback.
    detail = explain("A fault of the relay; its log has the cause", fix="send the request again later")
    return JSONResponse({"detail": detail}, status_code=500)
