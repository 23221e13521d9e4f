"""The devices themselves: how many, which is current, their random numbers. Nothing here makes sense on the CPU."""

import unittest

import torch
from hardware_classification import HardwareClassification
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, parametrize, run_tests

NEEDS_NATIVE_GUARD = "PyTorch's device guard for Python backends does not know the current device"


class TestAccelerator(TestCase):
    """The device through `torch.accelerator`, as code that does not know its name sees it."""

    hw_classification = HardwareClassification.ACCELERATOR

    def test_current_accelerator(self, device):
        self.assertEqual(torch.accelerator.current_accelerator().type, torch.device(device).type)
        self.assertEqual(
            torch.accelerator.current_accelerator(check_available=True).type, torch.device(device).type
        )

    def test_is_available(self, device):
        self.assertTrue(torch.accelerator.is_available())

    def test_device_count(self, device):
        self.assertEqual(torch.accelerator.device_count(), torch.get_device_module(device).device_count())

    def test_current_stream(self, device):
        self.assertEqual(torch.accelerator.current_stream().device.type, torch.device(device).type)

    def test_current_device_index(self, device):
        self.assertEqual(torch.accelerator.current_device_index(), 0)

    @unittest.skip(NEEDS_NATIVE_GUARD)
    def test_set_device_index(self, device):
        with torch.accelerator.device_index(1):
            self.assertEqual(torch.accelerator.current_device_index(), 1)

    @unittest.skip("PyTorch's device guard for Python backends cannot synchronize")
    def test_synchronize(self, device):
        torch.accelerator.synchronize()


class TestDeviceModule(TestCase):
    """The device through its module, `torch.refdev`."""

    hw_classification = HardwareClassification.ACCELERATOR

    def tearDown(self):
        torch.refdev.set_device(0)
        super().tearDown()

    def test_initialized(self, device):
        self.assertTrue(torch.refdev.is_available())
        self.assertTrue(torch.refdev.is_initialized())

    def test_two_devices(self, device):
        self.assertEqual(torch.refdev.device_count(), 2)

    @parametrize(
        "wanted", [1, "refdev:1", torch.device("refdev", 1)], name_fn=lambda wanted: type(wanted).__name__
    )
    def test_set_device(self, device, wanted):
        torch.refdev.set_device(wanted)
        self.assertEqual(torch.refdev.current_device(), 1)
        self.assertEqual(torch.ones(2, device="refdev").device, torch.device("refdev:1"))

    def test_device_context(self, device):
        with torch.refdev.device(1):
            self.assertEqual(torch.refdev.current_device(), 1)
        self.assertEqual(torch.refdev.current_device(), 0)

    def test_device_context_after_an_error(self, device):
        with self.assertRaises(ZeroDivisionError), torch.refdev.device(1):
            1 / 0  # noqa: B018
        self.assertEqual(torch.refdev.current_device(), 0)

    @parametrize("wrong", [2, "refdev:7", "cpu"])
    def test_set_device_invalid(self, device, wrong):
        with self.assertRaises(RuntimeError):
            torch.refdev.set_device(wrong)

    def test_generated_method_moves_to_the_current_device(self, device):
        torch.refdev.set_device(1)
        self.assertEqual(torch.ones(2).refdev().device, torch.device("refdev:1"))

    @unittest.skip(NEEDS_NATIVE_GUARD)
    def test_to_moves_to_the_current_device(self, device):
        torch.refdev.set_device(1)
        self.assertEqual(torch.ones(2).to("refdev").device, torch.device("refdev:1"))

    def test_synchronize(self, device):
        torch.refdev.synchronize(device)


class TestRandomState(TestCase):
    """Each device has random numbers of its own."""

    hw_classification = HardwareClassification.ACCELERATOR

    def test_manual_seed_repeats(self, device):
        torch.manual_seed(7)
        first = torch.randn(8, device=device)
        torch.manual_seed(7)
        self.assertEqual(first, torch.randn(8, device=device))

    def test_manual_seed_reaches_every_device(self, device):
        states = []
        for _ in range(2):
            torch.manual_seed(7)
            states.append([torch.refdev.get_rng_state(index) for index in range(torch.refdev.device_count())])
            for index in range(torch.refdev.device_count()):
                torch.randn(8, device=f"refdev:{index}")
        self.assertEqual(states[0], states[1])

    def test_drawing_advances(self, device):
        self.assertNotEqual(torch.randn(8, device=device), torch.randn(8, device=device))

    def test_cpu_is_left_alone(self, device):
        before = torch.get_rng_state()
        torch.randn(8, device=device)
        self.assertEqual(torch.get_rng_state(), before)

    def test_other_device_is_left_alone(self, device):
        before = torch.refdev.get_rng_state("refdev:1")
        torch.randn(8, device="refdev:0")
        self.assertEqual(torch.refdev.get_rng_state("refdev:1"), before)

    def test_state_round_trip(self, device):
        state = torch.refdev.get_rng_state(device)
        first = torch.rand(8, device=device)
        torch.refdev.set_rng_state(state, device)
        self.assertEqual(first, torch.rand(8, device=device))

    def test_fork_rng(self, device):
        before = torch.refdev.get_rng_state(0)
        with torch.random.fork_rng(devices=[0], device_type="refdev"):
            torch.randn(8, device="refdev:0")
        self.assertEqual(torch.refdev.get_rng_state(0), before)

    @parametrize("draw", ["rand", "randn", "randperm", "dropout", "rand_like", "bernoulli"])
    def test_every_source_is_seeded(self, device, draw):
        sources = {
            "rand": lambda: torch.rand(8, device=device),
            "randn": lambda: torch.randn(8, device=device),
            "randperm": lambda: torch.randperm(8, device=device),
            "dropout": lambda: torch.nn.functional.dropout(torch.ones(8, device=device)),
            "rand_like": lambda: torch.rand_like(torch.ones(8, device=device)),
            "bernoulli": lambda: torch.bernoulli(torch.full((8,), 0.5, device=device)),
        }
        torch.manual_seed(7)
        first = sources[draw]()
        torch.manual_seed(7)
        self.assertEqual(first, sources[draw]())


instantiate_device_type_tests(TestAccelerator, globals(), except_for="cpu")
instantiate_device_type_tests(TestDeviceModule, globals(), except_for="cpu")
instantiate_device_type_tests(TestRandomState, globals(), except_for="cpu")

if __name__ == "__main__":
    run_tests()
