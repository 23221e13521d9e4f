"""Operators against the CPU, on the sample inputs that PyTorch itself tests them with."""

import pytest
import torch
from hardware_classification import HardwareClassification
from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, run_tests
from torch.utils._pytree import tree_leaves, tree_map_only

DTYPES = (torch.int64, torch.float32)

# By the names that OpInfos have (`full_name`).
WORKS = set(
    """
    abs add atan2 bitwise_and bitwise_xor ceil clamp copysign cos div.floor_rounding div.no_rounding_mode eq erf exp
    expm1 floor floor_divide fmod ge gt heaviside hypot isfinite isnan le lerp log log1p logical_and logical_not lt
    maximum minimum mul nan_to_num ne neg pow reciprocal remainder round rsqrt sigmoid sign sin sqrt sub tanh trunc
    where xlogy

    all amax amin any argmax argmin count_nonzero cummax cumprod cumsum logsumexp max.reduction_with_dim mean median
    min.reduction_with_dim nansum norm prod sum

    as_strided broadcast_to cat chunk diag diagonal expand flatten flip hstack movedim narrow permute repeat reshape
    roll rot90 select slice split squeeze stack t tensor_split tile transpose unbind unfold unsqueeze view vstack

    arange argsort bincount bucketize eye full_like gather index_add index_copy index_fill index_put index_select
    isin kthvalue linspace masked_fill masked_scatter masked_select nonzero ones_like repeat_interleave
    scatter_add scatter_reduce.sum sort take topk tril triu

    addbmm addcmul addmm addmv baddbmm bmm dot einsum inner kron linalg.cholesky linalg.cross linalg.det linalg.inv
    linalg.qr linalg.solve linalg.svdvals matmul mm mv outer tensordot trace

    log_softmax nn.functional.adaptive_avg_pool2d nn.functional.avg_pool2d nn.functional.batch_norm
    nn.functional.binary_cross_entropy nn.functional.conv1d nn.functional.conv_transpose2d
    nn.functional.cross_entropy nn.functional.embedding nn.functional.gelu nn.functional.glu
    nn.functional.hardswish nn.functional.huber_loss nn.functional.instance_norm
    nn.functional.interpolate.bilinear nn.functional.leaky_relu nn.functional.linear
    nn.functional.one_hot nn.functional.pad.reflect nn.functional.pixel_shuffle nn.functional.prelu
    nn.functional.relu nn.functional.rms_norm nn.functional.silu
    nn.functional.softplus softmax
    """.split()
)

NO_COMPLEX, NO_SPARSE = "refdev has no complex numbers", "refdev has no sparse tensors"
FAILS_BY_DESIGN = {
    "cdouble": NO_COMPLEX,
    "complex": NO_COMPLEX,
    "fft.fft": NO_COMPLEX,
    "fft.hfft": NO_COMPLEX,
    "fft.rfft": NO_COMPLEX,
    "hash_tensor": "refdev has no torch.uint64",
    "linalg.eigvals": NO_COMPLEX,
    "polar": NO_COMPLEX,
    "to_sparse": NO_SPARSE,
}


CHOSEN = [op for op in op_db if op.full_name in WORKS | FAILS_BY_DESIGN.keys()]
DIFFERENTIABLE = [op for op in CHOSEN if op.supports_autograd and op.full_name in WORKS]


def samples(op, device, dtype, requires_grad=False):
    """The same as `op.sample_inputs`, which also looks for the test on the call stack and so takes twice the time."""
    return op.sample_inputs_func(op, device, dtype, requires_grad)


def on_cpu(tree):
    return tree_map_only(torch.Tensor, lambda tensor: tensor.detach().cpu(), tree)


class TestOperators(TestCase):
    """Same inputs, same results."""

    hw_classification = HardwareClassification.ACCELERATOR

    @ops(CHOSEN, dtypes=OpDTypes.supported, allowed_dtypes=DTYPES)
    def test_matches_cpu(self, device, dtype, op):
        if torch.device(device).type == "refdev" and op.full_name in FAILS_BY_DESIGN:
            with self.assertRaisesRegex(
                (TypeError, NotImplementedError), "refdev does not support|Could not run"
            ):
                self.compare(device, dtype, op)
            pytest.xfail(FAILS_BY_DESIGN[op.full_name])
        self.compare(device, dtype, op)

    def compare(self, device, dtype, op):
        for sample in samples(op, device, dtype):
            inputs = (sample.input, sample.args, sample.kwargs)
            first, args, kwargs = on_cpu(inputs)
            if "device" in kwargs:
                kwargs["device"] = "cpu"
            result = op(sample.input, *sample.args, **sample.kwargs)
            self.assertEqual(on_cpu(result), op(first, *args, **kwargs))

    @ops(DIFFERENTIABLE, dtypes=OpDTypes.supported_backward, allowed_dtypes=(torch.float32,))
    def test_gradients_match_cpu(self, device, dtype, op):
        for sample in samples(op, device, dtype, requires_grad=True):
            inputs = (sample.input, sample.args, sample.kwargs)
            host = tree_map_only(
                torch.Tensor, lambda leaf: on_cpu(leaf).requires_grad_(leaf.requires_grad), inputs
            )
            self.assertEqual(on_cpu(self.gradients(op, inputs)), self.gradients(op, host))

    def gradients(self, op, inputs):
        """What flows back to each of the inputs from the sum of the results."""
        first, args, kwargs = inputs
        leaves = [
            leaf for leaf in tree_leaves(inputs) if isinstance(leaf, torch.Tensor) and leaf.requires_grad
        ]
        results = [result.sum() for result in tree_leaves(op(first, *args, **kwargs)) if result.requires_grad]
        return torch.autograd.grad(sum(results), leaves, allow_unused=True)


class TestChoice(TestCase):
    """The choice of operators itself."""

    hw_classification = HardwareClassification.GENERIC

    def test_all_exist(self):
        """A name that PyTorch changed would silently be tested no more."""
        self.assertEqual(WORKS | FAILS_BY_DESIGN.keys(), {op.full_name for op in CHOSEN})


instantiate_device_type_tests(TestOperators, globals())

if __name__ == "__main__":
    run_tests()
