"""Every false green and false red that real downstreams met, as a case: what lay there, and what is true.

Each row builds a folder as the jobs left it, and goes the whole way: files, `needs`, jobs API, options, verdict.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from samples import COMMIT, DOCUMENTS, EVIDENCE

from relay_client.documents.build import Build
from relay_client.documents.document import save
from relay_client.documents.evidence import Counts
from relay_client.documents.failure import Failure
from relay_client.protocol.callback import FailedTest
from relay_client.report import gather as gathering
from relay_client.report.gather import GatherOptions, gather
from relay_client.report.jobs import JobTimes
from relay_client.runner.commands import Commands
from relay_client.runner.context import read_context

(BUILD,) = [item for item in DOCUMENTS if isinstance(item, Build)]
Fill = Callable[[Path], None]


def evidence(attempt: int = 1, counts: str = "", **changed: Any) -> Fill:
    """An evidence.json of one shard; counts such as `passed=2 failed=1`."""
    numbers = dict.fromkeys(Counts.__dataclass_fields__, 0)
    numbers.update({k: int(v) for k, v in (part.split("=") for part in counts.split())})
    planned = sum(numbers.values()) if not numbers["planned"] else numbers["planned"]
    item = replace(EVIDENCE, run_attempt=attempt, **changed)
    if counts:
        item = replace(item, counts=Counts(**{**numbers, "planned": planned}))
    return lambda folder: (save(item, folder / f"crcr-evidence-test-{item.shard}-attempt-{attempt}"), None)[1]


def junit(*cases: str, folder: str = "reports-attempt-1", end: str = "</testsuite>", head: str = "") -> Fill:
    """A JUnit report: `ok`, `failed`, … with a name: `ok:test_a`."""
    inner = {
        "ok": "", "failed": "<failure/>", "error": "<error/>", "skipped": "<skipped/>",
        "xfail": "<skipped type='pytest.xfail'/>", "xpass": "<failure message='[XPASS(strict)] '/>",
    }  # fmt: skip
    text = f"<testsuite {head}>"
    for case in cases:
        kind, _, name = case.partition(":")
        text += f"<testcase classname='t.A' name='{name or kind}'>{inner[kind]}</testcase>"

    def fill(root: Path) -> None:
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / f"{len(list((root / folder).iterdir()))}.xml").write_text(
            text + end, encoding="utf-8"
        )
        save(replace(BUILD, torch=replace(BUILD.torch, git_version=COMMIT)), root)

    return fill


def failure(stage: str) -> Fill:
    item = Failure("test", 1, stage, "CommandFailed", "It ended with 1.", "", "")
    return lambda folder: (save(item, folder / "crcr-evidence-test-build-attempt-1"), None)[1]


def text(name: str, content: str) -> Fill:
    def fill(folder: Path) -> None:
        (folder / "broken").mkdir()
        (folder / "broken" / name).write_text(content, encoding="utf-8")

    return fill


def ran(minutes: int, conclusion: str = "cancelled", name: str = "Build and test") -> JobTimes:
    start, end = "2026-12-01T00:00:00Z", f"2026-12-01T{minutes // 60:02}:{minutes % 60:02}:05Z"
    return JobTimes(name, conclusion, start, start, end)


WAITING = JobTimes("Distributed", "cancelled", "2026-12-01T00:00:00Z", None, "2026-12-01T02:00:05Z")
GREEN = {"receive": "success", "test": "success"}
RED = {**GREEN, "test": "failure"}
STOPPED = {**GREEN, "test": "cancelled"}
JUNIT: dict[str, Any] = {"junit": ("**/*.xml",)}
KNOWN = (FailedTest("test_old", "t/a.py::A"),)


@dataclass(frozen=True)
class Row:
    """`source` names the note: N… is a number of the incident log, others are the downstream's name."""

    source: str
    what: str
    conclusion: str
    fill: Sequence[Fill] = ()
    needs: dict[str, str] = field(default_factory=lambda: GREEN)
    options: dict[str, Any] = field(default_factory=dict)
    jobs: tuple[JobTimes, ...] = ()
    baseline: Sequence[Fill] = ()
    says: str = ""


