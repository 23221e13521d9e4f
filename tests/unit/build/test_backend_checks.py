"""Load, autoload, answer: each way a backend can be broken is told by its own message."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from backend_ci.build.checks import check_backend, native_libraries, require_fresh
from backend_ci.build.environment import RunEnvironment
from relay_client.errors import BackendBroken
from relay_client.runner.commands import Commands
from relay_client.runner.context import read_context

# As much of PyTorch as the checks touch. What it does is set by the variables of the process.
TORCH = """
import os
__version__ = "2.0"
class version: git_version = "5f" * 20
class _Values:
    def __init__(self, values): self.values = values
    def __add__(self, number): return _Values([value + number for value in self.values])
    def cpu(self): return self
    def tolist(self): return self.values
class _C:
    @staticmethod
    def _get_privateuse1_backend_name(): return os.environ.get("STUB_NAME", "privateuse1")
def ones(count, device):
    if os.environ.get("STUB_ONES") == "raises":
        raise RuntimeError("driver not found")
    return _Values([float(os.environ.get("STUB_ONES", "1.0"))] * count)
if os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] == "1" and os.environ.get("STUB_AUTOLOAD") == "raises":
    raise RuntimeError("Failed to load the backend extension: stub")
"""


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True, timeout=60)
    python = place / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('platlib'))"
    site = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True, timeout=60)
    package = Path(site.stdout.strip()) / "torch"
    package.mkdir()
    (package / "__init__.py").write_text(TORCH, encoding="utf-8")
    return python


def environment(interpreter: Path, folder: Path, **variables: str) -> RunEnvironment:
    found = {"PATH": os.environ["PATH"], **variables}
    return RunEnvironment(interpreter, folder, found, Commands(read_context(found), io.StringIO()), 60)


def test_a_backend_that_works_names_its_device(interpreter: Path, tmp_path: Path) -> None:
    check, torch = check_backend(environment(interpreter, tmp_path, STUB_NAME="npu"), [], None)
    assert (check.device, torch.git_version) == ("npu", "5f" * 20)


def test_another_device_may_be_named(interpreter: Path, tmp_path: Path) -> None:
    check, _ = check_backend(environment(interpreter, tmp_path, STUB_NAME="npu"), [], "npu:1")
    assert check.device == "npu:1"


@pytest.mark.parametrize(
    ("variables", "what", "seen"),
    [
        ({}, "does not load the backend", "no out-of-tree device"),
        ({"STUB_NAME": "npu", "STUB_AUTOLOAD": "raises"}, "does not load the backend", "Failed to load"),
        ({"STUB_NAME": "npu", "STUB_ONES": "raises"}, "does not answer", "driver not found"),
        ({"STUB_NAME": "npu", "STUB_ONES": "7.0"}, "does not answer", "gave [8.0, 8.0]"),
    ],
)
def test_each_way_to_be_broken_has_its_words(
    interpreter: Path, tmp_path: Path, variables: dict[str, str], what: str, seen: str
) -> None:
    with pytest.raises(BackendBroken) as raised:
        check_backend(environment(interpreter, tmp_path, **variables), [], None)
    assert what in raised.value.what
    assert seen in raised.value.seen
    assert raised.value.fix


def test_a_library_that_cannot_load_is_told_before_what_follows_from_it(
    interpreter: Path, tmp_path: Path
) -> None:
    library = tmp_path / "_C.so"
    library.write_bytes(b"not a library")
    with pytest.raises(BackendBroken) as raised:
        check_backend(environment(interpreter, tmp_path, STUB_NAME="npu"), [library], None)
    assert "library cannot be loaded" in raised.value.what
    assert "_C.so" in raised.value.seen


def test_a_library_older_than_the_build_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "b-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(zipfile.ZipInfo("b/__init__.py", (2020, 1, 1, 0, 0, 0)), b"")
        archive.writestr(zipfile.ZipInfo("b/_C.so", (2026, 1, 1, 12, 0, 0)), b"")
    made = datetime(2026, 1, 1, 12, 0, 0)  # noqa: DTZ001 - a zip has local times
    require_fresh(wheel, made)
    require_fresh(wheel, made + timedelta(seconds=2))
    with pytest.raises(BackendBroken) as raised:
        require_fresh(wheel, made + timedelta(minutes=1))
    assert "b/_C.so" in raised.value.seen
    assert native_libraries(Path("/site"), wheel) == [Path("/site/b/_C.so")]
