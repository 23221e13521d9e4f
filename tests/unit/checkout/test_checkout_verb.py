"""`crcr checkout`: from its command line to `checkout.json`."""

from __future__ import annotations

from pathlib import Path

import pytest
from upstream_repository import UNKNOWN, UpstreamRepository, configured, quiet_environment

from backend_ci.checkout import fetch, verb
from crcr.cli import main
from relay_client.documents.checkout import ChangedFile, Checkout
from relay_client.documents.document import load


@pytest.fixture
def upstream(tmp_path: Path) -> UpstreamRepository:
    return UpstreamRepository(tmp_path / "upstream")


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_PAUSE_SECONDS", 0.0)


def crcr(run_dir: Path, *arguments: str, **environment: str) -> int:
    return main(
        ["checkout", "--run-dir", str(run_dir), *arguments], quiet_environment(run_dir, **environment)
    )


def test_the_document_says_what_stands_where(
    upstream: UpstreamRepository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = upstream.commit({"torch/random.py": b"1"})
    commit = upstream.commit({"torch/random.py": b"2", "README.md": b"new"})
    given = ["--commit", commit, "--base-commit", base, "--repository", upstream.url]
    assert crcr(tmp_path / "run", *given) == 0
    document = load(Checkout, tmp_path / "run")
    assert (document.commit, document.base_commit) == (commit, base)
    assert document.path == str(tmp_path / "run" / "pytorch")
    assert document.remote == upstream.url
    assert set(document.changed_files or ()) == {
        ChangedFile("M", "torch/random.py"),
        ChangedFile("A", "README.md"),
    }
    said = capsys.readouterr().out
    outputs = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    assert outputs == {"path": document.path, "commit": commit}
    assert set(outputs) == set(verb.OUTPUTS)
    assert "2 changed file(s)" in said


def test_without_a_base_nobody_claims_that_nothing_changed(
    upstream: UpstreamRepository, tmp_path: Path
) -> None:
    assert crcr(tmp_path / "run", "--commit", upstream.commit(), "--repository", upstream.url) == 0
    document = load(Checkout, tmp_path / "run")
    assert document.base_commit is None
    assert document.changed_files is None


@pytest.mark.parametrize("option", ["commit", "base-commit"])
@pytest.mark.parametrize(
    "value", ["abc1234", "main", "refs/heads/main", "HEAD", "A" * 40, "0" * 39, "0" * 41, "--upload-pack=x"]
)
def test_only_a_full_sha_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    given = {"commit": UNKNOWN, "base-commit": UNKNOWN, option: value}
    assert crcr(tmp_path / "run", *(f"--{name}={text}" for name, text in given.items())) == 2
    said = capsys.readouterr().out
    assert f"{option} is not a full commit SHA." in said
    assert value in said
    assert f"{option}: a full commit SHA: 40 lower-case hexadecimal digits" in said
    assert not (tmp_path / "run").exists()


def test_no_commit_at_all_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert crcr(tmp_path / "run") == 2
    assert "commit is not a full commit SHA." in capsys.readouterr().out


def test_an_unknown_base_leaves_no_document(
    upstream: UpstreamRepository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--commit", upstream.commit(), "--base-commit", UNKNOWN, "--repository", upstream.url]
    assert crcr(tmp_path / "run", *given) == 31
    assert UNKNOWN in capsys.readouterr().out
    assert not (tmp_path / "run" / Checkout.FILE).exists()


def test_credentials_in_the_address_stay_out_of_documents_log_and_tree(
    upstream: UpstreamRepository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "https://robot:hunter2@git.example.invalid/pytorch.git"
    commit = upstream.commit({"file.py": b"1"})
    settings = configured(tmp_path, (f"url.{upstream.url}.insteadOf", address))
    assert crcr(tmp_path / "run", "--commit", commit, "--repository", address, **settings) == 0
    assert load(Checkout, tmp_path / "run").remote == "https://git.example.invalid/pytorch.git"
    assert "hunter2" not in capsys.readouterr().out
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert [path for path in files if b"hunter2" in path.read_bytes()] == []


def test_credentials_stay_out_of_the_error_when_the_remote_is_unreachable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = "http://robot:hunter2@127.0.0.1:1/pytorch.git"
    assert crcr(tmp_path / "run", "--commit", UNKNOWN, "--repository", address) == 30
    said = capsys.readouterr().out
    assert "http://127.0.0.1:1/pytorch.git" in said
    assert "hunter2" not in said


def test_a_token_of_the_job_does_not_reach_git(
    upstream: UpstreamRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """git may start helpers that the user's settings name; they get no authority."""
    helper = tmp_path / "git"
    helper.write_text(f'#!/bin/sh\nenv >> "{tmp_path}/seen"\nPATH=${{PATH#*:}} exec git "$@"\n')
    helper.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}:{quiet_environment(tmp_path)['PATH']}",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "hunter2",
        "GITHUB_TOKEN": "hunter2",
    }
    monkeypatch.setenv("PATH", environment["PATH"])
    given = ["--commit", upstream.commit(), "--repository", upstream.url]
    assert crcr(tmp_path / "run", *given, **environment) == 0
    seen = (tmp_path / "seen").read_text()
    assert "GIT_TERMINAL_PROMPT=0" in seen
    assert "hunter2" not in seen
