"""`make bench-skips`: how long one test takes to look up in a long skip list, beside a linear scan of the same list.

    python benchmarks/skips.py [LIST.json[.gz]]

Without a list one is generated with the shape of a real backend's: few classes, many operators, a name a dtype.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips.entry import Entry
from backend_ci.testing.skips.match import KnownTest, SkipIndex
from backend_ci.testing.skips.read import read_skip_list

LIMIT_MICROSECONDS = 20.0
_ENTRIES = 32_000
_REPEATS = 7
_DTYPES = (
    "float32",
    "float16",
    "bfloat16",
    "float64",
    "int8",
    "int16",
    "int32",
    "int64",
    "complex64",
    "bool",
)


def generated(number: int) -> dict[str, object]:
    """A list of ids as torch_npu writes them. The same each time."""
    numbers = random.Random(20260822)
    listed: dict[str, object] = {}
    while len(listed) < number:
        family = min(int(numbers.paretovariate(0.9)), 300)  # a few classes hold most entries
        method, operator = f"test_case_{numbers.randrange(40)}", f"operator_{numbers.randrange(500)}"
        dtype = numbers.choice(_DTYPES)
        listed[f"{method}_{operator}_npu_{dtype} (__main__.TestFamily{family}PRIVATEUSE1)"] = ["", [""]]
    return listed


def content(arguments: Sequence[str]) -> tuple[str, str]:
    """What is measured with, in words, and its JSON."""
    if arguments:
        path = Path(arguments[0])
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return path.name, data.decode()
    return "generated", json.dumps(generated(_ENTRIES))


def seconds_each(work: Callable[[str], object], tests: Sequence[str]) -> float:
    """The best of several rounds, per test: what a busy machine adds is not the program's."""
    best = float("inf")
    for _ in range(_REPEATS):
        started = time.perf_counter()
        for test in tests:
            work(test)
        best = min(best, (time.perf_counter() - started) / len(tests))
    return best


def linear(entries: Sequence[Entry], test: KnownTest) -> bool:
    cls, stem, device, dtype = test.id.key
    return any(
        entry.cls == cls
        and entry.method == stem
        and device in entry.devices
        and (not entry.dtypes or dtype in entry.dtypes)
        for entry in entries
    )


def main(arguments: Sequence[str]) -> int:
    name, text = content(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "list.json"
        path.write_text(text, encoding="utf-8")
        started = time.perf_counter()
        skips = read_skip_list(path, ("npu",))
        loaded = time.perf_counter()
        index = SkipIndex(skips.entries, today=date(2026, 1, 1))
        indexed = time.perf_counter()
    names, numbers = TestNames(("npu",)), random.Random(7)
    listed = [test for test in json.loads(text) if _readable(names, test)]
    present = numbers.sample(listed, min(4_000, len(listed)))
    tests = [*present, *(test.replace("test_", "test_other_", 1) for test in present)]
    numbers.shuffle(tests)
    ours = seconds_each(lambda test: index.find(KnownTest(names.parse(test))), tests) * 1e6
    found = sum(index.find(KnownTest(names.parse(test))) is not None for test in tests)
    scan = seconds_each(lambda test: linear(skips.entries, KnownTest(names.parse(test))), tests[:20]) * 1e6
    print(f"list: {name}, {len(skips.entries):,} entries, {len(skips.problems)} malformed")
    print(f"read in {loaded - started:.2f} s, indexed in {indexed - loaded:.2f} s, once a run")
    print(f"looked up: {len(tests):,} tests, {found:,} of them listed; best of {_REPEATS} rounds")
    print(f"  indexed      {ours:10.1f} µs a test, its name parsed included (limit {LIMIT_MICROSECONDS:g})")
    print(f"  linear scan  {scan:10.1f} µs a test; {scan / ours:,.0f} times as long")
    return 0 if ours < LIMIT_MICROSECONDS else 1


def _readable(names: TestNames, test: str) -> bool:
    try:
        names.parse(test)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
