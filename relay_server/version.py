"""What this relay is and what it can do beyond the documented wire: the answer of `GET /version`."""

from __future__ import annotations

from importlib import metadata
from typing import Any

from relay_client.protocol.vocabulary import WORKFLOW_SCHEMA_VERSION

EXTENSIONS = {
    # name: what a client may rely on when it is listed
    "idempotent-callbacks": 'an identical retry is answered 200 {"replayed": true}',
    "idempotent-webhooks": "a redelivered GUID is dispatched only where it has not been sent yet",
    "retry-after": "429 and 503 carry Retry-After; refused calls do not count against the limit",
    "opaque-run-ids": "workflow.run_id is any text",
    "ignored-detail": "an ignored callback says why in `detail`",
    "trimmed-dispatches": "an event over GitHub's 64 KB arrives trimmed, and payload.crcr_trimmed says how",
    "failed-tests-detail": "workflow.failed_tests_detail is stored and shown by test",
    "push-rows": "push, nightly and periodic rows are shown like pull request rows",
}


def service_version() -> str:
    """The version of the installed distribution."""
    try:
        return metadata.version("crcr-actions")
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"


def describe() -> dict[str, Any]:
    """The JSON of `GET /version`."""
    return {
        "service": "crcr-relay",
        "version": service_version(),
        "schema_version": WORKFLOW_SCHEMA_VERSION,
        "extensions": sorted(EXTENSIONS),
    }
