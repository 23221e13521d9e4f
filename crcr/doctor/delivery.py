"""Why no row, or a wrong one, would show: checks of the workflow file alone. Each takes it and yields findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from crcr.doctor.finding import Finding, error, warning
from crcr.doctor.workflow import ROOT, Workflow
from relay_client.protocol import vocabulary as words

_REPORT = "report-status"


def starts_on_a_dispatch(workflow: Workflow) -> Iterator[Finding]:
    """The relay sends `repository_dispatch` with the upstream event's name as its type."""
    triggers = workflow.value.get("on")
    line = workflow.line("on")
    asked = triggers.get("repository_dispatch", "absent") if isinstance(triggers, dict) else "absent"
    if asked == "absent":
        names = triggers if isinstance(triggers, str) else ", ".join(triggers or ()) or "nothing"
        if "repository_dispatch" in names:
            yield warning(
                "Every dispatch starts the workflow, whoever sent it.",
                "on: repository_dispatch without types",
                "on: repository_dispatch: types: [pull_request, push]",
                line,
            )
            return
        yield error(
            "No dispatch starts the workflow.",
            f"on: {names}",
            "on: repository_dispatch: types: [pull_request, push]",
            line,
        )
        return
    types = asked.get("types") if isinstance(asked, dict) else None
    line = workflow.line("on", "repository_dispatch", "types")
    listed = [types] if isinstance(types, str) else types or []
    wrong = [name for name in listed if name not in words.DISPATCHED_EVENTS]
    if wrong:
        yield error(
            "The workflow waits for an event that the relay never sends.",
            f"types: {', '.join(wrong)}",
            f"types: [{', '.join(words.DISPATCHED_EVENTS)}]",
            line,
        )


def tells_how_it_ended(workflow: Workflow) -> Iterator[Finding]:
    """A row is made by a completed callback, from a job that runs whatever happened before."""
    reports = [
        (job, step)
        for job, step in workflow.job_of(_REPORT)
        if step.inputs.get("status", "completed") == "completed"
    ]
    if not reports:
        yield error(
            "Nothing tells the relay how the run ended, so no row will show.",
            f"no step uses actions/{_REPORT} with status: completed",
            "add the job `report` of workflow-templates/hardware-job.yml (L1, notified only, needs none)",
        )
    for job, step in reports:
        condition = str(job.value.get("if", ""))
        if "always()" not in condition:
            yield error(
                f"Job {job.name} does not run when a job before it failed or was cancelled.",
                f"if: {condition or 'nothing'}",
                "if: always() && needs.receive.outputs.should-run != 'false'",
                job.line,
            )
        if "toJSON(needs)" not in str(step.inputs.get("needs", "")).replace(" ", ""):
            yield error(
                f"Job {job.name} does not know how the jobs before it ended.",
                f"needs: {step.inputs.get('needs', 'nothing')}",
                "needs: ${{ toJSON(needs) }}",
                step.line,
            )
        forgotten = [
            other.name for other in workflow.jobs if other.runs_foreign_code and other.name not in job.needs
        ]
        if forgotten:
            yield error(
                f"Job {job.name} does not wait for the job it reports on.",
                f"needs: [{', '.join(job.needs)}], without {', '.join(forgotten)}",
                f"needs: [{', '.join((*job.needs, *forgotten))}]",
                job.line,
            )


def may_ask_for_a_token(workflow: Workflow) -> Iterator[Finding]:
    """Without `id-token: write` GitHub gives a job no OIDC token, and the relay takes no callback."""
    for job, _ in workflow.job_of(_REPORT):
        if permission(workflow, job.value, "id-token") != "write":
            yield error(
                f"Job {job.name} may not ask for the token that the relay wants.",
                f"permissions: {_shown(job.value.get('permissions', workflow.value.get('permissions')))}",
                "permissions: id-token: write, in that job",
                job.line,
            )


