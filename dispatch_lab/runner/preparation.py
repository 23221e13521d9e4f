"""Everything of a run that is decided and written before act starts; each refusal of the lab happens here."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dispatch_lab.errors import LabError
from dispatch_lab.runner.act_process import TRACKING
from dispatch_lab.runner.action_sources import ActionSources, assemble_stand_ins, snapshot
from dispatch_lab.runner.machine import (
    act_command,
    clone,
    default_branch,
    has_changes,
    machine_environment,
    read_file,
    sender,
    write_shells,
)
from dispatch_lab.runner.workflow_copy import Workflow, edited, listens_to, read_workflow


@dataclass(frozen=True)
class JobIdentity:
    """What a job's OIDC token says of it, as far as the runner knows. ``check_run_id`` is made up, but stable."""

    repository: str
    workflow: str
    workflow_path: str
    job: str
    run_id: int
    run_attempt: int
    check_run_id: int
    ref: str
    sha: str
    event_name: str


@dataclass(frozen=True)
class Settings:
    """What all runs of a runner share; see `dispatch_lab.runner.WorkflowRunner`."""

    toolkit: Path
    home: str
    folder: Path
    api_url: str
    server_url: str
    oidc_request_url: str
    mint_request_token: Callable[[JobIdentity], str]
    environment: Mapping[str, str]
    progress: Callable[[str], None]
    github_token: str | None
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Request:
    """One attempt of one run, as GitHub would start it."""

    repository: str
    checkout: Path
    workflow_path: str
    event_name: str
    event: Mapping[str, Any]
    run_id: int
    run_attempt: int


@dataclass(frozen=True)
class Prepared:
    """A run's folders and decisions. ``machine`` holds all that a run uses up and is removed after it.

    ``secrets``: what must not reach a log. ``tracking``: value of RUNNER_TRACKING_ID, see `act_process`.
    """

    folder: Path
    machine: Path
    store: Path
    workflow: Workflow
    command: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: tuple[str, ...]
    tracking: str


