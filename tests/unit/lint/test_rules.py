"""Each rule with a finding and its near miss. Rule names are upstream's."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_tree import tree_of

from backend_ci.testing.lint.rules import RELAXED, STRICT, class_findings

G = "class TestA(TestCase):\n    hw_classification = HardwareClassification.GENERIC\n"
A = "class TestA(TestCase):\n    hw_classification = HardwareClassification.ACCELERATOR\n"
C = "class TestA(TestCase):\n    hw_classification = HardwareClassification.CUDA\n"
PLAIN = "    def test_a(self): pass\n"
DEVICE = "    def test_a(self, device): pass\n"
MADE = "instantiate_device_type_tests(TestA, globals())\n"


def rules(folder: Path, text: str, linter: str = RELAXED, **others: str) -> list[str]:
    files = {"test_a.py": text, **{f"{name}.py": other for name, other in others.items()}}
    tree = tree_of(folder, files)
    return [finding.rule for finding in class_findings(tree, str(folder / "test_a.py"), linter)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class TestA(TestCase):\n" + PLAIN, ["hw_classification"]),
        ("class Mixin:\n" + PLAIN, ["hw_classification"]),
        ("class TestA(TestCase):\n    hw_classification = 'generic'\n" + PLAIN, ["hw_classification"]),
        ("class TestA(TestCase):\n    hw_classification = None\n" + PLAIN, ["hw_classification"]),
        ("class TestA(TestCase):\n    async def test_a(self): pass\n", ["hw_classification"]),
        ("if True:\n    class TestA(TestCase):\n        def test_a(self): pass\n", ["hw_classification"]),
        ("class Helper:\n    def run(self): pass\n", []),  # no tests of its own
        ("def f():\n    class TestA(TestCase):\n        def test_a(self): pass\n", []),
        (G + PLAIN, []),
        ("H = HardwareClassification\nclass TestA(TestCase):\n    hw_classification = H.GENERIC\n" + PLAIN, []),
        ("class TestA(TestCase):\n    hw_classification = common_utils.HardwareClassification.GENERIC\n" + PLAIN, []),
        # GENERIC
        (G + DEVICE, ["device_param"]),
        (G + "    def test_a(self, devices): pass\n", ["device_param"]),
        (G + "    def test_a(self, *, device): pass\n", ["device_param"]),
        (G + "    def test_a(self, device_count): pass\n", []),
        (G + "    def helper(self, device): pass\n" + PLAIN, []),
        (G + PLAIN + MADE, ["instantiation"]),
        (G + PLAIN + "instantiate_parametrized_tests(TestA)\n", []),
        (G + "    def test_a(self): torch.cuda.is_available()\n", ["accelerator_availability"]),
        (G + "    def test_a(self): torch.backends.mps.is_available()\n", ["accelerator_availability"]),
        (G + "    def test_a(self): torch.accelerator.is_available()\n", ["accelerator_availability"]),
        (G + "    @unittest.skipIf(not torch.cuda.is_available(), '')\n" + PLAIN, ["accelerator_availability"]),
        (G + "    if torch.xpu.is_available(): x = 1\n" + PLAIN, ["accelerator_availability"]),
        ("import torch.cuda as c\n" + G + "    def test_a(self): c.is_available()\n", ["accelerator_availability"]),
        ("from torch.cuda import is_available\n" + G + "    def test_a(self): is_available()\n",
         ["accelerator_availability"]),
        (G + "    def test_a(self): torch.cuda.synchronize()\n", []),  # upstream once took it for a check
        (G + "    def test_a(self): torch.distributed.is_available()\n", []),
        (G + "    def test_a(self): self.cuda.is_available()\n", []),
        (G + PLAIN + "def f(): return torch.cuda.is_available()\n", []),
        # ACCELERATOR
        (A + DEVICE + MADE, []),
        (A + DEVICE, ["instantiation"]),
        (A + PLAIN + MADE, ["device_param"]),
        (A + "    @onlyCUDA\n" + DEVICE + MADE, ["decorator"]),
        (A + "    @onlyOn(['cuda'])\n" + DEVICE + MADE, ["decorator"]),
        (A + "    @common_utils.onlyNativeDeviceTypes\n" + DEVICE + MADE, ["decorator"]),
        (A + "    @onlyAccelerator\n" + DEVICE + MADE, []),
        (A + "    @onlyOncePerProcess\n" + DEVICE + MADE, []),
        (A + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for='cuda')\n", ["only_for"]),
        (A + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for=None)\n", []),
        (A + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for=some())\n", ["only_for"]),
        (A + DEVICE + "instantiate_device_type_tests(TestA, globals(), except_for='cpu')\n", []),
        (A + DEVICE + "for one in (TestA,):\n    instantiate_device_type_tests(one, globals())\n", []),
        (A + DEVICE + "def make(c):\n    instantiate_device_type_tests(c, globals())\nmake(TestA)\n", []),
        (A + DEVICE + "for one in find():\n    instantiate_device_type_tests(one, globals())\n", []),
        # Twice
        (G + PLAIN + G + PLAIN, ["duplicate_class"]),
        ("if X:\n    class TestA(TestCase):\n        hw_classification = HardwareClassification.GENERIC\n"
         "        def test_a(self): pass\nelse:\n" + "".join(f"    {line}\n" for line in (G + PLAIN).splitlines()), []),
        (A + DEVICE + MADE + MADE, ["duplicate_instantiation"]),
        (A + DEVICE + "if X:\n    " + MADE + "else:\n    " + MADE, []),
        # One device: the newer linter asks for the declaration alone.
        (C + PLAIN, []),
    ],
)  # fmt: skip
def test_the_newer_linter(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert rules(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (C + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for='cuda')\n", []),
        (C + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for=('cuda',))\n", []),
        (C + DEVICE, ["instantiation"]),
        (C + PLAIN + "instantiate_device_type_tests(TestA, globals(), only_for='cuda')\n", ["device_param"]),
        (C + DEVICE + MADE, ["only_for"]),
        (C + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for=('cuda', 'xpu'))\n", ["only_for"]),
        (C + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for=())\n", ["only_for"]),
        (C + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for=some())\n", ["only_for"]),
        (C + DEVICE + "instantiate_device_type_tests(TestA, globals(), only_for='cuda', except_for='cpu')\n",
         ["except_for"]),
        (G + PLAIN, []),
        (A + DEVICE, ["instantiation"]),
    ],
)  # fmt: skip
def test_the_older_linter_asks_more_of_classes_of_one_device(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    assert rules(tmp_path, text, STRICT) == expected


def test_a_tag_inherited_from_another_file_is_a_tag(tmp_path: Path) -> None:
    text = "from common import Base\nclass TestA(Base):\n" + PLAIN
    base = "class Base(TestCase):\n    hw_classification = HardwareClassification.GENERIC\n"
    assert rules(tmp_path, text, common=base) == []
    assert rules(tmp_path, text, common="class Base(TestCase): pass\n") == ["hw_classification"]


def test_a_class_instantiated_in_another_file_is_instantiated(tmp_path: Path) -> None:
    other = "from test_a import TestA\ninstantiate_device_type_tests(TestA, globals())\n"
    assert rules(tmp_path, A + DEVICE, test_all=other) == []
    assert rules(tmp_path, A + DEVICE, test_all="from test_a import TestA\nprint(TestA)\n") == [
        "instantiation"
    ]


def test_a_wrapper_of_another_file_instantiates(tmp_path: Path) -> None:
    text = "from helper import instantiate_all\n" + A + DEVICE + "instantiate_all(globals(), TestA)\n"
    helper = "def instantiate_all(scope, cls):\n    instantiate_device_type_tests(cls, scope)\n"
    assert rules(tmp_path, text, helper=helper) == []


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    assert rules(tmp_path, "def broken(:\n") == ["parse_error"]
