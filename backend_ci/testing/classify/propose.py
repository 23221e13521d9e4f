"""Propose a classification for a class that declares none, and say why.

For trees older than `hw_classification` (PyTorch before 2.14). A proposal is read from the source and may be wrong; it
is shown apart, and nothing selects tests by it. The rules follow upstream's contracts, first match first
(docs/classify.md has them as a table).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from backend_ci.testing.classify.facts import UNREADABLE, Test
from relay_client.protocol import vocabulary as words

_ONLY = {"onlyCPU": "cpu", "onlyCUDA": "cuda", "onlyMPS": "mps", "onlyXPU": "xpu"}
_OWN = {
    name.lower(): name for name in words.HARDWARE_CLASSIFICATIONS if name not in ("GENERIC", "ACCELERATOR")
}


@dataclass(frozen=True)
class Evidence:
    """What speaks for a classification. `named`: per method (empty: the class body) the accelerators it names."""

    instantiated: bool
    only_for: Optional[tuple[str, ...]]
    tests: tuple[Test, ...]
    named: Mapping[str, set[str]]


def propose(found: Evidence) -> tuple[str, str]:
    """`(classification, reason)`; the classification is empty where the source does not decide."""
    if found.instantiated:
        return _instantiated(found)
    return _plain(found)


def _instantiated(found: Evidence) -> tuple[str, str]:
    only_for = found.only_for
    if only_for is not None and only_for[:1] != (UNREADABLE,):
        if len(only_for) == 1 and only_for[0] in _OWN:
            return _OWN[only_for[0]], f'instantiated with only_for="{only_for[0]}"'
        if set(only_for) <= set(_OWN) and len(only_for) > 1:
            return "ACCELERATOR", f"instantiated for several devices: only_for={', '.join(only_for)}"
        return "", f"instantiated only for {', '.join(only_for)}, which has no classification of its own"
    only = Counter(_only(test) for test in found.tests)
    device, tests = only.most_common(1)[0]
    if device and tests == len(found.tests):
        return _OWN[device], f"instantiated, and every test is for {device} only"
    without = [test.name for test in found.tests if not test.device]
    if without:
        return "ACCELERATOR", f"instantiated for devices, though {without[0]} takes no device"
    return "ACCELERATOR", "instantiated for devices, and every test takes the device"


def _plain(found: Evidence) -> tuple[str, str]:
    in_class = {device for device in found.named.get("", ()) if device in _OWN}
    if len(in_class) == 1:
        (device,) = in_class
        return _OWN[device], f"not instantiated, and the class itself asks for {device}"
    tests = {test.name for test in found.tests}
    naming = {name: devices for name, devices in found.named.items() if name in tests}
    if not found.named:
        taking = [test.name for test in found.tests if test.device]
        if taking:
            return "", f"not instantiated, though {taking[0]} takes a device"
        return "GENERIC", "not instantiated, takes no device, and names no accelerator"
    devices = {device for names in found.named.values() for device in names}
    if len(naming) == len(tests) and len(devices & set(_OWN)) == 1 and len(devices) == 1:
        (device,) = devices
        return _OWN[device], f"not instantiated, and every test names {device}"
    shown = ", ".join(sorted(devices))
    if len(naming) == len(tests) and devices.isdisjoint(_OWN):
        return "", f"every test names {shown}, which has no classification of its own"
    if naming:
        return (
            "",
            f"{len(naming)} of {len(tests)} tests name {shown}: split the class, or take the device as a parameter",
        )
    return "", f"a method that is no test names {shown}"


def _only(test: Test) -> str:
    for decorator in test.decorators:
        device = _ONLY.get(decorator.rpartition(".")[2])
        if device:
            return device
    return ""
