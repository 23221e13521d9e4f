"""The step summary of a report: verdict first. The Markdown stands in `templates/`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template

from relay_client.documents.report import Report
from relay_client.protocol.callback import FailedTest
from relay_client.runner.commands import Commands, markdown_block, markdown_text

_TEMPLATES = Path(__file__).parent / "templates"
_ICONS = {"success": "✅", "failure": "❌", "cancelled": "⏹️", "timed_out": "⏱️", "skipped": "⏭️"}
_SHOWN_FAILURES = 20


def write_summary(commands: Commands, report: Report, commit: str, failures: Sequence[FailedTest]) -> None:
    """Write how the row stands and what the relay answered."""
    commands.summary(render(report, commit, failures))


def render(report: Report, commit: str, failures: Sequence[FailedTest]) -> str:
    """The Markdown. Every value that a stranger may have written is escaped."""
    sent, verdict = report.sent, report.verdict
    values = {
        "row": markdown_text(report.row),
        "commit": commit,
        "url": markdown_text(sent.url),
        "delivery": sent.delivery,
        "answer": f"HTTP {sent.http_status}" if sent.http_status else "no answer",
    }
    if verdict is None:
        return _template("in_progress").substitute(values)
    results = verdict.results
    return _template("completed").substitute(
        values,
        icon=_ICONS.get(verdict.conclusion, "⚪"),
        conclusion=verdict.conclusion,
        reasons="\n".join(f"- {markdown_text(reason)}" for reason in (*verdict.reasons, *verdict.notes)),
        passed=results.passed if results else "–",
        failed=results.failed if results else "–",
        skipped=results.skipped if results else "–",
        total=results.total if results else "–",
        failures=_failures(failures),
    )


def _failures(failures: Sequence[FailedTest]) -> str:
    blocks = [
        f"<details><summary>{markdown_text(failure.name)}</summary>\n\n"
        f"{markdown_block(failure.stacktrace or failure.message)}\n\n</details>"
        for failure in failures[:_SHOWN_FAILURES]
    ]
    if len(failures) > _SHOWN_FAILURES:
        blocks.append(f"… and {len(failures) - _SHOWN_FAILURES} more in evidence.json")
    return "\n".join(blocks)


def _template(name: str) -> Template:
    return Template((_TEMPLATES / f"{name}.md").read_text(encoding="utf-8"))
