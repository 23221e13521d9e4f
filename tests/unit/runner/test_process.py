"""Foreign processes: without our credentials, ended at their deadline with all they started."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from relay_client.runner.process import Completed, run, scrubbed

LONG = 60.0


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def start(command: list[str], folder: Path, deadline_seconds: float = LONG, **others: object) -> Completed:
    return run(
        command,
        cwd=folder,
        environment=dict(os.environ),
        deadline_seconds=deadline_seconds,
        **others,  # type: ignore[arg-type]
    )


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether a condition comes true; gives up after a while."""
    for _ in range(500):
        if condition():
            return True
        time.sleep(0.02)
    return False


def gone(pid_file: Path) -> bool:
    try:
        os.kill(int(pid_file.read_text(encoding="utf-8")), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return _is_zombie(int(pid_file.read_text(encoding="utf-8")))


def _is_zombie(pid: int) -> bool:
    """An orphan that was killed and that nobody waits for: containers often have no such parent."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    "name",
    [
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_RESULTS_URL",
        "ACTIONS_CACHE_URL",
        "GITHUB_TOKEN",
        "GH_TOKEN",
        "GH_ENTERPRISE_TOKEN",
        "GITHUB_ENTERPRISE_TOKEN",
        "INPUT_TOKEN",
        "CRCR_NEEDS",
        "GITHUB_ENV",
        "GITHUB_PATH",
        "GITHUB_OUTPUT",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
    ],
)
def test_a_foreign_process_sees_no_credential_and_no_file_of_the_runner(name: str) -> None:
    assert scrubbed({name: "secret", "PATH": "/bin"}) == {"PATH": "/bin"}


def test_what_a_build_needs_stays_and_what_we_add_comes_last() -> None:
    kept = {"PATH": "/bin", "HOME": "/h", "HTTPS_PROXY": "p", "GITHUB_ACTIONS": "true", "GITHUB_SHA": "5f"}
    assert scrubbed({**kept, "A": "1"}, {"A": "2", "CRCR_TEST": "3"}) == {**kept, "A": "2", "CRCR_TEST": "3"}


def test_output_goes_to_the_stream_to_the_log_and_to_the_tail(tmp_path: Path) -> None:
    stream = io.StringIO()
    code = "import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr, flush=True)\nprint('end', end='')"
    done = start(python(code), tmp_path, stream=stream, log=tmp_path / "log")
    assert done.ok
    assert done.tail == ("out", "err", "end")
    assert stream.getvalue() == (tmp_path / "log").read_text(encoding="utf-8") == "out\nerr\nend\n"


def test_only_the_end_of_a_long_output_is_kept_in_memory(tmp_path: Path) -> None:
    done = start(python("for n in range(5000): print(n)"), tmp_path)
    assert done.tail == tuple(str(n) for n in range(4800, 5000))


def test_binary_garbage_is_shown_as_what_can_be_read_of_it(tmp_path: Path) -> None:
    done = start(
        python("import os; os.write(1, b'\\xff\\x00\\xc3\\n\\x80ok\\r\\n')"), tmp_path, log=tmp_path / "log"
    )
    assert done.ok
    assert done.tail == ("\ufffd\x00\ufffd", "\ufffdok")


def test_a_line_without_an_end_is_cut_into_pieces(tmp_path: Path) -> None:
    """A process that never ends its line must not fill our memory."""
    done = start(python("import sys; sys.stdout.write('x' * 3_000_000)"), tmp_path)
    assert done.ok
    assert 1 < len(done.tail) <= 200
    assert max(map(len, done.tail)) <= 65_536
    assert set("".join(done.tail)) == {"x"}


def test_the_last_words_before_the_deadline_are_kept_though_their_line_never_ends(tmp_path: Path) -> None:
    """A test runner prints the name of the test before it hangs: without a line end."""
    code = "import sys, time; print('first'); sys.stdout.write('test_that_hangs ... '); sys.stdout.flush(); time.sleep(600)"
    done = start(python(code), tmp_path, deadline_seconds=1.5)
    assert done.exit_code is None
    assert done.tail == ("first", "test_that_hangs ... ")
    assert done.describe().startswith("ended by its deadline")


@pytest.mark.parametrize(
    ("code", "exit_code", "text"),
    [
        ("import sys; sys.exit(0)", 0, "exit code 0"),
        ("import sys; sys.exit(3)", 3, "exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, "killed by SIGKILL"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV, "killed by SIGSEGV"),
    ],
)
def test_how_a_process_ended_is_said(code: str, exit_code: int, text: str, tmp_path: Path) -> None:
    done = start(python(code), tmp_path)
    assert (done.exit_code, done.describe(), done.ok) == (exit_code, text, exit_code == 0)


def test_a_command_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-such-program"):
        start(["no-such-program"], tmp_path)


SPAWN_GRANDCHILD = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-I", "-S", "-c", "import time; time.sleep(600)"])
with open("grandchild.tmp", "w") as file:
    file.write(str(child.pid))
os.rename("grandchild.tmp", "grandchild")
"""


def test_the_deadline_ends_the_grandchildren_too(tmp_path: Path) -> None:
    done = start(python(SPAWN_GRANDCHILD + "time.sleep(600)"), tmp_path, deadline_seconds=2)
    assert done.exit_code is None
    assert eventually(lambda: gone(tmp_path / "grandchild"))


def test_a_process_that_ignores_the_polite_signal_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relay_client.runner.process._KILL_GRACE_SECONDS", 0.2)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    done = start(python(code), tmp_path, deadline_seconds=1.5)
    assert done.exit_code is None
    assert done.tail == ("deaf",)


def test_a_child_left_behind_with_the_pipe_does_not_hold_us_and_is_ended(tmp_path: Path) -> None:
    done = start(python(SPAWN_GRANDCHILD + "print('parent ends')"), tmp_path)
    assert done.ok
    assert done.tail == ("parent ends",)
    assert eventually(lambda: gone(tmp_path / "grandchild"))


def test_a_child_left_behind_that_never_stops_writing_does_not_hold_us(tmp_path: Path) -> None:
    writer = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-I', '-S', '-c', 'while True: print(1)'])"
    )
    done = start(python(writer), tmp_path, deadline_seconds=20)
    assert done.exit_code == 0


def test_a_daemon_that_keeps_the_pipe_outside_our_group_does_not_hold_us(tmp_path: Path) -> None:
    """Compiler caches start such servers: they leave the group and hold the pipe open."""
    daemon = SPAWN_GRANDCHILD.replace('time.sleep(600)"])', 'time.sleep(600)"], start_new_session=True)')
    done = start(python(daemon + "print('parent ends')"), tmp_path)
    pid = int((tmp_path / "grandchild").read_text(encoding="utf-8"))
    try:
        assert done.ok
        assert done.tail == ("parent ends",)
        assert not gone(tmp_path / "grandchild")
    finally:
        os.kill(pid, signal.SIGKILL)


def test_nothing_can_be_typed_into_a_foreign_process(tmp_path: Path) -> None:
    done = start(python("import sys; print(repr(sys.stdin.read()))"), tmp_path)
    assert done.tail == ("''",)
