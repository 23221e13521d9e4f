"""Faults of a real device and its driver, switched on by REFDEV_FAULT: each does in a new process what it promises."""

import os
import signal
import subprocess
import sys

from hardware_classification import HardwareClassification
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, run_tests

SETUP = """
import torch

def show(what):
    try:
        print(what().tolist(), flush=True)
    except RuntimeError as error:
        print(f"{type(error).__name__}: {error}".splitlines()[0], flush=True)

x = torch.tensor([1, 2], device="refdev")
show(lambda: x + 1)  # works in each of the tests
"""


class TestFaults(TestCase):
    """A process with a fault: what it prints, and how it ends."""

    hw_classification = HardwareClassification.ACCELERATOR

    def start(self, fault, code=""):
        environment = {**os.environ, "REFDEV_FAULT": fault}
        command = [sys.executable, "-c", SETUP + code]
        started = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(started.kill)
        return started

    def finish(self, process):
        out, err = process.communicate(timeout=60)
        return process.returncode, out.splitlines(), err

    def test_segfault(self, device):
        code, lines, _ = self.finish(self.start("segfault:aten::mul", "show(lambda: x * 3)"))
        self.assertEqual(code, -signal.SIGSEGV)
        self.assertEqual(lines, ["[2, 3]"])

    def test_hang(self, device):
        process = self.start("hang:aten::mul", "show(lambda: x * 3)")
        self.assertEqual(process.stdout.readline(), "[2, 3]\n")
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.kill()
        self.assertEqual(self.finish(process)[:2], (-signal.SIGKILL, []))

    def test_poison(self, device):
        """Everything fails afterwards on that device, and nothing on the other."""
        after = """
y = torch.tensor([5], device="refdev:1")
for work in (lambda: x * 3, lambda: x + 1, lambda: torch.ones(1, device="refdev"), lambda: y + 1):
    show(work)
show(torch.accelerator.synchronize)
"""
        code, lines, _ = self.finish(self.start("poison:aten::mul", after))
        poisoned = "RuntimeError: refdev:0 is in an error state since aten::mul.out; only a new process can use it again"
        self.assertEqual((code, lines), (0, ["[2, 3]", poisoned, poisoned, poisoned, "[6]", poisoned]))

    def test_wrong(self, device):
        code, lines, _ = self.finish(self.start("wrong:aten::mul", "show(lambda: x * 3)"))
        self.assertEqual((code, lines), (0, ["[2, 3]", "[0, 6]"]))

    def test_oom(self, device):
        code, lines, _ = self.finish(self.start("oom:aten::mul", "show(lambda: x * 3); show(lambda: x + 1)"))
        message = "OutOfMemoryError: refdev:0 is out of memory: no room for another 1099511627776 bytes"
        self.assertEqual((code, lines), (0, ["[2, 3]", message, "[2, 3]"]))

    def test_one_overload(self, device):
        """A name with its overload means that one: aten::mul.Tensor is taken apart before it gets to the device."""
        code, lines, _ = self.finish(
            self.start("oom:aten::mul.Tensor,wrong:aten::mul.out", "show(lambda: x * 3)")
        )
        self.assertEqual((code, lines), (0, ["[2, 3]", "[0, 6]"]))

    def test_misspelt(self, device):
        code, lines, err = self.finish(self.start("segfualt:aten::mul"))
        self.assertEqual((code, lines), (1, []))
        self.assertIn("REFDEV_FAULT: 'segfualt:aten::mul' is not KIND:OPERATOR", err)


instantiate_device_type_tests(TestFaults, globals(), except_for="cpu")

if __name__ == "__main__":
    run_tests()
