"""Runs inside the environment under test: one pytest session that selects, and keeps a journal.

Started by path (`python …/crcr_session.py SETTINGS`), so that the working folder is not on sys.path: a
backend's source tree must not be imported instead of the installed backend. Imports nothing of the toolkit;
what it writes is read outside as a stranger's.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Optional

import pytest

_ALIASES = {"DEVICE_GENERIC": "ACCELERATOR"}
_MESSAGE_CHARACTERS = 1_024
_TRACE_CHARACTERS = 4_096
_PROBE_SECONDS = 60


def classification_of(item: Any) -> Optional[str]:
    """The hardware classification a test's class declares, as upstream's loader finds it: by inheritance."""
    declared = getattr(item.cls, "hw_classification", None)
    if declared is None:
        return None
    name = str(getattr(declared, "name", declared)).upper()
    return _ALIASES.get(name, name)


def origin_of(item: Any) -> Optional[tuple[str, str]]:
    """A device test's method as the source names it, and its operator's full name; None for any other test.

    PyTorch's instantiate_test keeps both: the name through functools.wraps, the parameters as a default.
    """
    function = getattr(item.cls, getattr(item, "originalname", None) or item.name, None)
    source = getattr(function, "__name__", "")
    defaults = getattr(function, "__defaults__", None) or ()
    parameters = defaults[0] if defaults and isinstance(defaults[0], dict) else {}
    operator = getattr(parameters.get("op"), "full_name", "")
    if source in ("", item.name) and not operator:
        return None
    return str(source), str(operator)


def backend_name() -> str:
    """The name that stands for PrivateUse1 in test ids."""
    core = getattr(sys.modules.get("torch"), "_C", None)
    name = getattr(core, "_get_privateuse1_backend_name", None)
    return str(name()) if name is not None else ""


def mark(item: Any, mode: str, reason: str) -> None:
    """What a skip list says of a test. It stays collected, and ends as skipped or as an expected failure."""
    if mode == "skip":
        item.add_marker(pytest.mark.skip(reason=reason), append=False)
    elif mode:
        item.add_marker(pytest.mark.xfail(reason=reason, strict=mode == "xfail-strict"), append=False)


def origins_of(items: list[pytest.Item]) -> list[dict[str, Any]]:
    """Tests by what they come from."""
    groups: dict[tuple[str, str], list[str]] = {}
    for item in items:
        origin = origin_of(item)
        if origin is not None:
            groups.setdefault(origin, []).append(item.nodeid)
    return [
        {"tests": tests, "source": source, "operator": operator}
        for (source, operator), tests in groups.items()
    ]


class Selection:
    """Keeps the tests that fit, and says of the others why not."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.wanted = frozenset(settings["hw_classification"])
        self.unclassified = settings["unclassified"]
        self.planned = settings.get("planned")
        self.skips = settings.get("skips") or {}
        self.report = settings["report"]
        self.counts = dict.fromkeys(("selected", "mismatched", "unclassified", "without_class"), 0)
        self.unclassified_classes: list[str] = []
        self.broken_files: list[str] = []
        self.selected: list[str] = []
        self.origins: list[dict[str, Any]] = []

    @pytest.hookimpl(trylast=True)  # after the user's own plugins and conftest files
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept = [item for item in items if self.keeps(item)]
        if self.planned is not None:
            planned = set(self.planned)
            kept = [item for item in kept if item.nodeid in planned]
        chosen = {id(item) for item in kept}
        gone = [item for item in items if id(item) not in chosen]
        if gone:
            config.hook.pytest_deselected(items=gone)
        items[:] = kept
        self.selected = [item.nodeid for item in kept]
        self.origins = origins_of(kept)
        for item in kept:
            mark(item, *self.skips.get(item.nodeid, ("", "")))

    def keeps(self, item: Any) -> bool:
        if item.cls is None:
            kind = "without_class"
        else:
            name = classification_of(item)
            if name is None:
                kind = "unclassified"
                cls = f"{item.nodeid.partition('::')[0]}::{item.cls.__name__}"
                if cls not in self.unclassified_classes:
                    self.unclassified_classes.append(cls)
            else:
                kind = "selected" if name in self.wanted else "mismatched"
        if kind in ("without_class", "unclassified") and self.unclassified == "run":
            kind = "selected"
        self.counts[kind] += 1
        return kind == "selected"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            reason = str(report.longrepr).strip().splitlines() or ["no reason given"]
            self.broken_files.append(f"{report.nodeid or 'collection'}: {reason[-1]}"[:_MESSAGE_CHARACTERS])

    def pytest_sessionfinish(self) -> None:
        report: dict[str, Any] = {
            "collected": {**self.counts, "broken": len(self.broken_files)},
            "tests": self.selected,
            "broken_files": self.broken_files,
            "unclassified_classes": self.unclassified_classes,
            "origins": self.origins,
            "device": backend_name(),
        }
        write_json(self.report, report)


