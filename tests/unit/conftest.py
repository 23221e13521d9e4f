"""What the unit tests share: a step of a job around `crcr`, and a server on this machine.

Everything below tests/unit runs on the oldest supported Python with pytest alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_http import LocalServer
from step import Step


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path / "job")


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with LocalServer() as running:
        yield running
