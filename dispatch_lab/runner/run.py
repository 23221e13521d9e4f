"""One attempt of one run, from its preparation to what it left."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatch_lab.errors import LabError
from dispatch_lab.runner.act_log import (
    ARRIVED,
    JobResult,
    Masks,
    conclusion,
    gave_up,
    job_results,
    parsed_line,
    progress_of,
    readable,
    summaries,
)
from dispatch_lab.runner.act_process import ActEnd, run_act
from dispatch_lab.runner.preparation import JobIdentity, Prepared, Request, Settings, prepare

CANCEL_GRACE_SECONDS = 10.0
"""Time the ``always()`` steps of a cancelled run get. GitHub gives five minutes; a laptop's user waits for it."""


@dataclass(frozen=True)
class WorkflowRun:
    """One attempt of one run. ``jobs``: by job id; legs of a matrix as ``job (value, …)``, GitHub's form.

    ``artifacts``: one sub-folder per artifact name (all attempts of the run). ``log``: text for people. ``events``:
    act's JSON lines. ``summaries``: one Markdown file per job that wrote one. Secrets are masked in all of them.
    """

    repository: str
    run_id: int
    run_attempt: int
    workflow: str
    folder: Path
    jobs: Mapping[str, JobResult]
    conclusion: str
    seconds: float
    artifacts: Path
    log: Path
    events: Path
    summaries: Path


class WorkflowRunner:
    """Runs workflows; each run lives in ``folder/RUN-ATTEMPT/`` and may run beside others.

    ``toolkit``: a working tree of this project; ``home``: the OWNER/NAME under which workflows use it, at any ref.
    ``environment``: variables of the machine that every job sees, such as ``PIP_*`` (a workflow's own ``env`` wins);
    never credentials. ``progress``: one line of text per job that starts or ends, and per group in its log.
    ``mint_request_token`` is called once per job that grants ``id-token: write``.
    ``variables``: the repository's configuration variables, as ``vars.NAME``.
    ``github_token``: what ``github.token`` is in every job; by default a random value that no API knows.
    """

    def __init__(
        self,
        *,
        toolkit: Path,
        home: str,
        folder: Path,
        api_url: str,
        oidc_request_url: str,
        mint_request_token: Callable[[JobIdentity], str],
        environment: Mapping[str, str],
        progress: Callable[[str], None] = lambda _line: None,
        server_url: str = "https://github.com",
        github_token: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = Settings(
            toolkit=toolkit.resolve(),
            home=home,
            folder=folder.resolve(),
            api_url=api_url,
            server_url=server_url,
            oidc_request_url=oidc_request_url,
            mint_request_token=mint_request_token,
            environment=dict(environment),
            progress=progress,
            github_token=github_token,
            variables=dict(variables or {}),
        )

    def run(
        self,
        repository: str,
        checkout: Path,
        workflow_path: str,
        event_name: str,
        event: Mapping[str, Any],
        *,
        run_id: int,
        run_attempt: int = 1,
        timeout: float = 900,
        cancel: threading.Event | None = None,
    ) -> WorkflowRun:
        """Run the workflow at ``checkout``'s commit and wait for its end.

        ``timeout``: seconds for the whole run; past it, or once ``cancel`` is set, unfinished jobs are cancelled.
        Raises LabError, before act starts, for what the lab cannot run; and if act itself breaks.
        """
        prepared = prepare(
            self._settings,
            Request(repository, checkout, workflow_path, event_name, event, run_id, run_attempt),
        )
        try:
            end, events = self._run_act(prepared, timeout, cancel)
        finally:
            # Workspaces hold wheels and virtual environments; what a run leaves are its logs and artifacts.
            shutil.rmtree(prepared.machine, ignore_errors=True)
        jobs = job_results(events, prepared.workflow, end.interrupted_at)
        broken = gave_up(events) if end.interrupted_at is None else ""
        if broken:
            raise LabError(
                "act could not run the workflow to its end",
                f"{broken}\n  log: {prepared.folder / 'act.log'}",
                "Correct what act names; actionlint tells more about a workflow file",
            )
        for key, text in summaries(events, prepared.workflow).items():
            (prepared.folder / "summaries" / f"{key.replace('/', '_')}.md").write_text(text, encoding="utf-8")
        return WorkflowRun(
            repository=repository,
            run_id=run_id,
            run_attempt=run_attempt,
            workflow=prepared.workflow.name,
            folder=prepared.folder,
            jobs=jobs,
            conclusion=conclusion(jobs, end.interrupted_at is not None),
            seconds=float(events[-1][ARRIVED]) if events else 0.0,
            artifacts=prepared.store / "artifacts",
            log=prepared.folder / "act.log",
            events=prepared.folder / "act.jsonl",
            summaries=prepared.folder / "summaries",
        )

    def _run_act(
        self, prepared: Prepared, timeout: float, cancel: threading.Event | None
    ) -> tuple[ActEnd, list[dict[str, Any]]]:
        masks = Masks(prepared.secrets)
        events: list[dict[str, Any]] = []
        with (
            (prepared.folder / "act.log").open("w", encoding="utf-8", buffering=1) as log,
            (prepared.folder / "act.jsonl").open("w", encoding="utf-8", buffering=1) as lines,
        ):

            def on_line(line: str, arrived: float) -> None:
                event = masks.applied(parsed_line(line, arrived))
                if "docker connection" in str(event.get("msg")):
                    return  # act looks for Docker first; the lab does without
                events.append(event)
                lines.write(json.dumps(event, ensure_ascii=False) + "\n")
                if "LocalRepositoryCache" not in str(event.get("msg")):
                    log.write(readable(event, prepared.workflow) + "\n")
                told = progress_of(event, prepared.workflow)
                if told:
                    self._settings.progress(told)

            end = run_act(
                prepared.command,
                prepared.environment,
                prepared.machine,
                tracking=prepared.tracking,
                on_line=on_line,
                timeout=timeout,
                grace=CANCEL_GRACE_SECONDS,
                cancel=cancel,
            )
            if end.reason:
                log.write(f"The lab ended this run: {end.reason}\n")
        return end, events
