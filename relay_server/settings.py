"""The relay's settings: one YAML file, and the environment for what is secret."""

from __future__ import annotations

import dataclasses
import os
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import yaml

from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import ShapeError, member, parse, show

WEBHOOK_SECRET_VARIABLE = "CRCR_RELAY_WEBHOOK_SECRET"  # noqa: S105 - the name of it
PRIVATE_KEY_VARIABLE = "CRCR_RELAY_APP_PRIVATE_KEY_FILE"

GITHUB_ISSUER = "https://token.actions.githubusercontent.com"

_URL = r"https://[^\s]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?(/[^\s]*)?"
_URL_EXPECTS = "an https:// address (http:// only on this machine's own loopback)"


class SettingsError(ValueError):
    """One setting is wrong: its key, what was found there, and what is allowed."""

    def __init__(self, key: str, found: str, allowed: str) -> None:
        super().__init__(f"{key}: found {found}; allowed is {allowed}")
        self.key = key
        self.found = found
        self.allowed = allowed


@dataclass(frozen=True)
class GitHubSettings:
    """The GitHub App that the relay acts as."""

    app_id: str = member("Client id or number", pattern=r"\S+", expects="the App's client id, in quotes")
    api_url: str = member("REST API", default="https://api.github.com", pattern=_URL, expects=_URL_EXPECTS)
    timeout_seconds: float = member("Longest wait for one answer", default=5, minimum=1)


@dataclass(frozen=True)
class IssuerSettings:
    """One OIDC issuer whose tokens are accepted; its `repository` claim is the identity."""

    issuer: str = member("The `iss` claim", pattern=_URL, expects=_URL_EXPECTS)
    jwks_url: str = member("Its public keys", pattern=_URL, expects=_URL_EXPECTS)


@dataclass(frozen=True)
class OidcSettings:
    """Who may call back."""

    audience: str = member("The `aud` claim", default=words.AUDIENCE, pattern=r"\S+", expects="text")
    issuers: tuple[IssuerSettings, ...] = member(
        "Trust anchors", default=(IssuerSettings(GITHUB_ISSUER, GITHUB_ISSUER + "/.well-known/jwks"),)
    )
    timeout_seconds: float = member("Longest wait for the keys", default=5, minimum=1)


@dataclass(frozen=True)
class AllowlistSettings:
    """Where the allowlist is read: a file, or (without one) the upstream repository through GitHub."""

    file: Optional[str] = member("A local file; relative to the settings file", default=None)
    path: str = member("Path in the upstream repository", default=".github/allowlist.yml")
    refresh_seconds: float = member("Age at which it is read again", default=60, minimum=0)


@dataclass(frozen=True)
class LimitSettings:
    """What one repository, or one request, may use."""

    calls_per_minute: int = member("Callbacks of one repository", default=100, minimum=1)
    callback_bytes: int = member("Body of a callback", default=words.MAX_CALLBACK_BYTES, minimum=1)
    webhook_bytes: int = member("Body of a webhook; GitHub caps at 25 MB", default=25_000_000, minimum=1)


@dataclass(frozen=True)
class FanoutSettings:
    """How one webhook becomes many dispatches."""

    parallel: int = member("Dispatches under way at once", default=32, minimum=1)
    answer_seconds: float = member("GitHub gives up on a webhook after 10 s", default=9, minimum=1)


@dataclass(frozen=True)
class SettingsFile:
    """The YAML file."""

    database: str = member("SQLite file; relative to the settings file", pattern=r".+", expects="a path")
    github: GitHubSettings = member("The App")
    upstream: str = member(
        "The repository that is relayed",
        default=words.UPSTREAM_REPOSITORY,
        pattern=words.REPOSITORY_PATTERN,
        expects=words.REPOSITORY_EXPECTS,
    )
    oidc: OidcSettings = member("Callers", default=OidcSettings())
    allowlist: AllowlistSettings = member("Participants", default=AllowlistSettings())
    limits: LimitSettings = member("Limits", default=LimitSettings())
    fanout: FanoutSettings = member("Dispatching", default=FanoutSettings())


@dataclass(frozen=True, kw_only=True)
class Settings(SettingsFile):
    """Everything `create_app` needs. The secrets do not show in its repr."""

    webhook_secret: str = field(repr=False)
    app_private_key: str = field(repr=False)


def load_settings(path: Path, environment: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings file and the two secrets. Raises SettingsError at the first that is wrong."""
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            "--config", f"{path} ({error.strerror})", "a YAML file that can be read"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SettingsError("--config", show(" ".join(str(error).split())), "a YAML file") from None
    return make_settings(
        value,
        webhook_secret=_required(environment, WEBHOOK_SECRET_VARIABLE, "the App's webhook secret"),
        app_private_key=_private_key(environment),
        folder=path.parent,
    )


def make_settings(value: object, *, webhook_secret: str, app_private_key: str, folder: Path) -> Settings:
    """Settings from decoded YAML; paths are taken relative to `folder`. Raises SettingsError."""
    try:
        file = parse(SettingsFile, value)
    except ShapeError as error:
        raise SettingsError(error.field, error.found, error.allowed) from None
    _refuse_unknown_keys(SettingsFile, value, "")
    if not file.oidc.issuers:
        raise SettingsError("oidc.issuers", "an empty list", "at least one issuer")
    allowlist = file.allowlist
    if allowlist.file is not None:
        allowlist = dataclasses.replace(allowlist, file=str(folder / allowlist.file))
    members = {each.name: getattr(file, each.name) for each in dataclasses.fields(file)}
    members.update(database=str(folder / file.database), allowlist=allowlist)
    return Settings(**members, webhook_secret=webhook_secret, app_private_key=app_private_key)


def _required(environment: Mapping[str, str], name: str, allowed: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise SettingsError(name, "nothing in the environment", allowed)
    return value


def _private_key(environment: Mapping[str, str]) -> str:
    allowed = "the path of the App's private key, a PEM file"
    path = Path(_required(environment, PRIVATE_KEY_VARIABLE, allowed))
    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(PRIVATE_KEY_VARIABLE, f"{path} ({type(error).__name__})", allowed) from None
    if "PRIVATE KEY-----" not in text:
        raise SettingsError(PRIVATE_KEY_VARIABLE, f"{path}, which holds no private key", allowed)
    return text


def _refuse_unknown_keys(cls: type[Any], value: object, where: str) -> None:
    """A misspelt key would silently leave a default in place, so it is an error."""
    if not isinstance(value, Mapping):
        return
    hints = typing.get_type_hints(cls)
    for key, item in value.items():
        path = f"{where}.{key}" if where else str(key)
        if key not in hints:
            raise SettingsError(path, "a key that does not exist", "one of " + ", ".join(hints))
        hint = hints[key]
        if dataclasses.is_dataclass(hint):
            _refuse_unknown_keys(typing.cast(Any, hint), item, path)
        elif typing.get_origin(hint) is tuple and isinstance(item, list):
            for index, each in enumerate(item):
                _refuse_unknown_keys(typing.get_args(hint)[0], each, f"{path}[{index}]")
