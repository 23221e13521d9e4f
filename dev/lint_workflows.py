"""Every check of every workflow, template and action manifest. Finding nothing to check is an error."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_WORKFLOWS = (".github/workflows/*.yml", "workflow-templates/*.yml", "examples/*/.github/workflows/*.yml")
_ACTIONS = ("action.yml", "actions/*/action.yml", "dispatch_lab/runner/stand_ins/**/action.yml")


@dataclass(frozen=True)
class Check:
    """One linter over a set of files."""

    name: str
    command: tuple[str, ...]
    files: tuple[Path, ...]


def checks(root: Path = ROOT) -> tuple[Check, ...]:
    """What is checked, with which program. Raises SystemExit when a kind of file is missing altogether."""
    workflows = _found(root, _WORKFLOWS)
    actions = _found(root, _ACTIONS)
    schema = ("check-jsonschema", "--builtin-schema")
    return (
        # Pedantic, and without the network: what it finds here it finds anywhere.
        Check("zizmor", ("zizmor", "--offline", "--pedantic", "--no-progress"), workflows + actions),
        Check("actionlint", ("actionlint",), workflows),
        Check("workflow schema", (*schema, "vendor.github-workflows"), workflows),
        Check("timeouts", (*schema, "custom.github-workflows-require-timeout"), workflows),
        Check("action schema", (*schema, "vendor.github-actions"), actions),
    )


def main(root: Path = ROOT) -> int:
    """Run all checks, print each with its verdict, and return 1 if one failed."""
    failed = 0
    for check in checks(root):
        done = subprocess.run(
            [_program(check.command[0]), *check.command[1:], *map(str, check.files)],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        failed += done.returncode != 0
        print(f"{'ok  ' if done.returncode == 0 else 'FAIL'} {check.name}: {len(check.files)} files")  # noqa: T201
        if done.returncode:
            print(done.stdout + done.stderr)  # noqa: T201
    return 1 if failed else 0


def _found(root: Path, patterns: Sequence[str]) -> tuple[Path, ...]:
    files = tuple(sorted(path for pattern in patterns for path in root.glob(pattern)))
    if not files:
        raise SystemExit(f"no file matches {' '.join(patterns)} below {root}: nothing was checked")
    return files


def _program(name: str) -> str:
    """The program beside this Python: all linters are installed as wheels."""
    return str(Path(sys.executable).with_name(name))


if __name__ == "__main__":
    sys.exit(main())
