"""`crcr doctor`: read the workflow file, ask the relay if told to, and say what to change. Verdict first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from crcr.doctor import delivery, trust
from crcr.doctor.finding import ERROR, Finding, error
from crcr.doctor.relay import check_relay
from crcr.doctor.workflow import Workflow, read_workflow
from relay_client.errors import NotReady
from relay_client.protocol.shape import show
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.git import Git
from relay_client.runner.options import option

CHECKS = (*delivery.CHECKS, *trust.CHECKS)


@dataclass(frozen=True)
class DoctorOptions:
    workflow: Path = option(
        "Workflow file to look at", default=Path(".github/workflows/crcr.yml"), shell_only=True
    )
    relay_url: Optional[str] = option(
        "Address of the relay's callback: also ask whether it can be reached", default=None, shell_only=True
    )


OPTIONS = (DoctorOptions,)

OUTPUTS: dict[str, str] = {}


def run(options: DoctorOptions, context: RunContext, commands: Commands) -> None:
    """Raises NotReady when something keeps results from showing, UsageError when the file cannot be read."""
    workflow = read_workflow(options.workflow)
    findings = [*examine(workflow), *_on_default_branch(workflow.path, context)]
    if options.relay_url:
        findings += check_relay(options.relay_url, context.environment)
    errors = [finding for finding in findings if finding.level == ERROR]
    _show(findings, len(errors), options, commands)
    if errors:
        raise NotReady(
            f"{len(errors)} thing(s) keep results from showing, or break the trust model.",
            seen=show(errors[0].what),
            fix="the list above has the line to change for each",
        )


def examine(workflow: Workflow) -> list[Finding]:
    """All findings of the workflow file alone, in the order of its lines."""
    found = [finding for check in CHECKS for finding in check(workflow)]
    return sorted(found, key=lambda finding: finding.line)


def _on_default_branch(path: Path, context: RunContext) -> Sequence[Finding]:
    """GitHub starts `repository_dispatch` only from the file on the default branch."""
    git = Git(path.absolute().parent, context.environment)
    head = git("symbolic-ref", "--short", "refs/remotes/origin/HEAD")
    if not head.ok:
        return ()  # no clone, or one that does not know its default branch
    branch = head.output.strip()
    if git("cat-file", "-e", f"{branch}:./{path.name}").ok:
        return ()
    return (
        error(
            "The workflow file is not on the default branch, so no dispatch starts it.",
            f"{path.name} is not in {branch}",
            f"merge it into {branch.partition('/')[2]}",
        ),
    )


def _show(findings: Sequence[Finding], errors: int, options: DoctorOptions, commands: Commands) -> None:
    warnings = len(findings) - errors
    asked = "and the relay" if options.relay_url else "(the relay was not asked: --relay-url)"
    verdict = "NOT READY" if errors else "READY"
    commands.line(f"{verdict}: {errors} error(s), {warnings} warning(s) in {options.workflow} {asked}")
    for finding in findings:
        place = f"{options.workflow}:{finding.line}: " if finding.line else ""
        commands.line("")
        commands.line(f"{place}{finding.level}: {finding.what}")
        commands.line(f"  seen: {show(finding.seen)}")
        commands.line(f"  fix:  {finding.fix}")
