"""act's ``--json`` lines: masked and readable as they arrive, and read back as results of jobs and steps."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dispatch_lab.runner.workflow_copy import PlannedJob, Workflow

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


def progress_of(event: Event, workflow: Workflow) -> str:
    """One line if the event is the start or the end of a job (or leg), or opens a group in its log; else empty."""
    planned = workflow.jobs.get(str(event.get("jobID")))
    if planned is None:
        return ""
    key = leg_key(planned, event.get("matrix"))
    if "jobResult" in event:
        return f"job {key}: {event['jobResult']}"
    if event.get("command") == "group":
        return f"job {key}: {event.get('arg')}"
    begins = event.get("step") == "Set up job" and "stepResult" not in event
    return f"job {key} started" if begins else ""


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
    failed: bool = False
    steps: dict[str, StepResult] = field(default_factory=dict)


def job_results(
    events: Iterable[Event], workflow: Workflow, interrupted_at: float | None
) -> dict[str, JobResult]:
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
        own = {key: finished[key] for key in sorted(finished) if finished[key].job == job}
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


def gave_up(events: Sequence[Event]) -> str:
    """Why act ended before its plan was through (then ``always()`` jobs did not run either), or empty.

    act's last words are ``Error: Job 'x' failed`` when it only tells of a failed job.
    """
    last_words = [str(event.get("msg", "")) for event in events if "jobID" not in event]
    start = next((i for i, message in enumerate(last_words) if message.startswith("Error: ")), None)
    if start is None or re.fullmatch(r"Error: Job '.*' failed", last_words[start]):
        return ""
    return "\n".join(last_words[start:]).strip()


def summaries(events: Iterable[Event], workflow: Workflow) -> dict[str, str]:
    """The Markdown each job (or leg) wrote to GITHUB_STEP_SUMMARY, steps joined by an empty line.

    act reports the summary of a composite's last step again for the composite itself: that copy is left out.
    """
    texts: dict[str, list[str]] = {}
    inner_step: dict[str, str] = {}
    for event in events:
        planned = workflow.jobs.get(str(event.get("jobID")))
        ids = event.get("stepID")
        if planned is None or event.get("command") != "summary" or not isinstance(ids, list):
            continue
        key = leg_key(planned, event.get("matrix"))
        if len(ids) == 1 and inner_step.get(key) == ids[0]:
            continue
        inner_step[key] = str(ids[0]) if len(ids) > 1 else ""
        texts.setdefault(key, []).append(str(event.get("content", "")))
    return {key: "\n".join(parts) for key, parts in texts.items()}


def _note(leg: _Leg, event: Event, workflow: Workflow) -> None:
    arrived = float(event[ARRIVED])
    if not leg.started_at:
        leg.started, leg.started_at = arrived, str(event.get("time", ""))
        leg.name = _shown_name(str(event.get("job", "")).strip(), leg, workflow)
    ids = event.get("stepID")
    if event.get("level") == "error" and (not isinstance(ids, list) or len(ids) == 1):
        leg.failed = (
            True  # act logs an error of the job itself so; one inside a composite has a longer stepID
        )
    if "jobResult" in event:
        # act gives a leg the result of the legs that ended before it.
        own = ("failure" if leg.failed else "success") if leg.matrix else str(event["jobResult"])
        leg.result, leg.ended = own, arrived
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
