"""Event file in, decision out: a table of what arrives, and what a maintainer wants of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Optional

import pytest
from step import BASE, HEAD, ROOT, Step, event

from relay_client.documents.receive import OUTCOMES
from relay_client.protocol.dispatch import DispatchEnvelope, parse_event
from relay_client.receive.commit import CHOICES
from relay_client.receive.condition.syntax import (
    FIELDS,
    FLAGS,
    MAX_CHARACTERS,
    MAX_DEPTH,
    read_condition,
)
from relay_client.receive.decide import DEFAULT_APPROVAL_LABEL, DEFAULT_TRUSTED_AUTHORS, DEFAULT_WHEN
from relay_client.receive.doors import DOORS as DOOR_NAMES
from relay_client.receive.trust import of_upstream, vouched

Change = Callable[[Any], object]
NEWER = "6a" * 20


def payload(value: Any) -> Any:
    return value["client_payload"]["payload"]


def pull(value: Any) -> Any:
    return payload(value)["pull_request"]


def with_labels(*names: str) -> Change:
    return lambda value: pull(value).update(labels=[{"name": name} for name in names])


def by(association: str) -> Change:
    return lambda value: pull(value).update(author_association=association)


def letting_run(act: str, who: str = "maintainer", label: str = "ciflow/crcr", **author: str) -> Change:
    """A first-time contributor's pull request with the label; `who` did what the event is about."""

    def change(value: Any) -> None:
        by("FIRST_TIME_CONTRIBUTOR")(value)
        with_labels("open source", "ciflow/crcr")(value)
        payload(value).update(action=act, sender={"login": who})
        if act == "labeled":
            payload(value)["label"] = {"name": label}

    return change


AUTHOR = "outside-contributor"


def action(name: str) -> Change:
    return lambda value: payload(value).update(action=name)


def pushed(ref: str) -> Change:
    return lambda value: payload(value).update(ref=ref)


def onto(branch: str) -> Change:
    return lambda value: pull(value)["base"].update(ref=branch)


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


@pytest.fixture
def step(tmp_path: Any) -> Step:
    return Step(tmp_path)


HOSTILE = (
    "x\n::error::no\n##[error]no `id` $(id) '\" ${{ github.token }} <script>alert(1)</script> | **b** \u202e"
)
OUTSIDERS: dict[str, Change] = {
    "title": lambda e: pull(e).update(title=HOSTILE),
    "body": lambda e: pull(e).update(body=HOSTILE),
    "label": with_labels(HOSTILE),
    "branch of the fork": lambda e: pull(e)["head"].update(ref=HOSTILE),
    "name of the fork's owner": lambda e: pull(e)["head"].update(label=HOSTILE),
    "base branch": onto(HOSTILE),
    "association": by(HOSTILE),
    "login": lambda e: pull(e)["user"].update(login=HOSTILE),
    "an unknown member": lambda e: pull(e).update(new=HOSTILE),
}


@pytest.mark.parametrize("place", OUTSIDERS)
@pytest.mark.parametrize(
    "condition", ["label is never and base is never", "base is never", "trusted", "label is *"]
)
def test_an_outsider_s_text_stays_text_whatever_is_asked(step: Step, place: str, condition: str) -> None:
    value = event()
    OUTSIDERS[place](value)
    step.arrive(value)
    ended = step.run("receive", CRCR_WHEN=condition)
    assert ended.exit_code == 0
    assert [command.name for command in ended.commands] == ["notice"]
    assert "\n" not in ended.outputs["reason"]
    for text in (ended.summary, ended.outputs["reason"]):
        assert "\u202e" not in text
    assert "<script" not in ended.summary
    assert "${{" not in ended.summary
    assert "**b**" not in ended.summary


def test_no_label_is_not_a_label_without_a_name() -> None:
    value = event()
    letting_run("reopened")(value)
    parsed = parse_event(DispatchEnvelope("pull_request", "x", payload(value)))
    assert vouched(parsed, "ciflow/crcr")
    assert not vouched(parsed, "")
    assert not of_upstream(parsed)


def test_the_sample_is_the_same_for_all_events_of_a_pull_request(step: Step) -> None:
    inside = set()
    for number in range(1, 9):
        seen = set()
        for name in ("opened", "synchronize"):
            value = event()
            payload(value).update(action=name, number=number)
            pull(value).update(number=number, title=name)
            step.arrive(value)
            seen.add(step.run("receive", CRCR_WHEN="sample 50%").outputs["should-run"])
        assert len(seen) == 1
        inside |= seen
    assert inside == {"true", "false"}


BAD = {
    "label is": "column 9",
    "labels is x": "column 1",
    "push and": "column 9",
    "push pull_request": "column 6",
    "(push": "column 6",
    'label is "x': 'a closing `"`',
    "sample 10": "a share such as 10%",
    "sample 101%": "a share such as 10%",
    "label is and": "a value",
    "not " * 30 + "push": "inside each other",
    "(" * 30 + "push" + ")" * 30: "inside each other",
    "x" * 2_001: "2001 characters",
    "PUSH": "a term: push",
    "push; rm -rf /": "column 1",
    "push and \u202etrusted": "U+202E in column 10",
}


@pytest.mark.parametrize("text", BAD)
def test_a_condition_that_cannot_be_understood_points_at_the_place(step: Step, text: str) -> None:
    step.arrive(event())
    ended = step.run("receive", CRCR_WHEN=text)
    assert ended.exit_code == 14
    assert BAD[text] in ended.stdout.replace("%25", "%")
    assert "Traceback" not in ended.everything
    assert ended.outputs == {}


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


def test_what_was_compared_is_named(step: Step) -> None:
    step.arrive(event())
    assert step.run("receive").outputs["base-commit"] == BASE


@pytest.mark.parametrize("kind", ["push", "pull_request"])
def test_an_event_of_this_repository_is_no_dispatch(step: Step, kind: str) -> None:
    """The workflow has `on: push` and was meant to be started by dispatches only."""
    value = payload(event(kind))
    value["repository"]["full_name"] = "example-downstream/backend"
    step.arrive(value)
    ended = step.run("receive")
    assert (ended.exit_code, ended.outputs) == (11, {})
    assert f"take `{kind}` out of `on:`" in ended.stdout


def test_the_page_names_every_term_outcome_door_choice_and_default() -> None:
    page = (ROOT / "docs" / "receive.md").read_text(encoding="utf-8")
    for table, names in (
        ("| flag |", FLAGS),
        ("| field |", FIELDS),
        ("| outcome |", OUTCOMES),
        ("| `commit:` |", CHOICES),
        ("| `mode` |", DOOR_NAMES),
    ):
        rows = page.split(table)[1].split("\n\n")[0]
        listed = re.findall(r"^\| `([^`]+)`", rows, re.MULTILINE)
        assert sorted(listed) == sorted(names), table
    grammar = read_condition.__globals__["__doc__"]
    lines = [line.strip() for line in grammar.splitlines() if " = " in line]
    assert len(lines) == 4
    assert all(line in page for line in lines)
    for default in (DEFAULT_WHEN, " ".join(DEFAULT_TRUSTED_AUTHORS), DEFAULT_APPROVAL_LABEL):
        assert default in page
    for line in re.findall(r"^    when: (.*)$|`when: ([^`]*)`", page, re.MULTILINE):
        read_condition("".join(line))
    assert f"{MAX_CHARACTERS:,} characters and {MAX_DEPTH} levels" in page
