"""Git: its environment keeps what the user configured, adds ours, and holds no credential."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from relay_client.errors import RemoteUnreachable, UsageError
from relay_client.runner.git import Git, GitAnswer, without_credentials

USERS = {
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "url.https://mirror.invalid/.insteadOf",
    "GIT_CONFIG_VALUE_0": "https://github.com/",
    "GIT_CONFIG_KEY_1": "http.proxy",
    "GIT_CONFIG_VALUE_1": "http://proxy.invalid:3128",
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}


def settings(git: Git) -> dict[str, str]:
    """The settings from the environment as git itself reads them."""
    answer = git("config", "--list", "--show-origin", "--null")
    assert answer.ok, answer.error
    items = [item.partition("\n") for item in answer.output.split("\0") if "\n" in item]
    origins = answer.output.split("\0")[::2]
    return {
        name: value for (name, _, value), origin in zip(items, origins) if origin.startswith("command line:")
    }


def test_the_user_s_settings_stay_and_ours_come_after(tmp_path: Path, environment: dict[str, str]) -> None:
    found = settings(Git(tmp_path, {**environment, **USERS}))
    assert found["url.https://mirror.invalid/.insteadof"] == "https://github.com/"
    assert found["http.proxy"] == "http://proxy.invalid:3128"
    assert found["http.lowspeedtime"] == "60"
    assert found["core.hookspath"] == "/dev/null"


@pytest.mark.parametrize("count", ["", "0"])
def test_no_settings_of_the_user_are_fine(tmp_path: Path, environment: dict[str, str], count: str) -> None:
    assert settings(Git(tmp_path, {**environment, "GIT_CONFIG_COUNT": count}))["gc.auto"] == "0"


@pytest.mark.parametrize("count", ["many", "-1", "1.5"])
def test_a_bogus_count_is_the_user_s_error_and_says_so(
    tmp_path: Path, environment: dict[str, str], count: str
) -> None:
    with pytest.raises(UsageError) as caught:
        Git(tmp_path, {**environment, "GIT_CONFIG_COUNT": count})
    assert "GIT_CONFIG_COUNT" in caught.value.what
    assert count in caught.value.seen


def test_git_never_asks_and_sees_no_credential(tmp_path: Path, environment: dict[str, str]) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nenv\n", encoding="utf-8")
    program.chmod(0o755)
    hostile = {
        "ACTIONS_RUNTIME_TOKEN": "secret",
        "GITHUB_TOKEN": "secret",
        "GIT_DIR": "/elsewhere",
        "GIT_WORK_TREE": "/elsewhere",
        "GIT_INDEX_FILE": "/elsewhere",
        "GIT_TERMINAL_PROMPT": "1",
    }
    path = f"{program.parent}:{environment['PATH']}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", path)
        answer = Git(tmp_path, {**environment, **hostile, "PATH": path})("fetch")
    lines = answer.output.splitlines()
    assert "GIT_TERMINAL_PROMPT=0" in lines
    assert not [line for line in lines if "secret" in line or "/elsewhere" in line]


def test_a_hook_of_the_repository_does_not_run(tmp_path: Path, environment: dict[str, str]) -> None:
    git = Git(tmp_path, environment)
    assert git("init", "--quiet").ok
    hook = tmp_path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/reached\n", encoding="utf-8")
    hook.chmod(0o755)
    (tmp_path / "a").write_text("a", encoding="utf-8")
    identity = ("-c", "user.name=n", "-c", "user.email=e")
    plain = ["git", *identity]
    for command in (["add", "a"], ["commit", "--quiet", "-m", "m"], ["checkout", "--quiet", "-b", "b"]):
        subprocess.run([*plain, *command], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "reached").exists(), "the plant does not work"
    (tmp_path / "reached").unlink()
    assert git("checkout", "--quiet", "-b", "c").ok
    assert not (tmp_path / "reached").exists()


def test_without_git_the_fix_is_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="git is not installed"):
        Git(tmp_path, {"PATH": str(tmp_path)})("status")


def test_the_deadline_ends_git_and_the_helpers_that_hold_its_pipes(
    tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nsleep 600 &\nsleep 600\n", encoding="utf-8")
    program.chmod(0o755)
    path = f"{program.parent}:{environment['PATH']}"
    monkeypatch.setenv("PATH", path)
    with pytest.raises(RemoteUnreachable) as caught:
        Git(tmp_path, {**environment, "PATH": path})("fetch", deadline_seconds=0.5)
    assert "git fetch did not end" in caught.value.what
    assert "timeout" in caught.value.fix


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host.invalid/r.git", "https://host.invalid/r.git"),
        ("https://token@host.invalid:8443/r.git?x=1", "https://host.invalid:8443/r.git?x=1"),
        ("https://a@b:secret@host.invalid/r", "https://host.invalid/r"),
        ("https://host.invalid/r.git", "https://host.invalid/r.git"),
        ("file:///srv/r.git", "file:///srv/r.git"),
        ("git@host.invalid:r.git", "git@host.invalid:r.git"),
        ("/srv/r.git", "/srv/r.git"),
        ("https://user:secret@[::1", "https://[::1"),
    ],
)
def test_a_remote_is_shown_without_its_credentials(url: str, shown: str) -> None:
    assert without_credentials(url) == shown


def test_the_last_line_of_an_error_is_what_git_says() -> None:
    assert GitAnswer(128, "", "warning: x\nfatal: no\n\n").last_error() == "fatal: no"
    assert GitAnswer(128, "", "").last_error() == "git ended with 128"
