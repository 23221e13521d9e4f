"""One event to many downstreams, at once. Each is claimed in the store before its call, and noted after it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from .github import GitHubError
from .records import FAILED, SENT, DispatchRecord
from .store import Store

log = logging.getLogger(__name__)

_ABANDONED_SECONDS = 60.0  # a claim this old without an outcome: its process died before it could note one

Send = Callable[[str, str, dict[str, Any]], None]  # (repository, event_type, client_payload) or GitHubError


@dataclass(frozen=True)
class Outcome:
    """How it went for one downstream. `replayed`: it was, or is being, sent by an earlier delivery."""

    repository: str
    error: str = ""
    replayed: bool = False


def fan_out(
    envelope: dict[str, Any],
    records: Sequence[DispatchRecord],
    *,
    store: Store,
    send: Send,
    executor: Executor,
    deadline: float,
) -> list[Outcome]:
    """Dispatch to all at once and wait at most `deadline` seconds; what is later still is noted in the store."""
    running = {record.repository: executor.submit(_one, envelope, record, store, send) for record in records}
    wait(running.values(), timeout=deadline)
    return [_outcome(repository, future, deadline) for repository, future in running.items()]


def _one(envelope: dict[str, Any], record: DispatchRecord, store: Store, send: Send) -> Outcome:
    if not store.claim_dispatch(record, stale_before=record.claimed_at - _ABANDONED_SECONDS):
        return Outcome(record.repository, replayed=True)
    try:
        send(record.repository, record.event_type, envelope)
    except GitHubError as error:
        log.warning("dispatch %s to %s failed: %s", record.delivery_id, record.repository, error)
        outcome = Outcome(record.repository, error=str(error))
    else:
        outcome = Outcome(record.repository)
    store.finish_dispatch(
        record.delivery_id, record.repository, FAILED if outcome.error else SENT, outcome.error
    )
    return outcome


def _outcome(repository: str, future: Future[Outcome], deadline: float) -> Outcome:
    if not future.done():
        return Outcome(repository, error=f"not sent within {deadline:g} s; still trying")
    error = future.exception()
    if error is not None:
        log.error("dispatch to %s broke", repository, exc_info=error)
        return Outcome(repository, error=f"{type(error).__name__} in the relay; see its log")
    return future.result()


def records_for(event: DispatchRecord, repositories: Sequence[str]) -> list[DispatchRecord]:
    """The record of an event, once per downstream."""
    return [replace(event, repository=repository) for repository in repositories]
