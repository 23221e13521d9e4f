"""What is proposed for a class that declares nothing, and that a proposal never becomes a declaration."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_tree import rows_of


@pytest.mark.parametrize(
    ("text", "proposed", "why"),
    [
        ("class TestA(TestCase):\n    def test_a(self): pass", "GENERIC", "names no accelerator"),
        ("class TestA(TestCase):\n    def test_a(self): torch.ones(1).cuda()", "CUDA", "every test names cuda"),
        ("class TestA(TestCase):\n    def test_a(self): torch.ones(1, device='xpu:1')", "XPU", "every test names xpu"),
        ("@unittest.skipIf(not TEST_CUDA, '')\nclass TestA(TestCase):\n    def test_a(self): pass",
         "CUDA", "the class itself asks for cuda"),
        ("class TestA(TestCase):\n    def test_a(self): f('worker1/cuda:0')", "CUDA", "every test names cuda"),
        ("class TestA(TestCase):\n    def test_a(self): pass\n    def test_b(self): torch.cuda.synchronize()",
         "", "1 of 2 tests name cuda"),
        ("class TestA(TestCase):\n    def test_a(self): x.npu()", "", "every test names npu, which has no"),
        ("class TestA(TestCase):\n    def test_a(self): f(device='npu:0')\n    def test_b(self): pass",
         "", "1 of 2 tests name npu"),
        ("class TestA(TestCase):\n    def test_a(self): f(input, 'input')", "GENERIC", "names no accelerator"),
        ("class TestA(TestCase):\n    def test_a(self, device): pass", "", "test_a takes a device"),
        ("class TestA(TestCase):\n    def setUp(self): torch.cuda.synchronize()\n    def test_a(self): pass",
         "", "no test names cuda"),
        (("class TestA(TestCase):\n    def test_a(self, device): pass\n"
         "instantiate_device_type_tests(TestA, globals())"), "ACCELERATOR", "every test takes the device"),
        (("class TestA(TestCase):\n    def test_a(self): pass\n"
         "instantiate_device_type_tests(TestA, globals())"), "ACCELERATOR", "test_a takes no device"),
        (("class TestA(TestCase):\n    def test_a(self, device): pass\n"
         "instantiate_device_type_tests(TestA, globals(), only_for='mps')"), "MPS", 'only_for="mps"'),
        (("class TestA(TestCase):\n    def test_a(self, device): pass\n"
         "instantiate_device_type_tests(TestA, globals(), only_for=('cuda', 'xpu'))"), "ACCELERATOR", "several"),
        (("class TestA(TestCase):\n    def test_a(self, device): pass\n"
         "instantiate_device_type_tests(TestA, globals(), only_for='hpu')"), "", "no classification of its own"),
        (("class TestA(TestCase):\n    @onlyCUDA\n    def test_a(self, device): pass\n"
         "instantiate_device_type_tests(TestA, globals())"), "CUDA", "every test is for cuda only"),
        (("class TestA(TestCase):\n    @onlyCUDA\n    def test_a(self, device): pass\n"
         "    def test_b(self, device): pass\n"
         "instantiate_device_type_tests(TestA, globals())"), "ACCELERATOR", "every test takes the device"),
    ],
)  # fmt: skip
def test_a_proposal_and_its_reason(tmp_path: Path, text: str, proposed: str, why: str) -> None:
    row = rows_of(tmp_path, {"test_a.py": text + "\n"})["TestA"]
    assert row.proposed == proposed
    assert why in row.why
    assert (row.classification, row.how) == ("", "unclassified")


def test_nothing_is_proposed_where_something_is_declared(tmp_path: Path) -> None:
    text = (
        "class TestA(TestCase):\n    hw_classification = HardwareClassification.GENERIC\n"
        "    def test_a(self): x.cuda()\n"
    )
    row = rows_of(tmp_path, {"test_a.py": text})["TestA"]
    assert (row.classification, row.proposed, row.why) == ("GENERIC", "", "")
