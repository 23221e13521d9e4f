"""Makes PyTorch know the device: its compiled part, its name, its `torch.refdev` module."""

from pathlib import Path

import torch

NAME = "refdev"


def register() -> None:
    """Claim PyTorch's slot for an out-of-tree device (PrivateUse1). Does nothing the second time."""
    if hasattr(torch, NAME):
        return
    # Loading registers the allocator, the guard, the hooks and the kernels: static objects in the library do it.
    torch.ops.load_library(Path(__file__).with_name("_C.so"))
    torch.ops.refdev.faults()  # an error in REFDEV_FAULT is an error now, not in the middle of a test
    torch.utils.rename_privateuse1_backend(NAME)
    from torch_refdev import runtime

    torch._register_device_module(NAME, runtime)
    torch.utils.generate_methods_for_privateuse1_backend()
