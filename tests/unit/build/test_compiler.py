"""The compiler's first error is found among everything a build prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend_ci.build.compiler import CompilerError, first_error

GCC = "csrc/kernels.cpp:12:10: fatal error: c10/core/Allocator.h: No such file or directory"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (GCC, CompilerError("csrc/kernels.cpp", 12, "c10/core/Allocator.h: No such file or directory")),
        (
            "      " + GCC,
            CompilerError("csrc/kernels.cpp", 12, "c10/core/Allocator.h: No such file or directory"),
        ),
        ("a.cc:3: error: expected ';'", CompilerError("a.cc", 3, "expected ';'")),
        ("\x1b[01m\x1b[Ka.cc:3:1:\x1b[m\x1b[K \x1b[31merror: \x1b[mno", CompilerError("a.cc", 3, "no")),
        ("k.cu(7): error: identifier undefined", CompilerError("k.cu", 7, "identifier undefined")),
        (
            "D:\\a\\b.cpp(7): error C2065: 'x': undeclared",
            CompilerError("D:\\a\\b.cpp", 7, "'x': undeclared"),
        ),
    ],
)
def test_the_forms_of_gcc_clang_nvcc_and_msvc(line: str, expected: CompilerError) -> None:
    assert first_error(["building", line, "a.cc:9:1: error: follows from the first"]) == expected


@pytest.mark.parametrize(
    "line",
    [
        "error: subprocess-exited-with-error",
        "AssertionError: a.cc: error: not the compiler's",
        "a.cc:3:1: warning: an error: no",
        "a.cc:3:1: error: " + "x" * 5_000,
        "",
    ],
)
def test_what_is_no_compiler_s_error(line: str) -> None:
    assert first_error([line]) is None


def test_a_file_of_the_repository_is_named_as_the_repository_names_it() -> None:
    inside = CompilerError("/work space/csrc/a.cc", 3, "no")
    assert inside.seen_from(Path("/work space")).file == "csrc/a.cc"
    assert inside.seen_from(Path("/work")).file == inside.file
    assert inside.seen_from(None) == inside
