"""Tensors on the device, and its kernels.

The device has no hardware: a tensor keeps its numbers in an ordinary CPU tensor that nobody else sees, and a
kernel is PyTorch's CPU kernel run on those. All that surrounds the arithmetic is real: placement, copies between
devices, views, autograd, random state, the errors for what is mixed or unsupported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_map_only

from torch_refdev import runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SUPPORTED_DTYPES = frozenset(
    {
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
    }
)


class RefdevTensor(torch.Tensor):
    """A tensor on the device: shape, strides and dtype as PyTorch sees them, the numbers in `_memory`."""

    _memory: torch.Tensor

    @staticmethod
    def __new__(cls, memory: torch.Tensor, device: torch.device) -> torch.Tensor:
        if memory.dtype not in SUPPORTED_DTYPES:
            raise TypeError(f"{runtime.NAME} does not support {memory.dtype}")
        tensor = torch.Tensor._make_wrapper_subclass(
            cls,
            memory.size(),
            strides=memory.stride(),
            storage_offset=memory.storage_offset(),
            dtype=memory.dtype,
            device=device,
        )
        tensor._memory = memory
        return tensor

    # Functions such as torch.add need nothing special; only the operators below them do.
    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, operator: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return run(operator, args, kwargs or {})

    def _follow_memory(self) -> None:
        """Show the shape that the memory has now: operators with `out=` and such as `t_` change it."""
        memory = self._memory
        if self.shape != memory.shape or self.stride() != memory.stride():
            self.data = RefdevTensor(memory, self.device)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """Pickle as torch.save does for devices without a storage; torch.load brings it back to its device."""
        rebuild = torch._utils._rebuild_device_tensor_from_cpu_tensor
        return rebuild, (self.detach().cpu(), self.dtype, str(self.device), self.requires_grad)

    # Tensor has the next two for itself but not for subclasses, and cannot print a tensor without the first.
    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.dim() == 0 else str(self), spec)


def run(operator: torch._ops.OpOverload, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run one operator, of which at least one argument is a tensor on the device."""
    owners: dict[int, RefdevTensor] = {}  # the tensors among the arguments, by the identity of their memory
    places: list[torch.device] = []

    def into_memory(tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, RefdevTensor):
            owners[id(tensor._memory)] = tensor
            places.append(tensor.device)
            return tensor._memory
        if tensor.dim() > 0:  # a number in a CPU tensor may meet tensors of any device
            places.append(tensor.device)
        return tensor

    def onto_device(memory: torch.Tensor) -> torch.Tensor:
        return owners[id(memory)] if id(memory) in owners else RefdevTensor(memory, target)

    inner_args, inner_kwargs = tree_map_only(torch.Tensor, into_memory, (args, kwargs))
    if len(set(places)) > 1 and operator is not torch.ops.aten.copy_.default:
        found = ", ".join(sorted({str(place) for place in places}))
        raise RuntimeError(f"{operator}: expected all tensors to be on the same device, found {found}")
    here = next(iter(owners.values())).device
    target = kwargs.get("device") or here
    if target.type == runtime.NAME:
        target = torch.device(runtime.NAME, runtime.device_index(target))
    if "device" in kwargs:
        inner_kwargs["device"] = target if target.type != runtime.NAME else torch.device("cpu")

    if torch.Tag.nondeterministic_seeded in operator.tags:
        with runtime.random_numbers_of(here.index):
            result = operator(*inner_args, **inner_kwargs)
    else:
        result = operator(*inner_args, **inner_kwargs)

    for tensor in owners.values():
        tensor._follow_memory()
    return tree_map_only(torch.Tensor, onto_device, result) if target.type == runtime.NAME else result


def empty(size: Sequence[int], *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    """aten::empty.memory_format: where torch.ones, torch.randn and most others get their tensor from."""
    memory = torch.empty(size, dtype=dtype, memory_format=memory_format or torch.contiguous_format)
    return RefdevTensor(memory, torch.device(runtime.NAME, runtime.device_index(device)))


def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype=None, layout=None, device=None, pin_memory=None
):
    """aten::empty_strided: where a copy from another device gets its tensor from."""
    memory = torch.empty_strided(size, stride, dtype=dtype)
    return RefdevTensor(memory, torch.device(runtime.NAME, runtime.device_index(device)))


def copy_from(source: torch.Tensor, destination: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """aten::_copy_from: how torch.tensor fills a new tensor."""
    return run(torch.ops.aten.copy_.default, (destination, source), {})


KERNELS: dict[str, Callable[..., torch.Tensor]] = {
    "empty.memory_format": empty,
    "empty_strided": empty_strided,
    "_copy_from": copy_from,
}
