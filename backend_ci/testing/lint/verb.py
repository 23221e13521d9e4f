"""`crcr lint`: PyTorch's rules for classified tests and hard-coded devices, without importing a line."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from backend_ci.testing.classify.show import plural, shown
from backend_ci.testing.classify.tree import Tree
from backend_ci.testing.classify.verb import SourceOptions, read_tree
from backend_ci.testing.lint.finding import ERROR, Finding
from backend_ci.testing.lint.hard_coded import hard_coded
from backend_ci.testing.lint.ratchet import Judgement, RatchetFile, judge
from backend_ci.testing.lint.rules import RELAXED, STRICT, class_findings
from backend_ci.testing.lint.show import show_github, show_json, show_text
from relay_client.errors import LintFindings, UsageError
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import option

# Upstream leaves these out: copies of CPython's own tests, and a package of its own.
_LEFT_OUT = ("/test/cpython/", "/test/cpp_extensions/open_registration_extension/")
_MUST_GO = {
    "clean": "keeps the rules now",
    "gone": "is not there any more",
    "new": "was not in the list before; the list can only shrink",
}


@dataclass(frozen=True)
class LintOptions(SourceOptions):
    format: str = option(
        "text, JSON lines as lintrunner reads them, or annotations",
        default="text",
        one_of=("text", "json", "github"),
    )
    linter: str = option(
        "Which of upstream's linters: the older one also asks classes of one device to be instantiated for it",
        default=RELAXED,
        one_of=(RELAXED, STRICT),
    )
    hard_coded_devices: bool = option("Find hard-coded devices too", default=True)
    ratchet: Optional[Path] = option("List of files that do not keep the rules yet", default=None)
    ratchet_base: str = option("Commit whose list this one must not exceed", default="HEAD")
    update: bool = option("Take out of the list what may go", default=False, flag=True)
    exit_zero: bool = option("End with 0 in spite of findings, as lintrunner asks", default=False, flag=True)


OPTIONS = (LintOptions,)

OUTPUTS: dict[str, str] = {}


def run(options: LintOptions, context: RunContext, commands: Commands) -> None:
    """Raises LintFindings, UsageError."""
    if options.format == "json":
        commands.leave_stdout()
    if options.update and options.ratchet is None:
        raise UsageError("There is no list to update.", seen="--update", fix="add --ratchet FILE")
    tree = read_tree(options, context, commands, elsewhere=True)
    files = [file for file in tree.files if not any(part in file.replace(os.sep, "/") for part in _LEFT_OUT)]
    findings = [finding for file in files for finding in find(tree, file, options)]
    if options.ratchet is not None:
        ratchet = RatchetFile(context.workspace / options.ratchet, options.ratchet_base, context.environment)
        findings = _with_ratchet(ratchet, files, findings, options.update, commands)
    findings.sort(key=lambda one: (one.file, one.line, one.column, one.rule))
    folder = context.workspace
    if options.format == "json":
        show_json(findings, folder, options.linter)
    elif options.format == "github":
        show_github(findings, folder, commands)
    else:
        show_text(findings, folder, commands)
    if findings and not options.exit_zero:
        raise _failure(findings, folder)
    commands.line(f"{plural(len(files), 'file')} checked: {plural(len(findings), 'finding')}.")


def find(tree: Tree, file: str, options: LintOptions) -> list[Finding]:
    """Everything that is wrong with one file."""
    found = list(class_findings(tree, file, options.linter))
    if options.hard_coded_devices:
        found.extend(hard_coded(tree, file))
    return found


def _with_ratchet(
    ratchet: RatchetFile, files: Sequence[str], findings: Sequence[Finding], update: bool, commands: Commands
) -> list[Finding]:
    """The findings of files that are not excepted, and what is wrong with the list itself."""
    entries = {file: ratchet.entry(file) for file in {*files, *(finding.file for finding in findings)}}
    dirty = {entries[finding.file] for finding in findings}
    if not ratchet.compared:
        commands.line("The list is not compared with an earlier one: it is in no git repository.")
    listed = ratchet.listed
    if listed is None:
        if not update:
            raise UsageError(
                "The list of exceptions is not there.", seen=str(ratchet.path), fix="add --update to make it"
            )
        if ratchet.before is None:  # the first list: it may hold everything that is wrong today
            listed = tuple(sorted(dirty))
            ratchet.write(listed)
            commands.line(f"The list is made: {plural(len(listed), 'file')}.")
        listed = listed or ()
    judgement = judge(listed, ratchet.before, {entries[file] for file in files}, dirty, ratchet.gone())
    if update:
        if set(judgement.left) != set(listed):
            ratchet.write(judgement.left)
            commands.line(f"Taken out of the list: {plural(len(set(listed) - set(judgement.left)), 'file')}.")
        return [finding for finding in findings if entries[finding.file] not in judgement.left]
    kept = [finding for finding in findings if entries[finding.file] not in listed]
    return kept + list(_of_list(ratchet.path, judgement))


def _of_list(path: Path, judgement: Judgement) -> list[Finding]:
    return [
        Finding(
            str(path),
            0,
            0,
            ERROR,
            "ratchet",
            f"{entry} {why}",
            "remove it from the list: crcr lint … --update",
        )
        for reason, why in _MUST_GO.items()
        for entry in getattr(judgement, reason)
    ]


def _failure(findings: Sequence[Finding], folder: Path) -> LintFindings:
    rules = Counter(finding.rule for finding in findings)
    files = len({finding.file for finding in findings})
    first = findings[0]
    return LintFindings(
        f"{plural(len(findings), 'finding')} in {plural(files, 'file')}.",
        seen=", ".join(f"{count:,} {rule}" for rule, count in rules.most_common()),
        fix=f"{shown(first.file, folder)}:{first.line}: {first.fix or first.what}",
    )
