"""`HardwareClassification`, also for a PyTorch older than 2.14, which does not have it yet."""

try:
    from torch.testing._internal.common_utils import HardwareClassification
except ImportError:
    from enum import Enum

    class HardwareClassification(Enum):
        """The hardware that a test class is for: its attribute `hw_classification`."""

        GENERIC = "generic"
        ACCELERATOR = "accelerator"
        CPU = "cpu"
        CUDA = "cuda"
        MPS = "mps"
        XPU = "xpu"


__all__ = ["HardwareClassification"]
