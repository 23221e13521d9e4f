"""What a backend states of itself, held against the operators that PyTorch has."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any, Optional

import pytest

from backend_ci.testing.capabilities.derive import skips, tolerances, validate
from backend_ci.testing.capabilities.read import Capabilities, read_capabilities
from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips.match import KnownTest, SkipIndex
from relay_client.documents.plan import PlannedTolerance
from relay_client.errors import BadCapabilities

DATABASE = {
    name: frozenset({"float32", "float16", "int8"})
    for name in ("add", "div.floor_rounding", "div.no_rounding_mode", "mul", "linalg.norm")
}
STATED: dict[str, Any] = {
    "dtypes": ["float32", "float16"],
    "unlisted": "skip",
    "operators": {
        "add": {"dtypes": ["float32"], "tolerances": {"float32": {"atol": 1e-3, "rtol": 0}}},
        "mul": None,
        "div.floor_rounding": {"supported": False, "reason": "no kernel"},
        "div.no_rounding_mode": False,
    },
    "features": {
        "sparse": {"supported": False, "tests": ["TestSparse", "TestFoo::test_sparse"], "reason": "not yet"},
        "streams": {"supported": True, "tests": ["TestStreams"]},
    },
}
NAMES = TestNames(("npu",))


def read(folder: Path, value: object) -> Capabilities:
    path = folder / "capabilities.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return read_capabilities(path, ("npu",))


def why(capabilities: Capabilities, text: str, operator: str = "") -> Optional[str]:
    index = SkipIndex(skips(capabilities, DATABASE), today=date(2026, 1, 1))
    found = index.find(KnownTest(NAMES.parse(text), text, "test_x", operator))
    return found.reason if found else None


@pytest.mark.parametrize(
    ("test", "operator", "reason"),
    [
        ("TestOpsNPU::test_x_add_npu_float32", "add", None),
        ("TestOpsNPU::test_x_add_npu_float16", "add", "operator add does not support this dtype"),
        ("TestOpsNPU::test_x_mul_npu_float16", "mul", None),
        ("TestOpsNPU::test_x_mul_npu_int8", "mul", "the device does not have this dtype"),
        ("TestOpsNPU::test_x_div_npu_float32", "div.floor_rounding", "operator div.floor_rounding: no kernel"),
        ("TestOpsNPU::test_x_div_npu_float32", "div.no_rounding_mode", "operator div.no_rounding_mode: not supported"),
        ("TestOpsNPU::test_x_norm_npu", "linalg.norm", "operator linalg.norm is not among the backend's capabilities"),
        ("TestOpsNPU::test_x_npu_int8", "", "the device does not have this dtype"),
        ("TestSparseNPU::test_y_npu", "", "feature sparse: not yet"),
        ("TestFooNPU::test_sparse_npu_float32", "", "feature sparse: not yet"),
        ("TestStreamsNPU::test_y_npu", "", None),
        # Nothing reaches another device.
        ("TestOpsCPU::test_x_add_cpu_float16", "add", None),
        ("TestOpsCPU::test_x_mul_cpu_int8", "mul", None),
        ("TestOpsCPU::test_x_norm_cpu", "linalg.norm", None),
        ("TestSparseCPU::test_y_cpu", "", None),
    ],
)  # fmt: skip
def test_what_the_backend_does_not_do_is_skipped_with_its_reason(
    tmp_path: Path, test: str, operator: str, reason: Optional[str]
) -> None:
    stated = read(tmp_path, STATED)
    validate(stated, DATABASE)
    assert why(stated, test, operator) == reason


def test_unlisted_operators_run_unless_they_are_to_be_skipped(tmp_path: Path) -> None:
    assert why(read(tmp_path, {}), "TestOpsNPU::test_x_norm_npu", "linalg.norm") is None


def test_tolerances_are_those_of_supported_operators(tmp_path: Path) -> None:
    assert tolerances(read(tmp_path, STATED)) == (PlannedTolerance("add", "float32", 0.001, 0.0),)
    off = {"supported": False, "tolerances": {"float32": {"atol": 1, "rtol": 1}}}
    assert tolerances(read(tmp_path, {"operators": {"add": off}})) == ()


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("ad", "add"),
        ("div", "div.floor_rounding, div.no_rounding_mode"),
        ("add.Tensor", "add"),
        ("zzz", "none"),
    ],
)
def test_a_name_that_pytorch_does_not_have_is_an_error_with_near_names(
    tmp_path: Path, name: str, near: str
) -> None:
    with pytest.raises(BadCapabilities, match="1 operators") as caught:
        validate(read(tmp_path, {"operators": {name: True}}), DATABASE)
    assert caught.value.exit_code == 55
    assert f"{name} (near: {near}" in caught.value.seen


@pytest.mark.parametrize(
    "stated",
    [
        {"operators": {"add": {"dtypes": ["int64"]}}},
        {"dtypes": ["int8"], "operators": {"add": {"dtypes": ["float32"]}}},
        {"dtypes": ["bool"], "operators": {"add": None}},
    ],
)
def test_an_operator_left_with_no_dtype_is_an_error(tmp_path: Path, stated: dict[str, Any]) -> None:
    with pytest.raises(BadCapabilities, match="without a dtype") as caught:
        validate(read(tmp_path, stated), DATABASE)
    assert "add: PyTorch tests float16, float32, int8" in caught.value.seen
    stated["operators"]["add"] = {**(stated["operators"]["add"] or {}), "supported": False}
    validate(read(tmp_path, stated), DATABASE)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ([], "write `name: …` lines"),
        ({"operator": {}}, '"operator"'),
        ({"unlisted": "fail"}, "run, skip"),
        ({"dtypes": []}, "at least one"),
        ({"dtypes": ["float33"]}, "float33"),
        ({"operators": ["add"]}, "operators"),
        ({"operators": {"add": "yes"}}, "operators.add"),
        ({"operators": {"add": {"dtype": []}}}, '"dtype"'),
        ({"operators": {"add": {"supported": "no"}}}, "true or false"),
        ({"operators": {"add": {"tolerances": {"float32": {"atol": 1}}}}}, "float32.rtol"),
        ({"operators": {"add": {"tolerances": {"float32": {"atol": -1, "rtol": 0}}}}}, "float32.atol"),
        ({"operators": {"add": {"tolerances": {"float32": {"atol": True, "rtol": 0}}}}}, "float32.atol"),
        ({"operators": {"add": {"tolerances": {"float33": {"atol": 1, "rtol": 0}}}}}, "float33"),
        ({"features": {"sparse": {"supported": False}}}, "features.sparse"),
        ({"features": {"sparse": {"tests": ["TestSparse"]}}}, "features.sparse"),
        ({"features": {"sparse": {"supported": False, "tests": ["test_alone"]}}}, "without its class"),
    ],
)
def test_a_wrong_part_is_named(tmp_path: Path, stated: object, said: str) -> None:
    with pytest.raises(BadCapabilities) as caught:
        read(tmp_path, stated)
    assert said in caught.value.seen
    assert "docs/skips.md" in caught.value.fix


@pytest.mark.parametrize(("name", "text"), [("c.json", "{"), ("c.txt", ""), ("gone.json", None)])
def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, name: str, text: Optional[str]) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(BadCapabilities):
        read_capabilities(tmp_path / name)
