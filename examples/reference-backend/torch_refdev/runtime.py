"""The device's runtime, visible as `torch.refdev`: which devices there are, which is current, their random state.

PyTorch looks up most of these functions by name; `torch.utils.rename_privateuse1_backend` lists them.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Union

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "refdev"
Device = Union[int, str, torch.device, None]

_generators = [torch.Generator() for _ in range(2)]  # one per device
_current = 0


def is_available() -> bool:
    return device_count() > 0


def is_initialized() -> bool:
    return True


def device_count() -> int:
    return len(_generators)


def current_device() -> int:
    return _current


def set_device(device: Device) -> None:
    """Make `device` the one where `torch.ones(2, device="refdev")` and the like put a new tensor.

    `torch.accelerator` and `Tensor.to("refdev")` go on meaning device 0: they ask PyTorch's device guard, and the
    guard that Python code can register does not know the current device.
    """
    global _current
    _current = device_index(device)


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
    """Wait for the device's work. Every kernel has finished when it returns, so there is never any."""
    device_index(device)


def manual_seed(seed: int) -> None:
    _generators[current_device()].manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Seed every device. `torch.manual_seed` calls this."""
    for generator in _generators:
        generator.manual_seed(seed)


def get_rng_state(device: Device = None) -> torch.Tensor:
    return _generators[device_index(device)].get_state()


def set_rng_state(new_state: torch.Tensor, device: Device = None) -> None:
    _generators[device_index(device)].set_state(new_state)


@contextmanager
def random_numbers_of(index: int) -> Iterator[None]:
    """Let CPU kernels draw from device `index`'s random numbers, and leave the CPU's own untouched."""
    cpu_state = torch.get_rng_state()
    torch.set_rng_state(_generators[index].get_state())
    try:
        yield
    finally:
        _generators[index].set_state(torch.get_rng_state())
        torch.set_rng_state(cpu_state)


def _is_in_bad_fork() -> bool:
    return False
