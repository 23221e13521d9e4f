"""One identity for a test, whatever spells it."""

from __future__ import annotations

import pytest

from backend_ci.testing.ids import (
    BadTestId,
    TestId,
    TestNames,
    pytest_spelling,
    same_file,
    unittest_spelling,
)

NAMES = TestNames(("npu", "my_dev"))


@pytest.mark.parametrize(
    ("text", "cls", "stem", "device", "dtype"),
    [
        ("test_add_privateuse1_float32 (__main__.TestFooPRIVATEUSE1)", "TestFoo", "test_add", "privateuse1", "float32"),
        ("test_add_npu_float32 (__main__.TestFooNPU)", "TestFoo", "test_add", "privateuse1", "float32"),
        ("test/test_ops.py::TestFooPRIVATEUSE1::test_add_npu_float32", "TestFoo", "test_add", "privateuse1", "float32"),
        ("test_ops.TestFooNPU.test_add_npu_float32", "TestFoo", "test_add", "privateuse1", "float32"),
        ("a.py::TestFooMY_DEV::test_add_my_dev_int8", "TestFoo", "test_add", "privateuse1", "int8"),
        ("a.py::TestFooCPU::test_add_cpu", "TestFoo", "test_add", "cpu", ""),
        # Several dtypes, dtypes with an underscore, a dtype among the parameters.
        ("a.py::TestFooNPU::test_pow_npu_complex64_int16", "TestFoo", "test_pow", "privateuse1", "complex64_int16"),
        ("a.py::TestFooNPU::test_mm_npu_float8_e4m3fn", "TestFoo", "test_mm", "privateuse1", "float8_e4m3fn"),
        ("a.py::TestFooNPU::test_mm_npu_int8_float4_e2m1fn_x2", "TestFoo", "test_mm", "privateuse1",
         "int8_float4_e2m1fn_x2"),
        ("a.py::TestFooNPU::test_to_uint8_npu_uint8", "TestFoo", "test_to_uint8", "privateuse1", "uint8"),
        # The last device in the name is the test's.
        ("a.py::TestFooNPU::test_copy_cpu_npu_int8", "TestFoo", "test_copy_cpu", "privateuse1", "int8"),
        # A device is one when class and method agree.
        ("test_x (__main__.TestCUDA)", "TestCUDA", "test_x", "", ""),
        ("test_embedding_cuda (__main__.TestNN)", "TestNN", "test_embedding_cuda", "", ""),
        ("a.py::TestFooCPU::test_x_npu", "TestFooCPU", "test_x_npu", "", ""),
        ("a.py::NPU::test_x_npu", "NPU", "test_x_npu", "", ""),
        ("a.py::TestFooNPU::test_to_npu_device", "TestFooNPU", "test_to_npu_device", "", ""),
        # A device that this backend does not have.
        ("a.py::TestFooTOY::test_x_toy", "TestFooTOY", "test_x_toy", "", ""),
        # Parameters, nested classes, no class.
        ("a.py::TestFoo::test_d[npu-1]", "TestFoo", "test_d[npu-1]", "", ""),
        ("a.py::TestFooNPU::test_d_npu_int8[a::b]", "TestFoo", "test_d[a::b]", "privateuse1", "int8"),
        ("a.py::TestA::TestInner::test_x", "TestA.TestInner", "test_x", "", ""),
        ("test_x (pkg.test_a.TestA.TestInner)", "TestA.TestInner", "test_x", "", ""),
        ("a.py::test_function", "", "test_function", "", ""),
        # Python 3.11 and newer repeat the method.
        ("test_x (__main__.TestFoo.test_x)", "TestFoo", "test_x", "", ""),
    ],
)  # fmt: skip
def test_a_test_comes_apart(text: str, cls: str, stem: str, device: str, dtype: str) -> None:
    assert NAMES.parse(text).key == (cls, stem, device, dtype)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("test/test_ops.py::TestFoo::test_x", "test/test_ops.py"),
        ("TestFoo::test_x", ""),
        ("test_x (__main__.TestFoo)", ""),
        ("test_x (jit.test_freezing.TestFoo)", "jit/test_freezing.py"),
        ("jit.test_freezing.TestFoo.test_x", "jit/test_freezing.py"),
        ("TestFoo.test_x", ""),
        ("test_x (__main__.TestOnnx_TorchModelType.TORCH_NN)", ""),
    ],
)
def test_the_file_is_known_where_it_is_named(text: str, path: str) -> None:
    assert NAMES.parse(text).path == path


