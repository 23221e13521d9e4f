"""The device's runtime, visible as `torch.refdev`: which devices there are, which is current, their random state.

PyTorch looks up most of these functions by name; `torch.utils.rename_privateuse1_backend` lists them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Union

import torch

from torch_refdev.registration import NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

Device = Union[int, str, torch.device, None]

_native = torch.ops.refdev


def is_available() -> bool:
    return device_count() > 0


def is_initialized() -> bool:
    return True


def device_count() -> int:
    return _native.device_count()


def current_device() -> int:
    return _native.current_device()


def set_device(device: Device) -> None:
    """Make `device` the one that "refdev" without a number means, in this thread."""
    _native.set_device(device_index(device))


@contextmanager
def device(device: Device) -> Iterator[None]:
    """Make `device` the current one inside a `with` block."""
    previous = current_device()
    set_device(device)
    try:
        yield
    finally:
        set_device(previous)


def device_index(device: Device = None) -> int:
    """The number of `device`; the current device's where it names none. RuntimeError if there is no such device."""
    index = device
    if isinstance(device, (str, torch.device)):
        named = torch.device(device)
        if named.type != NAME:
            raise RuntimeError(f"expected a {NAME} device, got {named}")
        index = named.index
    if index is None:
        return current_device()
    if not 0 <= index < device_count():
        raise RuntimeError(f"invalid device index {index}: there are {device_count()} {NAME} devices")
    return index


def synchronize(device: Device = None) -> None:
    """Wait for the device's work. Every kernel has finished when it returns; a device in an error state raises."""
    _native.synchronize(device_index(device))


def manual_seed(seed: int) -> None:
    _generator(None).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed every device. `torch.manual_seed` calls this."""
    for index in range(device_count()):
        _generator(index).manual_seed(seed)


def get_rng_state(device: Device = None) -> torch.Tensor:
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Device = None) -> None:
    _generator(device).set_state(new_state)


def set_memory_limit(bytes: int, device: Device = None) -> None:  # noqa: A002 - the unit is the name
    """Allow `bytes` to be in use on the device at the same time; more raises torch.OutOfMemoryError."""
    _native.set_memory_limit(device_index(device), bytes)


def fallback_counts() -> dict[str, int]:
    """How often each operator ran on the CPU, because it has no kernel, since the process began or the last reset."""
    return dict(_native.fallback_counts())


def reset_fallback_counts() -> None:
    _native.reset_fallback_counts()


def faults() -> list[str]:
    """The faults that REFDEV_FAULT switches on."""
    return _native.faults()


def _generator(device: Device) -> torch.Generator:
    return _native.default_generator(device_index(device))


def _is_in_bad_fork() -> bool:
    return False
