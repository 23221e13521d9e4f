"""A step, and an upstream of its own that it reads."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path

import pytest
from small_upstream import Upstream
from step import Step


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    folder = tmp_path_factory.mktemp("upstream")
    bare = folder / "bare"
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True)
    return Upstream(bare, folder)


@pytest.fixture
def upstream(step: Step, template: Upstream, tmp_path: Path) -> Upstream:
    """A copy of one's own: tests push to it."""
    mine = copy.copy(template)
    shutil.rmtree(step.upstream)
    mine.bare = Path(shutil.copytree(template.bare, step.upstream))
    mine.work = Path(shutil.copytree(template.work, tmp_path / "work"))
    return mine
