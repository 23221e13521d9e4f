"""`changed` of `when:` on a real repository: which files, asked when, and what if they cannot be had."""

from __future__ import annotations

import pytest
from small_upstream import Upstream, opened
from step import Step, event


@pytest.mark.parametrize(
    ("pattern", "outcome"),
    [("torch/csrc/**", "run"), ("docs/**", "not-wanted"), ("**.cpp", "run"), ("torch/*", "not-wanted")],
)
def test_changed_files_are_those_since_the_merge_base(
    step: Step, upstream: Upstream, pattern: str, outcome: str
) -> None:
    """docs/b.md changed on main only: a comparison with the tip of main would name it."""
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["sha"] = upstream.main
    step.arrive(value)
    ended = step.run("receive", "--when", f"changed is {pattern}")
    assert ended.exit_code == 0, ended.everything
    assert ended.outputs["outcome"] == outcome
    assert "torch/csrc/x.cpp" in ended.outputs["reason"]


def test_changed_files_that_cannot_be_had_are_an_error_and_no_guess(step: Step, upstream: Upstream) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--when", "changed is x", "--repository", "file:///nowhere")
    assert (ended.exit_code, ended.outputs) == (30, {})
    # Decided before it is asked: no network is needed.
    ended = step.run("receive", "--when", "push and changed is x", "--repository", "file:///nowhere")
    assert ended.outputs["outcome"] == "not-wanted"


def test_a_new_ref_is_compared_with_main(step: Step, upstream: Upstream) -> None:
    value = event("push")
    value["client_payload"]["payload"].update(
        ref="refs/tags/ciflow/npu/1", before="0" * 40, after=upstream.head
    )
    step.arrive(value)
    for pattern, outcome in (("torch/csrc/**", "run"), ("docs/**", "not-wanted")):
        assert step.run("receive", "--when", f"changed is {pattern}").outputs["outcome"] == outcome


def test_git_is_asked_once_and_only_if_the_condition_gets_there(step: Step, upstream: Upstream) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--when", "changed is a or changed is b or push and changed is c")
    assert ended.stdout.count("Asking git") == 1
    assert "Asking git" not in step.run("receive", "--when", "trusted or changed is b").stdout


def test_unrelated_histories_are_an_error_and_no_guess(step: Step, upstream: Upstream) -> None:
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["sha"] = upstream.git("rev-parse", "nightly")
    step.arrive(value)
    ended = step.run("receive", "--when", "changed is **")
    assert (ended.exit_code, ended.outputs) == (31, {})
    assert "no history in common" in ended.stdout


def test_an_untrusted_pull_request_whose_files_cannot_be_had_is_still_only_not_trusted(
    step: Step, upstream: Upstream
) -> None:
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["author_association"] = "NONE"
    step.arrive(value)
    ended = step.run("receive", "--when", "trusted and changed is x", "--repository", "file:///nowhere")
    assert (ended.exit_code, ended.outputs["outcome"]) == (0, "not-trusted")


def test_a_history_deeper_than_the_first_look_is_found(step: Step, upstream: Upstream) -> None:
    """The pull request left main more commits ago than the first fetch reads."""
    upstream.git("checkout", "-q", "main")
    tree = upstream.git("rev-parse", "HEAD^{tree}")
    tip = upstream.git("rev-parse", "HEAD")
    for number in range(120):
        tip = upstream.git("commit-tree", tree, "-p", tip, "-m", f"{number}")
    upstream.git("update-ref", "refs/heads/main", tip)
    upstream.push("main")
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["sha"] = tip
    step.arrive(value)
    assert "torch/csrc/x.cpp" in step.run("receive", "--when", "changed is x").outputs["reason"]
