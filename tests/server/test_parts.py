"""The parts that decide, without a server: settings, allowlist, trimming, keys, how values read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import requests
from hypothesis import given, settings
from hypothesis import strategies as st
from relay_world import sha

from dispatch_lab.github import AppKey
from dispatch_lab.serving import serve
from relay_server.allowlist import AllowlistCache, AllowlistError, parse_allowlist
from relay_server.cli import main
from relay_server.hud import show
from relay_server.records import DispatchRecord
from relay_server.settings import SettingsError, load_settings
from relay_server.signing_keys import KeysUnreachable, SigningKeys
from relay_server.store.sqlite import SQLiteStore
from relay_server.trim import LIMIT_BYTES, encode, fit

MINIMAL = {"database": "relay.sqlite3", "github": {"app_id": "Iv1"}}


def load(tmp_path: Path, value: Any, environment: dict[str, str] | None = None) -> Any:
    key = tmp_path / "key.pem"
    key.write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    file = tmp_path / "relay.yml"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    secrets = {"CRCR_RELAY_WEBHOOK_SECRET": "hush", "CRCR_RELAY_APP_PRIVATE_KEY_FILE": str(key)}
    return load_settings(file, secrets if environment is None else environment)


def test_minimal_settings_get_productions_values(tmp_path: Path) -> None:
    loaded = load(tmp_path, MINIMAL)
    assert loaded.upstream == "pytorch/pytorch"
    assert loaded.limits.calls_per_minute == 100
    assert loaded.oidc.audience == "pytorch-cross-repo-ci-relay"
    assert loaded.oidc.issuers[0].issuer == "https://token.actions.githubusercontent.com"
    assert loaded.database == str(tmp_path / "relay.sqlite3")
    assert "hush" not in repr(loaded)
    assert "PRIVATE" not in repr(loaded)


@pytest.mark.parametrize(
    ("value", "key", "found", "allowed"),
    [
        ({"github": {"app_id": "x"}}, "database", "nothing", "a path"),
        ({**MINIMAL, "github": {"app_id": 12}}, "github.app_id", "12", "in quotes"),
        ({**MINIMAL, "databse": "x"}, "databse", "does not exist", "database"),
        ({**MINIMAL, "limits": {"calls": 1}}, "limits.calls", "does not exist", "calls_per_minute"),
        ({**MINIMAL, "limits": {"calls_per_minute": 0}}, "limits.calls_per_minute", "0", "1 or more"),
        ({**MINIMAL, "oidc": {"issuers": []}}, "oidc.issuers", "empty", "at least one"),
        (
            {
                **MINIMAL,
                "oidc": {"issuers": [{"issuer": "http://a.example", "jwks_url": "https://a.example"}]},
            },
            "oidc.issuers[0].issuer",
            "http://a.example",
            "https://",
        ),
        (
            {
                **MINIMAL,
                "oidc": {"issuers": [{"issuer": "https://a.b", "jwks_url": "https://a.b", "keys": 1}]},
            },
            "oidc.issuers[0].keys",
            "does not exist",
            "jwks_url",
        ),
        ("a: [", "--config", "while parsing", "a YAML file"),
        ("just text", "(the document)", "just text", "a JSON object"),
    ],
)
def test_a_bad_setting_names_key_found_and_allowed(
    tmp_path: Path, value: Any, key: str, found: str, allowed: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, value)
    assert caught.value.key == key
    assert found in caught.value.found
    assert allowed in caught.value.allowed


@pytest.mark.parametrize(
    ("environment", "key"),
    [
        ({}, "CRCR_RELAY_WEBHOOK_SECRET"),
        ({"CRCR_RELAY_WEBHOOK_SECRET": "x"}, "CRCR_RELAY_APP_PRIVATE_KEY_FILE"),
        (
            {"CRCR_RELAY_WEBHOOK_SECRET": "x", "CRCR_RELAY_APP_PRIVATE_KEY_FILE": "/nowhere"},
            "CRCR_RELAY_APP_PRIVATE_KEY_FILE",
        ),
    ],
)
def test_a_missing_secret_is_named(tmp_path: Path, environment: dict[str, str], key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, MINIMAL, environment)
    assert caught.value.key == key


def test_the_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CRCR_RELAY_WEBHOOK_SECRET", raising=False)
    assert main(["serve", "--config", str(tmp_path / "absent.yml")]) == 2
    assert "absent.yml" in capsys.readouterr().err


def test_serve_needs_nothing_else(tmp_path: Path, app_key: AppKey) -> None:
    """The command as an operator starts it: a process of its own, from a settings file."""
    (tmp_path / "key.pem").write_text(app_key.private)
    (tmp_path / "allowlist.yml").write_text("L2: [a/b]")
    config = tmp_path / "relay.yml"
    config.write_text(json.dumps({**MINIMAL, "allowlist": {"file": "allowlist.yml"}}))
    environment = {
        "CRCR_RELAY_WEBHOOK_SECRET": "hush",
        "CRCR_RELAY_APP_PRIVATE_KEY_FILE": str(tmp_path / "key.pem"),
    }
    command = [sys.executable, "-m", "relay_server.cli", "serve", "--config", str(config), "--port", "0"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, env=environment, cwd=root, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = next(
                line.split("http://")[1].split()[0] for line in process.stderr if "Uvicorn running on" in line
            )
            assert requests.get(f"http://{address}/healthz", timeout=10).json()["allowlist"]["entries"] == 1
        finally:
            process.terminate()
            process.communicate(timeout=10)


def test_allowlist_reads_upstreams_format() -> None:
    found = parse_allowlist(
        """
        L1: [a/one]
        L2:
          - B/two
          - c/three: "@x, y"
          - d/four: {events: [nightly], oncalls: ["@z"]}
        L3:
          npu:
            e/five: ["@p", q]
        L4:
        """
    )
    assert found.problems == ()
    entries = {name: (e.level, e.device, e.oncalls, e.events) for name, e in found.entries.items()}
    both = ("pull_request", "nightly")
    assert entries == {
        "a/one": ("L1", None, (), both),
        "b/two": ("L2", None, (), both),
        "c/three": ("L2", None, ("x", "y"), both),
        "d/four": ("L2", None, ("z",), ("nightly",)),
        "e/five": ("L3", "npu", ("p", "q"), both),
    }
    assert [each.repository for each in found.subscribed("push")] == ["a/one", "B/two", "c/three", "e/five"]


def test_a_wrong_entry_costs_only_itself() -> None:
    found = parse_allowlist(
        "L0: [x/y]\nL1: [a/one, 'no slash', 3, {a/b: 1, c/d: 2}]\nL2: {not: alist}\nL3: [x]\nL4: [A/One, z/z]\n"
    )
    assert list(found.entries) == ["a/one", "z/z"]
    assert found.entries["a/one"].level == "L1"  # the lesser authority stays
    text = "\n".join(found.problems)
    for word in ('"L0"', "L1[1]", "L1[2]", "L1[3]", "L2:", "L3:", "A/One is listed already, at L1"):
        assert word in text


@pytest.mark.parametrize("text", ["", "[]", "a: [", "other: 1"])
def test_what_is_no_allowlist_at_all(text: str) -> None:
    with pytest.raises(AllowlistError):
        parse_allowlist(text)


def test_the_allowlist_is_read_again_when_it_is_old() -> None:
    now, texts = [0.0], ["L1: [a/a]", "L1: [b/b]", "broken: ["]
    cache = AllowlistCache(lambda: texts.pop(0), 60, lambda: now[0])
    seen = []
    for now[0] in (0, 59, 60, 120):
        seen.append(list(cache.current().entries))
    assert seen == [["a/a"], ["a/a"], ["b/b"], ["b/b"]]
    assert "not YAML" in cache.last_error


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(max_size=8), json_values, max_size=8), st.integers(200, 2000))
def test_trimming_takes_any_json_and_keeps_what_fits(payload: dict[str, Any], limit: int) -> None:
    envelope = {"event_type": "push", "delivery_id": "x", "payload": payload}
    fitted = fit(envelope, limit)
    assert set(fitted) == set(envelope)
    if len(encode({"event_type": "push", "client_payload": envelope})) <= limit:
        assert fitted == envelope
    else:
        assert fitted["payload"]["crcr_trimmed"][0] == "texts"


def test_the_largest_minimum_fits() -> None:
    label = {"name": "l" * 50, "description": "d" * 100}
    pull_request = {
        "title": "火" * 256,
        "body": "火" * 65_536,
        "head": {"sha": sha(1), "repo": {"description": "x" * 9_000}},
        "labels": [label] * 100,
        "noise": ["x" * 1000] * 500,
    }
    envelope = {"event_type": "pull_request", "delivery_id": "x", "payload": {"pull_request": pull_request}}
    fitted = fit(envelope)
    assert len(encode(fitted)) < LIMIT_BYTES
    assert len(fitted["payload"]["pull_request"]["labels"]) == 100


def test_keys_survive_an_outage_of_their_issuer(issuer: Any) -> None:
    now = [0.0]
    listener_gone = issuer.jwks_url.replace("jwks", "absent")
    keys = SigningKeys({issuer.url: issuer.jwks_url}, 5, lambda: now[0])
    key_id = requests.get(issuer.jwks_url, timeout=5).json()["keys"][0]["kid"]
    first = keys.find(issuer.url, key_id)
    keys._urls[issuer.url] = listener_gone
    now[0] = 10_000
    assert keys.find(issuer.url, key_id) is first
    with pytest.raises(KeysUnreachable, match="ValueError"):
        keys.find(issuer.url, "rotated in meanwhile")


def test_an_abandoned_claim_is_taken_again(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "x.sqlite3")
    record = DispatchRecord("d", "A/b", "push", "u/u", sha(1), claimed_at=100.0)
    assert store.claim_dispatch(record, stale_before=40)
    assert not store.claim_dispatch(record, stale_before=100)
    assert store.claim_dispatch(record, stale_before=101)
    store.finish_dispatch("d", "a/B", "sent")
    assert not store.claim_dispatch(record, stale_before=1000)
    store.close()


def test_a_database_of_another_version_is_refused(tmp_path: Path) -> None:
    import sqlite3

    database = sqlite3.connect(tmp_path / "x.sqlite3")
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(ValueError, match="schema version 99"):
        SQLiteStore(tmp_path / "x.sqlite3")


def test_the_sliding_window_forgets_and_refused_calls_do_not_count(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "x.sqlite3")
    waits = [store.count_call("a/b", now=now, window=60, limit=2) for now in (0, 10, 20, 30, 60, 61)]
    assert waits == [None, None, 40, 30, None, 9]
    store.close()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.2, "under 1 s"),
        (0, "0 s"),
        (42, "42 s"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert show.duration(seconds) == text


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://github.com/a/b", True),
        ("http://127.0.0.1:8/x", True),
        ("javascript:alert(1)", False),
        ("https://github.com@evil.example/", False),
        ("//evil.example", False),
        ("https://[", False),
        (None, False),
    ],
)
def test_only_plain_web_addresses_become_links(url: str | None, safe: bool) -> None:
    assert show.safe_link(url) == (url if safe else "")


def test_a_server_that_cannot_start_says_so() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no"})

    from dispatch_lab.errors import LabError

    with pytest.raises(LabError, match="did not start"), serve(broken):
        pass
