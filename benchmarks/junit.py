"""How long a large JUnit report takes to read, and how much memory: `make bench-junit`.

Writes reports of 10 MB and of 100 MB, reads each in a process of its own, and fails when the larger one takes
noticeably more memory: what is kept must depend on the number of tests, not on what they printed.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

_TESTS = 2_000
_MEGABYTE = 1_000_000
_ALLOWED_MORE = 4 * _MEGABYTE


def write(path: Path, size: int) -> None:
    """A report of about `size` bytes: the same tests, longer texts."""
    line = b"tests/test_ops.py:123: AssertionError: &lt;tensor&gt; is not close\n"
    text = line * (size // _TESTS // len(line))
    with path.open("wb") as file:
        file.write(b'<?xml version="1.0"?><testsuites><testsuite>')
        for number in range(_TESTS):
            file.write(
                b'<testcase classname="test_ops.TestOps" name="test_%d"><failure message="no">' % number
            )
            file.write(text + b"</failure></testcase>\n")
        file.write(b"</testsuite></testsuites>")


def read(folder: Path) -> None:
    """In the child process: read, and print seconds and the highest memory in bytes."""
    from relay_client.report.junit.read import read_reports

    started = time.monotonic()
    reports = read_reports(folder, ["*.xml"], 1_000)
    assert reports.outcomes.numbers["failed"] == _TESTS and not reports.broken  # noqa: PT018
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
    print(time.monotonic() - started, peak)


def main() -> int:
    peaks = []
    for size in (10 * _MEGABYTE, 100 * _MEGABYTE):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "report.xml"
            write(path, size)
            command = [sys.executable, __file__, folder]
            seconds, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            peaks.append(int(peak))
            rate = path.stat().st_size / _MEGABYTE / float(seconds)
            print(
                f"{path.stat().st_size / _MEGABYTE:6.0f} MB: {float(seconds):5.2f} s ({rate:.0f} MB/s), "
                f"at most {int(peak) / _MEGABYTE:.0f} MB of memory"
            )
    if peaks[1] > peaks[0] + _ALLOWED_MORE:
        print("The larger report takes more memory: it is not read in constant memory.")
        return 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        read(Path(sys.argv[1]))
        sys.exit(0)
    sys.exit(main())
