"""What the backend must not disturb, and how it is packaged."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files

import torch
from hardware_classification import HardwareClassification
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, run_tests


class TestHost(TestCase):
    """The CPU works as if the backend were not there."""

    hw_classification = HardwareClassification.CPU

    def test_default_device(self, device):
        self.assertEqual(torch.ones(2).device.type, device)

    def test_plain_tensors(self, device):
        self.assertIs(type(torch.ones(2, device=device) + 1), torch.Tensor)

    def test_complex_numbers(self, device):
        self.assertEqual(torch.ones(2, dtype=torch.complex64, device=device).sum().item(), 2 + 0j)

    def test_numpy_shares_memory(self, device):
        tensor = torch.zeros(2, device=device)
        tensor.numpy()[0] = 1
        self.assertEqual(tensor.tolist(), [1, 0])


class TestPackaging(TestCase):
    """Has no classification, as most of PyTorch's test classes have none: such a class runs everywhere."""

    def test_version(self):
        self.assertRegex(version("torch-refdev"), r"^\d+\.\d+\.\d+")

    def test_compiled_against_this_torch(self):
        """The commit may differ: a torch that is the same binary with other Python files is fine."""
        info = json.loads(files("torch_refdev").joinpath("build_info.json").read_text(encoding="utf-8"))
        self.assertEqual(info["torch_version"], torch.__version__)
        self.assertEqual(info["cxx11_abi"], torch._C._GLIBCXX_USE_CXX11_ABI)

    def test_import_without_autoload(self):
        """The package registers the device itself where PyTorch was told to load no backends."""
        code = "import torch_refdev, torch; print(torch.ones(2, device='refdev').sum().item())"
        environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
        done = subprocess.run(
            [sys.executable, "-c", code], check=False, env=environment, capture_output=True, text=True
        )
        self.assertEqual(done.stdout.strip(), "2.0", done.stderr)


instantiate_device_type_tests(TestHost, globals(), only_for="cpu")

if __name__ == "__main__":
    run_tests()