def rows_have_names(workflow: Workflow) -> Iterator[Finding]:
    """The dashboard keys a row by its name: two of one name overwrite each other, and `:` splits it."""
    rows = [(str(step.inputs.get("row", "test")), job, step) for job, step in workflow.job_of(ROOT)]
    for row, job, step in rows:
        if ":" in row.replace("${{", "").replace("}}", ""):
            yield error(
                "The relay loses track of a row with a colon in its name.",
                f"row: {row}",
                f"row: {row.replace(':', '-')}",
                step.line,
            )
        matrix = (job.value.get("strategy") or {}).get("matrix") if isinstance(job.value, dict) else None
        if isinstance(matrix, dict) and set(matrix) - {"shard"} and "matrix." not in row:
            yield error(
                f"All legs of job {job.name} report the same row.",
                f"row: {row}; matrix: {', '.join(matrix)}",
                "row: test ${{ matrix.… }}, with what tells the legs apart",
                step.line,
            )
    reported = Counter(
        (str(step.inputs.get("row", "test")), str(step.inputs.get("status", "completed")))
        for _, step in workflow.job_of(_REPORT)
    )
    for (row, status), times in reported.items():
        if times > 1:
            yield warning(
                "Two steps report the same row.",
                f"row: {row}, status: {status}, {times} times",
                "give each its own row",
            )
    tested = {row for row, _, _ in rows}
    for row in sorted({row for row, _ in reported}):
        if tested and row not in tested and "${{" not in row:
            yield error(
                "The report is about a row that no job tests.",
                f"row: {row}; tested: {', '.join(sorted(tested))}",
                f"row: {min(tested)}, in both",
            )


def ends_in_time(workflow: Workflow) -> Iterator[Finding]:
    """Without a limit a job runs six hours; with one below the tests' own, their evidence is lost."""
    for job in workflow.jobs:
        given = job.value.get("timeout-minutes")
        if given is None and "uses" not in job.value:
            yield warning(
                f"Job {job.name} may hang for six hours.",
                "no timeout-minutes",
                "timeout-minutes: 60",
                job.line,
            )
        for step in job.uses(ROOT, "run-classified-tests"):
            own = str(step.inputs.get("test-timeout-minutes", "50"))
            if str(given).isdecimal() and own.isdecimal() and int(own) >= int(str(given)):
                yield error(
                    "GitHub ends the job before the tests end themselves: their evidence would be lost.",
                    f"timeout-minutes: {given}; test-timeout-minutes: {own}",
                    f'test-timeout-minutes: "{max(int(str(given)) * 2 // 3, 1)}"',
                    step.line,
                )


def newer_event_ends_the_older(workflow: Workflow) -> Iterator[Finding]:
    """Each push to a pull request dispatches again; `closed` is dispatched to end what runs."""
    concurrency = workflow.value.get("concurrency")
    group = concurrency.get("group", "") if isinstance(concurrency, dict) else str(concurrency or "")
    cancels = isinstance(concurrency, dict) and concurrency.get("cancel-in-progress") not in (None, "false")
    if not cancels or "client_payload" not in group:
        yield warning(
            "Runs of an outdated commit go on beside those of the new one.",
            f"concurrency: {_shown(concurrency)}",
            "concurrency: group and cancel-in-progress of workflow-templates/hardware-job.yml",
            workflow.line("concurrency"),
        )


def permission(workflow: Workflow, job: dict[str, Any], name: str) -> str:
    """What a job may do with a scope: its own permissions replace the workflow's (GitHub's workflow syntax)."""
    given = job.get("permissions", workflow.value.get("permissions", "default"))
    if isinstance(given, dict):
        return str(given.get(name, "none"))
    if given == "write-all":
        return "write"
    return "none" if given in (None, "default", "read-all") and name == "id-token" else "read"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {inner}" for name, inner in value.items()) or "{}"
    return str(value)


CHECKS = (
    starts_on_a_dispatch,
    tells_how_it_ended,
    may_ask_for_a_token,
    rows_have_names,
    ends_in_time,
    newer_event_ends_the_older,
)