SPELLINGS = [
    "test_add_privateuse1_float32 (__main__.TestFooPRIVATEUSE1)",
    "test_add_npu (__main__.TestFooNPU)",
    "test_x (fx.test_matcher.TestFoo)",
    "test_output_add_cpu_float32 (__main__.TestOnnx_TorchModelType.TORCH_NN_MODULECPU)",
    "test/test_ops.py::TestFooPRIVATEUSE1::test_add_npu_float32",
    "test/test_ops.py::TestFooNPU::test_add_npu_int8[a-b]",
    "test/test_ops.py::TestFoo::TestInner::test_d[1]",
    "test/test_ops.py::TestFoo::test_d[]",
    "a.py::test_function[x y]",
    "TestFoo::test_x",
]


@pytest.mark.parametrize("methods", [(), ("test_add", "test", "test_output")])
@pytest.mark.parametrize("text", SPELLINGS)
def test_what_was_read_is_written_the_same(text: str, methods: tuple[str, ...]) -> None:
    write = unittest_spelling if text.endswith(")") else pytest_spelling
    assert write(TestNames(("npu",), methods).parse(text)) == text


def test_both_spellings_of_one_test_have_one_key() -> None:
    for text in SPELLINGS:
        test = NAMES.parse(text)
        for write in (unittest_spelling, pytest_spelling):
            if "[" not in text and test.owner:
                assert NAMES.parse(write(test)).key == test.key


@pytest.mark.parametrize(
    ("text", "method", "parameters"),
    [
        ("a.py::TestFooNPU::test_contig_large_sin_npu_int8", "test_contig_large", "sin"),
        ("a.py::TestFooNPU::test_contig_npu_int8", "test_contig", ""),
        ("a.py::TestFooNPU::test_contiguous_npu_int8", "test_contiguous", ""),
        ("a.py::TestFoo::test_contig_sin", "test_contig", "sin"),
        ("a.py::TestFoo::test_contig[sin]", "test_contig", "sin"),
    ],
)
def test_known_methods_tell_the_parameters(text: str, method: str, parameters: str) -> None:
    test = TestNames(("npu",), ("test_contig", "test_contig_large")).parse(text)
    assert (test.method, test.parameters) == (method, parameters)
    assert pytest_spelling(test) == text


def test_a_test_can_be_spelled_for_another_version() -> None:
    test = NAMES.parse("test/test_ops.py::TestFooNPU::test_add_npu_int8")
    other = test.spelled("toy")
    assert unittest_spelling(other) == "test_add_toy_int8 (__main__.TestFooPRIVATEUSE1)"
    assert pytest_spelling(test.spelled("toy", class_token="TOY")).endswith("::TestFooTOY::test_add_toy_int8")
    assert TestNames(("toy",)).parse(pytest_spelling(other)).key == test.key
    on_cpu = NAMES.parse("a.py::TestFooCPU::test_add_cpu")
    assert on_cpu.spelled("toy") == on_cpu


@pytest.mark.parametrize(
    "text",
    ["", "test_x", "a/b.py", "a.py::", "a.py::TestFoo::", "::test_x", "a.py::TestFoo::test_x[1", "test_x ( main .TestFoo)",
     "test_x (__main__)", "test_x (lower.case)", "two words.TestFoo.test_x"],
)  # fmt: skip
def test_what_names_no_test_is_refused(text: str) -> None:
    with pytest.raises(BadTestId):
        NAMES.parse(text)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("test/test_ops.py", "test/test_ops.py", True),
        ("test_ops.py", "pytorch/test/test_ops.py", True),
        ("pytorch/test/test_ops.py", "test/test_ops.py", True),
        ("ops.py", "test/test_ops.py", False),
        ("a/test_ops.py", "b/test_ops.py", False),
        ("", "b/test_ops.py", True),
    ],
)
def test_paths_that_can_mean_one_file(one: str, other: str, same: bool) -> None:
    assert same_file(one, other) is same


def test_absent_parts_are_empty() -> None:
    assert TestId("TestFoo", "test_x").key == ("TestFoo", "test_x", "", "")
