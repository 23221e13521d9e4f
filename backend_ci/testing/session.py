"""Start one pytest session in the run's environment, and read back what it says. Hostile both ways."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional, TextIO, TypeVar

from relay_client.documents.build import Build
from relay_client.documents.plan import Collected, PlannedSkip, PlannedTolerance, Selection, TestOrigin
from relay_client.errors import TestRunBroken, UsageError
from relay_client.protocol.shape import ShapeError, dump, member, parse, show
from relay_client.runner.commands import Commands
from relay_client.runner.process import Completed, Watch, run, scrubbed

_SCRIPT = Path(__file__).parent / "inside" / "crcr_session.py"
_MAX_REPORT_BYTES = 64 * 1024 * 1024
# No cache of pytest's in the workspace; the user's own configuration stays in force.
COMMON_ARGUMENTS = ("-p", "no:cacheprovider")
T = TypeVar("T")


@dataclass(frozen=True)
class SessionReport:
    """What the session says it collected."""

    collected: Collected = member("Counts")
    tests: tuple[str, ...] = member("Node ids that were kept")
    broken_files: tuple[str, ...] = member("Files that could not be collected")
    unclassified_classes: tuple[str, ...] = member("Classes without a classification")
    origins: tuple[TestOrigin, ...] = member("What the names of device tests do not tell")
    device: str = member("Name of the backend's device", pattern=r"[A-Za-z0-9_]{0,64}")


@dataclass(frozen=True)
class TestedTorch:
    """Which torch the session imported."""

    __test__ = False  # not a pytest class

    git_version: str = member("torch.version.git_version")


@dataclass(frozen=True)
class LostDevice:
    """The probe failed after a test: what it said."""

    test: str = member("Node id of the test after which it failed")
    message: str = member("What the probe said", default="")


@dataclass(frozen=True)
class Session:
    """How a session ended, and what it left. `report` and `torch` are None when it died before."""

    completed: Completed
    report: Optional[SessionReport]
    torch: Optional[TestedTorch]
    lost_device: Optional[LostDevice] = None


@dataclass(frozen=True)
class SessionPlace:
    """Where sessions run: folder of the documents, working folder, environment, deadline in seconds."""

    folder: Path
    workspace: Path
    environment: Mapping[str, str]
    commands: Commands
    deadline_seconds: float
    stream: Optional[TextIO] = None  # for the output of tests; None: the log, in a stretch of its own


def run_session(
    place: SessionPlace,
    build: Build,
    selection: Selection,
    arguments: Sequence[str],
    *,
    planned: Optional[Sequence[str]] = None,
    skips: Sequence[PlannedSkip] = (),
    tolerances: Sequence[PlannedTolerance] = (),
    journal: Optional[Path] = None,
    quiet: bool = False,
    device_probe: str = "",
    watch: Optional[Watch] = None,
) -> Session:
    """Run pytest with `arguments` in the interpreter that holds torch."""
    # A new folder each time: whatever an earlier session made of its own is not in the way.
    scratch = Path(tempfile.mkdtemp(prefix="session-", dir=place.folder))
    report, torch, settings = scratch / "session.json", scratch / "torch.json", scratch / "settings.json"
    lost_device = scratch / "lost-device.json"
    value: dict[str, Any] = {
        **dump(selection),
        "arguments": list(arguments),
        "report": str(report),
        "torch": str(torch),
        "planned": planned,
        "skips": {test: [skip.mode, skip.reason] for skip in skips for test in skip.tests},
        "tolerances": [dump(each) for each in tolerances],
        "journal": str(journal) if journal else None,
        "device_probe": device_probe,
        "lost_device": str(lost_device),
    }
    settings.write_text(json.dumps(value), encoding="utf-8")
    command = [build.interpreter, str(_SCRIPT), str(settings)]
    log = place.folder / "test.log"
    try:
        if quiet or place.stream is not None:
            completed = _start(command, place, log, None if quiet else place.stream, watch)
        else:
            with place.commands.foreign_output() as stream:
                completed = _start(command, place, log, stream, watch)
        lost = _read(LostDevice, lost_device)
        return Session(completed, _read(SessionReport, report), _read(TestedTorch, torch), lost)
    except OSError as error:
        raise TestRunBroken(
            "The interpreter that holds torch cannot be started.",
            seen=f"{build.interpreter}: {error}",
            fix="run `crcr build-pytorch` again in this job: an environment does not travel between machines",
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def read_environment(lines: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` lines as a mapping. Raises UsageError."""
    result: dict[str, str] = {}
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or not name.replace("_", "a").isalnum():
            raise UsageError(
                "test-environment has a line that sets nothing.",
                seen=show(line),
                fix="write NAME=VALUE, one a line",
            )
        result[name] = value
    return result


def _start(
    command: Sequence[str], place: SessionPlace, log: Path, stream: Optional[TextIO], watch: Optional[Watch]
) -> Completed:
    return run(
        command,
        cwd=place.workspace,
        environment=scrubbed(place.environment),
        deadline_seconds=place.deadline_seconds,
        stream=stream,
        log=log,
        watch=watch,
    )


def _read(cls: type[T], path: Path) -> Optional[T]:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_REPORT_BYTES:
            return None
        return parse(cls, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ShapeError, RecursionError):
        return None
