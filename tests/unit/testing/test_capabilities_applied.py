"""Capabilities in a run, on a torch of a few lines that has PyTorch's names in PyTorch's places."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from hardware_job import HardwareJob

from relay_client.errors import BadCapabilities, BadSkipList

MODULES = {
    "torch/testing/_internal/common_methods_invocations.py": """
        from types import SimpleNamespace
        op_db = [SimpleNamespace(full_name="add", dtypes={"torch.float32", "torch.int8"})]
        python_ref_db = [SimpleNamespace(full_name="_refs.add", dtypes={"torch.float32"})]
        other_db = "not a list"
        """,
    "torch/testing/_internal/common_device_type.py": """
        from collections import namedtuple
        tol = namedtuple("tol", ["atol", "rtol"])
        class toleranceOverride:
            def __init__(self, d): self.d = d
        class PrivateUse1TestBase:
            op_overrides = None
        """,
    "torch/testing/_internal/opinfo/core.py": """
        class DecorateInfo:
            def __init__(self, decorator, *, device_type): self.decorator, self.device_type = decorator, device_type
        """,
}
TORCH = """
_C = SimpleNamespace(_get_privateuse1_backend_name=lambda: "toy")
float32, toy = "the dtype", object()
"""


@pytest.fixture
def job(tmp_path: Path) -> HardwareJob:
    job = HardwareJob(tmp_path)
    site = tmp_path / "site"
    (site / "torch/__init__.py").write_text((site / "torch/__init__.py").read_text() + TORCH)
    for name, text in MODULES.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines()
        path.write_text("\n".join(line[8:] for line in lines))
        for parent in list(path.parents)[: len(path.relative_to(site).parts) - 2]:
            (parent / "__init__.py").touch()
    job.write(
        """
        from torch.testing._internal.common_device_type import PrivateUse1TestBase
        class TestIt(unittest.TestCase):
            hw_classification = HW.GENERIC
            def test_overrides(self):
                (ours,) = PrivateUse1TestBase.op_overrides["add"]
                assert ours.device_type == "toy"
                assert ours.decorator.d == {"the dtype": (0.5, 0.25)}
        class TestSparse(unittest.TestCase):
            hw_classification = HW.GENERIC
            def test_x(self): self.fail("a missing feature was tested")
        """
    )
    return job


def stated(job: HardwareJob, **value: object) -> str:
    (job.workspace / "capabilities.json").write_text(json.dumps(value), encoding="utf-8")
    return "capabilities.json"


ADD = {"add": {"tolerances": {"float32": {"atol": 0.5, "rtol": 0.25}}}}
SPARSE = {"sparse": {"supported": False, "tests": ["TestSparse"]}}


def test_tolerances_reach_pytorch_and_missing_features_are_skipped_by_name(job: HardwareJob) -> None:
    plan = job.plan(capabilities=stated(job, operators=ADD, features=SPARSE))
    assert len(plan.tests) == 2
    job.test()
    assert job.counts() == {"planned": 2, "passed": 1, "skipped": 1}
    messages = [line["message"] for line in job.journal() if line.get("outcome") == "skipped"]
    assert messages == ["Skipped: feature sparse: not supported"]


def test_a_typo_stops_the_plan(job: HardwareJob) -> None:
    with pytest.raises(BadCapabilities) as caught:
        job.plan(capabilities=stated(job, operators={"addd": True}))
    assert "near: add" in caught.value.seen
    job.plan(capabilities=stated(job, operators={"_refs.add": True}))


def test_a_pytorch_that_cannot_be_asked_is_an_error(job: HardwareJob) -> None:
    (job.folder / "site/torch/testing/_internal/common_methods_invocations.py").write_text(
        "import no_numpy\n"
    )
    with pytest.raises(BadCapabilities, match="did not say") as caught:
        job.plan(capabilities=stated(job, operators=ADD))
    assert "no_numpy" in caught.value.seen


@pytest.mark.parametrize(
    ("missing", "said"), [("toy = object()", "is there before"), ("op_overrides = None", "2.13")]
)
def test_tolerances_that_cannot_be_kept_fail_the_run(job: HardwareJob, missing: str, said: str) -> None:
    for name in ("torch/__init__.py", "torch/testing/_internal/common_device_type.py"):
        path = job.folder / "site" / name
        text = path.read_text().replace(
            'float32, toy = "the dtype", object()', 'float32 = "the dtype"\ntoy = object()'
        )
        path.write_text(text.replace(missing, "pass"))
    job.plan(capabilities=stated(job, operators=ADD))
    job.fail()
    assert said in (job.run_dir / "test.log").read_text(encoding="utf-8")


HAS_YAML = importlib.util.find_spec("yaml") is not None


@pytest.fixture
def yaml_list(job: HardwareJob, monkeypatch: pytest.MonkeyPatch) -> str:
    """A list in YAML, and a crcr without anybody's packages, as the launcher starts it."""
    monkeypatch.setitem(sys.modules, "yaml", None)
    (job.workspace / "skips.yml").write_text("skips:\n- {test: TestSparse, expires: 2999-01-31}\n")
    return "skips.yml"


@pytest.mark.skipif(not HAS_YAML, reason="the Python of these tests has no PyYAML")
def test_a_yaml_list_is_read_by_the_python_of_the_run(job: HardwareJob, yaml_list: str) -> None:
    (skip,) = job.plan(skips=yaml_list).skips
    assert skip.tests == ("tests/test_it.py::TestSparse::test_x",)
    (job.workspace / yaml_list).write_text("skips: [\n")
    with pytest.raises(BadSkipList, match="not what its name says") as caught:
        job.plan(skips=yaml_list)
    assert "skips.yml" in caught.value.seen


@pytest.mark.skipif(HAS_YAML, reason="the Python of these tests has PyYAML")
def test_a_yaml_list_that_no_python_can_read_says_where_was_looked(job: HardwareJob, yaml_list: str) -> None:
    with pytest.raises(BadSkipList, match="needs PyYAML") as caught:
        job.plan(skips=yaml_list)
    assert sys.executable in caught.value.seen
