"""One step of a GitHub Actions job around `bin/crcr`, and what the runner would make of its output."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
HEAD = "5f" * 20
BASE = "0b" * 20


def event(name: str = "pull_request") -> Any:
    """The event file of a dispatch, decoded: the caller may change it."""
    return json.loads((FIXTURES / f"{name}_dispatch.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Command:
    """A workflow command that the runner would obey."""

    name: str
    properties: str
    data: str


@dataclass(frozen=True)
class Ended:
    """How the step ended, as the runner sees it."""

    exit_code: int
    stdout: str
    stderr: str
    output_file: str
    summary: str

    @property
    def commands(self) -> list[Command]:
        return obeyed(self.stdout + self.stderr)

    @property
    def outputs(self) -> dict[str, str]:
        return read_outputs(self.output_file)

    @property
    def everything(self) -> str:
        return self.stdout + self.stderr + self.output_file + self.summary


class Step:
    """A job's folder with its files and variables. `run` starts `bin/crcr` in the workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "workspace"
        self.temporary = folder / "temp"
        self.run_folder = self.temporary / "crcr"
        for path in (self.workspace, self.temporary):
            path.mkdir(parents=True)
        self.event_file = folder / "event.json"
        # In place of github.com: a repository without refs. No test leaves the machine.
        self.upstream = folder / "github" / "pytorch" / "pytorch.git"
        subprocess.run(["git", "init", "--quiet", "--bare", str(self.upstream)], check=True)
        self.environment = {
            "PATH": os.environ["PATH"],
            "CRCR_LAUNCHER_PYTHON": sys.executable,
            "GITHUB_ACTIONS": "true",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{(folder / 'github').as_uri()}/.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://github.com/",
            "GITHUB_API_URL": "http://127.0.0.1:1",
            "GITHUB_EVENT_PATH": str(self.event_file),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_WORKFLOW": "CRCR",
            "GITHUB_RUN_ID": "77",
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_REPOSITORY": "example-downstream/backend",
            "GITHUB_SERVER_URL": "https://github.com",
            "RUNNER_TEMP": str(self.temporary),
        }

    def arrive(self, value: Any) -> None:
        """Write the event file: text as it is, anything else as JSON."""
        text = value if isinstance(value, str) else json.dumps(value)
        self.event_file.write_text(text, encoding="utf-8")

    def run(self, *arguments: str, **variables: Optional[str]) -> Ended:
        """Run `crcr ARGUMENTS`. A variable that is None is taken out of the environment."""
        environment = {k: v for k, v in {**self.environment, **variables}.items() if v is not None}
        done = subprocess.run(
            ["sh", str(ROOT / "bin" / "crcr"), *arguments],
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        return Ended(
            done.returncode,
            done.stdout.decode("utf-8"),
            done.stderr.decode("utf-8"),
            self._text("output"),
            self._text("summary.md"),
        )

    def _text(self, name: str) -> str:
        path = self.folder / name
        return path.read_text(encoding="utf-8") if path.exists() else ""


def obeyed(log: str) -> list[Command]:
    """The commands in a log as the runner finds them (actions/runner, ActionCommand.cs).

    A line that starts with `::` after blanks is one; so is `##[` anywhere in a line. Between
    `::stop-commands::TOKEN` and `::TOKEN::` nothing is.
    """
    found: list[Command] = []
    stopped_by: Optional[str] = None
    for raw in re.split(r"\r\n|\n|\r", log):
        line = raw.strip()
        modern = re.match(r"::([^\s:]+)(?: (.*?))?::(.*)", line)
        if stopped_by is not None:
            if modern and modern.group(1) == stopped_by:
                stopped_by = None
            continue
        old = re.search(r"##\[([^\]\s]+)(?: ([^\]]*))?\](.*)", line)
        match = modern or old
        if match is None:
            continue
        if match.group(1) == "stop-commands":
            stopped_by = match.group(3)
            continue
        found.append(Command(match.group(1), match.group(2) or "", match.group(3)))
    return found


def read_outputs(text: str) -> dict[str, str]:
    """An output file as the runner reads it (actions/runner, FileCommandManager.cs)."""
    found: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if heredoc >= 0 and (equals < 0 or heredoc < equals):
            name, delimiter = line[:heredoc], line[heredoc + 2 :]
            value: list[str] = []
            for part in lines:
                if part == delimiter:
                    break
                value.append(part)
            found[name] = "\n".join(value)
        else:
            name, _, rest = line.partition("=")
            found[name] = rest
    return found
