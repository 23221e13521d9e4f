"""Makes PyTorch know the device: its name, its `torch.refdev` module, its hooks and its kernels."""

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

from torch_refdev import runtime, tensor

_kernels = torch.library.Library("aten", "IMPL")  # PyTorch forgets the kernels when this object dies.


class _Hooks(torch._C._acc.PrivateUse1Hooks):
    """What PyTorch's C++ side asks about the accelerator, above all: is it there?"""

    def is_built(self) -> bool:
        return True

    def is_available(self) -> bool:
        return runtime.is_available()

    def has_primary_context(self, device_index: int) -> bool:
        return 0 <= device_index < runtime.device_count()


def register() -> None:
    """Claim PyTorch's slot for an out-of-tree device (PrivateUse1). Does nothing the second time."""
    if hasattr(torch, runtime.NAME):
        return
    _setup_privateuseone_for_python_backend(runtime.NAME, backend_module=runtime, hook=_Hooks())
    for operator, kernel in tensor.KERNELS.items():
        _kernels.impl(operator, kernel, "PrivateUse1")
