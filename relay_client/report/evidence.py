"""Find and read the evidence that the hardware jobs left. Hostile input: a stranger's code was near it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from relay_client.documents.document import load_file
from relay_client.documents.evidence import Evidence
from relay_client.errors import DocumentError, UsageError
from relay_client.protocol.shape import show

MAX_SHARDS = 1_024
_JOB_RESULTS = ("success", "failure", "cancelled", "skipped")


def read_evidence(folder: Path) -> tuple[list[Evidence], list[str]]:
    """All evidence below a folder, and for each file that cannot be read, why."""
    found: list[Evidence] = []
    unreadable: list[str] = []
    for path in sorted(folder.rglob(Evidence.FILE))[:MAX_SHARDS]:
        try:
            if path.is_symlink():
                raise DocumentError("a link instead of a document", seen=path.name)
            found.append(load_file(Evidence, path))
        except DocumentError as error:
            unreadable.append(
                f"evidence of {path.parent.name} cannot be used: {error.what} {error.seen}"[:500]
            )
    return found, unreadable


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
