"""The doors through which a run may come, and what each says when it is used wrongly."""

from __future__ import annotations

import json
from typing import Any, Optional

import pytest
from dispatches import payload
from step import HEAD, Step, event

DOORS: dict[str, tuple[Any, str, str, str]] = {
    "by hand, a commit": ({"inputs": {"sha": HEAD.upper(), "pull-request": ""}}, "manual", "manual", HEAD),
    "forwarded": (
        {"inputs": {"envelope": json.dumps(event()["client_payload"])}}, "forwarded", "pull_request", HEAD
    ),
    "forwarded as a file": (event("push")["client_payload"], "forwarded", "push", HEAD),
    "a recorded pull request": (payload(event()), "recorded", "pull_request", HEAD),
    "a recorded push": (payload(event("push")), "recorded", "push", HEAD),
}  # fmt: skip


@pytest.mark.parametrize("name", DOORS)
def test_a_run_may_come_through_other_doors(step: Step, name: str) -> None:
    value, mode, kind, commit = DOORS[name]
    step.arrive(value)
    outputs = step.run("receive").outputs
    assert (outputs["mode"], outputs["event-type"], outputs["commit"]) == (mode, kind, commit)
    assert outputs["should-run"] == "true"


@pytest.mark.parametrize(
    ("inputs", "code", "says"),
    [
        ({"sha": "", "pull-request": ""}, 12, "exactly one"),
        ({"sha": HEAD, "pull-request": "7"}, 12, "exactly one"),
        ({"sha": HEAD[:10]}, 12, "40 lower-case"),
        ({"pull-request": "7; id"}, 12, "not a number"),
        ({"pull-request": "99"}, 31, "refs/pull/99/head"),
        ({"envelope": "{"}, 10, "not JSON"),
        ({"envelope": "[]"}, 12, "inputs.envelope"),
        ({"other": "x"}, 11, "other doors"),
    ],
)
def test_a_run_by_hand_that_names_nothing_says_so(
    step: Step, inputs: dict[str, Optional[str]], code: int, says: str
) -> None:
    step.arrive({"inputs": inputs})
    ended = step.run("receive")
    assert ended.exit_code == code, ended.stdout
    assert says in ended.stdout
    assert "Traceback" not in ended.everything


@pytest.mark.parametrize("kind", ["push", "pull_request"])
def test_an_event_of_this_repository_is_no_dispatch(step: Step, kind: str) -> None:
    """The workflow has `on: push` and was meant to be started by dispatches only."""
    value = payload(event(kind))
    value["repository"]["full_name"] = "example-downstream/backend"
    step.arrive(value)
    ended = step.run("receive")
    assert (ended.exit_code, ended.outputs) == (11, {})
    assert f"take `{kind}` out of `on:`" in ended.stdout
