"""The scenarios of the demo, walked with act, a relay process and real PyTorch; and proofs that can turn red."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from dispatch_lab.demo import Played, Shown, play
from dispatch_lab.proof import junit_counts, problems
from dispatch_lab.scenarios import BROKEN_TESTS, SCENARIOS

pytestmark = pytest.mark.road


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory, wheelhouse: Path) -> dict[str, Played]:
    """Every scenario, two at a time: each is a chain of single processes."""
    folder = tmp_path_factory.mktemp("scenarios")
    with ThreadPoolExecutor(2) as pool:
        running = {name: pool.submit(play, SCENARIOS[name], folder / name, wheelhouse) for name in SCENARIOS}
        return {name: future.result() for name, future in running.items()}


@pytest.fixture
def pull_request(played: dict[str, Played]) -> Played:
    return played["pull-request"]


@pytest.fixture
def upstream_breaks(played: dict[str, Played]) -> Played:
    return played["upstream-breaks"]


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_ends_as_it_says(played: dict[str, Played], name: str) -> None:
    assert played[name].wrong == ()
    assert played[name].shown


def test_an_outside_collaborator_s_pull_request_is_green(pull_request: Played) -> None:
    (shown,) = pull_request.shown
    assert (shown.row["status"], shown.row["conclusion"]) == ("completed", "success")
    assert shown.row["passed"] > 100


def test_the_folder_keeps_pages_documents_and_logs(pull_request: Played) -> None:
    folder = pull_request.folder
    for name in ("page.html", "page.json", "overview.html", "pr-180001.html", "relay.log"):
        assert (folder / name).is_file(), name
    (documents,) = folder.glob("runs/*-artifacts/artifacts/crcr-evidence-*")
    found = {path.name for path in documents.rglob("*") if path.is_file()}
    assert {
        "checkout.json",
        "build.json",
        "plan.json",
        "journal.jsonl",
        "evidence.json",
        "junit-1.xml",
    } <= found
    assert not list(folder.rglob("*.pem"))


def test_no_hostile_text_became_html(pull_request: Played) -> None:
    page = (pull_request.folder / "page.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;" in page or "touch pwned" in page


def test_the_request_tokens_reach_no_file_that_is_kept(pull_request: Played) -> None:
    kept = [
        path
        for path in pull_request.folder.rglob("*")
        if path.is_file() and path.suffix in (".log", ".jsonl", ".json", ".md")
    ]
    assert kept
    assert not [path for path in kept if "eyJ" in path.read_text(encoding="utf-8", errors="replace")]


def test_a_pull_request_that_breaks_the_backend_is_red_by_name(upstream_breaks: Played) -> None:
    main, broken = upstream_breaks.shown
    assert main.row["conclusion"] == "success"
    assert broken.row["conclusion"] == "failure"
    names = [test["name"] for test in broken.row["failed_tests"]]
    assert all(any(part in name for name in names) for part in BROKEN_TESTS)
    page = json.loads((upstream_breaks.folder / "page.json").read_text(encoding="utf-8"))
    assert {row["conclusion"] for row in page["rows"]} == {"success", "failure"}


def test_a_stranger_s_pull_request_that_runs_or_reports_is_no_proof(played: dict[str, Played]) -> None:
    opened, by_its_author, let_run = played["not-trusted"].shown
    assert not opened.row
    assert not by_its_author.row
    assert let_run.row["conclusion"] == "success"
    assert any("jobs ran" in problem for problem in problems(opened.step, {}, let_run.run))
    assert any("a row says" in problem for problem in problems(opened.step, let_run.row, opened.run))
    assert any("adds the label" in problem for problem in problems(opened.step, {}, by_its_author.run))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"conclusion": "failure"}, "expected completed/success"),
        ({"status": "in_progress", "conclusion": None}, "expected completed/success"),
        ({"commit": "f" * 40}, "the row is about"),
        ({"passed": 1}, "JUnit"),
        ({"skipped": 0}, "JUnit"),
        ({"failed_tests": [{"name": "test_x"}]}, "nobody expected"),
    ],
)
def test_a_row_that_says_something_else_is_no_proof(
    pull_request: Played, change: dict[str, Any], word: str
) -> None:
    (shown,) = pull_request.shown
    assert problems(shown.step, shown.row, shown.run) == []
    assert word in " ".join(problems(shown.step, {**shown.row, **change}, shown.run))


@pytest.mark.parametrize("name", ["evidence.json", "build.json"])
def test_a_torch_of_another_commit_is_no_proof(pull_request: Played, name: str, tmp_path: Path) -> None:
    (shown,) = pull_request.shown
    artifacts = copied(shown, tmp_path)
    (path,) = artifacts.rglob(name)
    text = path.read_text(encoding="utf-8")
    key = "torch_git_version" if name == "evidence.json" else "git_version"
    path.write_text(
        text.replace(f'"{key}": "{shown.step.commit}"', f'"{key}": "{"e" * 40}"'), encoding="utf-8"
    )
    assert path.read_text(encoding="utf-8") != text
    found = problems(shown.step, shown.row, replace(shown.run, artifacts=artifacts))
    assert any(f"torch is {'e' * 40}" in problem for problem in found)


def test_a_test_that_junit_misses_is_no_proof(pull_request: Played, tmp_path: Path) -> None:
    (shown,) = pull_request.shown
    artifacts = copied(shown, tmp_path)
    (path,) = artifacts.rglob("junit-1.xml")
    tree = ElementTree.parse(path)
    (suite,) = tree.getroot().iter("testsuite")
    suite.remove(next(suite.iter("testcase")))
    tree.write(path)
    assert problems(shown.step, shown.row, replace(shown.run, artifacts=artifacts))
    assert sum(junit_counts(artifacts).values()) == shown.row["total"] - 1


def test_a_plan_that_owes_more_than_was_run_is_no_proof(pull_request: Played, tmp_path: Path) -> None:
    """Row and JUnit agree with each other, and a test is missing in both."""
    (shown,) = pull_request.shown
    artifacts = copied(shown, tmp_path)
    (path,) = artifacts.rglob("plan.json")
    plan = json.loads(path.read_text(encoding="utf-8"))
    plan["tests"].append("tests/test_host.py::TestHost::test_never_run")
    path.write_text(json.dumps(plan), encoding="utf-8")
    found = problems(shown.step, shown.row, replace(shown.run, artifacts=artifacts))
    assert any("tests were planned" in problem for problem in found)


def copied(shown: Shown, folder: Path) -> Path:
    return Path(shutil.copytree(shown.run.artifacts, folder / "artifacts"))
