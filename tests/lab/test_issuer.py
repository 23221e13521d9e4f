"""The issuer answers as GitHub's does, to those who hold a job's request token."""

from __future__ import annotations

from collections.abc import Iterator

import jwt
import pytest
import requests

from dispatch_lab.issuer import BAD_TOKENS, Issuer
from dispatch_lab.runner import JobIdentity
from dispatch_lab.serving import listen, serve

JOB = JobIdentity(
    repository="Octo-Org/octo-repo",
    workflow="CRCR",
    workflow_path=".github/workflows/crcr.yml",
    job="report",
    run_id=12345678901,
    run_attempt=2,
    check_run_id=99,
    ref="refs/heads/main",
    sha="a" * 40,
    event_name="repository_dispatch",
)


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    listener = listen()
    made = Issuer(listener.url)
    with serve(made.app, listener):
        yield made


def ask(issuer: Issuer, token: str, suffix: str = "&audience=some%20body") -> requests.Response:
    return requests.get(issuer.request_url + suffix, headers={"Authorization": f"bearer {token}"}, timeout=10)


def test_a_job_gets_a_token_that_its_published_keys_verify(issuer: Issuer) -> None:
    assert "?" in issuer.request_url  # so that clients append with &
    answer = ask(issuer, issuer.mint_request_token(JOB)).json()
    assert answer["count"] == 1
    configuration = requests.get(f"{issuer.url}/.well-known/openid-configuration", timeout=10).json()
    assert configuration["jwks_uri"] == issuer.jwks_url
    keys = jwt.PyJWKSet.from_dict(requests.get(configuration["jwks_uri"], timeout=10).json())
    header = jwt.get_unverified_header(answer["value"])
    assert (header["alg"], header["typ"]) == ("RS256", "JWT")
    claims = jwt.decode(
        answer["value"],
        keys[header["kid"]].key,
        algorithms=["RS256"],
        audience="some body",
        issuer=issuer.url,
    )
    assert set(claims) <= set(configuration["claims_supported"])
    assert claims["exp"] - claims["iat"] == 300
    assert {name for name, value in claims.items() if not isinstance(value, str)} == {"exp", "iat", "nbf"}
    assert claims["sub"] == (
        f"repo:Octo-Org@{claims['repository_owner_id']}/octo-repo@{claims['repository_id']}:ref:refs/heads/main"
    )
    assert (claims["run_id"], claims["run_attempt"], claims["check_run_id"]) == ("12345678901", "2", "99")
    assert claims["job_workflow_ref"] == "Octo-Org/octo-repo/.github/workflows/crcr.yml@refs/heads/main"


def test_without_an_audience_it_is_the_owners_address(issuer: Issuer) -> None:
    token = ask(issuer, issuer.mint_request_token(JOB), "").json()["value"]
    assert jwt.decode(token, options={"verify_signature": False})["aud"] == "https://github.com/Octo-Org"


@pytest.mark.parametrize("token", ["", "invented"])
def test_who_holds_no_request_token_gets_none(issuer: Issuer, token: str) -> None:
    assert ask(issuer, token).status_code == 401


@pytest.mark.parametrize("kind", BAD_TOKENS)
def test_bad_tokens_are_bad(issuer: Issuer, kind: str) -> None:
    token = issuer.mint_bad(kind, JOB, "here")
    keys = jwt.PyJWKSet.from_dict(requests.get(issuer.jwks_url, timeout=10).json())
    options = {"require": ["repository"]}
    with pytest.raises((jwt.PyJWTError, KeyError)):
        jwt.decode(
            token,
            keys[jwt.get_unverified_header(token)["kid"]].key,
            algorithms=["RS256"],
            audience="here",
            issuer=issuer.url,
            options=options,
        )
