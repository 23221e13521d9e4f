"""`make bench-build`: a C++ backend against real PyTorch, compiled cold and warm, through the toolkit's own set-up.

What is measured is the compile part, from the start of the first compiler to the end of the last, as ninja's own
log has it. Beside it stands the whole command: no cache saves the import of torch, ninja's rules and the link.
Ends with exit code 1 when a warm build has too few hits or is not fast enough.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from backend_ci.build.cache_statistics import Counted
from backend_ci.build.compiler_cache import CompilerCacheOptions, compiler_cache
from backend_ci.build.environment import RunEnvironment
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext

LEAST_HITS_PERCENT = 95.0
LEAST_SPEED_UP = 10.0
_DEADLINE_SECONDS = 1_800.0
_IGNORED = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "*.so")


@dataclass(frozen=True)
class Row:
    """One build. `cold` starts with an empty cache; the others must be served by what it left."""

    title: str
    tool: str
    place: str
    trust: str = "landed"
    cold: bool = False


def _rows(tool: str) -> tuple[Row, ...]:
    return (
        Row(f"{tool}, cold", tool, "a", cold=True),
        Row(f"{tool}, warm, same folder", tool, "a"),
        Row(f"{tool}, warm, another folder at another depth", tool, "b/deeper"),
        Row(f"{tool}, a pull request: read-only seed, nothing local", tool, "c", "pull-request"),
    )


ROWS = (Row("no cache", "none", "a", cold=True), *_rows("ccache"), *_rows("sccache"))


@dataclass(frozen=True)
class Measured:
    """Seconds of the compile part and of the whole command, and what the cache counted."""

    row: Row
    compile_seconds: float
    command_seconds: float
    counted: Optional[Counted]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--python", type=Path, required=True, help="interpreter with torch, ninja, ccache and sccache"
    )
    parser.add_argument("--source", type=Path, default=Path("examples/reference-backend"))
    parser.add_argument(
        "--scratch", type=Path, required=True, help="folder to work in; its content is replaced"
    )
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    scratch: Path = given.scratch.absolute()
    shutil.rmtree(scratch, ignore_errors=True)
    bench = Bench(given.python.absolute(), given.source.absolute(), scratch, given.jobs)
    print("Reading the headers once, so that no row pays for a cold disk ...", flush=True)
    bench.read_headers()
    measured = []
    for number, row in enumerate(ROWS, 1):
        print(f"{number}/{len(ROWS)} {row.title} ...", flush=True)
        measured.append(bench.measure(row))
        print(f"    {measured[-1].compile_seconds:.2f} s", flush=True)
    print("\n" + "\n".join(table(measured)))
    faults = verdict(measured)
    print("\n" + ("\n".join(faults) if faults else _passed()))
    shutil.rmtree(scratch, ignore_errors=True)
    return 1 if faults else 0


def _passed() -> str:
    return (
        f"Verdict: every warm build has at least {LEAST_HITS_PERCENT:g} % hits "
        f"and compiles at least {LEAST_SPEED_UP:g} times faster than cold."
    )


class Bench:
    """Builds the sources in folders of its own."""

    def __init__(self, python: Path, source: Path, scratch: Path, jobs: int) -> None:
        self.python, self.source, self.scratch, self.jobs = python, source, scratch, jobs
        (self.site,) = python.parent.parent.glob("lib/python*/site-packages")

    def read_headers(self) -> None:
        for path in (self.site / "torch" / "include").rglob("*"):
            if path.is_file():
                path.read_bytes()

    def measure(self, row: Row) -> Measured:
        store = self.scratch / "cache"
        if row.cold:
            shutil.rmtree(store, ignore_errors=True)
        workspace = self.scratch / row.place / "workspace"
        folder = self.scratch / row.place / "temp" / "crcr"
        shutil.rmtree(self.scratch / row.place, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copytree(self.source, workspace, ignore=_IGNORED)
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        context = RunContext(on_github=False, environment={**kept, "MAX_JOBS": str(self.jobs)})
        with (folder / "log").open("w", encoding="utf-8") as log:
            commands = Commands(context, log)
            environment = RunEnvironment(
                self.python, folder, context.environment, commands, _DEADLINE_SECONDS, workspace
            )
            options = CompilerCacheOptions(compiler_cache=row.tool, compiler_cache_dir=store, trust=row.trust)
            with compiler_cache(
                options, environment, "build-backend", roots=(workspace,), torch=self.site / "torch"
            ) as cache:
                started = time.monotonic()
                cache.environment.require(
                    [str(self.python), "setup.py", "build_ext"],
                    what="The extension does not compile.",
                    fix=f"look into {folder / 'log'}",
                    cwd=workspace,
                    extra={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
                )
                seconds = time.monotonic() - started
        counted = next((Counted(it.hits, it.misses, it.uncached) for it in cache.statistics), None)
        (ninja_log,) = workspace.glob("build/**/.ninja_log")
        return Measured(row, compile_seconds(ninja_log.read_text(encoding="utf-8")), seconds, counted)


def compile_seconds(ninja_log: str) -> float:
    """From the first start to the last end. A line has start and end in milliseconds, mtime, output, hash."""
    lines = [line.split("\t") for line in ninja_log.splitlines() if line and not line.startswith("#")]
    return (max(int(line[1]) for line in lines) - min(int(line[0]) for line in lines)) / 1000


def table(measured: Iterable[Measured]) -> list[str]:
    lines = [
        "| build | compile part, s | times faster than cold | whole command, s | hits | misses | hit rate |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    cold = 0.0
    for it in measured:
        if it.row.cold:
            cold = it.compile_seconds
        faster = "" if it.row.cold else f"{cold / it.compile_seconds:.0f}"
        counted = it.counted or Counted(0, 0, 0)
        hits, misses = (str(counted.hits), str(counted.misses)) if it.counted else ("", "")
        rate = f"{counted.rate:.0f} %" if counted.rate is not None else ""
        lines.append(
            f"| {it.row.title} | {it.compile_seconds:.2f} | {faster} | {it.command_seconds:.1f} "
            f"| {hits} | {misses} | {rate} |"
        )
    return lines


def verdict(measured: Iterable[Measured]) -> list[str]:
    """What is not as promised, one line each."""
    faults = []
    cold = 0.0
    for it in measured:
        if it.row.cold:
            cold = it.compile_seconds
            continue
        rate = it.counted.rate if it.counted else None
        if rate is None or rate < LEAST_HITS_PERCENT:
            told = "no statistics" if rate is None else f"{rate:.0f} %"
            faults.append(f"Verdict: {it.row.title}: {told} hits, promised are {LEAST_HITS_PERCENT:g} %.")
        if cold < LEAST_SPEED_UP * it.compile_seconds:
            faults.append(
                f"Verdict: {it.row.title}: {cold / it.compile_seconds:.1f} times faster than cold, "
                f"promised is {LEAST_SPEED_UP:g}."
            )
    return faults


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
