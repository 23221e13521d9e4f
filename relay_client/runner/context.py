"""Where we run: GitHub Actions or a plain shell, as one RunContext."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional

from relay_client.errors import UsageError


@dataclass(frozen=True)
class RunContext:
    """The identity of this run of this job. Fields are empty where the place does not say."""

    on_github: bool
    environment: Mapping[str, str] = field(repr=False)
    workflow: str = ""
    job: str = ""
    run_id: str = ""
    run_attempt: int = 1
    repository: str = ""
    server_url: str = "https://github.com"
    event_name: str = ""
    event_path: Optional[Path] = None
    workspace: Path = field(default_factory=Path)
    temporary: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))

    @property
    def run_url(self) -> str:
        return f"{self.server_url}/{self.repository}/actions/runs/{self.run_id}"

    def run_folder(self, given: Optional[Path]) -> Path:
        """Where the documents of this run live."""
        return (given or self.temporary / "crcr").absolute()

    def require_run(self) -> None:
        """Refuse to report without knowing the run. Raises UsageError."""
        if not (self.run_id and self.repository and self.workflow):
            raise UsageError(
                "The run that is to be reported is not known.",
                seen=f"GITHUB_RUN_ID={self.run_id!r}, GITHUB_REPOSITORY={self.repository!r}, "
                f"GITHUB_WORKFLOW={self.workflow!r}",
                fix="run `crcr report` in a GitHub Actions job, or set these three variables",
            )


def read_context(environment: Mapping[str, str]) -> RunContext:
    """The context the environment describes (docs.github.com, "Variables reference")."""
    attempt = environment.get("GITHUB_RUN_ATTEMPT", "1")
    event_path = environment.get("GITHUB_EVENT_PATH")
    return RunContext(
        on_github=environment.get("GITHUB_ACTIONS") == "true",
        environment=environment,
        workflow=environment.get("GITHUB_WORKFLOW", ""),
        job=environment.get("GITHUB_JOB", ""),
        run_id=environment.get("GITHUB_RUN_ID", ""),
        run_attempt=int(attempt) if attempt.isdecimal() and int(attempt) > 0 else 1,
        repository=environment.get("GITHUB_REPOSITORY", ""),
        server_url=environment.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/"),
        event_name=environment.get("GITHUB_EVENT_NAME", ""),
        event_path=Path(event_path) if event_path else None,
        workspace=Path(environment.get("GITHUB_WORKSPACE") or Path.cwd()),
        temporary=Path(environment.get("RUNNER_TEMP") or tempfile.gettempdir()),
    )


def check_run_id(context: RunContext, row: str) -> str:
    """The identity of a row in this attempt: computed, so that every job of the run finds the same.

    The dashboard keys its rows by it; the production client falls back to `<run id>-<attempt>` too.
    """
    digest = hashlib.sha256(row.encode()).hexdigest()[:8]
    return f"{context.run_id}-{context.run_attempt}-{digest}"
