"""`crcr run`: walk the hardware stages in one job. What ends it is kept for the report."""

from __future__ import annotations

import argparse
import re
import time
from dataclasses import dataclass
from typing import Any

from backend_ci.build import backend as build_backend
from backend_ci.build import handover, install
from backend_ci.build import pytorch as build_pytorch
from backend_ci.checkout import verb as checkout
from backend_ci.testing import execute, plan
from relay_client.documents.document import save
from relay_client.documents.evidence import Evidence
from relay_client.documents.failure import Failure
from relay_client.errors import CrcrError
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import StageOptions, option, read_options

STAGES: dict[str, tuple[tuple[str, Any], ...]] = {
    "build": (
        ("checkout", checkout),
        ("build-pytorch", build_pytorch),
        ("build-backend", build_backend),
        ("plan", plan),
        ("hand-over", handover),
    ),
    "test": (("install", install), ("test", execute)),
}
# In one job nothing is handed over, and nothing installed a second time.
STAGES["all"] = (*STAGES["build"][:-1], *STAGES["test"][1:])


@dataclass(frozen=True)
class RunOptions(StageOptions):
    stage: str = option("Which stages to walk", default="all", one_of=("all", "build", "test"))
    build_name: str = option(
        "Name of the build that the jobs with `stage: test` share with one with `stage: build`",
        default="build",
    )


OPTIONS = (
    RunOptions,
    checkout.CheckoutOptions,
    build_pytorch.BuildPytorchOptions,
    build_backend.BuildBackendOptions,
    install.InstallOptions,
    execute.TestOptions,
)

OUTPUTS = {
    **execute.OUTPUTS,
    "python": "The interpreter that holds torch and the backend, absolute",
    "documents": "Patterns of the documents and logs of this run, one a line",
    "artifact-name": "Name for the artifact that carries them to the report",
    "handover": "Folder that the test jobs need; empty when nothing is handed over",
    "handover-name": "Name for the artifact that carries it to them",
}

_KEPT = ("*.json", "*.jsonl", "*.xml", "*.log")


def run(given: argparse.Namespace, context: RunContext, commands: Commands) -> None:
    """Raises what a stage raises, after `failure.json` is written."""
    values, environment = vars(given), context.environment
    options = read_options(RunOptions, values, environment)
    test_options = read_options(execute.TestOptions, values, environment)
    row = test_options.row
    folder = context.run_folder(options.run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    for old in (Failure.FILE, Evidence.FILE):
        (folder / old).unlink(missing_ok=True)
    # First of all: whatever happens next, these must reach the step that uploads.
    commands.output("documents", "\n".join(str(folder / pattern) for pattern in _KEPT))
    part = "build" if options.stage == "build" else str(test_options.shard)
    commands.output("handover-name", f"crcr-{slug(options.build_name)}-attempt-{context.run_attempt}")
    commands.output("artifact-name", artifact_name(row, part, context.run_attempt))
    for name, module in STAGES[options.stage]:
        started = time.monotonic()
        try:
            module.run(read_options(module.OPTIONS[0], values, environment), context, commands)
        except CrcrError as error:
            # Failed tests are in the evidence, in more detail.
            if not (folder / Evidence.FILE).exists():
                save(_failure(row, context.run_attempt, name, error), folder)
            raise
        finally:
            commands.line(f"── {name}: {time.monotonic() - started:.1f} s")


def artifact_name(row: str, part: str, attempt: int) -> str:
    """Unique within a run: row, part (a shard's number, or `build`) and attempt: GitHub takes each name once.

    Only characters that GitHub takes in artifact names.
    """
    return f"crcr-evidence-{slug(row)}-{part}-attempt-{attempt}"


def slug(name: str) -> str:
    """A name in characters that GitHub takes in artifact names."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-") or "row"


def _failure(row: str, attempt: int, stage: str, error: CrcrError) -> Failure:
    return Failure(row, attempt, stage, type(error).__name__, error.what, error.seen, error.fix)
