"""`when:` itself: samples, what cannot be understood, and the page that explains it."""

from __future__ import annotations

import re

import pytest
from dispatches import payload, pull
from step import ROOT, Step, event

from relay_client.documents.receive import OUTCOMES
from relay_client.receive.commit import CHOICES
from relay_client.receive.condition.syntax import FIELDS, FLAGS, MAX_CHARACTERS, MAX_DEPTH, read_condition
from relay_client.receive.decide import DEFAULT_APPROVAL_LABEL, DEFAULT_TRUSTED_AUTHORS, DEFAULT_WHEN
from relay_client.receive.doors import DOORS


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


def test_the_page_names_every_term_outcome_door_choice_and_default() -> None:
    page = (ROOT / "docs" / "receive.md").read_text(encoding="utf-8")
    for table, names in (
        ("| flag |", FLAGS),
        ("| field |", FIELDS),
        ("| outcome |", OUTCOMES),
        ("| `commit:` |", CHOICES),
        ("| `mode` |", DOORS),
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
