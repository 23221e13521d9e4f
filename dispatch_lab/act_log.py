"""act's ``--json`` lines: masked and readable as they arrive, and read back as results of jobs and steps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dispatch_lab.workflow_copy import PlannedJob, Workflow

Event = Mapping[str, Any]

ARRIVED = "lab_seconds"
"""Key the lab adds to each line: seconds since act was started (act's own times are whole seconds)."""


@dataclass(frozen=True)
class StepResult:
    """One step of a job. ``outcome``: success, failure or skipped (before ``continue-on-error``)."""

    name: str
    outcome: str
    seconds: float


@dataclass(frozen=True)
class JobResult:
    """One job, or one leg of a matrix. ``job``: its id; ``name``: as GitHub shows it.

    ``result``: success, failure, skipped or cancelled. ``started_at``: ISO 8601, empty if it never started.
    """

    job: str
    name: str
    result: str
    seconds: float
    started_at: str
    steps: tuple[StepResult, ...]


class Masks:
    """The values that must not reach a log: given ones, and those a step announces with ``::add-mask::``.

    act masks the message of a line, but leaves the value in the line's other fields.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._values = [value for value in values if value]

    def applied(self, event: Event) -> dict[str, Any]:
        if event.get("command") == "add-mask":
            if event.get("arg"):
                self._values.append(str(event["arg"]))
            event = {key: value for key, value in event.items() if key not in ("arg", "raw")}
        return {key: self._masked(value) for key, value in event.items()}

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            for secret in self._values:
                value = value.replace(secret, "***")
            return value
        if isinstance(value, list):
            return [self._masked(item) for item in value]
        if isinstance(value, dict):
            return {key: self._masked(item) for key, item in value.items()}
        return value


def parsed_line(line: str, arrived: float) -> dict[str, Any]:
    """One line of act's output. What is no JSON object (an error of act itself) becomes a message."""
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict):
        event = {"level": "error", "msg": line.rstrip("\n")}
    return {**event, ARRIVED: round(arrived, 3)}


def readable(event: Event, workflow: Workflow) -> str:
    """The line as a person reads it: seconds, job, and the message (a step's own output after a bar)."""
    planned = workflow.jobs.get(str(event.get("jobID")))
    who = f"[{leg_key(planned, event.get('matrix'))}] " if planned else ""
    bar = "| " if event.get("raw_output") else ""
    return f"{event[ARRIVED]:8.2f}s {who}{bar}{str(event.get('msg', '')).rstrip()}"


def leg_key(planned: PlannedJob, matrix: object) -> str:
    """``job``, or ``job (value, …)`` for a leg of a matrix: GitHub's form, values in the matrix's order."""
    if not isinstance(matrix, dict) or not matrix:
        return planned.job
    return f"{planned.job} ({_values(planned, matrix)})"


def _values(planned: PlannedJob, matrix: Mapping[str, object]) -> str:
    known = [key for key in planned.matrix_keys if key in matrix]
    keys = known + sorted(set(matrix) - set(known))
    return ", ".join(str(matrix[key]) for key in keys)


@dataclass
class _Leg:
    planned: PlannedJob
    matrix: dict[str, object]
    name: str = ""
    started: float = 0.0
    started_at: str = ""
    ended: float | None = None
    result: str | None = None
    steps: dict[str, StepResult] = field(default_factory=dict)


def job_results(events: Iterable[Event], workflow: Workflow, interrupted_at: float | None) -> dict[str, JobResult]:
    """Results per job, or per leg of a matrix (see `leg_key`), in the workflow's order.

    ``interrupted_at``: second at which the lab stopped act, else None. A job without a result by then is cancelled
    (act calls the jobs it no longer runs "success"). Otherwise a job that never started was skipped, and one that
    started and never ended failed with act.
    """
    legs: dict[str, _Leg] = {}
    last = 0.0
    for event in events:
        last = max(last, float(event[ARRIVED]))
        planned = workflow.jobs.get(str(event.get("jobID")))
        if planned is None:
            continue
        key = leg_key(planned, event.get("matrix"))
        if key not in legs and event.get("step") != "Set up job":
            continue  # a job whose `if` is false reports lines, but starts nothing
        leg = legs.setdefault(key, _Leg(planned, dict(event.get("matrix") or {})))
        _note(leg, event, workflow)
    finished = {}
    for key, leg in legs.items():
        finished[key] = _finished(leg, last, interrupted_at)
    ordered: dict[str, JobResult] = {}
    for job, planned in workflow.jobs.items():
        own = {key: result for key, result in finished.items() if result.job == job}
        absent = "skipped" if interrupted_at is None else "cancelled"
        ordered.update(own or {job: JobResult(job, planned.name, absent, 0.0, "", ())})
    return ordered


def conclusion(jobs: Mapping[str, JobResult], interrupted: bool) -> str:
    """The run's conclusion as GitHub gives it: an interrupted run is cancelled, else the worst job decides.

    A job cancelled beside a failed one (``fail-fast``) leaves the run a failure; a run of skipped jobs is skipped.
    """
    results = {job.result for job in jobs.values()}
    if interrupted:
        return "cancelled"
    return next((r for r in ("failure", "cancelled", "success") if r in results), "skipped")


def summaries(events: Iterable[Event], workflow: Workflow) -> dict[str, str]:
    """The Markdown each job (or leg) wrote to GITHUB_STEP_SUMMARY, steps joined by an empty line."""
    texts: dict[str, list[str]] = {}
    for event in events:
        planned = workflow.jobs.get(str(event.get("jobID")))
        if planned is not None and event.get("command") == "summary":
            texts.setdefault(leg_key(planned, event.get("matrix")), []).append(str(event.get("content", "")))
    return {key: "\n".join(parts) for key, parts in texts.items()}


def _note(leg: _Leg, event: Event, workflow: Workflow) -> None:
    arrived = float(event[ARRIVED])
    if not leg.started_at:
        leg.started, leg.started_at = arrived, str(event.get("time", ""))
        leg.name = _shown_name(str(event.get("job", "")).strip(), leg, workflow)
    if "jobResult" in event:
        leg.result, leg.ended = str(event["jobResult"]), arrived
    ids = event.get("stepID")
    if event.get("stage") == "Main" and isinstance(ids, list) and len(ids) == 1 and "stepResult" in event:
        leg.steps[str(ids[0])] = StepResult(
            name=str(event.get("step", "")).strip().partition("\n")[0],
            outcome=str(event["stepResult"]),
            seconds=round(float(event.get("executionTime", 0)) / 1e9, 3),
        )


def _shown_name(name: str, leg: _Leg, workflow: Workflow) -> str:
    """act's ``WORKFLOW/NAME-2`` as GitHub shows it: a computed name as it is, else ``NAME (value, …)``."""
    if "${{" in leg.planned.name or not leg.matrix:
        name = name.removeprefix(f"{workflow.name}/")
        return re.sub(r"-\d+$", "", name) if leg.matrix else name
    return f"{leg.planned.name} ({_values(leg.planned, leg.matrix)})"


def _finished(leg: _Leg, last: float, interrupted_at: float | None) -> JobResult:
    ended = leg.ended if leg.ended is not None else last
    if interrupted_at is not None and (leg.ended is None or leg.ended > interrupted_at):
        result = "cancelled"
    else:
        result = leg.result or "failure"
    steps = tuple(leg.steps.get(key, StepResult(name, "skipped", 0.0)) for key, name in leg.planned.steps)
    seconds = round(ended - leg.started, 3)
    return JobResult(leg.planned.job, leg.name, result, seconds, leg.started_at, steps)
