"""An OIDC issuer like GitHub's: an RSA key made at start, its JWKS, and the endpoint that jobs ask for tokens.

Sources (GitHub Docs): "OpenID Connect reference" (claims, immutable subject), "Security hardening with OpenID
Connect: updating your workflows" (ACTIONS_ID_TOKEN_REQUEST_URL and _TOKEN).
"""

from __future__ import annotations

import json
import secrets
import time
import uuid
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dispatch_lab.runner import JobIdentity

LIFETIME_SECONDS = 300
_TOKEN_PATH = "/token-request"  # noqa: S105 - a path
_KEY_BITS = 2048
_OWN_SECRET = "a secret that proves nothing, and long enough for HS256"  # noqa: S105 - public on purpose


class Issuer:
    """`url` is where `app` is served (see `dispatch_lab.serving`), and the `iss` of its tokens."""

    def __init__(self, url: str, clock: Callable[[], float] = time.time) -> None:
        self.url = url
        self._clock = clock
        self._key = _new_key()
        self._key_id = str(uuid.uuid4())
        self._jobs: dict[str, JobIdentity] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self._configuration),
                Route("/.well-known/jwks", self._jwks),
                Route(_TOKEN_PATH, self._token),
            ]
        )

    @property
    def jwks_url(self) -> str:
        """Where the public keys are."""
        return self.url + "/.well-known/jwks"

    @property
    def request_url(self) -> str:
        """A job's ACTIONS_ID_TOKEN_REQUEST_URL. Like GitHub's, it carries a query string already."""
        return f"{self.url}{_TOKEN_PATH}?api-version=2.0"

    def mint_request_token(self, identity: JobIdentity) -> str:
        """A job's ACTIONS_ID_TOKEN_REQUEST_TOKEN: whoever has it gets OIDC tokens of this job."""
        token = secrets.token_urlsafe(32)
        self._jobs[token] = identity
        return token

    def claims(self, identity: JobIdentity, audience: str) -> dict[str, Any]:
        """The claims of a job's token, as documented: all text, but for the three times."""
        now = int(self._clock())
        owner, name = identity.repository.split("/")
        owner_id, repository_id = _number(owner), _number(identity.repository)
        workflow_ref = f"{identity.repository}/{identity.workflow_path}@{identity.ref}"
        branch = identity.ref.startswith("refs/heads/")
        return {
            "actor": owner,
            "actor_id": owner_id,
            "aud": audience,
            "base_ref": "",
            "check_run_id": str(identity.check_run_id),
            "event_name": identity.event_name,
            "exp": now + LIFETIME_SECONDS,
            "head_ref": "",
            "iat": now,
            "iss": self.url,
            "job_workflow_ref": workflow_ref,
            "job_workflow_sha": identity.sha,
            "jti": str(uuid.uuid4()),
            "nbf": now - LIFETIME_SECONDS,
            "ref": identity.ref,
            "ref_protected": "false",
            "ref_type": "branch" if branch else "tag",
            "repository": identity.repository,
            "repository_id": repository_id,
            "repository_owner": owner,
            "repository_owner_id": owner_id,
            "repository_visibility": "public",
            "run_attempt": str(identity.run_attempt),
            "run_id": str(identity.run_id),
            "run_number": "1",
            "runner_environment": "self-hosted",
            "sha": identity.sha,
            # The immutable subject, the default for repositories made after 15 July 2026.
            "sub": f"repo:{owner}@{owner_id}/{name}@{repository_id}:ref:{identity.ref}",
            "workflow": identity.workflow,
            "workflow_ref": workflow_ref,
            "workflow_sha": identity.sha,
        }

    def mint(self, identity: JobIdentity, audience: str, **changed: Any) -> str:
        """A signed token. `changed` replaces claims; a claim set to None is left out."""
        claims = {**self.claims(identity, audience), **changed}
        return self._signed({name: value for name, value in claims.items() if value is not None})

    def mint_bad(self, kind: str, identity: JobIdentity, audience: str) -> str:
        """A token that is wrong in exactly one way: a key of `BAD_TOKENS`."""
        return BAD_TOKENS[kind](self, identity, audience)

    def _signed(
        self, claims: Mapping[str, Any], *, key: Any = None, key_id: str = "", algorithm: str = "RS256"
    ) -> str:
        header = {"kid": key_id or self._key_id, "x5t": key_id or self._key_id}
        return jwt.encode(dict(claims), key or self._key, algorithm=algorithm, headers=header)

    async def _configuration(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "jwks_uri": self.jwks_url,
                "subject_types_supported": ["public", "pairwise"],
                "response_types_supported": ["id_token"],
                "claims_supported": sorted(self.claims(_SOMEBODY, "")),
                "id_token_signing_alg_values_supported": ["RS256"],
                "scopes_supported": ["openid"],
            }
        )

    async def _jwks(self, _: Request) -> Response:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        public.pop("key_ops", None)
        return JSONResponse({"keys": [{**public, "kid": self._key_id, "alg": "RS256", "use": "sig"}]})

    async def _token(self, request: Request) -> Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        identity = self._jobs.get(token.strip())
        if scheme.lower() != "bearer" or identity is None:
            return JSONResponse({"message": "The request token is not one of a running job"}, status_code=401)
        owner = identity.repository.split("/")[0]
        audience = request.query_params.get("audience") or f"https://github.com/{owner}"
        return JSONResponse({"count": 1, "value": self.mint(identity, audience)})


def _expired(issuer: Issuer, identity: JobIdentity, audience: str) -> str:
    past = issuer.claims(identity, audience)["iat"] - 2 * LIFETIME_SECONDS
    return issuer.mint(identity, audience, iat=past, nbf=past, exp=past + LIFETIME_SECONDS)


def _wrong_algorithm(issuer: Issuer, identity: JobIdentity, audience: str) -> str:
    return issuer._signed(issuer.claims(identity, audience), key=_OWN_SECRET, algorithm="HS256")


def _bad_signature(issuer: Issuer, identity: JobIdentity, audience: str) -> str:
    return issuer._signed(issuer.claims(identity, audience), key=_new_key())


def _unknown_key(issuer: Issuer, identity: JobIdentity, audience: str) -> str:
    return issuer._signed(issuer.claims(identity, audience), key=_new_key(), key_id=str(uuid.uuid4()))


BAD_TOKENS: Mapping[str, Callable[[Issuer, JobIdentity, str], str]] = {
    "expired": _expired,
    "wrong audience": lambda issuer, job, _: issuer.mint(job, f"https://github.com/{job.repository}"),
    "unknown issuer": lambda issuer, job, audience: issuer.mint(job, audience, iss="https://issuer.example"),
    "wrong algorithm": _wrong_algorithm,
    "bad signature": _bad_signature,
    "unknown key": _unknown_key,
    "no repository": lambda issuer, job, audience: issuer.mint(job, audience, repository=None),
}

_SOMEBODY = JobIdentity("o/r", "", "", "", 0, 0, 0, "refs/heads/main", "", "")


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)


def _number(name: str) -> str:
    """A made-up id that is the same each time."""
    return str(zlib.crc32(name.lower().encode()))
