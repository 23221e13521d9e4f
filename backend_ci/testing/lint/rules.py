"""The rules for classified tests, as PyTorch's linter has them, on classes that are resolved across files.

Upstream's linter has had two names (pytorch/pytorch, tools/linter/adapters): HW_CLASSIFICATION asked classes of one
device (CPU, CUDA, MPS, XPU) to be instantiated for exactly that device; TEST_LINTER asks of them only to be declared.
Both are here. What upstream reports wrongly is not: docs/lint.md lists the differences.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Optional

from backend_ci.testing.classify.facts import UNREADABLE, TestClass
from backend_ci.testing.classify.report import classification_of
from backend_ci.testing.classify.tree import Instantiation, Key, Tree, is_instantiation
from backend_ci.testing.lint.finding import ERROR, Finding

STRICT, RELAXED = "HW_CLASSIFICATION", "TEST_LINTER"
# What upstream forbids in ACCELERATOR classes; onlyAccelerator is allowed.
FORBIDDEN_DECORATORS = frozenset(
    {
        "onlyCPU", "onlyCUDA", "onlyMPS", "onlyXPU", "onlyHPU", "onlyPRIVATEUSE1", "onlyOn",
        "onlyCUDAAndPRIVATEUSE1", "onlyNativeDeviceTypes", "onlyNativeDeviceTypesAnd",
    }
)  # fmt: skip
_DECLARE = "hw_classification = HardwareClassification.GENERIC, ACCELERATOR, CPU, CUDA, MPS or XPU"


@dataclass(frozen=True)
class Subject:
    """A class under the rules, with what the tree knows of it."""

    tree: Tree
    key: Key
    cls: TestClass
    classification: str

    @property
    def made(self) -> list[Instantiation]:
        return self.tree.instantiations.get(self.key, [])

    @property
    def may_be_made(self) -> bool:
        """A loop over what is not known may instantiate any class of its file."""
        return self.key.file in self.tree.dynamic

    def finding(self, rule: str, what: str, fix: str, line: int = 0, file: Optional[str] = None) -> Finding:
        return Finding(
            file or self.key.file, line or self.cls.line, 0, ERROR, rule, f"{self.classification} {what}", fix
        )


Rule = Callable[[Subject], Iterator[Finding]]


def class_findings(tree: Tree, file: str, linter: str) -> Iterator[Finding]:
    """What the rules say of one file's classes that have tests of their own."""
    facts = tree.facts[file]
    if facts.problem:
        yield Finding(file, facts.problem_line, 0, ERROR, "parse_error", facts.problem)
        return
    yield from _duplicates(tree, file)
    for index, cls in enumerate(facts.classes):
        if not cls.tests:
            continue
        key = Key(file, index)
        classification, how, source = classification_of(tree, key)
        if not classification:
            yield _undeclared(tree, file, cls, how, source)
            continue
        for rule in _rules(linter, classification):
            yield from rule(Subject(tree, key, cls, classification))


def _undeclared(tree: Tree, file: str, cls: TestClass, how: str, source: Optional[Key]) -> Finding:
    tag = tree.cls(source).tag if source else None
    line = tag.line if tag and source and source.file == file and tree.cls(source) == cls else cls.line
    if how == "unreadable":
        value = tag.value if tag else ""
        what = f"hw_classification of test class {cls.name} is no member that can be read: {value}"
    else:
        what = f"Test class {cls.name} declares no hw_classification, and inherits none"
    return Finding(file, line, 0, ERROR, "hw_classification", what, _DECLARE)


def _duplicates(tree: Tree, file: str) -> Iterator[Finding]:
    """A second definition hides the first. In branches of an `if` or `try` only one of them is made."""
    seen: dict[str, int] = {}
    for cls in tree.facts[file].classes:
        if not cls.tests or cls.nested:
            continue
        if cls.name in seen:
            what = f"Test class {cls.name} is defined a second time: the tests of line {seen[cls.name]} never run"
            yield Finding(file, cls.line, 0, ERROR, "duplicate_class", what, "rename one of the two")
        seen[cls.name] = cls.line
    calls: dict[str, int] = {}
    for call in tree.facts[file].calls:
        if call.nested or call.parameter >= 0 or not call.target or not is_instantiation(call.name):
            continue
        if call.target in calls:
            what = f"{call.target} is instantiated a second time; the first call (line {calls[call.target]}) removed it"
            yield Finding(
                file, call.line, 0, ERROR, "duplicate_instantiation", what, "remove one of the two calls"
            )
        calls[call.target] = call.line


