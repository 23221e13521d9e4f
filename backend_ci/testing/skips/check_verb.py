"""`crcr skips check`: hold skip lists against the day, each other, and the tests there are."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Optional

from backend_ci.testing.skips.check import KINDS, check
from backend_ci.testing.skips.read import Python, read_skip_lists
from backend_ci.testing.skips.universe import read_universe
from relay_client.errors import BadSkipList, UsageError
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option

_SHOWN_PER_KIND = 50


@dataclass(frozen=True)
class SkipListOptions:
    """What both verbs take."""

    skips: tuple[str, ...] = option("Skip lists, one a line", default=())
    against: Optional[Path] = option("The tests there are: plan.json, or a file of test ids", default=None)
    backend: tuple[str, ...] = option(
        "Names of the backend's device in test ids, such as npu", default=(), words=True
    )

    @staticmethod
    def python(context: RunContext) -> Python:
        """This interpreter, as it is without isolation: it may have PyYAML."""
        return Python(sys.executable, context.environment)

    def paths(self, context: RunContext) -> list[Path]:
        """Raises UsageError when no list is named."""
        if not self.skips:
            raise UsageError("No skip list is named.", seen="no --skips", fix="--skips skips.yml")
        return [context.workspace / path for path in self.skips]


@dataclass(frozen=True)
class CheckOptions(SkipListOptions):
    allow: tuple[str, ...] = option(
        "Findings that are only warnings", default=(), one_of=tuple(KINDS), words=True
    )


OPTIONS = (CheckOptions,)

OUTPUTS: dict[str, str] = {}


def run(options: CheckOptions, context: RunContext, commands: Commands) -> None:
    """Raises BadSkipList when there are findings; UsageError, DocumentError."""
    backends, tests = options.backend, None
    if options.against is not None:
        tests, backends = read_universe(context.workspace / options.against, backends)
    skips = read_skip_lists(options.paths(context), backends, options.python(context))
    findings = check(skips, tests, datetime.now(timezone.utc).date())
    for kind, words in KINDS.items():
        found = [finding for finding in findings if finding.kind == kind]
        if kind == "stale" and tests is None:
            commands.line("stale: not asked; name the tests with --against plan.json")
            continue
        commands.line(f"{kind}: {len(found)} entries {words}")
        for finding in found[:_SHOWN_PER_KIND]:
            commands.line(f"  {finding.where}: {finding.what}")
        if len(found) > _SHOWN_PER_KIND:
            commands.line(f"  … and {len(found) - _SHOWN_PER_KIND} more")
    bad = [finding for finding in findings if finding.kind not in options.allow]
    commands.line(f"{len(skips.entries)} entries checked, {len(bad)} findings")
    if bad:
        raise BadSkipList(
            f"The skip lists have {len(bad)} findings.",
            seen="; ".join(f"{finding.where}: {finding.kind}" for finding in bad[:5]),
            fix="remove or mend what is listed above; `--allow stale` takes a kind as a warning",
        )
