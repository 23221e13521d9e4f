"""How fast `crcr classify` reads a tree, next to two processes that only `ast.parse` the same files.

    python benchmarks/classify.py [--tree PYTORCH/test] [--rounds 3]

Promises: cold at 0.6 of the speed of the bare parse or better; 1,200 unchanged files in under half a second. Without
`--tree` a tree is made (same seed, same tree): folders in the proportions of PyTorch's test times, sizes log-normal
with a median of 12 kB, long test classes, helpers and base classes in other files. Ends with 1 when a promise is
broken. The rounds alternate, and each figure is the best of its rounds: other work on the machine only adds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from backend_ci.testing.classify.read import PROCESSES, find_files, shares_by_size

FILES = 1_200
COLD_RATIO = 0.6
WARM_SECONDS = 0.5
WARM_ROUNDS = 4  # they are short, so one interruption is a large part of each
# Folders of PyTorch's test/, in files of the public test times of August 2026.
FOLDERS = {
    "distributed": 270, "inductor": 184, "": 165, "dynamo": 145, "cpython": 61, "torch_np": 36, "export": 32,
    "functorch": 30, "profiler": 17, "nn": 15, "python_native": 14, "quantization/core": 7,
}  # fmt: skip
_PARSE = """
import ast, sys, warnings
warnings.simplefilter("ignore")
if sys.argv[1] == "nogc":
    import gc
    gc.disable()
for line in sys.stdin:
    with open(line.rstrip("\\n"), "rb") as file:
        source = file.read()
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
"""
_HEAD = """# Owner(s): ["module: tests"]
import unittest
import torch
from torch.testing._internal.common_device_type import instantiate_device_type_tests, onlyCUDA, dtypes
from torch.testing._internal.common_utils import {enum}TestCase, parametrize, run_tests
{imports}