def prepare(settings: Settings, request: Request) -> Prepared:
    """Make the run's folder, with all that act needs. Raises LabError, and leaves no folder, if it cannot be run."""
    folder = settings.folder / f"{request.run_id}-{request.run_attempt}"
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise LabError(
            "This attempt was run before", str(folder), "Use another run id or attempt, or remove the folder"
        ) from None
    try:
        return _prepared(settings, request, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def check_run_id(repository: str, run_id: int, run_attempt: int, job: str) -> int:
    """A number that stands for the job's check run: the same each time it is asked for, different for each job."""
    digest = hashlib.sha256(f"{repository}\n{run_id}\n{run_attempt}\n{job}".encode()).digest()
    return int.from_bytes(digest[:6], "big")


def _prepared(settings: Settings, request: Request, folder: Path) -> Prepared:
    machine, store = folder / "machine", settings.folder / f"{request.run_id}-artifacts"
    for name in ("home", "cache", "tmp", "workflow"):
        (machine / name).mkdir(parents=True)
    (folder / "summaries").mkdir()
    (store / "artifacts").mkdir(parents=True, exist_ok=True)
    write_shells(machine / "bin")
    workspace = machine / "checkout"
    sha, branch = clone(request.checkout, workspace, f"{settings.server_url}/{request.repository}")
    ref = f"refs/heads/{default_branch(request.event) or branch}"
    if has_changes(request.checkout):
        settings.progress(f"{request.repository}: uncommitted changes are not part of the run, as on GitHub")

    text = read_file(workspace / request.workflow_path, request.workflow_path, request.repository)
    workflow = read_workflow(text, request.workflow_path)
    _check_trigger(request, text)
    sources = _sources(settings, request, machine, workspace, sha, workflow)
    tokens = {
        job: settings.mint_request_token(_identity(request, workflow, job, ref, sha))
        for job, planned in workflow.jobs.items()
        if planned.grants_id_token
    }
    environments = {job: _job_environment(settings, store, tokens.get(job)) for job in workflow.jobs}
    # Outside the workspace: act copies the workspace into every job, and this file holds the jobs' tokens.
    copy = machine / "workflow" / Path(request.workflow_path).name
    copy.write_text(edited(text, environments, sources.rewritten), encoding="utf-8")
    copy.chmod(0o600)
    github_token = settings.github_token or f"lab-github-token-{uuid.uuid4().hex}"
    (machine / "event.json").write_text(json.dumps(request.event), encoding="utf-8")
    (machine / "secrets").write_text(f"GITHUB_TOKEN={github_token}\n", encoding="utf-8")
    (machine / "nothing").touch()
    tracking = f"github_{uuid.uuid4()}"
    variables = {**_github_variables(settings, request, ref, sha), TRACKING: tracking}
    command = act_command(
        machine,
        workspace,
        copy,
        request.event_name,
        sender(request.event),
        variables,
        settings.variables,
        sources,
    )
    return Prepared(
        folder=folder,
        machine=machine,
        store=store,
        workflow=workflow,
        command=command,
        environment=machine_environment(machine, tracking, settings.environment),
        secrets=(github_token, *tokens.values()),
        tracking=tracking,
    )


def _check_trigger(request: Request, text: str) -> None:
    action = request.event.get("action")
    event_type = action if isinstance(action, str) else None
    if not listens_to(text, request.workflow_path, request.event_name, event_type):
        raise LabError(
            "GitHub would start no run: the workflow does not listen to this event",
            f"{request.workflow_path} in {request.repository}; event {request.event_name}, type {action}",
            f"Add {request.event_name} (types: [{action}]) to the workflow's on:",
        )


def _sources(
    settings: Settings, request: Request, machine: Path, workspace: Path, sha: str, workflow: Workflow
) -> ActionSources:
    snapshot(settings.toolkit, machine / "toolkit")
    assemble_stand_ins(machine / "stand-ins")
    sources = ActionSources(
        home=settings.home,
        toolkit=machine / "toolkit",
        repository=request.repository,
        sha=sha,
        workspace=workspace,
        stand_ins=machine / "stand-ins",
    )
    for use in workflow.uses:
        sources.add(use)
    return sources


def _identity(request: Request, workflow: Workflow, job: str, ref: str, sha: str) -> JobIdentity:
    return JobIdentity(
        repository=request.repository,
        workflow=workflow.name,
        workflow_path=request.workflow_path,
        job=job,
        run_id=request.run_id,
        run_attempt=request.run_attempt,
        check_run_id=check_run_id(request.repository, request.run_id, request.run_attempt, job),
        ref=ref,
        sha=sha,
        event_name=request.event_name,
    )


def _job_environment(settings: Settings, store: Path, token: str | None) -> dict[str, str]:
    # The stand-ins run with the lab's own Python: a job may put any other first on PATH.
    environment = {"LAB_ARTIFACTS": str(store), "LAB_PYTHON": sys.executable}
    if token is not None:
        environment["ACTIONS_ID_TOKEN_REQUEST_URL"] = settings.oidc_request_url
        environment["ACTIONS_ID_TOKEN_REQUEST_TOKEN"] = token
    return environment


def _github_variables(settings: Settings, request: Request, ref: str, sha: str) -> dict[str, str]:
    """Variables act takes the ``github`` context from, and those it knows nothing of but GitHub sets."""
    return {
        "GITHUB_REPOSITORY": request.repository,
        "GITHUB_RUN_ID": str(request.run_id),
        "GITHUB_RUN_ATTEMPT": str(request.run_attempt),
        "GITHUB_REF": ref,
        "GITHUB_SERVER_URL": settings.server_url,
        "GITHUB_API_URL": settings.api_url,
        "GITHUB_GRAPHQL_URL": f"{settings.api_url}/graphql",
        "GITHUB_WORKFLOW_REF": f"{request.repository}/{request.workflow_path}@{ref}",
        "GITHUB_WORKFLOW_SHA": sha,
        "RUNNER_NAME": "dispatch-lab",
        "RUNNER_ENVIRONMENT": "self-hosted",
    }
