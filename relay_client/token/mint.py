"""Ask GitHub's token service for an OIDC token.

Source: docs.github.com, "OpenID Connect reference", "Requesting the JWT using environment variables".
A token lives five minutes: mint one for each send, never keep one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from urllib.parse import quote

from relay_client.errors import NoTokenPermission, TokenUnavailable
from relay_client.http import Answer, TransportError, request_json

REQUEST_URL = "ACTIONS_ID_TOKEN_REQUEST_URL"
REQUEST_TOKEN = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"  # noqa: S105 - the name of a variable
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*")
_ATTEMPTS = 3
_PAUSE_SECONDS = 1.0


def mint_token(environment: Mapping[str, str], audience: str, deadline_seconds: float) -> str:
    """An OIDC token for the audience. Raises NoTokenPermission or TokenUnavailable.

    Transport errors and 5xx are tried three times in all, within the deadline.
    """
    url, secret = environment.get(REQUEST_URL), environment.get(REQUEST_TOKEN)
    if not url or not secret:
        missing = REQUEST_URL if not url else REQUEST_TOKEN
        raise NoTokenPermission(
            "This job may not ask for an OIDC token.",
            seen=f"{missing} is not set",
            fix="add to the job: `permissions: { id-token: write }` (and to no job that runs tests)",
        )
    separator = "&" if "?" in url else "?"
    address = f"{url}{separator}audience={quote(audience, safe='')}"
    return _token_of(_ask(address, secret, time.monotonic() + deadline_seconds))


def _ask(address: str, secret: str, deadline: float) -> Answer:
    seen = "no attempt was made"
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(min(_PAUSE_SECONDS * attempt, max(deadline - time.monotonic(), 0)))
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            break
        try:
            answer = request_json("GET", address, deadline_seconds=remaining, bearer=secret)
        except TransportError as error:
            seen = f"{error.reason}. {error.hint}"
            continue
        if answer.status < 500:
            return answer
        seen = f"HTTP {answer.status}"
    raise TokenUnavailable(
        "The token service did not answer.",
        seen=seen,
        fix="re-run the job; on a self-hosted runner allow its network to reach GitHub's token service",
    )


def _token_of(answer: Answer) -> str:
    token = answer.body.get("value") if isinstance(answer.body, dict) else None
    if answer.status == 200 and isinstance(token, str) and _JWT.fullmatch(token):
        return token
    # The body of a good answer is a secret: say only what kind of thing it was.
    kind = "JSON without a token in `value`" if answer.body is not None else "no JSON"
    raise TokenUnavailable(
        "The token service answered without a token.",
        seen=f"HTTP {answer.status}, {kind}",
        fix="re-run the job; if it stays so, check `permissions: { id-token: write }` of the job",
    )