class Journal:
    """One line when a test starts and one when it ends, on disk before the next test begins."""

    def __init__(self, path: str) -> None:
        # A process that died in the middle of a line: what this one writes must not become part of it.
        torn = Path(path).is_file() and not (Path(path).read_bytes() or b"\n").endswith(b"\n")
        self.file = Path(path).open("a", encoding="utf-8", buffering=1)  # noqa: SIM115 - open as long as the process
        self.file.write("\n" * torn)
        self.running: dict[str, dict[str, Any]] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running[nodeid] = {"outcome": "passed", "message": "", "trace": "", "started": time.monotonic()}
        self.write({"test": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        state = self.running.get(report.nodeid)
        if state is None:
            return
        if report.failed:
            if state["outcome"] != "failed":
                state.update(outcome="failed", message=first_words(report), trace=trace_of(report))
        elif report.skipped and state["outcome"] == "passed":
            expected = hasattr(report, "wasxfail")
            state.update(outcome="xfailed" if expected else "skipped", message=first_words(report))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        state = self.running.pop(nodeid)
        self.write(
            {
                "test": nodeid,
                "outcome": state["outcome"],
                "seconds": round(time.monotonic() - state["started"], 6),
                "message": state["message"][:_MESSAGE_CHARACTERS],
                "trace": state["trace"][-_TRACE_CHARACTERS:],
            }
        )

    def write(self, line: dict[str, Any]) -> None:
        self.file.write(json.dumps(line) + "\n")


class DeviceProbe:
    """After a failed test, asks whether the device still works. If not, the session ends: a new process may help."""

    def __init__(self, probe: str, report: str) -> None:
        self.probe = probe
        self.report = report
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    # pytest looks at `shouldstop` right after this test.
    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: Optional[pytest.Item]) -> None:
        failed, self.failed = self.failed, False
        reason = self.ask() if failed and nextitem is not None else ""
        if reason:
            write_json(self.report, {"test": item.nodeid, "message": reason[-_MESSAGE_CHARACTERS:]})
            item.session.shouldstop = f"the device does not answer any more: {reason}"

    def ask(self) -> str:
        """Why the device does not work; empty if it does."""
        if re.fullmatch(r"[\w.]+:[\w.]+", self.probe):
            module, _, name = self.probe.partition(":")
            try:
                function: Any = importlib.import_module(module)
                for part in name.split("."):
                    function = getattr(function, part)
                function()
            except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
                return f"{type(error).__name__}: {error}"
            return ""
        environment = {**os.environ, "PYTHON": sys.executable}
        try:
            done = subprocess.run(
                ["sh", "-c", self.probe],
                env=environment,
                timeout=_PROBE_SECONDS,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no answer after {_PROBE_SECONDS} s"
        last = (done.stderr or done.stdout).strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return last[0] if done.returncode else ""


def first_words(report: pytest.TestReport) -> str:
    """The reason of a skip, or the message of a failure, in one line."""
    if hasattr(report, "wasxfail"):
        return str(report.wasxfail)
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2])
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    # Without a crash (a fixture that does not exist) pytest marks what matters with an E.
    marked = [line[1:].strip() for line in lines if line.startswith("E ") and crash is None]
    return (marked or lines or [""])[0]


def trace_of(report: pytest.TestReport) -> str:
    return str(report.longrepr)


def write_json(path: str, value: object) -> None:
    Path(path).write_text(json.dumps(value), encoding="utf-8")


def note_torch(path: str) -> None:
    """Which torch this process tests. Imported here, as the tests will, with the backend autoloaded."""
    import torch

    write_json(path, {"git_version": str(torch.version.git_version), "location": str(torch.__file__)})


class Tolerances:
    """The backend's tolerances, before a test class is made: PyTorch's own op_overrides (torch 2.13 and newer).

    A decorator that names the backend's device leaves the tests of other devices as they are.
    """

    def __init__(self, listed: list[dict[str, Any]]) -> None:
        self.listed = listed

    def pytest_sessionstart(self) -> None:
        import torch

        # The devices that tests are made for are fixed when PyTorch's test classes are imported, which is here.
        if not hasattr(torch, backend_name()):
            raise pytest.UsageError(
                "tolerances need a backend that is there before test files are imported: "
                "load it by an entry point of torch.backends, or in the first conftest.py"
            )
        from torch.testing._internal import common_device_type as made
        from torch.testing._internal.opinfo.core import DecorateInfo

        base = made.PrivateUse1TestBase
        if not hasattr(base, "op_overrides"):
            raise pytest.UsageError("tolerances need torch 2.13 or newer: it has op_overrides")
        by_operator: dict[str, dict[Any, Any]] = {}
        for each in self.listed:
            dtypes = by_operator.setdefault(each["operator"], {})
            dtypes[getattr(torch, each["dtype"])] = made.tol(atol=each["atol"], rtol=each["rtol"])
        overrides = dict(base.op_overrides or {})
        for operator, dtypes in by_operator.items():
            ours = DecorateInfo(made.toleranceOverride(dtypes), device_type=backend_name())
            overrides[operator] = [*overrides.get(operator, []), ours]
        base.op_overrides = overrides


def main(settings: dict[str, Any]) -> int:
    note_torch(settings["torch"])
    plugins: list[object] = [Selection(settings)]
    if settings.get("tolerances"):
        plugins.append(Tolerances(settings["tolerances"]))
    if settings.get("journal"):
        plugins.append(Journal(settings["journal"]))
    if settings.get("device_probe"):
        plugins.append(DeviceProbe(settings["device_probe"], settings["lost_device"]))
    return int(pytest.main(settings["arguments"], plugins=plugins))


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