"""
_BODIES = (
    "x = torch.randn({n}, {m}, device={device}, dtype=dtype, requires_grad=True)",
    "self.assertEqual(x.sum(dim={n}), y.sum({m}), atol=1e-{n}, rtol=0)",
    "y = torch.nn.functional.linear(x.reshape(-1, {n}), w[{m}:], bias=None) + {n} * x[..., :{m}]",
    "for size in [(1, {n}), (2, {m}), (3, {n}, {m})]:\n            self.assertTrue(size[0] < {n} + len(size))",
    "with self.assertRaisesRegex(RuntimeError, 'expected .* but got {n}'):\n            torch.cat([x, y], dim={m})",
    "expected = [i * {n} for i in range({m}) if i % 3 == 1 and i not in (4, 5, {n})]",
    "if x.dim() > {n} and not y.is_contiguous():\n            x = x.transpose(0, 1).contiguous()",
    "fn = torch.compile(lambda a, b: (a @ b).relu().sum() + {n}, fullgraph=True, backend='eager')",
    "result = {{'a': x, 'b': [y, {n}], 'c': (x, {m})}}",
)
_DEVICES = ('"cpu"', "device", '"cuda"', "self.device", "x.device", "device")


def make_tree(folder: Path, seed: int = 20261001) -> None:
    """Write the tree: about 1,200 files and 30 MB."""
    draw = random.Random(seed)
    weights = list(FOLDERS.values())
    for number in range(FILES):
        place = folder / draw.choices(list(FOLDERS), weights)[0]
        place.mkdir(parents=True, exist_ok=True)
        size = min(700_000, max(1_500, int(draw.lognormvariate(9.4, 1.15))))
        (place / f"test_{number:04}.py").write_text(make_file(draw, number, size), encoding="utf-8")
    (folder / "common_tests.py").write_text(
        _HEAD.format(enum="HardwareClassification, ", imports="")
        + "class GenericTestCase(TestCase):\n    hw_classification = HardwareClassification.GENERIC\n",
        encoding="utf-8",
    )


def make_file(draw: random.Random, number: int, size: int) -> str:
    classified = draw.random() < 0.4
    text = _HEAD.format(
        enum="HardwareClassification, " if classified else "",
        imports="from common_tests import GenericTestCase" if draw.random() < 0.1 else "",
    )
    base = "GenericTestCase" if "GenericTestCase" in text else "TestCase"
    made = 0
    while len(text) < size:
        device = draw.random() < 0.4
        name = f"Test{number}Part{made}"
        text += f"\n\nclass {name}({base}):\n"
        if classified:
            text += (
                f"    hw_classification = HardwareClassification.{'ACCELERATOR' if device else 'GENERIC'}\n"
            )
        room = size - len(text)
        for test in range(max(1, min(60, room // 900))):
            text += "    @onlyCUDA\n" * (device and draw.random() < 0.1)
            text += f"    def test_case_{test}(self{', device' * device}, dtype=torch.float32):\n"
            for _ in range(draw.randint(4, 22)):
                body = draw.choice(_BODIES)
                given = draw.choice(_DEVICES)
                text += f"        {body.format(n=draw.randint(1, 9), m=draw.randint(1, 9), device=given)}\n"
        text += f"\ninstantiate_device_type_tests({name}, globals())\n" * device
        made += 1
    return text + "\nif __name__ == '__main__':\n    run_tests()\n"


def bare_parse(files: list[str], gc: str) -> float:
    """Seconds that two processes need to parse the files and do nothing else."""
    started = time.perf_counter()
    processes = []
    for share in shares_by_size(files, PROCESSES):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _PARSE, gc], stdin=subprocess.PIPE, text=True
        )
        processes.append((process, share))
    for process, share in processes:
        assert process.stdin is not None
        process.stdin.write("".join(f"{path}\n" for path in share))
        process.stdin.close()
    for process, _ in processes:
        process.wait()
    return time.perf_counter() - started


def classify(tree: Path, cache: Path) -> tuple[float, dict[str, object]]:
    """Seconds of the whole command, and its report."""
    started = time.perf_counter()
    done = subprocess.run(
        ["sh", str(ROOT / "bin" / "crcr"), "classify", str(tree), "--format", "json", "--cache", str(cache)],
        # The same Python as the bare parse: a version manager's wrapper would be measured twice over.
        env={**os.environ, "CRCR_LAUNCHER_PYTHON": sys.executable},
        stdout=subprocess.PIPE,
        check=True,
    )
    return time.perf_counter() - started, json.loads(done.stdout)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args(arguments)
    say = sys.stdout.write
    with tempfile.TemporaryDirectory() as temporary:
        tree = given.tree
        if tree is None:
            say("Making the tree ...\n")
            tree = Path(temporary) / "test"
            make_tree(tree)
        files = find_files([str(tree)], Path.cwd())
        say(
            f"{len(files):,} files, {sum(Path(path).stat().st_size for path in files) / 1e6:.1f} MB in {tree}\n"
        )
        seconds: dict[str, list[float]] = {"parse": [], "parse, no gc": [], "cold": [], "warm": []}
        report: dict[str, object] = {}
        for number in range(given.rounds):
            cache = Path(temporary) / f"cache{number}"
            seconds["parse"].append(bare_parse(files, "gc"))
            seconds["cold"].append(classify(tree, cache)[0])
            seconds["parse, no gc"].append(bare_parse(files, "nogc"))
            for _ in range(WARM_ROUNDS):
                taken, report = classify(tree, cache)
                seconds["warm"].append(taken)
        best = {name: min(values) for name, values in seconds.items()}
    say(f"classes: {report['counts']}\n\n")
    say(f"ast.parse, {PROCESSES} processes            {best['parse']:7.2f} s\n")
    say(f"ast.parse, {PROCESSES} processes, no gc     {best['parse, no gc']:7.2f} s\n")
    ratio = best["parse"] / best["cold"]
    say(
        f"crcr classify, nothing cached       {best['cold']:7.2f} s   {ratio:.2f} of its speed (promise: {COLD_RATIO})"
    )
    say(f"; {best['parse, no gc'] / best['cold']:.2f} without gc\n")
    limit = WARM_SECONDS * max(1.0, len(files) / FILES)
    say(f"crcr classify, nothing changed      {best['warm']:7.2f} s   (promise: below {limit:.2f} s)\n")
    broken = ratio < COLD_RATIO or best["warm"] >= limit
    say("A promise is broken.\n" if broken else "Both promises are kept.\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
