"""Tensors on any device: made, moved, viewed, differentiated, saved. The CPU has to pass all of this as well."""

import copy
import io
import unittest

import torch
from hardware_classification import HardwareClassification
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import (
    deviceCountAtLeast,
    dtypes,
    instantiate_device_type_tests,
    onlyAccelerator,
)
from torch.testing._internal.common_utils import TestCase, parametrize, run_tests

ALL_DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.complex64,
)


class TestPlacement(TestCase):
    """Tensors get to the device and back, unchanged."""

    hw_classification = HardwareClassification.ACCELERATOR

    def require(self, device, dtype):
        """Skip where the device has no such numbers."""
        if dtype.is_complex and torch.device(device).type == "refdev":
            raise unittest.SkipTest(f"refdev does not support {dtype}")

    @dtypes(*ALL_DTYPES)
    def test_round_trip(self, device, dtype):
        self.require(device, dtype)
        host = make_tensor((3, 4), device="cpu", dtype=dtype)
        moved = host.to(device)
        self.assertEqual(moved.device.type, torch.device(device).type)
        self.assertEqual(moved.dtype, dtype)
        self.assertEqual(moved.cpu(), host)

    @dtypes(*ALL_DTYPES)
    def test_fill(self, device, dtype):
        self.require(device, dtype)
        filled = torch.full((2, 3), 1, device=device, dtype=dtype)
        self.assertEqual(filled.cpu(), torch.ones(2, 3, dtype=dtype))

    @dtypes(torch.complex64, torch.complex128)
    @onlyAccelerator
    def test_unsupported_dtype_is_refused(self, device, dtype):
        with self.assertRaisesRegex(TypeError, f"does not support {dtype}"):
            torch.empty(2, device=device, dtype=dtype)

    @parametrize("factory", ["arange", "eye", "linspace", "tensor", "zeros"])
    def test_factory(self, device, factory):
        argument = {"arange": (5,), "eye": (3,), "linspace": (0, 1, 5), "tensor": ([1, 2],), "zeros": (2, 2)}[
            factory
        ]
        made = getattr(torch, factory)(*argument, device=device)
        self.assertEqual(made.device, torch.device(device))
        self.assertEqual(made.cpu(), getattr(torch, factory)(*argument))

    def test_like(self, device):
        base = torch.ones(2, 3, device=device)
        for made in (torch.zeros_like(base), base.new_zeros(2, 3), torch.empty_like(base).zero_()):
            self.assertEqual(made.device, base.device)
            self.assertEqual(made.cpu(), torch.zeros(2, 3))

    def test_copy_is_separate(self, device):
        host = torch.zeros(3)
        moved = host.to(device, copy=True)
        moved.add_(1)
        self.assertEqual(host, torch.zeros(3))

    def test_strides_survive(self, device):
        host = torch.arange(6.0).reshape(2, 3).t()
        self.assertEqual(host.to(device).stride(), host.stride())

    def test_item_and_tolist(self, device):
        self.assertEqual(torch.tensor(1.5, device=device).item(), 1.5)
        self.assertEqual(torch.tensor([[1, 2], [3, 4]], device=device).tolist(), [[1, 2], [3, 4]])
        self.assertEqual(f"{torch.tensor(1.5, device=device):.2f}", "1.50")

    @onlyAccelerator
    def test_print_names_the_device(self, device):
        self.assertIn(f"([1., 1.], device='{device}')", str(torch.ones(2, device=device)))

    @onlyAccelerator
    def test_mixed_devices(self, device):
        with self.assertRaisesRegex(RuntimeError, "same device"):
            torch.ones(2, device=device) + torch.ones(2)

    @onlyAccelerator
    @deviceCountAtLeast(2)
    def test_between_devices(self, devices):
        there = torch.arange(3, device=devices[0]).to(devices[1])
        self.assertEqual(there.device, torch.device(devices[1]))
        self.assertEqual(there.cpu(), torch.arange(3))
        with self.assertRaisesRegex(RuntimeError, "same device"):
            there + torch.arange(3, device=devices[0])

    @onlyAccelerator
    def test_no_such_device(self, device):
        with self.assertRaisesRegex(RuntimeError, "invalid device index 7"):
            torch.ones(2, device="refdev:7")

    def test_cpu_scalar_may_join_in(self, device):
        self.assertEqual((torch.ones(2, device=device) * torch.tensor(3.0)).cpu(), torch.full((2,), 3.0))

    def test_default_device(self, device):
        with torch.device(device):
            self.assertEqual(torch.ones(2).device, torch.device(device))


