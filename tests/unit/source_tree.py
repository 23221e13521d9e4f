"""A tree of test files from texts, and what is read from it in this process."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from backend_ci.testing.classify.facts import FileFacts, from_json, to_json
from backend_ci.testing.classify.report import Row, make_report
from backend_ci.testing.classify.scan import scan
from backend_ci.testing.classify.tree import Tree

HEAD = """
import unittest
import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_device_type import instantiate_device_type_tests, onlyCUDA, onlyCPU
from torch.testing._internal.common_utils import HardwareClassification, TestCase
"""


def write(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write the files, with the usual imports above each, and return their paths."""
    (folder / ".git").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(HEAD + textwrap.dedent(text), encoding="utf-8")
    return [str(folder / name) for name in files]


def read(paths: Sequence[str]) -> dict[str, FileFacts]:
    """Through JSON, as the cache would give them."""
    return {path: from_json(to_json(scan(Path(path).read_bytes()))) for path in paths}


def tree_of(folder: Path, files: Mapping[str, str], *asked: str) -> Tree:
    paths = write(folder, files)
    return Tree([str(folder / name) for name in asked] or paths, read)


def rows_of(folder: Path, files: Mapping[str, str], *asked: str) -> dict[str, Row]:
    return {row.name: row for row in make_report(tree_of(folder, files, *asked)).rows}
