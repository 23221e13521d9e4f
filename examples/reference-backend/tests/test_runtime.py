"""The devices themselves: how many, which is current, their random numbers. Nothing here makes sense on the CPU."""

import torch
from hardware_classification import HardwareClassification
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_utils import TestCase, parametrize, run_tests


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

    def test_set_device_index(self, device):
        with torch.accelerator.device_index(1):
            self.assertEqual(torch.accelerator.current_device_index(), 1)

    def test_synchronize(self, device):
        torch.accelerator.synchronize()

    def test_memory(self, device):
        before = torch.accelerator.memory_allocated(device)
        tensor = torch.empty(256, dtype=torch.float32, device=device)
        self.assertEqual(torch.accelerator.memory_allocated(device), before + 1024)
        del tensor
        self.assertEqual(torch.accelerator.memory_allocated(device), before)
        self.assertGreaterEqual(torch.accelerator.max_memory_allocated(device), before + 1024)


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

    def test_to_moves_to_the_current_device(self, device):
        torch.refdev.set_device(1)
        self.assertEqual(torch.ones(2).to("refdev").device, torch.device("refdev:1"))

    def test_synchronize(self, device):
        torch.refdev.synchronize(device)


class TestMemoryLimit(TestCase):
    """Memory runs out, and there is some again when a tensor is gone."""

    hw_classification = HardwareClassification.ACCELERATOR

    def setUp(self):
        super().setUp()
        free, self.total = torch.accelerator.get_memory_info("refdev:1")
        torch.refdev.set_memory_limit(self.total - free + 1000, "refdev:1")

    def tearDown(self):
        torch.refdev.set_memory_limit(self.total, "refdev:1")
        super().tearDown()

    def test_out_of_memory(self, device):
        with self.assertRaisesRegex(torch.OutOfMemoryError, "refdev:1 is out of memory: .* 1001 bytes"):
            torch.empty(1001, dtype=torch.uint8, device="refdev:1")

    def test_memory_comes_back(self, device):
        for _ in range(3):
            self.assertEqual(torch.ones(1000, dtype=torch.uint8, device="refdev:1").shape, (1000,))

    def test_other_device_is_left_alone(self, device):
        self.assertEqual(torch.ones(1001, dtype=torch.uint8, device="refdev:0").shape, (1001,))


class TestFallback(TestCase):
    """Operators without a kernel run on the CPU, and the backend knows which and how often."""

    hw_classification = HardwareClassification.ACCELERATOR

    def setUp(self):
        super().setUp()
        torch.refdev.reset_fallback_counts()

    def test_counts(self, device):
        tensor = torch.ones(2, device=device)
        tensor.sin().sin().add(1)
        self.assertEqual(torch.refdev.fallback_counts(), {"aten::sin.out": 2, "aten::add.out": 1})

    def test_own_kernels_do_not_count(self, device):
        tensor = torch.zeros(2, 3, device=device).fill_(4)
        self.assertEqual(tensor.t()[0].view(2).to("refdev:1").cpu().tolist(), [4, 4])
        self.assertEqual(tensor[0, 0].item(), 4)
        self.assertEqual(torch.refdev.fallback_counts(), {})

    def test_convolution_counts_as_itself(self, device):
        torch.conv1d(torch.ones(1, 1, 3, device=device), torch.ones(1, 1, 2, device=device))
        self.assertEqual(torch.refdev.fallback_counts(), {"aten::convolution": 1})


class TestGenerator(TestCase):
    """Generators that users make."""

    hw_classification = HardwareClassification.ACCELERATOR

    def test_device(self, device):
        self.assertEqual(torch.Generator(device=device).device, torch.device(device))

    def test_repeats(self, device):
        generator = torch.Generator(device=device).manual_seed(7)
        first = torch.randn(8, device=device, generator=generator)
        self.assertNotEqual(first, torch.randn(8, device=device, generator=generator))
        self.assertEqual(first, torch.randn(8, device=device, generator=generator.manual_seed(7)))

    def test_state(self, device):
        generator = torch.Generator(device=device)
        state = generator.get_state()
        first = torch.rand(8, device=device, generator=generator)
        generator.set_state(state)
        self.assertEqual(first, torch.rand(8, device=device, generator=generator))

    def test_default_generator_is_left_alone(self, device):
        before = torch.refdev.get_rng_state(device)
        torch.rand(8, device=device, generator=torch.Generator(device=device))
        self.assertEqual(torch.refdev.get_rng_state(device), before)

    def test_of_the_cpu_is_refused(self, device):
        with self.assertRaisesRegex(RuntimeError, "generator"):
            torch.rand(8, device=device, generator=torch.Generator())


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
instantiate_device_type_tests(TestMemoryLimit, globals(), except_for="cpu")
instantiate_device_type_tests(TestFallback, globals(), except_for="cpu")
instantiate_device_type_tests(TestGenerator, globals(), except_for="cpu")
instantiate_device_type_tests(TestRandomState, globals(), except_for="cpu")

if __name__ == "__main__":
    run_tests()
