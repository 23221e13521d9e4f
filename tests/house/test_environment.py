"""The tool's own environment: without torch, and without any package that the runner side would need."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[2]


def test_the_tool_s_environment_has_no_torch() -> None:
    assert importlib.util.find_spec("torch") is None


def test_the_runner_side_declares_no_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"] == []
    assert not [
        name for extra in project["optional-dependencies"].values() for name in extra if "torch" in name
    ]


def test_every_verb_loads_without_site_packages() -> None:
    """As the launcher starts it: isolated and without site, so that only the standard library is there."""
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from crcr.verbs import VERBS\n"
        "for verb in VERBS: verb.load()\n"
        "print(sorted({name.split('.')[0] for name, module in sys.modules.items()\n"
        "              if 'site-packages' in str(getattr(module, '__file__', ''))}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", code, str(ROOT)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "[]"
