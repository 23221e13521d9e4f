"""`commit:` on a real repository: the commit that is named is the commit that the choice means."""

from __future__ import annotations

import pytest
from small_upstream import Upstream, landing, opened
from step import Step, event

from relay_client.documents.document import load
from relay_client.documents.receive import Receive


@pytest.mark.parametrize(
    ("choice", "expected", "trust"),
    [
        ("event", "head", "pull-request"),
        ("pr-head", "head", "pull-request"),
        ("pr-merge", "merge", "pull-request"),
        ("base-head", "tip", "landed"),
        ("nightly", "main", "landed"),
        ("base", "base", "pull-request"),
    ],
)
def test_a_pull_request_s_choices(
    step: Step, upstream: Upstream, choice: str, expected: str, trust: str
) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--commit", upstream.base if choice == "base" else choice)
    assert ended.exit_code == 0, ended.everything
    commit = getattr(upstream, expected)
    assert (ended.outputs["outcome"], ended.outputs["commit"], ended.outputs["trust"]) == (
        "run",
        commit,
        trust,
    )
    received = load(Receive, step.run_folder)
    assert received.dispatched_commit == (upstream.head if commit != upstream.head else None)
    assert received.chosen
    assert commit in ended.summary


@pytest.mark.parametrize("choice", ["event", "landed"])
def test_what_landed_is_found_by_the_bot_s_line(step: Step, upstream: Upstream, choice: str) -> None:
    step.arrive(landing(upstream))
    ended = step.run("receive", "--commit", choice, "--when", "landed")
    assert (ended.exit_code, ended.outputs["commit"]) == (0, upstream.landed)
    assert ended.outputs["trust"] == "landed"


def test_what_has_not_landed_is_not_guessed(step: Step, upstream: Upstream) -> None:
    value = landing(upstream)
    value["client_payload"]["payload"]["pull_request"]["number"] = 42
    step.arrive(value)
    ended = step.run("receive", "--when", "landed")
    assert ended.exit_code == 31
    assert "is not among what landed last" in ended.stdout


@pytest.mark.parametrize("choice", ["event", "pr-head", "pr-merge"])
def test_a_pull_request_that_moved_on_is_superseded_and_no_failure(
    step: Step, upstream: Upstream, choice: str
) -> None:
    step.arrive(opened(upstream))
    upstream.git("checkout", "-q", "topic")
    newer = upstream.commit("Again", "torch/csrc/x.cpp", when=9_000)
    upstream.push("topic:refs/pull/4242/head")
    ended = step.run("receive", "--commit", choice)
    assert (ended.exit_code, ended.outputs["should-run"], ended.outputs["outcome"]) == (
        0,
        "false",
        "superseded",
    )
    assert newer in ended.outputs["reason"]


def test_a_test_merge_of_an_older_head_is_not_taken(step: Step, upstream: Upstream) -> None:
    upstream.git("checkout", "-q", "topic")
    upstream.head = upstream.commit("Again", "torch/csrc/x.cpp", when=9_000)
    upstream.push("topic:refs/pull/4242/head")
    step.arrive(opened(upstream))
    ended = step.run("receive", "--commit", "pr-merge")
    assert ended.exit_code == 31
    assert "has not merged the newest head" in ended.stdout


@pytest.mark.parametrize("choice", ["event", "pr-head"])
def test_without_a_network_the_dispatched_commit_still_runs(
    step: Step, upstream: Upstream, choice: str
) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--repository", "file:///nowhere/at.all", "--commit", choice)
    assert (ended.exit_code, ended.outputs["commit"]) == (0, upstream.head)
    assert [command.name for command in ended.commands] == ["warning", "notice"]


@pytest.mark.parametrize("choice", ["pr-merge", "base-head", "nightly"])
def test_without_a_network_no_other_commit_is_guessed(step: Step, upstream: Upstream, choice: str) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--repository", "file:///nowhere", "--commit", choice)
    assert (ended.exit_code, ended.outputs) == (30, {})


@pytest.mark.parametrize("choice", ["event", "pr-head"])
def test_without_a_network_nobody_believes_that_it_landed(
    step: Step, upstream: Upstream, choice: str
) -> None:
    step.arrive(landing(upstream))
    ended = step.run("receive", "--repository", "file:///nowhere", "--commit", choice, "--when", "landed")
    assert (ended.exit_code, ended.outputs) == (30, {})


def test_by_hand_a_pull_request_s_number_is_enough(step: Step, upstream: Upstream) -> None:
    step.arrive({"inputs": {"sha": "", "pull-request": "#4242"}})
    ended = step.run("receive")
    assert (ended.outputs["commit"], ended.outputs["pull-request"]) == (upstream.head, "4242")


@pytest.mark.parametrize("choice", ["landed", "pr-merge"])
def test_a_choice_that_the_event_does_not_fit_is_a_usage_error(
    step: Step, upstream: Upstream, choice: str
) -> None:
    step.arrive(event("push"))
    assert step.run("receive", "--commit", choice).exit_code == 2
    assert step.run("receive", "--commit", "HEAD~1").exit_code == 2


def test_a_stack_s_pull_request_is_looked_for_on_main(step: Step, upstream: Upstream) -> None:
    value = landing(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["ref"] = "gh/someone/1/base"
    step.arrive(value)
    ended = step.run("receive", "--when", "landed")
    assert (ended.exit_code, ended.outputs["commit"]) == (0, upstream.landed)


def test_an_author_s_words_about_another_pull_request_are_not_the_bot_s_line(
    step: Step, upstream: Upstream
) -> None:
    upstream.git("checkout", "-q", "main")
    line = "Pull Request resolved: https://github.com/pytorch/pytorch/pull/{}"
    upstream.commit(f"Other\n\n{line.format(4242)}\n\n{line.format(9)}", "torch/z.py", when=9_000)
    upstream.push("main")
    step.arrive(landing(upstream))
    assert step.run("receive", "--when", "landed").outputs["commit"] == upstream.landed


@pytest.mark.parametrize("choice", ["pr-head", "pr-merge"])
def test_a_label_that_claims_it_landed_lets_no_unlanded_head_run(
    step: Step, upstream: Upstream, choice: str
) -> None:
    """Anybody can have the bot set `Merged`, and close a pull request of their own."""
    value = landing(upstream)
    step.arrive(value)
    assert step.run("receive", "--when", "landed", "--commit", choice).outputs["outcome"] == "run"
    value["client_payload"]["payload"]["pull_request"]["number"] = 42
    step.arrive(value)
    upstream.push("topic:refs/pull/42/head", "test-merge:refs/pull/42/merge")
    (step.folder / "output").unlink()
    ended = step.run("receive", "--when", "landed", "--commit", choice)
    assert (ended.exit_code, ended.outputs) == (31, {})


@pytest.mark.parametrize(("base", "trust"), [("main", "landed"), ("topic-of-somebody", "pull-request")])
def test_the_head_of_somebody_s_branch_has_not_landed(
    step: Step, upstream: Upstream, base: str, trust: str
) -> None:
    upstream.push("topic:refs/heads/topic-of-somebody")
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["ref"] = base
    step.arrive(value)
    assert step.run("receive", "--commit", "base-head").outputs["trust"] == trust


def test_the_dispatched_commit_is_shown_next_to_the_chosen_one(step: Step, upstream: Upstream) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--commit", "base-head")
    assert f"| dispatched | `{upstream.head}` |" in ended.summary
