"""JSON over HTTP with urllib: a total deadline, no redirects, failures classified.

Proxies (HTTPS_PROXY, NO_PROXY) and the system's trust store (SSL_CERT_FILE) are urllib's own affair.
"""

from __future__ import annotations

import json
import queue
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timezone
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, Optional
from urllib.parse import urlsplit

MAX_ANSWER_BYTES = 1_000_000


class TransportError(Exception):
    """No answer came. `hint` names what the user can check; `maybe_arrived`: the other side may have our request."""

    def __init__(self, reason: str, hint: str = "", *, maybe_arrived: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.maybe_arrived = maybe_arrived


@dataclass(frozen=True)
class Answer:
    """An HTTP answer. `body` is the decoded JSON, or None when it was not JSON."""

    status: int
    text: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def retry_after_seconds(self, now: float) -> Optional[float]:
        """The Retry-After header in seconds from `now` (Unix time). Source: RFC 9110, 10.2.3."""
        value = self.headers.get("retry-after", "").strip()
        if value.isascii() and value.isdecimal():
            return float(value)
        try:
            when = parsedate_to_datetime(value)
            # A date without a zone is UTC: RFC 5322, 3.3, "-0000".
            return max((when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp() - now, 0.0)
        except (TypeError, ValueError, OverflowError):
            return None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the bearer token to a host nobody named."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> None:
        return None


def request_json(
    method: str,
    url: str,
    *,
    deadline_seconds: float,
    bearer: Optional[str] = None,
    body: Optional[object] = None,
) -> Answer:
    """One request, one answer, within the deadline in all. Raises TransportError when none came."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        scheme = ""
    if scheme not in ("http", "https"):
        raise TransportError(f"{url!r} is not an http(s) address")
    headers = {"Accept": "application/json", "User-Agent": "crcr-actions"}
    data = None
    if body is not None:
        data = encode(body)
        headers["Content-Type"] = "application/json"
    if bearer is not None:
        headers["Authorization"] = f"Bearer {bearer}"
    request = urllib.request.Request(url, data=data, headers=headers, method=method)

    # A socket's timeout counts from byte to byte: a server that drips would hold us for ever. So the
    # exchange runs in a thread, and the deadline is ours.
    outcome: queue.Queue[Any] = queue.Queue()
    threading.Thread(target=lambda: outcome.put(_exchange(request, deadline_seconds)), daemon=True).start()
    started = time.monotonic()
    try:
        result = outcome.get(timeout=deadline_seconds)
    except queue.Empty:
        seconds = time.monotonic() - started
        raise TransportError(f"no answer within {seconds:.0f} s", _PROXY_HINT, maybe_arrived=True) from None
    if isinstance(result, TransportError):
        raise result
    answer: Answer = result
    return answer


def encode(body: object) -> bytes:
    """JSON as it goes over the wire. Half a surrogate pair has no bytes, and becomes a question mark."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


_PROXY_HINT = "check the address, and HTTPS_PROXY and NO_PROXY of the runner"
_TLS_HINT = "set SSL_CERT_FILE to the certificate bundle of your network"


def _exchange(request: urllib.request.Request, seconds: float) -> object:
    opener = urllib.request.build_opener(_NoRedirects)
    try:
        with opener.open(request, timeout=seconds) as response:
            return _answer(response.status, response.headers, response.read(MAX_ANSWER_BYTES + 1))
    except urllib.error.HTTPError as error:
        with error:
            try:
                data = error.read(MAX_ANSWER_BYTES + 1)
            except (OSError, HTTPException):
                data = b""
            return _answer(error.code, error.headers, data)
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLError):
            return TransportError(f"TLS failed: {error.reason}", _TLS_HINT)
        never = isinstance(error.reason, (ConnectionRefusedError, socket.gaierror))
        return TransportError(f"connection failed: {error.reason}", _PROXY_HINT, maybe_arrived=not never)
    except ValueError:
        # http.client refuses a header with a line end in it, and its text quotes the header: a secret.
        return TransportError("the address or the token has characters that HTTP does not allow")
    except (OSError, HTTPException) as error:
        return TransportError(
            f"connection broke: {type(error).__name__}: {error}", _PROXY_HINT, maybe_arrived=True
        )


def _answer(status: int, headers: Message, data: bytes) -> object:
    if len(data) > MAX_ANSWER_BYTES:
        return TransportError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes", maybe_arrived=True)
    announced = headers.get("Content-Length", "")
    if announced.isascii() and announced.isdecimal() and len(data) < int(announced):
        return TransportError(
            f"connection broke: the answer ended after {len(data)} of {announced} bytes",
            _PROXY_HINT,
            maybe_arrived=True,
        )
    text = data.decode("utf-8", errors="replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    return Answer(status, text, body, {name.lower(): value for name, value in headers.items()})
