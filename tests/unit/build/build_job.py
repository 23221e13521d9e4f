"""A hardware job that has checked out: a run folder, an interpreter, and a PyTorch of a few lines in git."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from installed_torch import SmallTorch
from small_torch import TORCH_FILES, torch_wheel

from backend_ci.build.environment import describe_wheel
from crcr.cli import main
from relay_client.documents.build import Build, Torch
from relay_client.documents.document import save

# A build backend in the repository itself (PEP 517, `backend-path`): no package is needed to build with it.
BUILDER = """
import os, pathlib, sys
sys.path.insert(0, {helpers!r})
from small_torch import make_wheel

def build_wheel(folder, config_settings=None, metadata_directory=None):
    import torch
    seen = "GIT = " + repr(torch.version.git_version) + "\\nAUTOLOAD = " + repr(os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"])
    return make_wheel(pathlib.Path(folder), "torch_small", "1.0", {{"torch_small.py": seen}}).name
"""
PYPROJECT = """
[build-system]
requires = []
build-backend = "builder"
backend-path = ["."]
[project]
name = "torch-small"
version = "1.0"
"""


class Job:
    """A run folder with a checkout in it, and an interpreter that outlives the run."""

    def __init__(self, folder: Path) -> None:
        self.run_dir, self.wheels, self.workspace = folder / "run", folder / "wheels", folder / "workspace"
        for path in (self.workspace, self.run_dir, self.wheels):
            path.mkdir()
        place = folder / "image"
        # Quick to make: it borrows pip from the Python it is made of.
        command = [sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(place)]
        subprocess.run(command, check=True, timeout=60)
        self.python = place / "bin" / "python"
        self.torch = SmallTorch(folder)
        files = {name: text.encode() for name, text in TORCH_FILES.items()}
        self.commit = self.torch.commit({**files, "torch/gone.py": None, "torch/not_in_the_wheel.py": None})
        self.wheel = torch_wheel(self.wheels, self.commit)
        self.environment: dict[str, str] = {}

    def checked_out(self, commit: str) -> None:
        """Leave the document of a checkout of `commit`, whose base is `self.commit`."""
        self.torch.base = self.commit
        save(self.torch.checkout(commit), self.run_dir)

    def crcr(self, *arguments: str) -> int:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.run_dir),
            "GITHUB_WORKSPACE": str(self.workspace),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            **self.environment,
        }
        return main([*arguments, "--run-dir", str(self.run_dir)], environment)

    def build_pytorch(self, *arguments: str, wheel: str = "") -> int:
        named = wheel or str(self.wheel)
        return self.crcr("build-pytorch", "--torch-wheel", named, "--python", str(self.python), *arguments)

    def with_torch(self) -> Path:
        """As if `build-pytorch` had run. Returns the folder it installed into."""
        (site,) = self.python.parents[1].glob("lib/python*/site-packages")
        with zipfile.ZipFile(self.wheel) as archive:
            archive.extractall(site)
        torch = Torch("2.0", self.commit, str(site / "torch"))
        save(
            Build("wheel", self.commit, str(self.python), torch, describe_wheel(self.wheel), 0.0),
            self.run_dir,
        )
        return site

    def build_backend(self, *arguments: str) -> int:
        """Without asking its device: this torch has none."""
        return self.crcr("build-backend", "--check-backend", "false", *arguments)

    def ask(self, code: str) -> str:
        command = [str(self.python), "-I", "-c", code]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def write_backend(self) -> None:
        helpers = str(Path(__file__).resolve().parents[2])
        (self.workspace / "builder.py").write_text(BUILDER.format(helpers=helpers))
        (self.workspace / "pyproject.toml").write_text(PYPROJECT)
