"""Findings for people (text), for lintrunner (JSON lines), and as annotations on GitHub."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backend_ci.testing.classify.show import safe_json, shown
from backend_ci.testing.lint.finding import ERROR, Finding
from relay_client.runner.commands import Commands


def show_text(findings: Sequence[Finding], folder: Path, commands: Commands) -> None:
    for finding in findings:
        commands.line(f"{_place(finding, folder)}: {finding.severity}: [{finding.rule}] {finding.what}")
        if finding.fix:
            commands.line(f"    instead: {finding.fix}")


def show_json(findings: Sequence[Finding], folder: Path, code: str) -> None:
    """One line each, with the members of lintrunner's LintMessage."""
    for finding in findings:
        sys.stdout.write(safe_json(lint_message(finding, folder, code)) + "\n")
    sys.stdout.flush()


def lint_message(finding: Finding, folder: Path, code: str) -> dict[str, Any]:
    """docs.rs/lintrunner, LintMessage. `code` must be the one of the linter in .lintrunner.toml."""
    return {
        "path": shown(finding.file, folder),
        "line": finding.line or None,
        "char": finding.column or None,
        "code": code,
        "severity": finding.severity,
        "name": f"[{finding.rule}]",
        "original": None,
        "replacement": None,
        "description": f"{finding.what}.\nInstead: {finding.fix}" if finding.fix else f"{finding.what}.",
    }


def show_github(findings: Sequence[Finding], folder: Path, commands: Commands) -> None:
    """GitHub shows ten errors and ten warnings of a step beside the code; the rest is in the log."""
    for finding in findings:
        text = f"{finding.what}.\nInstead: {finding.fix}" if finding.fix else finding.what
        annotate = commands.error if finding.severity == ERROR else commands.warning
        annotate(
            text, title=f"crcr lint: {finding.rule}", file=shown(finding.file, folder), line=finding.line
        )


def _place(finding: Finding, folder: Path) -> str:
    numbers = [str(number) for number in (finding.line, finding.column) if number]
    return ":".join([shown(finding.file, folder), *numbers])
