"""Tests that lie. What they can reach is theirs; this file says how far that goes, and where it ends.

A test can reach the journal, the report of the session and the JUnit file: it runs as the same user. So a test
that writes the journal of *every* planned test and ends the process can forge a success for its own repository's
row (docs: "Trust"). Anything less is found out.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hardware_job import COMMIT, HardwareJob

from relay_client.errors import CrcrError, TestRunBroken, TestsFailed

# Finds what the session was started with, as any test could.
REACH = """
import json, sys, pathlib
settings = json.loads(pathlib.Path(sys.argv[-1]).read_text()) if sys.argv[-1].endswith("settings.json") else {{}}
journal = pathlib.Path(settings.get("journal") or "nowhere")
def forge(*names):
    with journal.open("a") as file:
        for name in names:
            file.write(json.dumps({{"test": "tests/test_it.py::TestLies::" + name, "outcome": "passed"}}) + "\\n")

class TestLies(unittest.TestCase):
    hw_classification = HW.GENERIC
    def test_1_honest(self): assert False, "the truth"
    def test_2_liar(self): {lie}
    def test_3_honest(self): assert False, "the truth"
"""


LIES = ("TestLies::test_1_honest", "TestLies::test_2_liar", "TestLies::test_3_honest")


@pytest.fixture
def job(tmp_path: Path) -> HardwareJob:
    return HardwareJob(tmp_path)


def lied(job: HardwareJob, lie: str) -> CrcrError:
    job.write(REACH.format(lie=lie))
    job.planned(*LIES)
    return job.fail(test_timeout_minutes="1")


@pytest.mark.parametrize(
    ("lie", "counts"),
    [
        # A line for a test that is still to come is overruled when it comes.
        ("forge('test_3_honest')", {"planned": 3, "passed": 1, "failed": 2}),
        ("forge('test_2_liar'); assert False", {"planned": 3, "failed": 3}),
        ("forge('test_9', 'test_9', '')", {"planned": 3, "passed": 1, "failed": 2}),
        # What is no longer written down is run again.
        ("journal.write_text('')", {"planned": 3, "passed": 1, "failed": 2}),
        ("journal.unlink(); journal.mkdir()", {"planned": 3, "lost": 3}),
        ("journal.unlink(); os.mkfifo(journal)", {"planned": 3, "lost": 3}),
        ("journal.unlink(); journal.symlink_to('/dev/zero')", {"planned": 3, "lost": 3}),
        ("journal.write_text('[' * 10**6)", None),
        # Half a line left behind by a death must not swallow the next process's first line.
        (
            "open(journal, 'a').write('{{\"test\": \"x'); os._exit(0)",
            {"planned": 3, "failed": 2, "crashed": 1},
        ),
        ("settings['planned'].clear(); sys.exit(0)", {"planned": 3, "failed": 3}),
    ],
)
def test_a_lie_that_is_not_whole_leaves_a_failing_run_failing(
    job: HardwareJob, lie: str, counts: dict[str, int]
) -> None:
    error = lied(job, lie.replace("{{", "{"))
    assert isinstance(error, TestsFailed)
    if counts is not None:
        assert job.counts() == counts


def test_a_failure_that_is_rewritten_still_shows_in_the_exit_code(job: HardwareJob) -> None:
    """pytest itself counts too: two witnesses must agree."""
    lie = "import threading; atexit.register(forge, 'test_1_honest', 'test_2_liar', 'test_3_honest')"
    job.write("import atexit\n" + REACH.format(lie=lie))
    job.planned(*LIES)
    error = job.fail()
    assert isinstance(error, TestRunBroken)
    assert "exit code 1" in error.seen
    assert job.counts() == {"planned": 3, "passed": 3}


def test_what_a_whole_forgery_gives_is_known(job: HardwareJob) -> None:
    """Not a wish: the limit of what evidence from a stranger's process can prove, written down."""
    job.write(REACH.format(lie="forge('test_1_honest', 'test_2_liar', 'test_3_honest'); os._exit(0)"))
    job.planned(*LIES)
    assert job.test().counts.passed == 3


def test_torch_is_named_by_the_process_and_another_one_is_kept_as_evidence(job: HardwareJob) -> None:
    job.write("class TestIt:\n    hw_classification = 'GENERIC'\n    def test_it(self): pass\n")
    job.planned("TestIt::test_it")
    torch = job.folder / "site/torch/__init__.py"
    torch.write_text(
        torch.read_text().replace(COMMIT, "0b" * 20) + "# Another size: bytecode is made anew.\n"
    )
    assert job.test().torch_git_version == "0b" * 20, "the verdict refuses it"


@pytest.mark.parametrize(
    "change",
    [
        "report.unlink(); os.mkfifo(report)",
        "report.unlink(); report.symlink_to('/etc/hostname')",
        "report.write_text('{}')",
    ],
)
def test_a_torch_document_that_is_tampered_with_names_no_torch(job: HardwareJob, change: str) -> None:
    job.write(
        f"""
        import json, sys, pathlib
        class TestIt:
            hw_classification = HW.GENERIC
            def test_it(self):
                report = pathlib.Path(json.loads(pathlib.Path(sys.argv[-1]).read_text())["torch"])
                {change}
        """
    )
    job.planned("TestIt::test_it")
    try:
        evidence = job.test()
    except CrcrError:
        evidence = job.evidence
    assert evidence.torch_git_version is None


def test_output_that_looks_like_commands_is_inert(job: HardwareJob) -> None:
    job.write(
        """
        TEXT = "::set-output name=x::y\\n  ::error::owned\\n##[error]owned\\r::warning::owned\\n::add-mask::a"
        print(TEXT)
        class TestIt(unittest.TestCase):
            hw_classification = HW.GENERIC
            def test_prints(self):
                os.write(1, TEXT.encode()); os.write(2, TEXT.encode())
                print(TEXT)
            def test_fails(self):
                print(TEXT)
                raise RuntimeError(TEXT)
            @unittest.skip(TEXT)
            def test_skipped(self): pass
            def test_dies(self):
                os.write(1, b"::endgroup::\\n::error::no line end"); os.kill(os.getpid(), 11)
        """
    )
    (job.workspace / "pytest.ini").write_text("[pytest]\naddopts = -s -ra\n")
    job.plan()
    job.fail()
    assert "owned" in job.log.getvalue()
    assert set(job.commands) <= {"group", "endgroup", "warning"}
    assert job.commands.count("warning") == 1  # ours, about the process that died
    assert "owned" not in (job.folder / "output").read_text()


def test_a_hostile_name_is_inert_too(job: HardwareJob) -> None:
    job.write(
        """
        class TestIt:
            hw_classification = HW.GENERIC
            @pytest.mark.parametrize("x", ["::error::owned", "a\\n::error::owned", "##[error]owned", "\\udcff", "火"])
            def test_it(self, x): assert False
        """
    )
    assert len(job.plan().tests) == 5
    job.fail()
    assert set(job.commands) <= {"group", "endgroup"}
    assert job.counts() == {"planned": 5, "failed": 5}
