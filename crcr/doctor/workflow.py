"""A workflow file as plain data that knows its lines. Reads YAML where PyYAML is present."""

from __future__ import annotations

import importlib
import re
import site
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from relay_client.errors import UsageError

# The root action walks these stages; each stage is also an action of its own.
ROOT = ""
_FOREIGN = frozenset({ROOT, "checkout-pytorch", "build-pytorch", "build-backend", "run-classified-tests"})
_OURS = re.compile(r"[^/@\s]+/crcr-actions(?:/actions/(?P<action>[a-z-]+))?@(?P<ref>\S+)")
MAX_WORKFLOW_BYTES = 512 * 1024  # GitHub's own limit for a workflow file


@dataclass(frozen=True)
class Step:
    """One step. `action` is the toolkit's action it uses: "" is the root action, None is something else."""

    value: dict[str, Any]
    line: int
    action: Optional[str] = None
    ref: str = ""

    @property
    def inputs(self) -> dict[str, Any]:
        given = self.value.get("with")
        return given if isinstance(given, dict) else {}


@dataclass(frozen=True)
class Job:
    """One job with its steps. `line` is where its name stands."""

    name: str
    value: dict[str, Any]
    line: int
    steps: tuple[Step, ...] = ()

    def uses(self, *actions: str) -> list[Step]:
        return [step for step in self.steps if step.action in actions]

    @property
    def runs_foreign_code(self) -> bool:
        return any(step.action in _FOREIGN for step in self.steps)

    @property
    def needs(self) -> tuple[str, ...]:
        needed = self.value.get("needs", ())
        return (needed,) if isinstance(needed, str) else tuple(map(str, needed or ()))


@dataclass(frozen=True)
class Workflow:
    """A workflow file."""

    path: Path
    value: dict[str, Any]
    jobs: tuple[Job, ...]
    lines: dict[tuple[Any, ...], int] = field(repr=False)

    def job_of(self, action: str, **inputs: str) -> Iterator[tuple[Job, Step]]:
        """Each step that uses an action of the toolkit with these inputs, and its job."""
        for job in self.jobs:
            for step in job.uses(action):
                if all(str(step.inputs.get(name, "")) == value for name, value in inputs.items()):
                    yield job, step

    def line(self, *path: Any) -> int:
        """Line of a member, or of the nearest one around it that exists."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_workflow(path: Path) -> Workflow:
    """Raises UsageError when it is not a workflow, or cannot be read here."""
    yaml = _yaml()
    try:
        if path.stat().st_size > MAX_WORKFLOW_BYTES:
            raise UsageError(
                "The file is larger than a workflow may be.",
                seen=f"{path}: {path.stat().st_size} bytes; GitHub takes {MAX_WORKFLOW_BYTES}",
                fix="--workflow: the file in .github/workflows",
            )
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        lines: dict[tuple[Any, ...], int] = {}
        value = _plain(root, (), lines, 0)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise UsageError(
            "The workflow file cannot be read.",
            seen=f"{path}: {' '.join(str(error).split())[:300]}",
            fix="--workflow: a file in .github/workflows; actionlint finds mistakes of YAML",
        ) from error
    if not isinstance(value, dict) or not isinstance(value.get("jobs"), dict):
        raise UsageError(
            "The file is not a workflow.", seen=f"{path} has no `jobs:`", fix="--workflow: a workflow file"
        )
    return Workflow(path, value, tuple(_jobs(value["jobs"], lines)), lines)


def _yaml() -> Any:
    """PyYAML. The launcher starts Python without site-packages, for they belong to a stranger on the hardware;
    the doctor is asked by a maintainer, on a machine of their own.
    """
    if sys.flags.no_site:
        site.addsitedir(sysconfig.get_path("purelib"))
    try:
        return importlib.import_module("yaml")
    except ImportError:
        raise UsageError(
            "A workflow file is YAML, and this Python has no PyYAML.",
            seen=f"{sys.executable} cannot import yaml",
            fix=f"{sys.executable} -m pip install pyyaml, or name another Python: CRCR_LAUNCHER_PYTHON=/path/of/python",
        ) from None


def _plain(node: Any, path: tuple[Any, ...], lines: dict[tuple[Any, ...], int], depth: int) -> Any:
    """YAML nodes as dicts, lists and strings. `on` stays a word: YAML 1.1 would make it a truth value."""
    if depth > 40 or len(lines) > 50_000:  # anchors can make a short file endless
        raise ValueError("nested in more than 40 levels, or more than 50,000 values")
    if node is None:
        return None
    lines.setdefault(path, node.start_mark.line + 1)
    kind = node.id
    if kind == "mapping":
        result = {}
        for key, child in node.value:
            name = str(key.value)
            lines[(*path, name)] = key.start_mark.line + 1
            result[name] = _plain(child, (*path, name), lines, depth + 1)
        return result
    if kind == "sequence":
        return [_plain(child, (*path, index), lines, depth + 1) for index, child in enumerate(node.value)]
    return None if node.tag.endswith(":null") else str(node.value)


def _jobs(jobs: dict[str, Any], lines: dict[tuple[Any, ...], int]) -> Iterator[Job]:
    for name, value in jobs.items():
        if not isinstance(value, dict):
            continue
        steps = value.get("steps") or []
        found = tuple(
            _step(step, lines.get(("jobs", name, "steps", index), 1))
            for index, step in enumerate(steps)
            if isinstance(step, dict)
        )
        yield Job(name, value, lines[("jobs", name)], found)


def _step(value: dict[str, Any], line: int) -> Step:
    match = _OURS.fullmatch(str(value.get("uses", "")))
    if match is None:
        return Step(value, line)
    return Step(value, line, match["action"] or ROOT, match["ref"])
