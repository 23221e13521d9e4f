"""What `pip check` says of a backend, read: its own needs, and of those not torch's."""

from __future__ import annotations

from backend_ci.build.needs import Need, unmet_needs

SAID = """
torch-npu 2.13.0 has requirement torch~=2.13.0, but you have torch 2.15.0a0+git44bfa17.
torch-npu 2.13.0 has requirement numpy<2,>=1.26, but you have numpy 2.4.1.
torch-npu 2.13.0 requires pyyaml, which is not installed.
torch-npu 2.13.0 requires torchvision, which is not installed.
something-of-the-image 1.0 requires nothing-of-ours, which is not installed.
torch-npu 2.13.0 is not supported on this platform
"""


def test_each_sentence_of_pip_is_understood() -> None:
    needs = unmet_needs(SAID.splitlines(), ["torch_npu"])
    assert needs == [
        Need("torch-npu", "torch~=2.13.0", "torch 2.15.0a0+git44bfa17"),
        Need("torch-npu", "numpy<2,>=1.26", "numpy 2.4.1"),
        Need("torch-npu", "pyyaml"),
        Need("torch-npu", "torchvision"),
    ]
    assert [need.of_torch for need in needs] == [True, False, False, False]


def test_nothing_unmet_is_nothing_to_say() -> None:
    assert unmet_needs(["No broken requirements found."], ["torch_npu"]) == []


def test_torch_is_torch_whatever_follows_the_name() -> None:
    for text in ("torch", "torch==2.13.0", "torch (>=2)", "torch[opt]", "torch ; python_version > '3'"):
        assert Need("x", text).of_torch, text
    for text in ("torchvision", "torch-npu", "torch_xla", "torch.x"):
        assert not Need("x", text).of_torch, text