def _rules(linter: str, classification: str) -> Iterable[Rule]:
    if classification == "GENERIC":
        return (_not_instantiated, _no_device, _no_availability)
    if classification == "ACCELERATOR":
        return (_instantiated, _takes_device, _no_only_decorator, _no_only_for)
    return (_instantiated, _takes_device, _exactly_its_device) if linter == STRICT else ()


def _instantiated(subject: Subject) -> Iterator[Finding]:
    if not subject.made and not subject.may_be_made:
        yield subject.finding(
            "instantiation",
            f"class {subject.cls.name} is not instantiated for devices, so its tests never run",
            f"instantiate_device_type_tests({subject.cls.name}, globals())",
        )


def _not_instantiated(subject: Subject) -> Iterator[Finding]:
    for made in subject.made[:1]:
        yield subject.finding(
            "instantiation",
            f"class {subject.cls.name} is instantiated for devices ({made.file.rpartition(os.sep)[2]}:{made.call.line})",
            "remove the call, or declare the class ACCELERATOR",
        )


def _takes_device(subject: Subject) -> Iterator[Finding]:
    for test in subject.cls.tests:
        if not test.device:
            yield subject.finding(
                "device_param",
                f"test {subject.cls.name}.{test.name} takes no device",
                f"def {test.name}(self, device)",
                test.line,
            )


def _no_device(subject: Subject) -> Iterator[Finding]:
    for test in subject.cls.tests:
        if test.device:
            yield subject.finding(
                "device_param",
                f"test {subject.cls.name}.{test.name} takes a device",
                "remove the parameter, or move the test to an ACCELERATOR class",
                test.line,
            )


def _no_availability(subject: Subject) -> Iterator[Finding]:
    for use in subject.tree.uses_of(subject.key):
        if use.kind == "availability":
            place = f"{subject.cls.name}.{use.method}" if use.method else subject.cls.name
            yield subject.finding(
                "accelerator_availability",
                f"class {subject.cls.name} asks whether an accelerator is there: {use.text}() in {place}",
                "move the test to an ACCELERATOR class and take the device as a parameter",
                use.line,
            )


def _no_only_decorator(subject: Subject) -> Iterator[Finding]:
    for test in subject.cls.tests:
        for name in test.decorators:
            decorator = name.rpartition(".")[2]
            if decorator in FORBIDDEN_DECORATORS:
                yield subject.finding(
                    "decorator",
                    f"test {subject.cls.name}.{test.name} uses @{decorator}",
                    "@onlyAccelerator, or a class of that device",
                    test.line,
                )


def _no_only_for(subject: Subject) -> Iterator[Finding]:
    for made in subject.made:
        if made.call.only_for is not None:
            yield subject.finding(
                "only_for",
                f"class {subject.cls.name} is instantiated with only_for",
                "except_for= names what must be left out; every other backend stays in",
                made.call.line,
                made.file,
            )


def _exactly_its_device(subject: Subject) -> Iterator[Finding]:
    expected = subject.classification.lower()
    for made in subject.made:
        given = made.call.only_for
        if given != (expected,):
            shown = "no only_for" if given is None else "only_for=" + _text(given)
            yield subject.finding(
                "only_for",
                f"class {subject.cls.name} is instantiated with {shown}",
                f'only_for="{expected}"',
                made.call.line,
                made.file,
            )
        if made.call.except_for is not None:
            yield subject.finding(
                "except_for",
                f"class {subject.cls.name} is instantiated with except_for",
                f'only_for="{expected}" alone',
                made.call.line,
                made.file,
            )


def _text(devices: tuple[str, ...]) -> str:
    return devices[1] if devices[:1] == (UNREADABLE,) else repr(list(devices))
