"""Reads a downstream's workflow and makes the copy that act runs; decides, and touches nothing but text.

The copy differs from the original in three things only: each job gets an environment of its own, ``runs-on`` is this
machine, and ``uses: $/path`` (which act 0.2.89 rejects) becomes ``OWNER/REPO/path@SHA``. The text is edited as a tree
of YAML nodes, not as Python values: so ``on:`` stays ``on:`` (YAML 1.1 would read it as true), and every other scalar
keeps its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml

from dispatch_lab.errors import LabError

LAB_LABEL = "dispatch-lab"
"""The one runner label of the copy: act maps it to the host."""


@dataclass(frozen=True)
class Use:
    """One ``uses:`` line: its text, where it stands, and the ``with:`` beside it."""

    text: str
    file: str
    line: int
    inputs: Mapping[str, str]

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}: uses: {self.text}"


@dataclass(frozen=True)
class PlannedJob:
    """What the workflow says of a job before anything runs."""

    job: str
    name: str
    grants_id_token: bool
    steps: tuple[tuple[str, str], ...]
    """(step id as act reports it, display name), in order."""
    matrix_keys: tuple[str, ...]
    """Keys of a literal matrix in the file's order; empty without a matrix or with a computed one."""


@dataclass(frozen=True)
class Workflow:
    name: str
    jobs: Mapping[str, PlannedJob]
    uses: tuple[Use, ...]


def read_workflow(text: str, path: str) -> Workflow:
    """The jobs and ``uses:`` lines of a workflow file.

    ``path`` is the repository-relative path (".github/workflows/x.yml"), the workflow's name where it gives none.
    Raises LabError for what the lab cannot run: invalid YAML, container jobs, services, reusable workflows.
    """
    values = _values(text, path)
    jobs = values.get("jobs")
    if not isinstance(jobs, dict) or not jobs:
        raise LabError("The workflow has no jobs", f"{path}: jobs: {jobs!r}", "Give it at least one job")
    granted_by_workflow = grants_id_token(values.get("permissions"))
    return Workflow(
        name=str(values.get("name") or path),
        jobs={str(key): _planned(str(key), job, granted_by_workflow, path) for key, job in jobs.items()},
        uses=tuple(find_uses(text, path)),
    )


def listens_to(text: str, path: str, event_name: str, event_type: str | None) -> bool:
    """Whether the workflow's ``on:`` names the event (and, for repository_dispatch, the event type).

    act ignores ``types:``; GitHub starts no run that they exclude.
    """
    # PyYAML reads the key `on` as the boolean true (YAML 1.1).
    values = cast(dict[Any, Any], _values(text, path))
    triggers = values.get(True, values.get("on"))
    if isinstance(triggers, str):
        return triggers == event_name
    if isinstance(triggers, list):
        return event_name in triggers
    if not isinstance(triggers, dict) or event_name not in triggers:
        return False
    types = (triggers[event_name] or {}).get("types") if isinstance(triggers[event_name], dict) else None
    if types is None or event_type is None:
        return True
    return event_type in ([types] if isinstance(types, str) else types)


def grants_id_token(permissions: object) -> bool:
    """Whether a ``permissions:`` value grants ``id-token: write``. Absent permissions never do (GitHub docs, OIDC)."""
    if isinstance(permissions, dict):
        return permissions.get("id-token") == "write"
    return permissions == "write-all"


