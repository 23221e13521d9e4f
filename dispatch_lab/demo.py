"""The demo: bring a lab up, play a scenario, prove what the dashboard says, leave everything in a folder."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dispatch_lab.errors import LabError
from dispatch_lab.lab import Lab, lab
from dispatch_lab.proof import problems
from dispatch_lab.runner import WorkflowRun
from dispatch_lab.scenarios import Scenario, Step, hostile_traces

_RUN_SECONDS = 900.0
_BEAT_SECONDS = 5.0
_MARKER = ".crcr-demo"


@dataclass
class Timeline:
    """What happened, and when, in seconds since the start. Prints each event as it comes."""

    started: float = field(default_factory=time.monotonic)
    events: list[tuple[float, str]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, what: str) -> None:
        with self._lock:
            self.events.append((time.monotonic() - self.started, what))
            say(f"{self.events[-1][0]:7.1f} s  {what}")

    def beat(self, stop: threading.Event) -> None:
        """Show that it is still going while nothing else is printed."""
        while not stop.wait(_BEAT_SECONDS):
            quiet = time.monotonic() - self.started - (self.events[-1][0] if self.events else 0)
            if quiet >= _BEAT_SECONDS:
                say(f"{time.monotonic() - self.started:7.1f} s  …")


@dataclass(frozen=True)
class Shown:
    """A step, its run, and its row on the dashboard; the row is empty when there must be none, and is none."""

    step: Step
    run: WorkflowRun
    row: dict[str, Any]


@dataclass(frozen=True)
class Played:
    """A scenario that was played. `wrong` says what was not as expected; empty when everything was."""

    folder: Path
    shown: tuple[Shown, ...]
    wrong: tuple[str, ...]


def play(
    scenario: Scenario, folder: Path, wheelhouse: Path, stay: Callable[[str], None] | None = None
) -> Played:
    """Play a scenario in a new `folder`; one that an earlier demo made is replaced.

    `stay`, when given, is called with the dashboard's address while everything is still up.
    Raises LabError when the lab itself fails.
    """
    make_folder(folder)
    wheel = torch_wheel(wheelhouse)
    timeline = Timeline()
    timeline.add(f"scenario {scenario.name}: {scenario.story}")
    stop = threading.Event()
    threading.Thread(target=timeline.beat, args=(stop,), daemon=True).start()
    try:
        with lab(
            folder,
            wheel,
            wheelhouse,
            (scenario.downstream,),
            timeline.add,
            scenario.environment,
            scenario.make_upstream,
        ) as up:
            shown = [
                _walk(step, number, up, timeline)
                for number, step in enumerate(scenario.steps(up.upstream), 1)
            ]
            wrong = [
                f"{item.step.title}: {problem}"
                for item in shown
                for problem in problems(item.step, item.row, item.run)
            ]
            wrong += [
                f"text of the webhook was run as a command: {path} exists" for path in hostile_traces(folder)
            ]
            address = _keep_pages(scenario, shown, up, folder)
            stop.set()
            _say_result(shown, wrong, timeline, address, folder)
            if stay is not None:
                stay(address)
    finally:
        stop.set()
    return Played(folder, tuple(shown), tuple(wrong))


def make_folder(folder: Path) -> None:
    """Make the folder of a demo. Raises LabError rather than replace one that is somebody's."""
    marker = folder / _MARKER
    if folder.exists() and not marker.is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise LabError(
            "The output folder holds something else.",
            f"{folder} has no {_MARKER}, so no demo made it",
            "remove it, or name another folder: make demo OUTPUT=…",
        )
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    marker.touch()


def torch_wheel(wheelhouse: Path) -> Path:
    """The one PyTorch wheel of the wheelhouse. Raises LabError."""
    found = sorted(wheelhouse.glob("torch-*.whl"))
    if len(found) != 1:
        names = ", ".join(path.name for path in found) or "none"
        raise LabError("The wheelhouse must hold one PyTorch wheel.", f"{wheelhouse}: {names}", "make wheels")
    return found[0]


def _walk(step: Step, number: int, up: Lab, timeline: Timeline) -> Shown:
    """Send one webhook, wait for the workflow run it leads to, and read the row it made."""
    answer = up.send(step.delivery)
    dispatched = ", ".join(item["repo"] for item in answer["dispatched"])
    timeline.add(f"{step.title}: webhook of {len(step.delivery.body):,} bytes in, dispatched to {dispatched}")
    run = up.wait_for_runs(number, _RUN_SECONDS)[number - 1]
    timeline.add(f"{step.title}: workflow run {run.run_id} ended with {run.conclusion}")
    rows = up.data(f"/crcr/{run.repository}")["rows"]
    mine = [row for row in rows if row["run_id"] == str(run.run_id)]
    if step.not_run and not mine:
        timeline.add(f"{step.title}: not run, and the dashboard shows nothing")
        return Shown(step, run, {})
    if len(mine) != 1:
        raise LabError(
            "The dashboard does not show the run.", f"{len(mine)} rows of run {run.run_id}", f"read {run.log}"
        )
    timeline.add(f"{step.title}: the dashboard shows {mine[0]['status']}/{mine[0]['conclusion']}")
    return Shown(step, run, mine[0])


def _keep_pages(scenario: Scenario, shown: list[Shown], up: Lab, folder: Path) -> str:
    """Save the dashboard's pages as HTML and JSON; return the address of the repository's page."""
    path = f"/crcr/{scenario.downstream.repository}"
    pages = {"overview": "/crcr", "page": path}
    numbers = {item.row["pull_request"] for item in shown if item.row and item.row["pull_request"]}
    pages |= {f"pr-{number}": f"/pr/{number}" for number in numbers}
    for name, address in pages.items():
        (folder / f"{name}.html").write_text(up.page(address), encoding="utf-8")
        (folder / f"{name}.json").write_text(json.dumps(up.data(address), indent=2) + "\n", encoding="utf-8")
    return up.relay_url + path


def _say_result(shown: list[Shown], wrong: list[str], timeline: Timeline, address: str, folder: Path) -> None:
    say(f"\n{'PROVEN' if not wrong else 'NOT PROVEN'} in {time.monotonic() - timeline.started:.1f} s\n")
    for problem in wrong:
        say(f"  wrong: {problem}")
    say("  when     seconds  what")
    before = 0.0
    for at, what in timeline.events:
        say(f"  {at:6.1f}  {at - before:+7.1f}  {what}")
        before = at
    for item in shown:
        row = item.row
        if not row:
            say(f"\n  {item.step.title}: not run, as expected; see {item.run.summaries}/receive.md")
            continue
        say(
            f"\n  {item.step.title}: {row['conclusion']}, as {'expected' if row['conclusion'] == item.step.conclusion else 'NOT expected'}"
        )
        say(f"    commit  {row['commit']}")
        tests = f"{row['passed']} passed, {row['failed']} failed, {row['skipped']} skipped"
        say(f"    tests   {tests if row['passed'] is not None else 'none was run'}")
        for test in row["failed_tests"][:10]:
            say(f"    failed  {test['name']}: {' '.join(test['message'].split())[:160]}")
        for job in item.run.jobs.values():
            say(f"    job     {job.name}: {job.result}, {job.seconds:.1f} s")
    say(f"\n  dashboard  {address}")
    say(f"  kept in    {folder}: page.html, page.json, runs/ (artifacts, logs, summaries of each run)")


def say(text: str) -> None:
    """Print a line for the person at the terminal; control characters of others are shown, not obeyed."""
    sys.stdout.write("".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text) + "\n")
    sys.stdout.flush()
