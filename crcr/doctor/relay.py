"""Whether the relay can be reached, and understands what this version sends."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Optional
from urllib.parse import urlsplit

from crcr.doctor.finding import Finding, error, warning
from relay_client.http import Answer, TransportError, request_json
from relay_client.protocol import vocabulary as words

_SECONDS = 15.0
# An OIDC token lives five minutes, and relays allow for a clock that is a little off.
_CLOCK_SECONDS = 60.0
_PROXIES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE")


def check_relay(url: str, environment: Mapping[str, str]) -> Iterator[Finding]:
    """One request to `GET /version` beside the callback's address. Sends nothing else."""
    parts = urlsplit(url)
    if not url.endswith(words.CALLBACK_PATH):
        yield warning(
            "The address of a relay's callback ends in its usual path, and this one does not.",
            url,
            f"relay-url: {parts.scheme}://{parts.netloc}{words.CALLBACK_PATH}",
        )
    try:
        answer = request_json("GET", f"{parts.scheme}://{parts.netloc}/version", deadline_seconds=_SECONDS)
    except TransportError as problem:
        set_here = ", ".join(f"{name}={environment[name]}" for name in _PROXIES if environment.get(name))
        yield error(
            "The relay cannot be reached from here.",
            f"{problem.reason}; {set_here or 'no proxy and no SSL_CERT_FILE is set'}",
            problem.hint or f"relay-url: {url}",
        )
        return
    yield from _clock(answer, time.time())
    yield from _version(answer)


def _clock(answer: Answer, now: float) -> Iterator[Finding]:
    try:
        theirs: Optional[float] = parsedate_to_datetime(answer.headers.get("date", "")).timestamp()
    except (TypeError, ValueError):
        theirs = None
    if theirs is not None and abs(theirs - now) > _CLOCK_SECONDS:
        yield warning(
            "This machine's clock is wrong: tokens may be refused as not valid yet, or no longer.",
            f"{now - theirs:+.0f} s from the relay's",
            "switch on time synchronisation on the runner",
        )


def _version(answer: Answer) -> Iterator[Finding]:
    if answer.status != 200 or not isinstance(answer.body, dict):
        return  # PyTorch's own relay does not answer this; what it knows is documented
    theirs = answer.body.get("schema_version")
    if theirs != words.WORKFLOW_SCHEMA_VERSION:
        yield error(
            "The relay speaks another version of the callback.",
            f"its schema_version: {theirs}, ours: {words.WORKFLOW_SCHEMA_VERSION}",
            "pin a release of the toolkit that the relay's operator names",
        )
