"""What the user changes about the environment of every foreign process: variables, and a script to source."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from relay_client.errors import CommandFailed, UsageError
from relay_client.protocol.shape import show
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import StageOptions, option
from relay_client.runner.process import run, scrubbed

_SECONDS = 300.0
# The shell's own, which say nothing of what the script did.
_SHELL = frozenset({"_", "SHLVL", "PWD", "OLDPWD"})
_SCRIPT = 'script=$1 out=$2; shift 2; . "$script"; env -0 > "$out"'


@dataclass(frozen=True)
class JobOptions(StageOptions):
    """What every stage takes that starts foreign code."""

    setup: Optional[str] = option(
        "Shell lines that are sourced before anything is built or tested, such as `source /opt/vendor/set_env.sh`",
        default=None,
    )
    unset_environment: tuple[str, ...] = option(
        "Variables of the job that no foreign process may see, such as CI", default=(), words=True
    )


def prepared(options: JobOptions, context: RunContext, commands: Commands) -> RunContext:
    """The context with the environment that foreign processes get. Raises CommandFailed, UsageError."""
    for name in options.unset_environment:
        if not name.replace("_", "a").isalnum():
            raise UsageError(
                "unset-environment holds what is no variable.", seen=show(name), fix="unset-environment: CI"
            )
    kept = {
        name: value for name, value in context.environment.items() if name not in options.unset_environment
    }
    if options.setup:
        kept = _sourced(options.setup, kept, context, commands)
    return replace(context, environment=kept)


def _sourced(
    setup: str, environment: Mapping[str, str], context: RunContext, commands: Commands
) -> dict[str, str]:
    """The environment after the script, with what it set, changed and unset."""
    shell = shutil.which("bash") or "sh"  # vendors' scripts are mostly written for bash
    before = scrubbed(environment)
    with tempfile.TemporaryDirectory(prefix="crcr-setup-") as folder:
        script, out = Path(folder) / "setup.sh", Path(folder) / "environment"
        script.write_text(setup + "\n", encoding="utf-8")
        with commands.group("Source the setup"), commands.foreign_output() as stream:
            done = run(
                [shell, "-ec", _SCRIPT, "setup", str(script), str(out)],
                cwd=context.workspace,
                environment=before,
                deadline_seconds=_SECONDS,
                stream=stream,
            )
        text = out.read_bytes().decode("utf-8", errors="surrogateescape") if out.is_file() else ""
    if not done.ok or not text:
        raise CommandFailed(
            "setup failed.",
            seen=f"{done.describe()}: {_last(done.tail)}",
            fix="setup: lines that end with exit code 0 when they are sourced with `set -e`",
        )
    after = dict(entry.partition("=")[::2] for entry in text.split("\0") if "=" in entry)
    removed = set(before) - set(after)
    changed = {name: value for name, value in after.items() if name not in _SHELL}
    return {**{name: value for name, value in environment.items() if name not in removed}, **changed}


def _last(lines: Sequence[str]) -> str:
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "no output")
