"""A small PyTorch backend in C++: after `import torch`, `device="refdev"` works."""


def _autoload() -> None:
    """Register the device. PyTorch calls this through the entry point group `torch.backends`."""
    from torch_refdev.registration import register

    register()


# The order matters. `import torch` loads every installed backend before it returns, this one included, so
# `_autoload` has to exist by then; and `torch_refdev` has to work where it is imported before torch is.
import torch  # noqa: F401

_autoload()
