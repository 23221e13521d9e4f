"""Gate 4: is it this row's turn. A dispatch exists, and the row goes in_progress, then completed, once each.

An identical retry of a callback that was taken is no error: the caller may have lost our answer.
Self-reports (nightly, periodic) have no dispatch and no start; they are named by an upstream commit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from relay_client.protocol import vocabulary as words
from relay_client.protocol.callback import CallbackBody
from relay_client.protocol.shape import show
from relay_server.records import DispatchRecord, Row, RowKey
from relay_server.refusal import Refusal, explain
from relay_server.store import Store

_TRANSITIONS = {
    # (where the row stands, what is reported): why not, and what to change; absent: the step is taken
    (None, "completed"): (
        "completed came before in_progress",
        "send in_progress first, with the same run_id, run_attempt and job_name",
    ),
    ("in_progress", "in_progress"): (
        "this row is in progress already, and the body differs from the one that said so",
        "give each job of a matrix its own job_name; retry with the same body",
    ),
    ("completed", "in_progress"): ("this row is completed", "raise run_attempt for a new attempt"),
    ("completed", "completed"): (
        "this row is completed already, and the body differs from the one that said so",
        "give each job of a matrix its own job_name; retry with the same body",
    ),
}
_MAX_ATTEMPT = 1_000_000  # a bound for the database; GitHub's own is far lower


@dataclass(frozen=True)
class Step:
    """What a callback may do. `dispatch` is None for a self-report, `previous` for a new row."""

    key: RowKey
    dispatch: DispatchRecord | None
    previous: Row | None
    replayed: bool


def check(body: CallbackBody, digest: str, repository: str, store: Store) -> Step:
    """Decide the step, without taking it. Raises Refusal 400."""
    workflow = body.workflow
    if workflow.run_attempt > _MAX_ATTEMPT:
        allowed = f"a number up to {_MAX_ATTEMPT}"
        raise Refusal(400, f"workflow.run_attempt: found {workflow.run_attempt}; allowed is {allowed}")
    key = RowKey(
        body.delivery_id, repository.lower(), workflow.run_id, workflow.run_attempt, workflow.job_name
    )
    self_report = body.event_type in words.SELF_REPORTED_EVENTS
    dispatch = None if self_report else store.dispatch(body.delivery_id, repository)
    if self_report:
        _check_self_report(body)
    elif dispatch is None:
        raise Refusal(400, _no_dispatch(body.delivery_id, repository))
    previous = store.row(key)
    if is_replay(previous, workflow.status, digest):
        return Step(key, dispatch, previous, replayed=True)
    refused = _TRANSITIONS.get((previous.status if previous else None, workflow.status))
    if refused and not self_report:  # a self-report replaces what it said before, as in production
        what, fix = refused
        raise Refusal(400, explain(f"invalid state transition: {what}", seen=_shown(key), fix=fix))
    return Step(key, dispatch, previous, replayed=False)


def is_replay(previous: Row | None, status: str, digest: str) -> bool:
    """Whether this very body made this row's step to `status` before."""
    if previous is None:
        return False
    return digest == (previous.in_progress_digest if status == "in_progress" else previous.completed_digest)


def _check_self_report(body: CallbackBody) -> None:
    if body.workflow.status != "completed":
        what = f"workflow.status: found {show(body.workflow.status)}; allowed is completed"
        raise Refusal(400, f"{what} when event_type is {body.event_type}, which reports once, at the end")
    if not re.fullmatch(words.SHA_PATTERN, body.delivery_id):
        allowed = f"{words.SHA_EXPECTS}, of upstream's main branch, when event_type is {body.event_type}"
        raise Refusal(400, f"delivery_id: found {show(body.delivery_id)}; allowed is {allowed}")


def _no_dispatch(delivery_id: str, repository: str) -> str:
    return explain(
        "no matching dispatch record",
        seen=f"delivery_id={show(delivery_id)}, repository={repository}",
        fix="echo delivery_id as it stood in client_payload, from the repository that was dispatched to",
    )


def _shown(key: RowKey) -> str:
    return f"run_id={show(key.run_id)}, run_attempt={key.run_attempt}, job_name={show(key.job_name)}"
