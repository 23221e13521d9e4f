"""A torch that can add up."""

from torch import version
from torch._sum import total
from torch.version import __version__

__all__ = ["__version__", "total", "version"]
