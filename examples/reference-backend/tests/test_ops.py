"""A choice of operators against the CPU, on the sample inputs that PyTorch itself tests them with."""

import torch
from hardware_classification import HardwareClassification
from torch.testing._internal.common_device_type import OpDTypes, instantiate_device_type_tests, ops
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import TestCase, run_tests
from torch.utils._pytree import tree_map_only

NAMES = {"add", "cat", "exp", "gather", "matmul", "max", "mul", "sort", "sum", "where", "nn.functional.relu"}
CHOSEN = [op for op in op_db if op.full_name in NAMES]


class TestOperators(TestCase):
    """Same inputs, same results."""

    hw_classification = HardwareClassification.ACCELERATOR

    @ops(CHOSEN, dtypes=OpDTypes.supported, allowed_dtypes=(torch.float32, torch.int64))
    def test_matches_cpu(self, device, dtype, op):
        for sample in op.sample_inputs(device, dtype):
            inputs = (sample.input, sample.args, sample.kwargs)
            first, args, kwargs = tree_map_only(torch.Tensor, lambda tensor: tensor.cpu(), inputs)
            result = op(sample.input, *sample.args, **sample.kwargs)
            self.assertEqual(
                tree_map_only(torch.Tensor, lambda tensor: tensor.cpu(), result), op(first, *args, **kwargs)
            )


instantiate_device_type_tests(TestOperators, globals())

if __name__ == "__main__":
    run_tests()
