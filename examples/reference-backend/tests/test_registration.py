"""What PyTorch knows about the device without running anything on it."""

import pickle
from importlib.metadata import entry_points

import torch
from hardware_classification import HardwareClassification
from torch.testing._internal.common_utils import (
    TestCase,
    instantiate_parametrized_tests,
    parametrize,
    run_tests,
)


@instantiate_parametrized_tests
class TestDeviceName(TestCase):
    """`torch.device` objects of this backend."""

    hw_classification = HardwareClassification.GENERIC

    def test_backend_name(self):
        self.assertEqual(torch._C._get_privateuse1_backend_name(), "refdev")

    @parametrize("name,index", [("refdev", None), ("refdev:0", 0), ("refdev:1", 1)])
    def test_parse(self, name, index):
        parsed = torch.device(name)
        self.assertEqual((parsed.type, parsed.index), ("refdev", index))

    @parametrize("name", ["refdev:", "refdev:-1", "refdev:one", "refdevice"])
    def test_parse_invalid(self, name):
        with self.assertRaises(RuntimeError):
            torch.device(name)

    def test_repr(self):
        self.assertEqual(str(torch.device("refdev", 1)), "refdev:1")
        self.assertExpectedInline(repr(torch.device("refdev", 1)), """device(type='refdev', index=1)""")

    def test_equality_and_hash(self):
        self.assertEqual(torch.device("refdev:1"), torch.device("refdev", 1))
        self.assertNotEqual(torch.device("refdev:0"), torch.device("refdev:1"))
        self.assertEqual(len({torch.device("refdev:0"), torch.device("refdev", 0)}), 1)

    @parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
    def test_pickle(self, protocol):
        device = torch.device("refdev:1")
        self.assertEqual(pickle.loads(pickle.dumps(device, protocol)), device)


class TestRegistration(TestCase):
    """Names and methods that registering the backend adds to PyTorch."""

    hw_classification = HardwareClassification.GENERIC

    def test_entry_point(self):
        names = [entry_point.name for entry_point in entry_points(group="torch.backends")]
        self.assertEqual(names.count("torch_refdev"), 1)

    def test_device_module(self):
        self.assertIs(torch.get_device_module("refdev"), torch.refdev)

    def test_register_twice(self):
        from torch_refdev import _autoload

        _autoload()
        with self.assertRaisesRegex(RuntimeError, "already"):
            torch._register_device_module("refdev", torch.refdev)

    def test_rename_again(self):
        torch.utils.rename_privateuse1_backend("refdev")
        with self.assertRaisesRegex(RuntimeError, "already been set"):
            torch.utils.rename_privateuse1_backend("another")

    def test_device_type_alias(self):
        from torch._C._autograd import DeviceType

        self.assertEqual(DeviceType.REFDEV, DeviceType.PrivateUse1)
        self.assertEqual(str(DeviceType.PrivateUse1), "DeviceType.REFDEV")

    def test_profiler_activity_alias(self):
        from torch.profiler import ProfilerActivity

        self.assertEqual(ProfilerActivity.REFDEV, ProfilerActivity.PrivateUse1)

    def test_generated_methods(self):
        for owner in (torch.Tensor, torch.nn.Module, torch.nn.utils.rnn.PackedSequence):
            self.assertTrue(callable(owner.refdev), owner)

    def test_cpu_tensor_is_elsewhere(self):
        self.assertFalse(torch.ones(2).is_refdev)


if __name__ == "__main__":
    run_tests()