class TestViews(TestCase):
    """A view shares its base's memory, and shapes follow operators that change them in place."""

    hw_classification = HardwareClassification.ACCELERATOR

    @parametrize("view", ["select", "slice", "transpose", "view", "unsqueeze", "expand", "diagonal"])
    def test_view_matches_cpu(self, device, view):
        arguments = {
            "select": (0, 1),
            "transpose": (0, 1),
            "view": (9,),
            "unsqueeze": (1,),
            "expand": (2, 3, 3),
            "diagonal": (),
        }
        host = torch.arange(9.0).reshape(3, 3)

        def take(tensor):
            return tensor[1:] if view == "slice" else getattr(tensor, view)(*arguments[view])

        mine, theirs = take(host.to(device)), take(host)
        self.assertEqual(mine.stride(), theirs.stride())
        self.assertEqual(mine.storage_offset(), theirs.storage_offset())
        self.assertEqual(mine.cpu(), theirs)

    def test_write_through_a_view(self, device):
        base = torch.zeros(2, 3, device=device)
        base.view(6)[4] = 1
        base.t()[0].fill_(2)
        self.assertEqual(base.cpu(), torch.tensor([[2.0, 0, 0], [2, 1, 0]]))

    @parametrize("operator", ["t_", "squeeze_", "unsqueeze_"])
    def test_shape_changes_in_place(self, device, operator):
        arguments = {"t_": (), "squeeze_": (), "unsqueeze_": (0,)}[operator]
        changed, expected = torch.ones(1, 3, device=device), torch.ones(1, 3)
        getattr(changed, operator)(*arguments)
        getattr(expected, operator)(*arguments)
        self.assertEqual((changed.shape, changed.stride()), (expected.shape, expected.stride()))
        self.assertEqual(changed.cpu(), expected)

    def test_out_is_resized(self, device):
        out = torch.empty(0, device=device)
        self.assertIs(torch.add(torch.ones(3, device=device), 1, out=out), out)
        self.assertEqual(out.cpu(), torch.full((3,), 2.0))

    def test_masks_and_indices(self, device):
        base = torch.arange(4.0, device=device)
        base[base > 2] = -1
        base[torch.tensor([0, 1], device=device)] += 5
        self.assertEqual(base.cpu(), torch.tensor([5.0, 6, 2, -1]))


class TestStorage(TestCase):
    """The memory under the tensors."""

    hw_classification = HardwareClassification.ACCELERATOR

    def test_resize_keeps_what_fits(self, device):
        tensor = torch.tensor([1, 2, 3], device=device)
        self.assertEqual(tensor.resize_(2, 3).flatten()[:3].tolist(), [1, 2, 3])
        self.assertEqual(tensor.resize_(2).tolist(), [1, 2])

    def test_resize_storage(self, device):
        tensor = torch.tensor([1, 2, 3], device=device)
        tensor.untyped_storage().resize_(0)
        self.assertEqual(tensor.untyped_storage().nbytes(), 0)
        tensor.untyped_storage().resize_(24)
        self.assertEqual(tensor.fill_(5).tolist(), [5, 5, 5])

    def test_set_shares_the_storage(self, device):
        owner, other = torch.tensor([1, 2, 3, 4], device=device), torch.tensor([0], device=device)
        other.set_(owner.untyped_storage(), 1, (2,), (2,))
        self.assertEqual(other.tolist(), [2, 4])
        owner.fill_(7)
        self.assertEqual(other.tolist(), [7, 7])
        self.assertEqual(other.set_(owner).tolist(), [7, 7, 7, 7])
        self.assertEqual(other.set_().numel(), 0)


