"""Gate 1: who calls. An RS256 token of a trusted OIDC issuer, made for this relay, says so.

Sources: RFC 7519 (claims), RFC 6750 (Bearer, WWW-Authenticate), GitHub Docs "OpenID Connect reference".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import jwt

from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import show
from relay_server.refusal import Refusal, explain
from relay_server.signing_keys import KeysUnreachable, UnknownKey

ALGORITHM = "RS256"
LEEWAY_SECONDS = 10
RETRY_AFTER_SECONDS = 15

_MINT_AGAIN = "mint a fresh token for every callback; GitHub's live five minutes"
_FROM_GITHUB = "send the token that the job's own ACTIONS_ID_TOKEN_REQUEST_URL answers with"
_SECONDS_IN_1_MILLENNIUM = 31_556_952_000

_FAULTS: tuple[tuple[type[jwt.PyJWTError], str, str], ...] = (
    # the first that fits: (PyJWT's error, what was wrong, what to change)
    (jwt.ExpiredSignatureError, "The OIDC token has expired", _MINT_AGAIN),
    (
        jwt.InvalidAudienceError,
        "The OIDC token was made for another audience",
        "request the token with &audience={audience}",
    ),
    (jwt.InvalidSignatureError, "The OIDC token's signature does not fit its issuer's key", _FROM_GITHUB),
    (jwt.ImmatureSignatureError, "The OIDC token is not valid yet", "set the clock of the issuing system"),
    (jwt.MissingRequiredClaimError, "The OIDC token lacks a claim that is required: {error}", _FROM_GITHUB),
    (jwt.PyJWTError, "The OIDC token cannot be verified: {error}", _FROM_GITHUB),
)


@dataclass(frozen=True)
class Identity:
    """The verified caller. `run_id` is None when the issuer's tokens do not name a run."""

    repository: str
    issuer: str
    run_id: str | None


def check(
    authorization: str | None,
    *,
    audience: str,
    issuers: tuple[str, ...],
    find_key: Callable[[str, str], Any],
) -> Identity:
    """Verify the Authorization header. Raises Refusal 401, or 503 when the issuer's keys cannot be had."""
    token = _bearer(authorization, audience)
    header, seen = _unverified(token)
    if header.get("alg") != ALGORITHM:
        what = "The OIDC token is signed with another algorithm"
        raise _refuse(
            what, f"alg={show(header.get('alg'))}, {_claims(seen)}", f"{_FROM_GITHUB} ({ALGORITHM})"
        )
    issuer = seen.get("iss")
    if not isinstance(issuer, str) or issuer not in issuers:
        fix = "send a token of " + " or ".join(issuers)
        raise _refuse("The OIDC token is of an unsupported issuer", _claims(seen), fix)
    key = _key(find_key, issuer, header.get("kid"), seen)
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[ALGORITHM],
            audience=audience,
            issuer=issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["iss", "aud", "exp", "iat"]},
        )
    except jwt.PyJWTError as error:
        what, fix = next((what, fix) for kind, what, fix in _FAULTS if isinstance(error, kind))
        detail = what.format(error=error), fix.format(audience=audience)
        raise _refuse(detail[0], _claims(seen), detail[1]) from None
    return _identity(claims, issuer)


def _bearer(authorization: str | None, audience: str) -> str:
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    seen = (
        "no Authorization header" if not authorization else "an Authorization header without a Bearer token"
    )
    fix = f"grant the job `id-token: write`, request a token with &audience={audience}, send it as Bearer"
    raise _refuse("There is no OIDC token", seen, fix)


def _unverified(token: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Header and claims as the token states them: good for choosing a key and for explaining, no more."""
    try:
        header = jwt.get_unverified_header(token)
        return header, jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError as error:
        raise _refuse("The OIDC token is not a JWT", show(str(error)), _FROM_GITHUB) from None


def _key(find_key: Callable[[str, str], Any], issuer: str, key_id: Any, seen: Mapping[str, Any]) -> Any:
    try:
        return find_key(issuer, str(key_id))
    except UnknownKey:
        what = "The OIDC token is signed with a key that its issuer does not publish"
        raise _refuse(what, f"kid={show(key_id)}, {_claims(seen)}", _FROM_GITHUB) from None
    except KeysUnreachable as error:
        detail = explain(
            "The OIDC issuer's keys cannot be fetched, so no token of it can be verified now",
            seen=str(error),
            fix="send the callback again later; the token itself was not judged",
        )
        raise Refusal(503, detail, {"Retry-After": str(RETRY_AFTER_SECONDS)}) from None


def _identity(claims: Mapping[str, Any], issuer: str) -> Identity:
    repository, run_id = claims.get("repository"), claims.get("run_id")
    if not isinstance(repository, str) or not re.fullmatch(words.REPOSITORY_PATTERN, repository):
        raise _refuse("The OIDC token has no repository claim", _claims(claims), _FROM_GITHUB)
    return Identity(repository, issuer, None if run_id is None else str(run_id))


def _claims(claims: Mapping[str, Any]) -> str:
    """The claims that help and are no secret. The token itself never appears anywhere."""
    shown = [f"{name}={show(claims[name])}" for name in ("iss", "aud", "repository") if name in claims]
    if "exp" in claims:
        shown.append(f"exp={_time(claims['exp'])}")
    return ", ".join(shown) or "none of the claims iss, aud, repository, exp"


def _time(value: Any) -> str:
    if isinstance(value, (int, float)) and 0 <= value < _SECONDS_IN_1_MILLENNIUM:
        return datetime.fromtimestamp(value, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return show(value)


def _refuse(what: str, seen: str, fix: str) -> Refusal:
    return Refusal(401, explain(what, seen=seen, fix=fix), {"WWW-Authenticate": "Bearer"})
