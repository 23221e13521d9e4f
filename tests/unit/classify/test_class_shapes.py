"""A table of class shapes: what is declared, inherited and instantiated, as Python would have it."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_tree import rows_of

BODY = "\n    def test_a(self): pass\n"


@pytest.mark.parametrize(
    ("value", "classification", "how"),
    [
        ("HardwareClassification.GENERIC", "GENERIC", "declared"),
        ("HardwareClassification.XPU", "XPU", "declared"),
        ("HardwareClassification.DEVICE_GENERIC", "ACCELERATOR", "declared"),  # its earlier name
        ("common_utils.HardwareClassification.CUDA", "CUDA", "declared"),
        ("torch.testing._internal.common_utils.HardwareClassification.MPS", "MPS", "declared"),
        ('HardwareClassification["CPU"]', "CPU", "declared"),
        ('HardwareClassification("accelerator")', "ACCELERATOR", "declared"),
        ('getattr(HardwareClassification, "GENERIC", None)', "GENERIC", "declared"),
        ("HardwareClassification.TPU", "", "unreadable"),
        ('"generic"', "", "unreadable"),  # upstream's loader raises TypeError on a text
        ("choose()", "", "unreadable"),
        ("None", "", "unclassified"),
    ],
)
def test_spellings_of_the_value(tmp_path: Path, value: str, classification: str, how: str) -> None:
    text = f"class TestA(TestCase):\n    hw_classification = {value}{BODY}"
    row = rows_of(tmp_path, {"test_a.py": text})["TestA"]
    assert (row.classification, row.how) == (classification, how)


@pytest.mark.parametrize(
    "text",
    [
        "class TestA(TestCase):\n    hw_classification: HardwareClassification = HardwareClassification.CUDA",
        "HC = HardwareClassification\nclass TestA(TestCase):\n    hw_classification = HC.CUDA",
        "MINE = HardwareClassification.CUDA\nclass TestA(TestCase):\n    hw_classification = MINE",
        (
            "from torch.testing._internal.common_utils import HardwareClassification as H\n"
            "class TestA(TestCase):\n    hw_classification = H.CUDA"
        ),
        (
            "import torch.testing._internal.common_utils as cu\n"
            "class TestA(TestCase):\n    hw_classification = cu.HardwareClassification.CUDA"
        ),
        (
            "class Other:\n    hw_classification = HardwareClassification.CUDA\n"
            "class TestA(TestCase):\n    hw_classification = Other.hw_classification"
        ),
        "if True:\n  class TestA(TestCase):\n    hw_classification = HardwareClassification.CUDA",
    ],
)
def test_spellings_of_the_declaration(tmp_path: Path, text: str) -> None:
    row = rows_of(tmp_path, {"test_a.py": text + BODY})["TestA"]
    assert (row.classification, row.how) == ("CUDA", "declared")


def test_a_tag_set_after_the_class_counts(tmp_path: Path) -> None:
    text = f"class TestA(TestCase):{BODY}\nTestA.hw_classification = HardwareClassification.CPU\n"
    assert rows_of(tmp_path, {"test_a.py": text})["TestA"].classification == "CPU"


def test_a_tag_that_depends_on_a_condition_is_not_read(tmp_path: Path) -> None:
    text = (
        "class TestA(TestCase):\n    hw_classification = HardwareClassification.CPU\n"
        "    if torch.cuda.is_available():\n        hw_classification = HardwareClassification.CUDA" + BODY
    )
    row = rows_of(tmp_path, {"test_a.py": text})["TestA"]
    assert (row.classification, row.how) == ("", "unreadable")


INHERITANCE = {
    "common.py": "class Base(TestCase):\n    hw_classification = HardwareClassification.GENERIC\n    def test_b(self): pass\n",
    "pkg/__init__.py": "from .inner import Exported\n",
    "pkg/inner.py": "class Exported(TestCase):\n    hw_classification = HardwareClassification.ACCELERATOR\n",
    "helpers.py": "from common import *\n",
}


@pytest.mark.parametrize(
    ("text", "classification", "how", "tests"),
    [
        ("from common import Base\nclass TestA(Base):", "GENERIC", "inherited", 2),
        ("import common as c\nclass TestA(c.Base):", "GENERIC", "inherited", 2),
        ("from helpers import Base\nclass TestA(Base):", "GENERIC", "inherited", 2),  # through a star
        ("from helpers import *\nclass TestA(Base):", "GENERIC", "inherited", 2),
        ("from pkg import Exported\nclass TestA(Exported):", "ACCELERATOR", "inherited", 1),  # re-exported
        ("import pkg\nclass TestA(pkg.Exported):", "ACCELERATOR", "inherited", 1),
        (("try:\n    from .nowhere import Base\nexcept ImportError:\n    from common import Base\n"
         "class TestA(Base):"), "GENERIC", "inherited", 2),
        ("from common import Base\nclass TestA(Base):\n    hw_classification = None", "", "unclassified", 2),
        ("from common import Base\nclass TestA(Base):\n    hw_classification = HardwareClassification.CPU",
         "CPU", "declared", 2),
        # Python's order, not depth first: Right overrides what both have from Base.
        (("from common import Base\nclass Left(Base): pass\n"
         "class Right(Base):\n    hw_classification = HardwareClassification.XPU\n"
         "class TestA(Left, Right):"), "XPU", "inherited", 2),
        ("from somewhere.else_ import Base\nclass TestA(Base):", "", "unclassified", 1),
        ("class TestA(TestA):", "", "unclassified", 1),
        ("class B(TestA): pass\nclass TestA(B):", "", "unclassified", 1),  # no order exists: nothing hangs
    ],
)  # fmt: skip
def test_inheritance(tmp_path: Path, text: str, classification: str, how: str, tests: int) -> None:
    files = {**INHERITANCE, "sub/test_a.py": text + BODY}
    row = rows_of(tmp_path, files, "sub/test_a.py")["TestA"]
    assert (row.classification, row.how, row.tests) == (classification, how, tests)


def test_a_class_that_takes_its_own_name_again_inherits_from_the_first(tmp_path: Path) -> None:
    text = (
        "class TestA(TestCase):\n    hw_classification = HardwareClassification.XPU\n    def test_b(self): pass\n"
        "class TestA(TestA):" + BODY
    )
    row = rows_of(tmp_path, {"test_a.py": text})["TestA"]
    assert (row.classification, row.how, row.tests) == ("XPU", "inherited", 2)


def test_the_declaring_class_is_named(tmp_path: Path) -> None:
    files = {**INHERITANCE, "test_a.py": "from common import Base\nclass TestA(Base):" + BODY}
    row = rows_of(tmp_path, files, "test_a.py")["TestA"]
    assert row.declared_by == f"{tmp_path / 'common.py'}::Base"


def test_a_module_outside_the_repository_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "common.py").write_text("raise SystemExit", encoding="utf-8")
    inside = tmp_path / "repository"
    inside.mkdir()
    row = rows_of(inside, {"test_a.py": "from common import Base\nclass TestA(Base):" + BODY})["TestA"]
    assert row.unresolved_bases == ("common.Base",)


CLASS = "class TestA(TestCase):\n    def test_a(self, device): pass\n"


@pytest.mark.parametrize(
    ("text", "instantiated", "only_for", "except_for"),
    [
        ("", "no", None, None),
        ("instantiate_device_type_tests(TestA, globals())", "yes", None, None),
        ("instantiate_device_type_tests(TestB, globals())", "unknown", None, None),
        ("instantiate_device_type_tests(TestA, globals(), only_for='cuda')", "yes", ("cuda",), None),
        ("instantiate_device_type_tests(TestA, globals(), ('cpu', 'xpu'))", "yes", None, ("cpu", "xpu")),
        ("ONLY = ['cuda', 'xpu']\ninstantiate_device_type_tests(TestA, globals(), only_for=ONLY)",
         "yes", ("cuda", "xpu"), None),
        ("instantiate_device_type_tests(TestA, globals(), only_for=some())", "yes", ("?", "some()"), None),
        ("instantiate_device_type_tests(TestA, globals(), only_for=None)", "yes", None, None),
        (("from torch.testing._internal import common_device_type as c\n"
         "c.instantiate_device_type_tests(TestA, globals())"), "yes", None, None),
        ("if torch.cuda.is_available():\n    instantiate_device_type_tests(TestA, globals())", "yes", None, None),
        ("for one in (TestA,):\n    instantiate_device_type_tests(one, globals())", "yes", None, None),
        ("def make(cls):\n    instantiate_device_type_tests(cls, globals(), only_for='cuda')\nmake(TestA)",
         "yes", ("cuda",), None),
        ("def make(cls):\n    instantiate_device_type_tests(cls, globals())", "no", None, None),
        ("for one in list(globals().values()):\n    instantiate_device_type_tests(one, globals())",
         "unknown", None, None),
        ("print(TestA)", "no", None, None),
    ],
)  # fmt: skip
def test_instantiation(
    tmp_path: Path, text: str, instantiated: str, only_for: object, except_for: object
) -> None:
    row = rows_of(tmp_path, {"test_a.py": CLASS + text + "\n"})["TestA"]
    assert (row.instantiated, row.only_for, row.except_for) == (instantiated, only_for, except_for)


def test_a_class_instantiated_in_another_file_is_instantiated(tmp_path: Path) -> None:
    files = {
        "part/test_a.py": CLASS,
        "test_all.py": "from part.test_a import TestA\ninstantiate_device_type_tests(TestA, globals())\n",
    }
    row = rows_of(tmp_path, files)["TestA"]
    assert row.instantiated == "yes"
    assert row.instantiated_at.startswith(str(tmp_path / "test_all.py"))


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("class TestA(TestCase):", True),
        ("class TestA:", True),  # pytest collects it by its name
        ("class Mixin:", False),
        ("class Mixin(object):", False),
        ("class Checks(unittest.TestCase):", True),
        ("from vendor import Something\nclass Checks(Something):", True),  # it may be a TestCase
    ],
)
def test_mixins_do_not_run(tmp_path: Path, text: str, runs: bool) -> None:
    (row,) = rows_of(tmp_path, {"test_a.py": text + BODY}).values()
    assert row.runs is runs


def test_a_class_without_tests_is_no_row(tmp_path: Path) -> None:
    assert rows_of(tmp_path, {"test_a.py": "class TestA(TestCase):\n    def helper(self): pass\n"}) == {}
