"""A real HTTP server on this machine that answers as a test tells it, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Optional, Union


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """An answer. `body` is sent as JSON unless it is bytes."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


# A script takes the raw connection: for servers that drip, stall or hang up.
Script = Callable[[BaseHTTPRequestHandler], None]
Answering = Union[Reply, Script]


class LocalServer:
    """Answers a path with its replies in turn, and with the last of them from then on."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.ending = threading.Event()
        self._answers: dict[str, list[Answering]] = {}
        self._server = _Quiet(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> LocalServer:  # noqa: PYI034 - typing.Self is not in Python 3.9
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def answer(self, path: str, *answers: Answering) -> str:
        """Say what a path answers, and return its address."""
        self._answers[path] = list(answers)
        return self.url + path

    def take(self, request: Request) -> Answering:
        self.requests.append(request)
        answers = self._answers.get(request.path.partition("?")[0])
        if not answers:
            return Reply(404, {"detail": "the test gave this path no answer"})
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def asked(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path.partition("?")[0] == path]


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests want."""


def _handler(server: LocalServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = server.take(Request(self.command, self.path, headers, self.rfile.read(length)))
            if not isinstance(answer, Reply):
                self.close_connection = True
                answer(self)
                return
            data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Length": str(len(data)), **answer.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_CONNECT = _serve  # noqa: N815 - the names http.server calls

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name http.server gives
            """Nothing to the terminal."""

    return Handler
