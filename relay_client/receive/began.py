"""When a run began: the same time for all its attempts, so that a nightly chosen by it is the same commit."""

from __future__ import annotations

import time
from datetime import datetime

from relay_client.errors import CommitNotFound
from relay_client.http import TransportError, request_json
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext

_API_SECONDS = 20.0
# Without a token GitHub lets all runners behind one address ask sixty times an hour.
_TOKEN = "CRCR_GITHUB_TOKEN"  # noqa: S105 - the name of a variable


def run_began(context: RunContext, commands: Commands) -> float:
    """`created_at` of the run, in Unix time. Raises CommitNotFound if a later attempt cannot know it.

    Source: docs.github.com, REST API, "Get a workflow run". A public repository's needs no permission, a private
    one's `actions: read`.
    """
    api = context.environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
    url = f"{api}/repos/{context.repository}/actions/runs/{context.run_id}"
    try:
        answer = request_json(
            "GET", url, deadline_seconds=_API_SECONDS, bearer=context.environment.get(_TOKEN) or None
        )
        seen = f"HTTP {answer.status}"
        if answer.status == 200 and isinstance(answer.body, dict):
            created = str(answer.body.get("created_at", "")).replace("Z", "+00:00")
            return datetime.fromisoformat(created).timestamp()
    except TransportError as error:
        seen = error.reason
    except ValueError as error:
        seen = str(error)
    if context.run_attempt == 1:
        commands.warning(
            "When this run began is not known, so now counts. A later attempt will not guess which nightly this one "
            f"tested: it will fail. Seen: {seen} from {url}"
        )
        return time.time()
    raise CommitNotFound(
        "Which nightly the first attempt of this run tested is not known.",
        seen=f"{seen} from {url}",
        fix="give the job `permissions: actions: read`, start a new run, or name the SHA: `commit: …`",
    )