class TestTraining(TestCase):
    """Autograd, modules and optimizers."""

    hw_classification = HardwareClassification.ACCELERATOR

    @dtypes(torch.float32, torch.float64)
    def test_backward(self, device, dtype):
        leaf = torch.tensor([1.0, 2, 3], device=device, dtype=dtype, requires_grad=True)
        (leaf * leaf).sum().backward()
        self.assertEqual(leaf.grad.device, leaf.device)
        self.assertEqual(leaf.grad.cpu(), torch.tensor([2, 4, 6], dtype=dtype))

    @parametrize("function", ["tanh", "sigmoid", "softmax"])
    @dtypes(torch.float64)
    def test_gradcheck(self, device, dtype, function):
        leaf = make_tensor((2, 3), device=device, dtype=dtype, requires_grad=True)
        arguments = (1,) if function == "softmax" else ()
        self.assertTrue(torch.autograd.gradcheck(lambda x: getattr(torch, function)(x, *arguments), (leaf,)))

    def test_backward_across_devices(self, device):
        leaf = torch.ones(3, requires_grad=True)
        (leaf.to(device) * 2).sum().backward()
        self.assertEqual(leaf.grad, torch.full((3,), 2.0))

    def test_module_moves(self, device):
        module = torch.nn.Linear(3, 2)
        expected = module(torch.ones(3))
        self.assertEqual({p.device.type for p in module.to(device).parameters()}, {torch.device(device).type})
        self.assertEqual(module(torch.ones(3, device=device)).cpu(), expected)
        self.assertEqual({p.device.type for p in module.cpu().parameters()}, {"cpu"})

    @parametrize("optimizer", ["SGD", "Adam", "AdamW"])
    def test_training_matches_cpu(self, device, optimizer):
        host = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        ours = copy.deepcopy(host).to(device)
        data = make_tensor((8, 3), device="cpu", dtype=torch.float32)
        for module, inputs in ((host, data), (ours, data.to(device))):
            stepper = getattr(torch.optim, optimizer)(module.parameters(), lr=0.01)
            for _ in range(3):
                stepper.zero_grad()
                module(inputs).pow(2).mean().backward()
                stepper.step()
        for mine, theirs in zip(ours.parameters(), host.parameters()):
            self.assertEqual(mine.cpu(), theirs)

    def test_convolution(self, device):
        layer, image = torch.nn.Conv2d(2, 3, 3), torch.ones(1, 2, 5, 5)
        expected = layer(image)
        self.assertEqual(layer.to(device)(image.to(device)).cpu(), expected)

    @dtypes(torch.float64)
    def test_convolution_gradients(self, device, dtype):
        image = make_tensor((1, 2, 4, 4), device=device, dtype=dtype, requires_grad=True)
        weight = make_tensor((2, 2, 2, 2), device=device, dtype=dtype, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(torch.conv2d, (image, weight)))

    def test_autocast(self, device):
        if torch.device(device).type == "refdev":
            raise unittest.SkipTest("refdev has no autocast kernels")
        with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
            product = torch.ones(2, 2, device=device) @ torch.ones(2, 2, device=device)
        self.assertEqual(product.dtype, torch.bfloat16)


class TestSaving(TestCase):
    """Copies and files."""

    hw_classification = HardwareClassification.ACCELERATOR

    def saved(self, thing):
        file = io.BytesIO()
        torch.save(thing, file)
        file.seek(0)
        return file

    def test_deepcopy(self, device):
        original = torch.ones(2, device=device)
        duplicate = copy.deepcopy(original)
        duplicate.add_(1)
        self.assertEqual((duplicate.device, original.cpu()), (original.device, torch.ones(2)))

    def test_save_and_load(self, device):
        module = torch.nn.Linear(2, 2, device=device)
        loaded = torch.load(self.saved(module.state_dict()), weights_only=True)
        self.assertEqual(loaded["weight"].device, torch.device(device))
        self.assertEqual(loaded["weight"].cpu(), module.weight.detach().cpu())

    def test_views_stay_views(self, device):
        base = torch.zeros(4, device=device)
        loaded = torch.load(self.saved([base, base[:2]]), weights_only=True)
        loaded[1].fill_(1)
        self.assertEqual(loaded[0].tolist(), [1, 1, 0, 0])

    def test_load_onto_cpu(self, device):
        loaded = torch.load(self.saved(torch.arange(3, device=device)), map_location="cpu", weights_only=True)
        self.assertEqual(loaded.device.type, "cpu")
        self.assertEqual(loaded, torch.arange(3))


instantiate_device_type_tests(TestPlacement, globals())
instantiate_device_type_tests(TestViews, globals())
instantiate_device_type_tests(TestStorage, globals())
instantiate_device_type_tests(TestTraining, globals())
instantiate_device_type_tests(TestSaving, globals())

if __name__ == "__main__":
    run_tests()
