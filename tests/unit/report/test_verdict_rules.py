"""The table of docs/verdict.md is the code's, and every row of it decides something."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from samples import COMMIT, EVIDENCE
from step import ROOT

from relay_client.documents.evidence import Counts
from relay_client.protocol.vocabulary import CONCLUSIONS
from relay_client.report.verdict import JOB_RESULTS, RULES, Expected, Facts, judge

FACTS = Facts(COMMIT, {"test": "success"}, [EVIDENCE])


def facts(**changed: Any) -> Facts:
    return replace(FACTS, **changed)


def shard(**changed: Any) -> list[Any]:
    return [replace(EVIDENCE, **changed)]


# For each rule, in its order: facts that no rule above it minds.
EXAMPLES = [
    facts(jobs={"test": "timed_out", "other": "cancelled"}),
    facts(jobs={"test": "cancelled", "other": "failure"}),
    facts(jobs={"build": "success", "test": "skipped"}, evidence=[], may_be_skipped=["test"]),
    facts(faults=["build-backend: it does not compile"]),
    facts(jobs={"test": "failure"}),
    facts(evidence=[]),
    facts(expected=Expected(shards=2)),
    facts(evidence=shard(torch_git_version="e" * 40)),
    facts(evidence=shard(broken_files=("a",))),
    facts(evidence=shard(counts=Counts(5, 3, 1, 1, 0, 0, 0), exit_code=1)),
    facts(evidence=shard(exit_code=-11)),
    facts(evidence=shard(counts=Counts(5, 0, 0, 5, 0, 0, 0))),
    FACTS,
]


def documented() -> list[tuple[int, str, str]]:
    text = (ROOT / "docs" / "verdict.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (\w+) \|$", text, re.MULTILINE)
    return [(int(number), when, conclusion) for number, when, conclusion in rows]


def test_the_documented_table_is_the_code_s() -> None:
    assert documented() == [(n, rule.when, rule.conclusion) for n, rule in enumerate(RULES, 1)]


@pytest.mark.parametrize("number", range(len(RULES)), ids=lambda n: RULES[n].when)
def test_each_row_decides_its_example_and_no_row_above_does(number: int) -> None:
    example = EXAMPLES[number]
    assert [n for n, rule in enumerate(RULES[: number + 1]) if rule.reasons(example)] == (
        [number] if number < len(RULES) - 1 else []
    )
    verdict = judge(example)
    assert verdict.conclusion == RULES[number].conclusion
    assert bool(verdict.reasons) == (verdict.conclusion != "success")


def test_every_conclusion_is_github_s() -> None:
    assert {rule.conclusion for rule in RULES} <= set(CONCLUSIONS)


@pytest.mark.parametrize("result", sorted(set(JOB_RESULTS) - {"success"}))
def test_nothing_but_success_of_every_job_is_success(result: str) -> None:
    assert judge(facts(jobs={"a": "success", "test": result})).conclusion != "success"


def test_expected_tests_count_only_tests_with_a_result() -> None:
    assert judge(facts(expected=Expected(tests=5))).conclusion == "success"
    assert "5 test(s) have a result, at least 6" in judge(facts(expected=Expected(tests=6))).reasons[0]


def test_excused_failures_excuse_neither_a_signal_nor_a_missing_shard() -> None:
    failed = shard(counts=Counts(5, 3, 1, 1, 0, 0, 0), exit_code=1)
    excused = facts(jobs={"test": "failure"}, evidence=failed, excused=True)
    assert judge(excused).conclusion == "success"
    for worse in (
        {"evidence": [replace(failed[0], exit_code=-11)]},
        {"evidence": [replace(failed[0], exit_code=None)]},
        {"evidence": [replace(failed[0], shards=2)]},
        {"evidence": [replace(failed[0], broken_files=("a",))]},
        {"faults": ["torn"]},
        {"jobs": {"test": "skipped"}},
    ):
        assert judge(replace(excused, **worse)).conclusion == "failure"
