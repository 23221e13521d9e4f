"""Downstreams of a few files for roads that need no numbers: their torch is a wheel of a few lines."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path

from crcr.home import HOME, RELEASE_COMMIT
from dispatch_lab.lab import Downstream

TEST_FILE = """
import torch.random

class TestSeed:
    hw_classification = "GENERIC"
    def test_the_pull_request_is_under_test(self):
        assert torch.random.SEED == 2
"""
# A build backend in the repository itself (PEP 517, `backend-path`): no package is needed to build with it.
PYPROJECT = """
[build-system]
requires = []
build-backend = "builder"
backend-path = ["."]
[project]
name = "torch-small"
version = "1.0"
"""
BUILDER = """
import json, os, pathlib, sys
sys.path.append({helpers!r})
from small_torch import make_wheel

def build_wheel(folder, config_settings=None, metadata_directory=None):
    files = json.loads(pathlib.Path("wheel.json").read_text())
    return make_wheel(pathlib.Path(folder), "torch_small", "1.0", files).name
"""
_WORKFLOW = """
name: Small
on:
  repository_dispatch:
    types: [pull_request, push]
permissions: {{}}
jobs:
  receive:
    runs-on: ubuntu-latest
    timeout-minutes: 5
    permissions:
      id-token: write
    outputs:
      commit: ${{{{ steps.receive.outputs.commit }}}}
      base-commit: ${{{{ steps.receive.outputs.base-commit }}}}
    steps:
      - id: receive
        uses: {home}/actions/receive-dispatch@{pin}
      - uses: {home}/actions/report-status@{pin}
        with:
          status: in_progress
          relay-url: ${{{{ vars.CRCR_RELAY_URL }}}}
  test:
    needs: receive
    runs-on: ubuntu-latest
    timeout-minutes: 5
    permissions:
      contents: read
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1
{steps}
  report:
    needs: [receive, test]
    if: always()
    runs-on: ubuntu-latest
    timeout-minutes: 5
    permissions:
      id-token: write
    steps:
      - uses: {home}/actions/report-status@{pin}
        with:
          needs: ${{{{ toJSON(needs) }}}}
          relay-url: ${{{{ vars.CRCR_RELAY_URL }}}}
"""


def toolkit_step(environment: Mapping[str, str] | None = None, **inputs: str) -> str:
    """A step of the root action. `inputs` and `environment` are added to what every downstream sets."""
    values = {
        "commit": "${{ needs.receive.outputs.commit }}",
        "base-commit": "${{ needs.receive.outputs.base-commit }}",
        "torch-wheel": "torch==2.0",
        "requirements": "pytest",
        "check-backend": "false",
        **{name.replace("_", "-"): value for name, value in inputs.items()},
    }
    lines = [
        f"- uses: {HOME}@{RELEASE_COMMIT}",
        "  with:",
        *(f"    {k}: {json.dumps(v)}" for k, v in values.items()),
    ]
    if environment:
        lines += ["  env:", *(f"    {k}: {json.dumps(v)}" for k, v in environment.items())]
    return "\n".join(lines) + "\n"


def shell_step(command: str) -> str:
    return f"- run: {json.dumps(command)}\n"


def downstream(folder: Path, name: str, steps: str, wheel: Mapping[str, str], **files: str) -> Downstream:
    """A repository whose hardware job has these steps and whose backend is a wheel of these files."""
    helpers = str(Path(__file__).resolve().parents[1])
    workflow = _WORKFLOW.format(home=HOME, pin=RELEASE_COMMIT, steps=textwrap.indent(steps, " " * 6).rstrip())
    whole = {
        ".github/workflows/crcr.yml": workflow,
        "pyproject.toml": PYPROJECT,
        "builder.py": BUILDER.format(helpers=helpers),
        "wheel.json": json.dumps(wheel),
        "tests/test_seed.py": TEST_FILE,
        **files,
    }
    for path, text in whole.items():
        (folder / name / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / path).write_text(text, encoding="utf-8")
    return Downstream(f"lab-vendor/{name}", folder / name)
