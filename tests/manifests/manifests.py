"""The manifests and workflows of this tree as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dev.manifests import MANIFESTS

ROOT = Path(__file__).resolve().parents[2]
ACTIONS = sorted([ROOT / "action.yml", *ROOT.glob("actions/*/action.yml")])
WORKFLOWS = sorted(
    [*ROOT.glob("workflow-templates/*.yml"), *ROOT.glob("examples/*/.github/workflows/*.yml"),
     *ROOT.glob(".github/workflows/*.yml")]
)  # fmt: skip


def load(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return value


def name(path: Path) -> str:
    """How a test is called for a file."""
    return str(path.relative_to(ROOT))


def folder_of(path: Path) -> str:
    return str(path.parent.relative_to(ROOT))


BY_FOLDER = {manifest.folder: manifest for manifest in MANIFESTS}
