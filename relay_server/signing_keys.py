"""The public keys of the OIDC issuers: cached, refreshed on rotation, kept through an outage."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import jwt
import requests

log = logging.getLogger(__name__)

_LIFETIME = 3600.0  # seconds; after it a rotated-out key is no longer trusted, unless the issuer is away
_PAUSE = 10.0  # seconds between two fetches, so that made-up key ids cannot make us flood the issuer
_MAX_BYTES = 1_000_000


class KeysUnreachable(Exception):
    """The issuer's key set cannot be had at the moment."""


class UnknownKey(Exception):
    """The issuer does not publish a key with this id."""


@dataclass
class _KeySet:
    """Keys of one issuer by key id; times are of the clock."""

    keys: Mapping[str, Any] = field(default_factory=dict)
    fetched_at: float = float("-inf")
    tried_at: float = float("-inf")
    error: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class SigningKeys:
    """Finds the key a token says it was signed with. Safe to call from many threads."""

    def __init__(
        self, urls: Mapping[str, str], timeout: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._urls = dict(urls)
        self._timeout = timeout
        self._clock = clock
        self._sets = {issuer: _KeySet() for issuer in urls}

    def find(self, issuer: str, key_id: str) -> Any:
        """The public key. Raises KeysUnreachable or UnknownKey; `issuer` is one of the configured ones."""
        known = self._sets[issuer]
        if key_id in known.keys and self._clock() - known.fetched_at < _LIFETIME:
            return known.keys[key_id]
        with known.lock:
            now = self._clock()
            fresh = key_id in known.keys and now - known.fetched_at < _LIFETIME
            if not fresh and now - known.tried_at >= _PAUSE:
                self._fetch(issuer, known)
        if key_id in known.keys:  # possibly older than its lifetime: an outage must not lock everybody out
            return known.keys[key_id]
        if known.error:
            raise KeysUnreachable(known.error)
        raise UnknownKey(key_id)

    def _fetch(self, issuer: str, known: _KeySet) -> None:
        known.tried_at = self._clock()
        try:
            known.keys = _download(self._urls[issuer], self._timeout)
        except (requests.RequestException, jwt.PyJWTError, ValueError) as error:
            known.error = f"{self._urls[issuer]}: {type(error).__name__}"
            log.warning("signing keys of %s not refreshed: %s", issuer, error)
        else:
            known.fetched_at, known.error = self._clock(), ""


def _download(url: str, timeout: float) -> dict[str, Any]:
    with requests.get(url, timeout=timeout, allow_redirects=False, stream=True) as answer:
        if answer.status_code != 200:
            raise ValueError(f"HTTP {answer.status_code}")
        body = answer.raw.read(_MAX_BYTES, decode_content=True)
    key_set = jwt.PyJWKSet.from_json(body.decode("utf-8"))
    return {key.key_id: key.key for key in key_set.keys if key.key_id and key.key_type == "RSA"}
