"""Hard-coded devices: what is found, what is written instead, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from source_tree import tree_of

from backend_ci.testing.lint.finding import Finding
from backend_ci.testing.lint.hard_coded import hard_coded


def found(folder: Path, text: str) -> list[Finding]:
    tree = tree_of(folder, {"test_a.py": text})
    return list(hard_coded(tree, str(folder / "test_a.py")))


def in_test(body: str, tag: str = "ACCELERATOR") -> str:
    return (
        f"class TestA(TestCase):\n    hw_classification = HardwareClassification.{tag}\n"
        f"    def test_a(self, device, x=None):\n        {body}\n"
    )


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        ('torch.ones(2, device="cuda")', "the test's parameter `device`"),
        ('torch.ones(2, device="cuda:1")', "the test's parameter `device`"),
        ('torch.ones(2, device=torch.device("xpu"))', "the test's parameter `device`"),
        ('x.to("cuda")', "the test's parameter `device`"),
        ('x.to(device="mps")', "the test's parameter `device`"),
        ('torch.load(x, map_location="cuda")', "the test's parameter `device`"),
        ('torch.set_default_device("cuda")', "the test's parameter `device`"),
        ('device = "cuda"', "the test's parameter `device`"),
        ("x.cuda()", ".to(device)"),
        ("torch.nn.Linear(1, 1).cuda(0)", ".to(device)"),
        ("x.xpu()", ".to(device)"),
        ("torch.cuda.synchronize()", "torch.accelerator.synchronize"),
        ("torch.xpu.synchronize()", "torch.accelerator.synchronize"),
        ("from_module = torch.cuda.current_device()", "torch.accelerator.current_device_index"),
        ("torch.cuda.Stream()", "torch.Stream"),
        ("with torch.cuda.device(1): pass", "torch.accelerator.device_index"),
        ("torch.cuda.mem_get_info()", "torch.accelerator.get_memory_info"),
        ("torch.cuda.amp.autocast()", "torch.autocast(device_type=…)"),
        ("torch.cuda.nvtx.mark('x')", "torch.get_device_module(device).nvtx.mark"),
        ("torch.cuda.is_available()", "torch.accelerator.is_available"),
        ('torch.autocast("cuda")', "device_type=torch.device(device).type"),
        ('torch.autocast(device_type="cuda")', "device_type=torch.device(device).type"),
        (
            "profile(activities=[torch.profiler.ProfilerActivity.CUDA])",
            "torch.profiler.supported_activities()",
        ),
        ("torch.autograd.profiler.profile(use_cuda=True)", "use_device="),
        ('torch.autograd.profiler.profile(use_device="cuda")', "use_device="),
    ],
)
def test_a_hard_coded_device_and_what_to_write(tmp_path: Path, body: str, instead: str) -> None:
    (finding,) = found(tmp_path, in_test(body))
    assert instead in finding.fix
    assert (finding.rule, finding.severity) == ("hard_coded_device", "warning")
    assert (finding.line, finding.column > 0) == (10, True)


@pytest.mark.parametrize(
    "body",
    [
        'torch.ones(2, device="cpu")',
        'torch.ones(2, device="meta")',
        "torch.ones(2, device=device)",
        'x = "cuda"',
        "self.assertIn(\"device='cuda'\", str(x))",
        "x.cuda",
        "x.is_cuda",
        "x.npu()",  # a backend's own tests may name it
        "self.cuda_helper()",
        "torch.version.cuda",
        "torch.accelerator.synchronize()",
        "torch.accelerator.is_available()",
        "torch.profiler.ProfilerActivity.CPU",
        "torch.distributed.is_available()",
        "# torch.cuda.synchronize()",
        "torch.autograd.profiler.profile(use_cuda=False)",
        "torch.backends.cuda.matmul.allow_tf32 = True",
    ],
)
def test_a_near_miss(tmp_path: Path, body: str) -> None:
    assert found(tmp_path, in_test(f"pass; {body}" if not body.startswith("#") else f"pass {body}")) == []


@pytest.mark.parametrize(
    ("lines", "use"),
    [
        ("import torch.cuda as c\n", "c.synchronize()"),
        ("from torch import cuda as c\n", "c.synchronize()"),
        ("from torch.cuda import synchronize as wait\n", "wait()"),
    ],
)
def test_a_device_behind_another_name(tmp_path: Path, lines: str, use: str) -> None:
    (finding,) = found(tmp_path, lines + in_test(use))
    assert finding.fix == "torch.accelerator.synchronize"


def test_a_class_of_one_device_may_name_it_and_no_other(tmp_path: Path) -> None:
    assert found(tmp_path, in_test("x.cuda()", "CUDA")) == []
    assert len(found(tmp_path, in_test("x.xpu()", "CUDA"))) == 1


def test_outside_of_classes_the_file_s_only_hardware_counts(tmp_path: Path) -> None:
    helper = "def helper(device='cuda'):\n    return torch.ones(1).cuda()\n"
    assert found(tmp_path, helper + in_test("pass", "CUDA")) == []
    assert len(found(tmp_path, helper + in_test("pass", "ACCELERATOR"))) == 2


@pytest.mark.parametrize(("tag", "count"), [("GENERIC", 1), ("CUDA", 0), ("ACCELERATOR", 0)])
def test_only_cuda(tmp_path: Path, tag: str, count: int) -> None:
    """In ACCELERATOR classes upstream's own rule [decorator] reports it."""
    text = in_test("pass", tag).replace("    def test_a", "    @onlyCUDA\n    def test_a")
    assert [finding.fix for finding in found(tmp_path, text)] == ["@onlyAccelerator"] * count


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_the_parser_does(tmp_path: Path, end: str) -> None:
    text = "x = 1\n\f\nclass A:\n    def test_a(self):\n        y.cuda()\n".replace("\n", end)
    tree = tree_of(tmp_path, {"test_a.py": ""})
    from backend_ci.testing.classify.scan import scan

    (use,) = scan(text.encode()).uses
    assert (use.line, use.owner, use.method) == (5, "A", "test_a")
    assert tree.files


@pytest.mark.parametrize(
    "text",
    [
        "if x:\n    pass\nelif y.cuda():\n    pass\n",
        "try:\n    pass\nexcept E:\n    y.cuda()\nelse:\n    pass\nfinally:\n    pass\n",
        "with y.cuda() as z:\n    pass\n",
        "for i in y.cuda():\n    pass\nelse:\n    pass\n",
        "while y.cuda():\n    pass\n",
        "f(\n  1,\n  [\n    lambda: y.cuda(),\n  ],\n)\n",
        "@decorate(y.cuda())\ndef f():\n    pass\n",
        "@first\n@decorate(\n    y.cuda()\n)\nclass A:\n    pass\n",
        "def f(a, b=y.cuda()):\n    pass\n",
        "class A(make(y.cuda())):\n    pass\n",
        "async def f():\n    async with a:\n        async for b in c:\n            await y.cuda()\n",
        "x = [i for i in range(3)\n     if y.cuda()]\n",
        "x = f'{y.cuda()}'\n",
    ],
)
def test_pruning_loses_no_place(tmp_path: Path, text: str) -> None:
    from backend_ci.testing.classify.scan import scan

    assert [use.kind for use in scan(("import a\n" * 3 + text).encode()).uses] == ["method"]
