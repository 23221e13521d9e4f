"""The demo replaces what a demo made, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatch_lab.cli import LAB_FAILED, main
from dispatch_lab.demo import make_folder, torch_wheel
from dispatch_lab.errors import LabError


def test_the_folder_of_an_earlier_demo_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    make_folder(folder)
    (folder / "old").touch()
    make_folder(folder)
    assert [path.name for path in folder.iterdir()] == [".crcr-demo"]


def test_a_folder_of_somebody_s_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(LabError, match="holds something else"):
        make_folder(tmp_path)
    assert (tmp_path / "thesis.tex").exists()


@pytest.mark.parametrize("names", [(), ("torch-1.whl", "torch-2.whl")])
def test_the_wheelhouse_must_hold_one_torch(tmp_path: Path, names: tuple[str, ...]) -> None:
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(LabError, match="one PyTorch wheel"):
        torch_wheel(tmp_path)


def test_a_lab_that_fails_says_why_and_has_its_own_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["demo", "--wheels", str(tmp_path / "none"), "--output", str(tmp_path / "out")]
    assert main(arguments) == LAB_FAILED
    assert "make wheels" in capsys.readouterr().err
