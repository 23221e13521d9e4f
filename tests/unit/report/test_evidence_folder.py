"""The evidence folder: whatever lies in it was near a stranger's code."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from samples import EVIDENCE

from relay_client.documents.document import save
from relay_client.documents.failure import Failure
from relay_client.errors import UsageError
from relay_client.report.evidence import read_evidence, read_job_results

FAILURE = Failure("test", 1, "build-pytorch", "WrongTorch", "what", "seen", "fix")


def change(folder: Path, **members: Any) -> None:
    path = save(EVIDENCE, folder)
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **members}), encoding="utf-8")


def test_no_folder_holds_no_evidence(tmp_path: Path) -> None:
    found = read_evidence(tmp_path / "nowhere", "test")
    assert (found.evidence, found.failures, found.unreadable) == ((), (), ())


def test_only_the_row_s_own_evidence_counts_at_any_depth(tmp_path: Path) -> None:
    save(EVIDENCE, tmp_path / "a" / "b" / "c")
    save(replace(EVIDENCE, row="other"), tmp_path / "other")
    save(replace(FAILURE, row="other"), tmp_path / "other")
    found = read_evidence(tmp_path, "test")
    assert (found.evidence, found.failures) == ((EVIDENCE,), ())


def test_each_shard_counts_as_its_last_attempt_left_it(tmp_path: Path) -> None:
    first = replace(EVIDENCE, shard=1, shards=2)
    second = replace(EVIDENCE, shard=2, shards=2)
    again = replace(second, run_attempt=2)
    for number, item in enumerate((first, second, again)):
        save(item, tmp_path / str(number))
    assert set(read_evidence(tmp_path, "test").evidence) == {first, again}


def test_a_stage_that_failed_in_an_attempt_before_the_evidence_is_history(tmp_path: Path) -> None:
    save(FAILURE, tmp_path / "attempt-1")
    assert read_evidence(tmp_path, "test").failures == (FAILURE,)
    save(replace(EVIDENCE, run_attempt=2), tmp_path / "attempt-2")
    assert read_evidence(tmp_path, "test").failures == ()


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"shards": 10**9}, "shards"),
        ({"shard": 0}, "shard"),
        ({"run_attempt": 0}, "run_attempt"),
        ({"commit": "main"}, "commit"),
        ({"failures": [{"name": "t", "duration": float("nan")}]}, "duration"),
        ({"failures": [{"name": "t", "stacktrace": "x" * 4_097}]}, "stacktrace"),
        ({"failures": [{"name": "t"}] * 1_001}, "failures"),
        ({"counts": {**json.loads(json.dumps(vars(EVIDENCE.counts))), "passed": 10**12}}, "counts.passed"),
        ({"counts": {**json.loads(json.dumps(vars(EVIDENCE.counts))), "passed": -1}}, "counts.passed"),
        ({"version": 2}, "version"),
    ],
)
def test_evidence_that_is_not_what_we_write_is_a_fault_and_no_evidence(
    tmp_path: Path, members: dict[str, Any], field: str
) -> None:
    change(tmp_path / "crcr-evidence-test-1", **members)
    found = read_evidence(tmp_path, "test")
    assert found.evidence == ()
    (fault,) = found.unreadable
    assert "evidence.json of crcr-evidence-test-1 cannot be used" in fault
    assert field in fault


def test_links_pipes_and_folders_are_faults_and_are_not_opened(tmp_path: Path) -> None:
    real = save(EVIDENCE, tmp_path / "outside")
    inside = tmp_path / "inside"
    for name in ("link", "dangling", "pipe", "folder"):
        (inside / name).mkdir(parents=True)
    (inside / "link" / EVIDENCE.FILE).symlink_to(real)
    (inside / "dangling" / EVIDENCE.FILE).symlink_to(tmp_path / "nowhere")
    os.mkfifo(inside / "pipe" / EVIDENCE.FILE)
    (inside / "folder" / EVIDENCE.FILE).mkdir()
    (inside / "elsewhere").symlink_to(tmp_path / "outside")
    found = read_evidence(inside, "test")
    assert found.evidence == ()
    # A dangling link is no file to some Pythons; it gives no evidence to any.
    assert len(found.unreadable) in (3, 4)
    assert all("is not a plain file" in fault for fault in found.unreadable)


def test_a_thousand_folders_of_garbage_end_in_bounded_faults(tmp_path: Path) -> None:
    for number in range(1_100):
        folder = tmp_path / f"{number:04}"
        folder.mkdir()
        (folder / EVIDENCE.FILE).write_text('{"version": 1, "row": "' + "x" * 2_000, encoding="utf-8")
    found = read_evidence(tmp_path, "test")
    assert found.evidence == ()
    assert 0 < len(found.unreadable) <= 1_024
    assert max(map(len, found.unreadable)) <= 500


@pytest.mark.parametrize(
    ("needs", "results"),
    [
        ("{}", {}),
        ('{"a": {"result": "success", "outputs": {}}}', {"a": "success"}),
        ('{"a": {"result": "failure", "outputs": null}}', {"a": "failure"}),
        (
            '{"a": {"result": "cancelled"}, "b": {"result": "skipped", "outputs": {"x": "\\ud800"}}}',
            {"a": "cancelled", "b": "skipped"},
        ),
    ],
)
def test_job_results_are_read_out_of_needs(needs: str, results: dict[str, str]) -> None:
    assert read_job_results(needs) == results


@pytest.mark.parametrize(
    "needs",
    [
        "",
        "null",
        "[]",
        '"success"',
        "{",
        "needs",
        "${{ toJSON(needs) }}",
        '{"a": "success"}',
        '{"a": {}}',
        '{"a": {"result": "great"}}',
        '{"a": {"result": null}}',
        '{"a": {"result": ["success"]}}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_needs_that_are_no_results_are_the_workflow_s_error(needs: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_job_results(needs)
    assert "`needs: ${{ toJSON(needs) }}`" in caught.value.fix
    assert len(caught.value.seen) <= 100