def find_uses(text: str, file: str) -> Iterator[Use]:
    """Every step-level ``uses:`` of a workflow or of a composite action, with its line."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    jobs = _get(root, "jobs")
    holders = (
        [value for _, value in jobs.value] if isinstance(jobs, yaml.MappingNode) else [_get(root, "runs")]
    )
    for holder in holders:
        steps = _get(holder, "steps")
        for step in steps.value if isinstance(steps, yaml.SequenceNode) else ():
            uses = _get(step, "uses")
            if isinstance(uses, yaml.ScalarNode):
                given = _get(step, "with")
                pairs = given.value if isinstance(given, yaml.MappingNode) else []
                inputs = {
                    key.value: value.value for key, value in pairs if isinstance(value, yaml.ScalarNode)
                }
                yield Use(uses.value, file, uses.start_mark.line + 1, inputs)


def edited(
    text: str, environments: Mapping[str, Mapping[str, str]], rewrite_uses: Callable[[str], str]
) -> str:
    """The workflow with each job's environment added, every job on this machine, and ``uses:`` lines rewritten.

    ``environments``: job id to variables; they win over the job's own. Nodes are copied, never changed in place:
    an anchored node may be shared by two jobs, and a token must not travel along an alias.
    """
    root = _mapping(yaml.compose(text, Loader=yaml.SafeLoader))
    jobs = _mapping(_get(root, "jobs"))
    new_jobs = [
        (key, _edited_job(_mapping(job), environments.get(key.value, {}), rewrite_uses))
        for key, job in jobs.value
    ]
    copy = _with(root, "jobs", _map_node(new_jobs))
    return yaml.serialize(_unshared(copy), width=10**9, allow_unicode=True)


def _edited_job(
    job: yaml.MappingNode, environment: Mapping[str, str], rewrite_uses: Callable[[str], str]
) -> yaml.MappingNode:
    own = _get(job, "env")
    env = _map_node(list(own.value) if isinstance(own, yaml.MappingNode) else [])
    for key, value in environment.items():
        env = _with(env, key, _quoted(value))
    job = _with(_with(job, "env", env), "runs-on", _quoted(LAB_LABEL))
    steps = _get(job, "steps")
    if not isinstance(steps, yaml.SequenceNode):
        return job
    new_steps = []
    for step in steps.value:
        uses = _get(step, "uses")
        if isinstance(uses, yaml.ScalarNode):
            step = _with(_mapping(step), "uses", _quoted(rewrite_uses(uses.value)))
        new_steps.append(step)
    return _with(job, "steps", yaml.SequenceNode("tag:yaml.org,2002:seq", new_steps))


def _planned(key: str, job: object, granted_by_workflow: bool, path: str) -> PlannedJob:
    if not isinstance(job, dict):
        raise LabError(
            "A job is not a mapping", f"{path}: jobs.{key}: {job!r}", "Give the job runs-on and steps"
        )
    for unsupported, why in (
        ("uses", "a call of a reusable workflow"),
        ("container", "a container job (the lab has no Docker)"),
        ("services", "service containers (the lab has no Docker)"),
    ):
        if unsupported in job:
            raise LabError(
                f"The lab cannot run {why}",
                f"{path}: jobs.{key}.{unsupported}: {job[unsupported]!r}",
                "Run this job on GitHub, or give the lab a workflow without it",
            )
    matrix = (job.get("strategy") or {}).get("matrix") if isinstance(job.get("strategy"), dict) else None
    keys = [str(k) for k in matrix if k not in ("include", "exclude")] if isinstance(matrix, dict) else []
    steps = [step for step in job.get("steps") or [] if isinstance(step, dict)]
    granted = grants_id_token(job["permissions"]) if "permissions" in job else granted_by_workflow
    return PlannedJob(
        job=key,
        name=str(job.get("name") or key),
        grants_id_token=granted,
        steps=tuple((str(step.get("id") or i), _step_name(step)) for i, step in enumerate(steps)),
        matrix_keys=tuple(keys),
    )


def _step_name(step: Mapping[str, object]) -> str:
    if step.get("name"):
        return str(step["name"])
    if step.get("uses"):
        return str(step["uses"])
    lines = str(step.get("run") or "").strip().splitlines()
    return lines[0] if lines else "step"


def _values(text: str, path: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise LabError("The workflow is not valid YAML", f"{path}: {error}", "Correct the file") from error
    if not isinstance(values, dict):
        raise LabError("The workflow is not a mapping", f"{path}: {values!r}", "Correct the file")
    return values


def _mapping(node: yaml.Node | None) -> yaml.MappingNode:
    if not isinstance(node, yaml.MappingNode):
        raise LabError("The workflow is not a mapping", repr(node), "Correct the file")
    return node


def _get(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _with(node: yaml.MappingNode, key: str, value: yaml.Node) -> yaml.MappingNode:
    """A copy of the mapping with ``key`` set, in its old place if it had one."""
    pairs = [(name, value if name.value == key else old) for name, old in node.value]
    if _get(node, key) is None:
        pairs.append((_plain(key), value))
    return _map_node(pairs)


def _map_node(pairs: Sequence[tuple[yaml.Node, yaml.Node]]) -> yaml.MappingNode:
    return yaml.MappingNode("tag:yaml.org,2002:map", list(pairs), flow_style=False)


def _unshared(node: yaml.Node) -> yaml.Node:
    """The same tree without anchors: nodes of the original that the copy holds twice would be written as aliases."""
    if isinstance(node, yaml.MappingNode):
        pairs = [(_unshared(key), _unshared(value)) for key, value in node.value]
        return yaml.MappingNode(node.tag, pairs, flow_style=node.flow_style)
    if isinstance(node, yaml.SequenceNode):
        return yaml.SequenceNode(
            node.tag, [_unshared(item) for item in node.value], flow_style=node.flow_style
        )
    style = node.style if isinstance(node, yaml.ScalarNode) else None
    return yaml.ScalarNode(node.tag, node.value, style=style)


def _plain(text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text)


def _quoted(text: str) -> yaml.ScalarNode:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style='"')


REMOTE_ACTION = re.compile(r"(?P<owner>[^/@\s]+)/(?P<name>[^/@\s]+)(?:/(?P<path>[^@\s]+))?@(?P<ref>\S+)")
"""OWNER/REPO[/path]@ref, as ``uses:`` writes it."""
