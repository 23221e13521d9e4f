"""Find and read the evidence that the hardware jobs left. Hostile input: a stranger's code was near it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relay_client.documents.document import D, load_file
from relay_client.documents.evidence import MAX_SHARDS, Evidence
from relay_client.documents.failure import Failure
from relay_client.errors import DocumentError, UsageError
from relay_client.protocol.shape import show

_JOB_RESULTS = ("success", "failure", "cancelled", "skipped")


@dataclass(frozen=True)
class Found:
    """What lay in the evidence folder for one row. `unreadable` says of each broken file why."""

    evidence: tuple[Evidence, ...]
    failures: tuple[Failure, ...]
    unreadable: tuple[str, ...]


def read_evidence(folder: Path, row: str) -> Found:
    """The evidence of a row below a folder, and the stages that failed before there could be any.

    Each shard counts as its last attempt left it: after "re-run failed jobs" the shards that were not re-run
    keep the evidence of the attempt before.
    """
    unreadable: list[str] = []
    evidence = [item for item in _load_all(Evidence, folder, unreadable) if item.row == row]
    last = {
        item.shard: max(other.run_attempt for other in evidence if other.shard == item.shard)
        for item in evidence
    }
    newest = max(last.values(), default=0)
    failures = [item for item in _load_all(Failure, folder, unreadable) if item.row == row]
    return Found(
        tuple(item for item in evidence if item.run_attempt == last[item.shard]),
        tuple(item for item in failures if item.run_attempt >= newest),
        tuple(unreadable),
    )


def _load_all(cls: type[D], folder: Path, unreadable: list[str]) -> list[D]:
    found: list[D] = []
    for path in sorted(folder.rglob(cls.FILE))[:MAX_SHARDS]:
        try:
            found.append(load_file(cls, path))
        except DocumentError as error:
            unreadable.append(
                f"{cls.FILE} of {path.parent.name} cannot be used: {error.what} {error.seen}"[:500]
            )
    return found


def read_job_results(needs: str) -> Mapping[str, str]:
    """Job id to result out of `${{ toJSON(needs) }}`. Raises UsageError."""
    try:
        value = json.loads(needs)
        results = {str(job): entry["result"] for job, entry in value.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _bad_needs(show(needs)) from None
    wrong = {job: result for job, result in results.items() if result not in _JOB_RESULTS}
    if wrong:
        raise _bad_needs(show(wrong))
    return results


def _bad_needs(seen: str) -> UsageError:
    return UsageError(
        "needs does not hold the results of the jobs before.",
        seen=seen,
        fix="write in the step, literally: `needs: ${{ toJSON(needs) }}`, and list those jobs in `needs:` of the job",
    )
