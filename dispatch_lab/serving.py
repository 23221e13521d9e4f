"""Serve an ASGI application on a loopback port, in a thread of this process, for as long as a block lasts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn

from dispatch_lab.errors import LabError

_HOST = "127.0.0.1"


@dataclass(frozen=True)
class Listener:
    """A port that is ours already: its address can be told to others before anything is served there."""

    socket: socket.socket
    url: str


def listen() -> Listener:
    """Bind a free loopback port."""
    # asyncio switches Nagle's algorithm off only where the protocol is named; with it each answer takes 40 ms more.
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.bind((_HOST, 0))
    # Connections wait in the backlog from now on, instead of being refused until the server is up.
    bound.listen(128)
    return Listener(bound, f"http://{_HOST}:{bound.getsockname()[1]}")


@contextmanager
def serve(app: Any, listener: Listener | None = None, *, timeout: float = 10) -> Iterator[str]:
    """Serve `app` (ASGI, its lifespan included) and give its base address, without a slash at the end.

    `timeout`: seconds for the start, and again for the end. Raises LabError when the server does not start.
    """
    listener = listener or listen()
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="on",
        ws="none",
        http="h11",
        timeout_graceful_shutdown=max(1, int(timeout)),
    )
    server = _Server(config)
    thread = threading.Thread(target=_run, args=(server, listener.socket), name=f"serve {listener.url}")
    thread.start()
    try:
        if not server.settled.wait(timeout) or not server.started:
            raise LabError(
                "The server did not start",
                f"{listener.url}, {timeout:g} s",
                "Read the traceback above; the application's start-up failed or hangs",
            )
        yield listener.url
    finally:
        server.should_exit = True
        thread.join(timeout + 5)
        listener.socket.close()


class _Server(uvicorn.Server):
    """Tells when its start-up is over, whether it succeeded or not."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.settled.set()


def _run(server: _Server, bound: socket.socket) -> None:
    try:
        server.run(sockets=[bound])
    except SystemExit:  # uvicorn's way to say that the application's start-up failed; `serve` tells it
        pass
    finally:
        server.settled.set()
