"""Whether a stranger's code meets authority: checks of the workflow file against the trust model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from crcr.doctor.delivery import permission
from crcr.doctor.finding import Finding, error, warning
from crcr.doctor.workflow import ROOT, Workflow

_SECRET = re.compile(r"\$\{\{[^}]*\bsecrets\.(?!GITHUB_TOKEN\b)(\w+)")
_UNTRUSTED = re.compile(r"\$\{\{[^}]*\bgithub\.event\.client_payload\b[^}]*\}\}")
_FULL_SHA = re.compile(r"[0-9a-f]{40}")
_HOSTED = re.compile(r"(ubuntu|windows|macos)-")


def no_token_beside_foreign_code(workflow: Workflow) -> Iterator[Finding]:
    """Code under test runs in the same job: whatever the job may do, it may do."""
    for job in workflow.jobs:
        if not job.runs_foreign_code:
            continue
        if permission(workflow, job.value, "id-token") == "write":
            yield error(
                f"Job {job.name} runs a stranger's code, and may ask for a token in your repository's name.",
                "permissions: id-token: write",
                "permissions: contents: read; report from a job of its own",
                workflow.line("jobs", job.name, "permissions"),
            )
        given = job.value.get("permissions", workflow.value.get("permissions"))
        writes = (
            [name for name, may in given.items() if may == "write" and name != "id-token"]
            if isinstance(given, dict)
            else (["everything"] if given == "write-all" else [])
        )
        if writes:
            yield error(
                f"Job {job.name} runs a stranger's code, and may write to your repository.",
                f"permissions: {', '.join(writes)}: write",
                "permissions: contents: read",
                workflow.line("jobs", job.name, "permissions"),
            )
        elif given is None:
            yield warning(
                f"Job {job.name} has whatever permissions the repository gives by default.",
                "no permissions",
                "permissions: contents: read",
                job.line,
            )


def no_secret_beside_foreign_code(workflow: Workflow) -> Iterator[Finding]:
    """Secrets belong into a job that fetches or publishes, and runs no foreign code."""
    for job in workflow.jobs:
        if not job.runs_foreign_code:
            continue
        for name in sorted(set(_SECRET.findall(json.dumps(job.value)))):
            yield error(
                f"Job {job.name} runs a stranger's code, and holds a secret.",
                f"secrets.{name}",
                "use the secret in a job before, and hand over what it fetched as an artifact",
                job.line,
            )
        for step in job.steps:
            checks_out = str(step.value.get("uses", "")).startswith("actions/checkout@")
            if checks_out and str(step.inputs.get("persist-credentials", "true")) != "false":
                yield warning(
                    f"Job {job.name} leaves the token of actions/checkout on disk, beside a stranger's code.",
                    "persist-credentials: true, the default",
                    "persist-credentials: false",
                    step.line,
                )


def nothing_untrusted_in_a_shell(workflow: Workflow) -> Iterator[Finding]:
    """GitHub pastes `${{ }}` into the script before the shell reads it: a title may be a command."""
    for job in workflow.jobs:
        for step in job.steps:
            found = _UNTRUSTED.search(str(step.value.get("run", "")))
            if found:
                yield error(
                    "Text of the dispatch becomes part of a shell script.",
                    f"run: … {found[0][:120]} …",
                    "put it into `env:` of the step, and use the variable in quotes",
                    step.line,
                )


def actions_are_pinned(workflow: Workflow) -> Iterator[Finding]:
    """A tag can be moved; a full SHA cannot. Steps of different versions do not understand each other."""
    refs: dict[str, int] = {}
    for job in workflow.jobs:
        for step in job.steps:
            uses = str(step.value.get("uses", ""))
            name, _, ref = uses.partition("@")
            if uses and not uses.startswith("./") and not _FULL_SHA.fullmatch(ref):
                yield warning(
                    "An action is not pinned to a commit.",
                    uses,
                    f"{name}@<the 40 digits of its release> # {ref or 'version'}",
                    step.line,
                )
            if step.action is not None:
                refs.setdefault(step.ref, step.line)
                if set(step.ref) == {"0"} or uses.startswith("OWNER/"):
                    yield error(
                        "The pin of the toolkit is the template's placeholder.",
                        uses,
                        "uses: the owner and the 40 digits of a release",
                        step.line,
                    )
    if len(refs) > 1:
        yield error(
            "The steps use different versions of the toolkit.",
            ", ".join(sorted(refs)),
            "pin every step of the file to the same commit",
            max(refs.values()),
        )


def hardware_is_ephemeral(workflow: Workflow) -> Iterator[Finding]:
    """A dispatch bypasses GitHub's approval of pull requests from forks."""
    types = workflow.value.get("on")
    dispatch = types.get("repository_dispatch") if isinstance(types, dict) else None
    takes_pull_requests = not isinstance(dispatch, dict) or "pull_request" in (dispatch.get("types") or [])
    for job in workflow.jobs:
        runs_on = job.value.get("runs-on")
        labels = [runs_on] if isinstance(runs_on, str) else runs_on if isinstance(runs_on, list) else []
        own = [label for label in labels if not _HOSTED.match(str(label))]
        if job.runs_foreign_code and takes_pull_requests and own and job.uses(ROOT, "run-classified-tests"):
            yield warning(
                f"Pull requests run on your own machine in job {job.name}: GitHub asks nobody before.",
                f"runs-on: {', '.join(map(str, own))}",
                "use runners that are thrown away after one job, or take only what landed (types: [push])",
                workflow.line("jobs", job.name, "runs-on"),
            )


CHECKS = (
    no_token_beside_foreign_code,
    no_secret_beside_foreign_code,
    nothing_untrusted_in_a_shell,
    actions_are_pinned,
    hardware_is_ephemeral,
)
