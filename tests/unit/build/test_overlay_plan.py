"""Which changes a ready wheel can stand for, as a table."""

from __future__ import annotations

import pytest

from backend_ci.build.overlay import Change, plan_overlay
from relay_client.documents.checkout import ChangedFile
from relay_client.errors import NotOverlayable


@pytest.mark.parametrize(
    ("change", "path", "expected"),
    [
        ("M", "torch/random.py", "lay"),
        ("A", "torch/new/deep/module.py", "lay"),
        ("D", "torch/gone.py", "remove"),
        ("M", "torchgen/model.py", "lay"),
        ("D", "functorch/__init__.py", "remove"),
        ("A", "torch/with space.py", "lay"),
        ("M", "torch/testing/_internal/common_utils.py", "lay"),
        ("M", "torch/csrc_helpers.py", "lay"),
        ("M", "test/test_torch.py", "nothing"),
        ("A", "test/inductor/test_new.py", "nothing"),
        ("T", "test/test_torch.py", "nothing"),
        ("D", "README.md", "nothing"),
        ("M", "docs/source/notes/extending.rst", "nothing"),
        ("A", "docs/new.md", "nothing"),
    ],
)
def test_a_change_of_python_is_laid_or_removed_and_what_no_wheel_holds_is_passed_over(
    change: str, path: str, expected: str
) -> None:
    plan = plan_overlay([ChangedFile(change, path)])
    assert plan == Change((path,) * (expected == "lay"), (path,) * (expected == "remove"))


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ("M", "aten/src/ATen/native/Add.cpp"),
        ("M", "torch/csrc/Module.cpp"),
        ("M", "torch/csrc/jit/generated.py"),
        ("M", "torch/_native/kernels.py"),
        ("A", "torch/_vendor/quack/new.py"),
        ("M", "torch/version.py"),
        ("A", "torch/version.py"),
        ("D", "torch/version.py"),
        ("T", "torch/random.py"),
        ("M", "torch/_C/__init__.pyi"),
        ("M", "torch/headeronly/macros.h"),
        ("M", "setup.py"),
        ("M", "tools/generate_torch_version.py"),
        ("M", "torch.py"),
        ("M", "torchvision/ops.py"),
        ("M", "Torch/random.py"),
        ("M", "third_party/fbgemm"),
        ("M", "torch"),
        ("A", "torch/sub.py/file"),
        ("M", ".github/workflows/lint.yml"),
        ("M", "CMakeLists.txt"),
        ("M", "pyproject.toml"),
        ("M", "requirements.txt"),
        ("M", "docs/conf.py"),
        ("M", "docs.md/file"),
        ("M", "test/cpp/api/any.cpp"),
        ("M", "test"),
        ("A", "test/new\nline.py"),
        ("A", "torch/README.md"),
    ],
)
def test_any_other_change_is_refused_by_name(change: str, path: str) -> None:
    python = ChangedFile("M", "torch/random.py")
    with pytest.raises(NotOverlayable) as caught:
        plan_overlay([python, ChangedFile(change, path), python])
    assert caught.value.seen == f"{change} {path}"
    assert "source" in caught.value.fix
    assert caught.value.exit_code == 43


def test_the_plan_is_in_order_and_nothing_is_lost() -> None:
    changes = [ChangedFile(c, f"torch/{name}.py") for c, name in ("Mz", "Dy", "Ax", "Da", "Mb")]
    assert plan_overlay(changes) == Change(
        ("torch/b.py", "torch/x.py", "torch/z.py"), ("torch/a.py", "torch/y.py")
    )


def test_no_change_is_a_plan_too() -> None:
    assert plan_overlay([]) == Change((), ())
