"""Event file in, decision out: a table of what arrives, and what a maintainer wants of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from dispatches import AUTHOR, Change, action, by, letting_run, onto, payload, pull, pushed, with_labels
from step import BASE, Step, event

from relay_client.protocol.dispatch import DispatchEnvelope, parse_event
from relay_client.receive.trust import of_upstream, vouched


@dataclass(frozen=True)
class Case:
    """`changes` are made to a recorded event, `options` given to the verb. The rest must come out."""

    outcome: str
    says: str
    kind: str = "pull_request"
    changes: tuple[Change, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    trust: str = "pull-request"


def when(text: str, **more: str) -> dict[str, str]:
    return {"when": text, **more}


CASES = {
    "a member's pull request": Case("run", "it is pull_request and it is trusted", changes=(by("MEMBER"),)),
    "a collaborator's": Case("run", "trusted", changes=(by("collaborator"),)),
    "somebody's who landed one before": Case("not-trusted", '"CONTRIBUTOR"', changes=(by("CONTRIBUTOR"),)),
    "a first-time contributor's": Case(
        "not-trusted", 'adds the label "ciflow/crcr"', changes=(by("FIRST_TIME_CONTRIBUTOR"),)
    ),
    "nobody's": Case("not-trusted", '"NONE"', changes=(by("NONE"),)),
    "an association nobody knows": Case("not-trusted", '"x', changes=(by("x\n::error::no"),)),
    "without an association": Case("not-trusted", '"NONE"', changes=(lambda e: pull(e).pop("author_association"),)),
    "labelled, then reopened by a maintainer": Case("run", "trusted", changes=(letting_run("reopened"),)),
    "a relay that sends labels: the label by a maintainer": Case("run", "trusted", changes=(letting_run("labeled"),)),
    "a push after the label": Case(
        "not-trusted", "nobody with triage rights has acted", changes=(letting_run("synchronize"),)
    ),
    "the author pushes while it is closed, and reopens": Case(
        "not-trusted", "nobody with triage rights has acted", changes=(letting_run("reopened", AUTHOR.upper()),)
    ),
    "the author lets the bot set the label": Case(
        "not-trusted", "nobody with triage rights", changes=(letting_run("labeled", "pytorch-bot[bot]"),)
    ),
    "the author sets the label": Case("not-trusted", "nobody", changes=(letting_run("labeled", AUTHOR),)),
    "another label is added later": Case(
        "not-wanted", 'only the label "topic: x"', changes=(letting_run("labeled", label="topic: x"),)
    ),
    "another label is added later, and `when` looks at labels": Case(
        "not-trusted", "nobody", changes=(letting_run("labeled", label="topic: x"),), options=when("trusted or added is y")
    ),
    "an added label is wanted": Case(
        "run", 'added is "ciflow/npu"', changes=(letting_run("labeled", label="ciflow/npu"),),
        options=when("added is ciflow/npu"),
    ),
    "who reopened it is not said": Case(
        "not-trusted", "nobody", changes=(letting_run("reopened"), lambda e: payload(e).pop("sender"))
    ),
    "whose it is is not said": Case(
        "not-trusted", "nobody", changes=(letting_run("reopened"), lambda e: pull(e).update(user=None))
    ),
    "a label that only looks like it": Case(
        "not-trusted", "has no label",
        changes=(letting_run("reopened"), with_labels("ciflow/crcr2", "CIFLOW/CRCR", " ciflow/crcr")),
    ),
    "another approval label": Case(
        "run", "trusted", changes=(letting_run("reopened"), with_labels("npu ok")), options={"approval_label": "npu ok"}
    ),
    "one label is enough, for whoever wants it so": Case(
        "run", "it is pull_request and label is", changes=(letting_run("synchronize"),),
        options=when("pull_request and (trusted or label is ciflow/crcr)"),
    ),
    "only members are trusted": Case(
        "not-trusted", '"COLLABORATOR"', changes=(by("COLLABORATOR"),), options={"trusted_authors": "OWNER, MEMBER"}
    ),
    "contributors are trusted too": Case("run", "trusted", changes=(by("CONTRIBUTOR"),),
                                         options={"trusted_authors": "MEMBER CONTRIBUTOR"}),
    "everybody, on hardware that is thrown away": Case(
        "run", "it is pull_request", changes=(by("NONE"),), options=when("push or pull_request")
    ),
    "synchronize": Case("run", "trusted", changes=(action("synchronize"),)),
    "closed without landing": Case("closed", "action is closed", changes=(action("closed"),)),
    "closed without landing, though landed is wanted": Case(
        "closed", "action is closed", changes=(action("closed"),), options=when("landed")
    ),
    "landed, not asked for": Case(
        "closed", "has landed", changes=(action("closed"), with_labels("Merged")), trust="landed"
    ),
    "merged through GitHub, not asked for": Case(
        "closed", "has landed", changes=(action("closed"), lambda e: pull(e).update(merged=True)), trust="landed"
    ),
    "an open pull request with the label Merged has not landed": Case(
        "not-wanted", "it is not landed", changes=(with_labels("Merged"),), options=when("landed")
    ),
    "the fork is gone": Case("deleted-fork", "head.repo", changes=(lambda e: pull(e)["head"].update(repo=None),)),
    "a draft is not wanted": Case(
        "not-wanted", "it is draft", changes=(lambda e: pull(e).update(draft=True),),
        options=when("pull_request and trusted and not draft"),
    ),
    "a base branch is wanted": Case("run", 'base is "release/2.14"', changes=(onto("release/2.14"),),
                                    options=when("base is release/*")),
    "a base branch is not wanted": Case("not-wanted", 'base is "main", not release/*', options=when("base is release/*")),
    "a glob stays between slashes": Case(
        "not-wanted", '"gh/someone/1/base"', changes=(onto("gh/someone/1/base"),), options=when("base is gh/*")
    ),
    "two stars do not": Case("run", "gh/someone", changes=(onto("gh/someone/1/base"),), options=when("base is gh/**")),
    "a label is wanted": Case(
        "run", 'label is "ciflow/npu"', changes=(with_labels("a", "ciflow/npu"),), options=when("label is ciflow/npu")
    ),
    "a label in quotes": Case(
        "run", 'label is "open source"', changes=(with_labels("open source"),), options=when('label is "open source"')
    ),
    "only a label is missing, and the author trusted": Case(
        "not-wanted", "label is nothing", changes=(with_labels(),), options=when("label is ciflow/npu and trusted")
    ),
    "an action is wanted": Case("not-wanted", 'action is "opened"', options=when("action is synchronize, reopened")),
    "the author's association": Case("run", 'author is "collaborator"', options=when("author is member, collaborator")),
    "none of a sample": Case("not-wanted", "not in the sample of 0 %", options=when("sample 0%")),
    "all of a sample": Case("run", "in the sample of 100 %", options=when("sample 100%")),
    "a push to main": Case("run", "it is push", "push", trust="landed"),
    "a push to a branch of somebody's": Case("run", "it is push", "push", (pushed("refs/heads/gh/someone/1/head"),)),
    "a ciflow tag": Case("run", "it is push", "push", (pushed("refs/tags/ciflow/trunk/4242"),)),
    "only main is wanted": Case(
        "not-wanted", 'ref is "refs/tags/ciflow/trunk/4242"', "push", (pushed("refs/tags/ciflow/trunk/4242"),),
        when("ref is refs/heads/main"),
    ),
    "a branch whose name only begins like main": Case(
        "not-wanted", "it is not trusted", "push", (pushed("refs/heads/main-of-somebody"),), when("trusted")
    ),
    "a release branch": Case("run", "trusted", "push", (pushed("refs/heads/release/2.14"),), when("trusted"), "landed"),
    "a tag that is called like a release branch": Case(
        "not-wanted", "it is not trusted", "push", (pushed("refs/tags/release/2.14"),), when("trusted")
    ),
    "a release tag": Case("run", "refs/tags/v2.14.1", "push", (pushed("refs/tags/v2.14.1"),),
                          when("ref is refs/tags/v*"), "landed"),
    "only pull requests are wanted": Case("not-wanted", "it is not pull_request", "push", (), when("pull_request"),
                                          "landed"),
    "a deleted tag": Case(
        "deleted-ref", "deleted", "push", (lambda e: payload(e).update(deleted=True, after="0" * 40),), trust="landed"
    ),
    "a deleted tag that says it is not": Case(
        "deleted-ref", "deleted", "push", (lambda e: payload(e).update(after="0" * 40),), trust="landed"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_becomes_of_an_event(step: Step, name: str) -> None:
    case = CASES[name]
    value = event(case.kind)
    for change in case.changes:
        change(value)
    step.arrive(value)
    ended = step.run("receive", **{f"CRCR_{key.upper()}": text for key, text in case.options.items()})
    assert ended.exit_code == 0, ended.everything
    assert ended.outputs["outcome"] == case.outcome
    assert ended.outputs["should-run"] == str(case.outcome == "run").lower()
    assert case.says in ended.outputs["reason"]
    assert ended.outputs["trust"] == case.trust
    assert [command.name for command in ended.commands] == ["notice"]
    assert ended.summary.startswith("### ▶️ Run" if case.outcome == "run" else "### ⏭️ Not run")


def test_no_label_is_not_a_label_without_a_name() -> None:
    value = event()
    letting_run("reopened")(value)
    parsed = parse_event(DispatchEnvelope("pull_request", "x", payload(value)))
    assert vouched(parsed, "ciflow/crcr")
    assert not vouched(parsed, "")
    assert not of_upstream(parsed)


def test_what_was_compared_is_named(step: Step) -> None:
    step.arrive(event())
    assert step.run("receive").outputs["base-commit"] == BASE
