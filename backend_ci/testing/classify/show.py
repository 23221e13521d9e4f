"""The report for people (table, Markdown) and for programs (JSON)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Optional

from backend_ci.testing.classify.facts import UNREADABLE
from backend_ci.testing.classify.report import Report, Row
from relay_client.runner.commands import markdown_text

JSON_VERSION = 1
_POLICY = {"run": "they run", "skip": "they are skipped", "fail": "which is an error"}


def shown(path: str, folder: Path) -> str:
    """A path as a person would write it here."""
    return path.removeprefix(f"{folder}{os.sep}").replace(os.sep, "/")


def verdict(report: Report, policy: str) -> str:
    """The counts, in one line."""
    counts = report.count()
    running = [row for row in report.rows if row.runs]
    unclassified = report.unclassified()
    text = (
        f"{plural(len(running), 'test class', 'test classes')} ({plural(sum(row.tests for row in running), 'test')}) "
        f"in {plural(report.files, 'file')}: "
        f"{counts['declared']:,} declared, {counts['inherited']:,} inherited, {len(unclassified):,} unclassified"
    )
    if unclassified:
        proposed = sum(1 for row in unclassified if row.proposed)
        tests = sum(row.tests for row in unclassified)
        text += f" ({plural(tests, 'test')}; {_POLICY[policy]}; a class is proposed for {proposed:,})"
    if report.problems:
        text += f"; {plural(len(report.problems), 'file')} could not be read"
    return text + "."


def plural(count: int, one: str, many: str = "") -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def hardware(row: Row) -> str:
    """The classification; a proposal carries a question mark and is never taken for a declaration."""
    return row.classification or (f"{row.proposed}?" if row.proposed else "-")


def source_of(row: Row, folder: Path) -> str:
    """Where the classification comes from, or why it is proposed."""
    if row.classification:
        return f"inherited from {_owner(row, folder)}" if row.how == "inherited" else "declared"
    if row.how == "unreadable":
        return f"its hw_classification cannot be read without running it; proposed: {row.why}"
    return f"proposed: {row.why}" if row.proposed else f"no proposal: {row.why}"


def devices(row: Row) -> str:
    parts = [] if row.instantiated == "no" else ["yes" if row.instantiated == "yes" else "perhaps"]
    for name, value in (("only_for", row.only_for), ("except_for", row.except_for)):
        if value is not None:
            parts.append(f"{name}={_devices(value)}")
    return ", ".join(parts) or ("no" if row.runs else "no (mixin)")


def table(report: Report, folder: Path, policy: str) -> Iterable[str]:
    """Lines: one file after another, then what could not be read, then the counts."""
    rows = [(f"  {row.line}", row.name, hardware(row), str(row.tests), devices(row), source_of(row, folder))
            for row in report.rows]  # fmt: skip
    heads = ("  line", "class", "hardware", "tests", "for devices", "how it is known")
    widths = [max(len(line[column]) for line in [heads, *rows]) for column in range(len(heads) - 1)]
    if rows:
        yield _aligned(heads, widths)
    file = None
    for row, cells in zip(report.rows, rows):
        if row.file != file:
            file = row.file
            yield shown(file, folder)
        yield _aligned(cells, widths)
    for problem in report.problems:
        yield f"{shown(problem.file, folder)}:{problem.line}: {problem.what}"
    yield verdict(report, policy)


def markdown(report: Report, folder: Path, policy: str) -> Iterable[str]:
    yield verdict(report, policy)
    if report.rows:
        yield ""
        yield "| class | hardware | tests | for devices | how it is known |"
        yield "|---|---|---:|---|---|"
    for row in report.rows:
        place = f"{shown(row.file, folder)}:{row.line} {row.name}"
        cells = [place, hardware(row), str(row.tests), devices(row), source_of(row, folder)]
        yield "| " + " | ".join(markdown_text(cell) for cell in cells) + " |"
    if report.problems:
        yield ""
    for problem in report.problems:
        yield "- " + markdown_text(f"{shown(problem.file, folder)}:{problem.line}: {problem.what}")


def as_json(report: Report, folder: Path, policy: str) -> str:
    """The whole report as one JSON value; docs/classify.md names its members."""
    head = {
        "version": JSON_VERSION,
        "folder": str(folder),
        "unclassified_policy": policy,
        "files": report.files,
        "counts": {
            **dict.fromkeys(("declared", "inherited", "unclassified", "unreadable"), 0),
            **report.count(),
        },
    }
    problems = [
        {"file": shown(one.file, folder), "line": one.line, "what": one.what} for one in report.problems
    ]
    classes = ",\n  ".join(safe_json(_json_row(row, folder)) for row in report.rows)
    # A class a line: a person can read it, and `json` is quick only without indentation.
    return f'{safe_json(head)[:-1]},\n "problems": {safe_json(problems)},\n "classes": [\n  {classes}\n ]}}'


def safe_json(value: Any) -> str:
    """JSON that a runner cannot take for a command: `##[` inside a string is written with an escape."""
    return json.dumps(value).replace("##[", "\\u0023#[")


def _json_row(row: Row, folder: Path) -> dict[str, Any]:
    return {
        "file": shown(row.file, folder),
        "line": row.line,
        "class": row.name,
        "classification": row.classification or None,
        "how": row.how,
        "declared_by": _owner(row, folder) or None,
        "proposed": row.proposed or None,
        "why": row.why or None,
        "tests": row.tests,
        "instantiated": row.instantiated,
        "instantiated_at": _owner(row, folder, row.instantiated_at) or None,
        "only_for": _json_devices(row.only_for),
        "except_for": _json_devices(row.except_for),
        "unresolved_bases": list(row.unresolved_bases),
        "runs": row.runs,
    }


def _json_devices(value: Optional[tuple[str, ...]]) -> Any:
    if value is not None and value[:1] == (UNREADABLE,):
        return {"expression": value[1]}
    return None if value is None else list(value)


def _devices(value: tuple[str, ...]) -> str:
    return value[1] if value[:1] == (UNREADABLE,) else "/".join(value) or "nothing"


def _owner(row: Row, folder: Path, place: Optional[str] = None) -> str:
    place = row.declared_by if place is None else place
    file, mark, rest = place.rpartition("::" if "::" in place else ":")
    return f"{shown(file, folder)}{mark}{rest}" if file else place


def _aligned(cells: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join([*(cell.ljust(width) for cell, width in zip(cells, widths)), cells[-1]]).rstrip()
