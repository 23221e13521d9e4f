"""The roads need PyTorch's wheels; `make test` says where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def wheelhouse() -> Path:
    """Folder with the wheels of torch and of what its tests need."""
    given = os.environ.get("CRCR_TEST_WHEELS")
    if not given:
        pytest.fail("CRCR_TEST_WHEELS is not set: run `make test`, or `make wheels` and name its folder")
    return Path(given)
