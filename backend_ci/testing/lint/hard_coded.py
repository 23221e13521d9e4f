"""Hard-coded devices, and what to write instead so that the test runs on any accelerator."""

from __future__ import annotations

from collections.abc import Iterator

from backend_ci.testing.classify.devices import BACKENDS
from backend_ci.testing.classify.facts import DeviceUse
from backend_ci.testing.classify.report import classification_of
from backend_ci.testing.classify.tree import Key, Tree
from backend_ci.testing.lint.finding import WARNING, Finding
from backend_ci.testing.lint.rules import FORBIDDEN_DECORATORS

RULE = "hard_coded_device"
_SAME_NAME = (
    "synchronize", "device_count", "is_available", "current_stream", "set_stream", "empty_cache", "memory_stats",
    "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved",
    "reset_peak_memory_stats", "get_device_capability",
)  # fmt: skip
# `torch.<device>.NAME` → what does the same on any accelerator (torch.accelerator of PyTorch 2.13, and torch itself).
_INSTEAD = {
    **{name: f"torch.accelerator.{name}" for name in _SAME_NAME},
    "current_device": "torch.accelerator.current_device_index",
    "set_device": "torch.accelerator.set_device_index",
    "device": "torch.accelerator.device_index",
    "mem_get_info": "torch.accelerator.get_memory_info",
    "Stream": "torch.Stream",
    "Event": "torch.Event",
    "manual_seed": "torch.manual_seed",
    "manual_seed_all": "torch.manual_seed",
    "amp.autocast": "torch.autocast(device_type=…)",
    "amp.GradScaler": "torch.amp.GradScaler(device=…)",
}
_ONLY = {"onlyCUDA": "cuda", "onlyXPU": "xpu", "onlyMPS": "mps", "onlyHPU": "hpu"}
_DEVICE = "the test's parameter `device`, or torch.accelerator.current_accelerator()"


def hard_coded(tree: Tree, file: str) -> Iterator[Finding]:
    """Places that name an accelerator, where the class is not for exactly that one.

    Outside of classes a device is left alone in a file all of whose classes are for it.
    """
    facts = tree.facts[file]
    classes = {}
    for index, cls in enumerate(facts.classes):
        classes[cls.name] = classification_of(tree, Key(file, index))[0]
    with_tests = {classes[cls.name] for cls in facts.classes if cls.tests}
    of_module = with_tests.pop() if len(with_tests) == 1 else ""
    for use in facts.uses:
        classification = classes.get(use.owner, of_module) or (of_module if not use.owner else "")
        own = use.device in BACKENDS or use.device == classification.lower()
        if own or use.kind in ("flag", "text"):
            continue
        if use.kind == "availability" and (use.device == "accelerator" or classification == "GENERIC"):
            continue  # the first asks for any; the second is upstream's own rule
        what, fix = _words(use)
        yield Finding(file, use.line, use.column, WARNING, RULE, f"{what}{_place(use)}", fix)
    for cls in facts.classes:
        for test in cls.tests:
            for name in test.decorators:
                device = _ONLY.get(name.rpartition(".")[2])
                told = classes[cls.name] == "ACCELERATOR" and name.rpartition(".")[2] in FORBIDDEN_DECORATORS
                if device and not told and device != classes[cls.name].lower():
                    what = f"@{name.rpartition('.')[2]} keeps {cls.name}.{test.name} to {device}"
                    yield Finding(file, test.line, 0, WARNING, RULE, what, "@onlyAccelerator")


def _words(use: DeviceUse) -> tuple[str, str]:
    if use.kind == "method":
        return f"{use.text} moves to {use.device} only", ".to(device)"
    if use.kind == "activity":
        return f"{use.text} traces {use.device} only", "activities=torch.profiler.supported_activities()"
    if use.kind in ("module", "availability"):
        return f"{use.text} works on {use.device} only", _instead(use)
    if use.text.startswith(("use_cuda", "use_device")):
        return f"{use.text} names one accelerator", "use_device=torch.accelerator.current_accelerator().type"
    if use.text.startswith("device_type") or "autocast" in use.text or "GradScaler" in use.text:
        return f"{use.text} names one accelerator", "device_type=torch.device(device).type"
    return f"{use.text} names one accelerator", _DEVICE


def _instead(use: DeviceUse) -> str:
    name = use.text.partition(f".{use.device}.")[2]
    while name:
        if name in _INSTEAD:
            return _INSTEAD[name]
        name = name.rpartition(".")[0]
    rest = use.text.partition(f".{use.device}.")[2]
    return f"torch.get_device_module(device).{rest}"


def _place(use: DeviceUse) -> str:
    place = ".".join(filter(None, (use.owner, use.method)))
    return f" (in {place})" if place else ""
