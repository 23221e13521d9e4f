"""`crcr plan` and `crcr test` on test files of one's own, with the pytest of these tests and a torch of a line."""

from __future__ import annotations

import io
import json
import sys
import textwrap
from pathlib import Path
from typing import Any

from step import obeyed

from backend_ci.testing import execute, plan
from relay_client.documents.build import Build, Torch, Wheel
from relay_client.documents.document import load, save
from relay_client.documents.evidence import Evidence
from relay_client.documents.plan import Collected, Plan, Selection
from relay_client.errors import CrcrError
from relay_client.runner.commands import Commands
from relay_client.runner.context import read_context
from relay_client.runner.options import read_options

COMMIT = "5f" * 20
TORCH = f"""
from enum import Enum
from types import SimpleNamespace
version = SimpleNamespace(git_version={COMMIT!r})

class HardwareClassification(Enum):
    GENERIC = "generic"
    ACCELERATOR = "accelerator"
    CUDA = "cuda"
"""
HEAD = "import os, unittest, pytest\nfrom torch import HardwareClassification as HW\n"


class HardwareJob:
    """A workspace, a run folder, and what the job said."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder, self.workspace, self.run_dir = folder, folder / "workspace", folder / "run"
        self.log = io.StringIO()
        for name in ("workspace/tests", "run", "site/torch"):
            (folder / name).mkdir(parents=True)
        (folder / "site/torch/__init__.py").write_text(TORCH)
        (folder / "output").touch()
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "PYTHONPATH": str(folder / "site"),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(folder / "output"),
            **environment,
        }
        wheel = Wheel("torch-2.0-py3-none-any.whl", "ab" * 32)
        torch = Torch("2.0", COMMIT, "/site/torch")
        save(Build("wheel", COMMIT, sys.executable, torch, wheel, 1.0), self.run_dir)

    def write(self, text: str, name: str = "tests/test_it.py") -> None:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + textwrap.dedent(text), encoding="utf-8")

    def plan(self, **options: str) -> Plan:
        self._run(plan, options)
        return load(Plan, self.run_dir)

    def planned(self, *names: str, file: str = "tests/test_it.py") -> None:
        """Leave a plan of these tests, as `crcr plan` would, in no time."""
        tests = tuple(f"{file}::{name}" for name in names)
        found = Collected(len(tests), 0, 0, 0, 0)
        save(Plan(COMMIT, Selection(("GENERIC",)), found, ("tests",), tests, (), ()), self.run_dir)

    def test(self, **options: str) -> Evidence:
        """Run the plan. Raises what the verb raises."""
        self._run(execute, options)
        return self.evidence

    def fail(self, **options: str) -> CrcrError:
        """Run the plan, which must not succeed, and return the error."""
        try:
            self._run(execute, options)
        except CrcrError as error:
            return error
        raise AssertionError(f"a success: {self.log.getvalue()}")

    def fail_early(self, **options: str) -> CrcrError:
        """Run the plan, which must end before any test, and return the error."""
        error = self.fail(**options)
        assert not (self.run_dir / Evidence.FILE).exists()
        return error

    @property
    def evidence(self) -> Evidence:
        return load(Evidence, self.run_dir)

    @property
    def commands(self) -> list[str]:
        """Workflow commands that the runner would obey."""
        return [command.name for command in obeyed(self.log.getvalue())]

    def counts(self) -> dict[str, int]:
        """The counts that are not 0."""
        counts = self.evidence.counts
        assert counts.add_up()
        return {name: number for name, number in vars(counts).items() if number}

    def reasons(self) -> dict[str, str]:
        """Message of each test that did not pass, by its name."""
        return {failure.name: failure.message for failure in self.evidence.failures}

    def journal(self) -> list[Any]:
        text = (self.run_dir / "journal.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def _run(self, module: Any, options: dict[str, str]) -> None:
        context = read_context(self.environment)
        # A fault that would run for ever ends within the minute.
        given = {"run_dir": str(self.run_dir), "test_timeout_minutes": "1", **options}
        module.run(read_options(module.OPTIONS[0], given, {}), context, Commands(context, self.log))