ROWS = (
    # False greens.
    Row("Red Hat, N12", "continue-on-error made the job a success although tests failed", "failure",
        [evidence(counts="passed=4 failed=1", exit_code=1)], says="1 test failed"),
    Row("Red Hat", "the container died before it printed its summary", "failure", says="no evidence"),
    Row("Red Hat", "the job that chose the tests failed; the others ran an empty list and exited 0", "failure",
        [evidence(counts="planned=0")], {**GREEN, "choose": "failure"}, says="job choose"),
    Row("Red Hat", "an empty list of tests exits 0", "failure", [evidence(counts="planned=0")],
        says="no test passed"),
    Row("Red Hat", "no GPU: the step was skipped and the job was a success", "failure", says="no evidence"),
    Row("Red Hat", "one leg failed and cascaded into skipped legs", "failure", [evidence()],
        {**GREEN, "mgpu": "skipped"}, says="job mgpu: skipped"),
    Row("Ascend", "the exit code was swallowed with sys.exit(0)", "failure",
        [evidence(counts="passed=4 failed=1", exit_code=0)], says="1 test failed"),
    Row("Ascend", "a segmentation fault: max(0, -11) is 0", "failure", [evidence(exit_code=-11)], says="-11"),
    Row("Ascend", "a test file that does not import was dropped", "failure",
        [evidence(broken_files=("test_ops.py: ImportError",))], says="could not be collected"),
    Row("Ascend", "the source could not be unpacked, tests never ran, zero counts were a success", "failure",
        [evidence(counts="planned=0"), failure("checkout")], says="checkout"),
    Row("Ascend", "the build failed, the test job was skipped, nothing was sent", "failure",
        [failure("build-backend")], {"receive": "success", "build": "failure", "test": "skipped"},
        says="build-backend"),
    Row("Ascend", "only the skipped job is in `needs`: the failed one is not listed", "failure", [],
        {"test": "skipped"}, says="job test: skipped"),
    Row("Ascend", "tests that ran into the deadline were not counted", "failure",
        [evidence(counts="passed=3 crashed=1 lost=4", exit_code=None)], says="4 tests were lost"),
    Row("Ascend", "a retry in the same process turned failures into skips", "failure",
        [junit("ok", "failed:test_a", "skipped:test_a")], options=JUNIT, says="1 test failed"),
    Row("Ascend", "a poisoned device: every later test skips", "failure",
        [evidence(counts="skipped=9", exit_code=0)], says="no test passed"),
    Row("Ascend", "a poisoned device: the session exits with 70", "failure", [evidence(exit_code=70)], says="70"),
    Row("Ascend", "environments of collection and execution differ: nothing is found", "failure",
        [evidence(counts="passed=1 lost=13345", exit_code=1)], says="13345 tests were lost"),
    Row("Ascend", "downloads of two shards overwrote each other", "failure", [evidence(shards=2)],
        says="shard 2 of 2"),
    Row("Ascend", "two legs took the same shard number", "failure",
        [evidence(shards=2), lambda folder: evidence(shards=2)(folder / "other")], says="twice"),
    Row("Ascend", "the head of main was built, not the pull request", "failure",
        [evidence(torch_git_version="ab" * 20)], says="the tested torch is commit abab"),
    Row("Ascend", "a re-run resolved the branch anew and tested another commit", "failure",
        [evidence(commit="ab" * 20, torch_git_version="ab" * 20)], says="the evidence is of commit abab"),
    Row("Ascend", "empty outputs gave `{\"passed\": ,`", "failure", [text("evidence.json", '{"passed": , }')],
        says="cannot be used"),
    Row("Spyre", "errors are counted apart from failures and left out", "failure",
        [junit("ok", "error:test_a")], options=JUNIT, says="1 test failed"),
    Row("Spyre", "a mode that never exits with an error", "failure",
        [evidence(counts="passed=4 failed=2", exit_code=0)], says="2 tests failed"),
    Row("Spyre", "a class whose setUpClass raises has no test of its own", "failure",
        [junit("ok", "error:setUpClass (t.A)")], options=JUNIT, says="1 test failed"),
    Row("NVIDIA, N22", "a shard left no report, and the upload only warned", "failure",
        [junit("ok", folder="shard-1")], options={**JUNIT, "expected_shards": "2"},
        says="1 of 2 expected shards"),
    Row("NVIDIA, N22", "fewer shards than the matrix has", "failure", [evidence()],
        options={"expected_shards": "2"}, says="1 of 2 expected shards"),
    Row("NVIDIA", "the head of a report announces more failures than it holds", "failure",
        [junit("ok", head="failures='2' errors='0'")], options=JUNIT, says="announces 2"),
    Row("NVIDIA", "a report that is no XML", "failure", [junit("ok"), text("a.xml", "Killed")], options=JUNIT,
        says="not whole XML"),
    Row("NVIDIA", "a report that ends in the middle", "failure", [junit("ok", end="<testcase name=")],
        options=JUNIT, says="not whole XML"),
    Row("NVIDIA", "a summary missed a crash", "failure", [evidence(counts="passed=4 crashed=1", exit_code=-6)],
        says="1 test crashed"),
    Row("vLLM, N30", "14 of 347 jobs had ended when it was reported", "failure",
        [evidence(counts="passed=14 lost=333", exit_code=None)], says="333 tests were lost"),
    Row("vLLM, N30", "far fewer tests than the row has", "failure", [junit("ok")],
        options={**JUNIT, "expected_tests": "347"}, says="1 test(s) have a result, at least 347"),
    Row("vLLM, N31", "a gating step failed before the tests", "failure", [],
        {"receive": "success", "gate": "failure", "test": "skipped"}, says="job gate: failure"),
    Row("physicsnemo", "a rerun that failed again: one failure, not two", "failure",
        [junit("ok", "failed:test_a", "failed:test_a")], options=JUNIT, says="1 test failed"),
    Row("pytest", "a test that should fail passes, strictly", "failure", [junit("ok", "xpass:test_a")],
        options=JUNIT, says="1 test failed"),
    Row("pytest", "exit code 5 when a filter leaves nothing was called fine", "failure",
        [evidence(counts="planned=0", exit_code=5)], says="ended with 5"),
    Row("Ascend", "everything planned is on a skip list made of failing tests", "failure",
        [evidence(counts="skipped=4054")], says="no test passed"),
    Row("shards", "a test fails in one of two configurations", "failure",
        [junit("ok:test_a", folder="cpu"), junit("failed:test_a", folder="gpu")], options=JUNIT,
        says="1 test failed"),
    Row("own build", "JUnit is green, and nothing says which torch it is about", "failure",
        [lambda folder: (folder / "a.xml").write_text(
            "<testsuite><testcase name='a'/></testsuite>", encoding="utf-8") and None],
        options=JUNIT, says="nothing says which torch"),
    Row("hostile", "counts that hide a failure", "failure", [evidence(counts="planned=9 passed=8")],
        says="do not add up"),
    Row("hostile", "a report with entities", "failure",
        [junit("ok"), text("a.xml", '<!DOCTYPE a [<!ENTITY b "c">]><testsuite/>')], options=JUNIT,
        says="document type"),
    Row("baseline", "a new failure beside a known one", "failure",
        [evidence(counts="passed=3 failed=2", exit_code=1, failures=(*KNOWN, FailedTest("test_new", "t/a.py::A")))],
        RED, {"conclude_on": "new-failures"}, baseline=[evidence(counts="passed=4 failed=1", failures=KNOWN)],
        says="2 tests failed"),
    Row("baseline", "the baseline is not there: nothing is known", "failure",
        [evidence(counts="passed=4 failed=1", exit_code=1, failures=KNOWN)], RED,
        {"conclude_on": "new-failures", "baseline": Path("/nowhere")}, says="every failure counts as new"),
    Row("baseline", "failures beyond the thousand that evidence names are new", "failure",
        [evidence(counts="passed=4 failed=2", exit_code=1, failures=KNOWN)], RED,
        {"conclude_on": "new-failures"}, baseline=[evidence(counts="passed=4 failed=1", failures=KNOWN)],
        says="1 new, 1 known"),
    # False reds, and other wrong colours.
    Row("Ascend", "a cancelled run left nothing and was reported as failure", "cancelled", [], STOPPED),
    Row("Ascend", "a cancelled run with evidence of failed tests", "cancelled",
        [evidence(counts="passed=1 failed=1", exit_code=1)], STOPPED, jobs=(ran(12),)),
    Row("Spyre", "the step that waits was cancelled, and the conclusion was empty", "cancelled", [],
        {"receive": "success", "test": "success", "wait": "cancelled"}),
    Row("Red Hat", "a job ran into its limit and looks cancelled", "timed_out", [], STOPPED,
        {"job_timeout_minutes": 120.0}, (ran(120), WAITING), says="hit its time limit"),
    Row("RISE", "the same with GitHub's own limit", "timed_out", [], STOPPED, jobs=(ran(360),)),
    Row("Red Hat", "one leg timed out, the next were skipped", "timed_out", [evidence(shards=2)],
        {**STOPPED, "mgpu": "skipped"}, {"job_timeout_minutes": 60.0}, (ran(60),)),
    Row("N42", "somebody cancelled long before the limit", "cancelled", [], STOPPED,
        {"job_timeout_minutes": 120.0}, (ran(119),)),
    Row("N42", "one job hit the limit, and somebody cancelled the run too", "cancelled", [], STOPPED,
        {"job_timeout_minutes": 120.0}, (ran(120), ran(30))),
    Row("permissions", "the jobs API may not be asked", "cancelled", [], STOPPED, says="actions: read"),
    Row("Red Hat", "no GPU today: the job was skipped, as the workflow allows", "skipped", [],
        {"receive": "success", "test": "skipped"}, {"may_be_skipped": ("test",)}),
    Row("physicsnemo, N63", "a rerun that passed was counted as a failure and two passes", "success",
        [junit("failed:test_a", "ok:test_a")], options=JUNIT, says="passed after more than one try: t.A::test_a"),
    Row("N22", "only failed jobs were run again: the other shard's evidence is of attempt 1", "success",
        [evidence(1, shards=2), evidence(1, "passed=1 failed=1", shard=2, shards=2, exit_code=1),
         evidence(2, shard=2, shards=2)]),
    Row("N22", "a report that broke in the attempt before", "success",
        [junit("ok:a", end="", folder="x-attempt-1"), junit("ok:a", folder="x-attempt-2")], options=JUNIT),
    Row("test-infra 8307", "an expected failure is none", "success",
        [evidence(counts="passed=3 xfailed=2"), ]),
    Row("test-infra 8307", "an expected failure in JUnit", "success", [junit("ok", "xfail:test_a")], options=JUNIT),
    Row("Red Hat", "control characters in what a test printed", "success",
        [junit("ok", end="<system-out>\x1b[31m&#0;</system-out></testsuite>")], options=JUNIT),
    Row("N71", "upstream's failure counted against the backend", "success",
        [evidence(counts="passed=4 failed=1", exit_code=1, failures=KNOWN)], RED,
        {"conclude_on": "new-failures"}, baseline=[evidence(counts="passed=4 failed=1", failures=KNOWN)],
        says="every failed test failed before"),
    Row("N71", "the same, counted as before unless it is asked for", "failure",
        [evidence(counts="passed=4 failed=1", exit_code=1, failures=KNOWN)], RED,
        baseline=[evidence(counts="passed=4 failed=1", failures=KNOWN)], says="0 new, 1 known, 0 flaky"),
    Row("N71", "a test that was flaky in the nightly", "success",
        [evidence(counts="passed=4 failed=1", exit_code=1, failures=KNOWN)], RED,
        {"conclude_on": "new-failures"}, baseline=[evidence(flaky=("t.a.A::test_old",))],
        says="0 new, 0 known, 1 flaky"),
    Row("control", "all is well", "success", [evidence()]),
    Row("control", "all is well, with JUnit", "success", [junit("ok", "skipped")], options=JUNIT),
)  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.source}: {row.what}")
def test_the_colour_is_the_true_one(row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, baseline = tmp_path / "evidence", tmp_path / "baseline"
    for place, fills in ((folder, row.fill), (baseline, row.baseline)):
        place.mkdir()
        for fill in fills:
            fill(place)
    answer = (row.jobs, "") if row.jobs else (None, "HTTP 403; add `permissions: { actions: read }`")
    monkeypatch.setattr(gathering, "ask_jobs", lambda *_: answer)
    needs = str({job: {"result": result} for job, result in row.needs.items()}).replace("'", '"')
    given = {
        "needs": needs,
        "evidence": folder,
        **({"baseline": baseline} if row.baseline else {}),
        **row.options,
    }
    context = read_context({"GITHUB_RUN_ID": "1"})
    verdict, _ = gather(GatherOptions(**given), context, COMMIT, Commands(context, io.StringIO()))
    assert verdict.conclusion == row.conclusion, verdict.reasons
    assert row.says in "; ".join((*verdict.reasons, *verdict.notes))


def test_there_are_enough_of_them_and_none_stands_twice() -> None:
    assert len(ROWS) >= 35
    assert len({(row.source, row.what) for row in ROWS}) == len(ROWS)
