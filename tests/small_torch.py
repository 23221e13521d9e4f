"""A PyTorch of a few lines as a wheel, and wheels of anything else: where a test needs no numbers.

Standard library only, Python 3.9.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Optional

TORCH_FILES = {
    "torch/__init__.py": "from torch.version import __version__\nfrom torch import version\n",
    "torch/random.py": "SEED = 1\n",
    "torchgen/__init__.py": "",
    "functorch/__init__.py": "",
}
VERSION_FILE = "__version__ = '{version}'\ngit_version = '{commit}'\n"


def torch_wheel(
    folder: Path, commit: str, version: str = "2.0", files: Optional[Mapping[str, str]] = None
) -> Path:
    """A wheel of PyTorch that says it is `commit`."""
    named = VERSION_FILE.format(version=version, commit=commit)
    return make_wheel(folder, "torch", version, {**TORCH_FILES, "torch/version.py": named, **(files or {})})


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], requires: Sequence[str] = ()
) -> Path:
    """A pure-Python wheel of these files (packaging.python.org, "Binary distribution format")."""
    information = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {requirement}\n" for requirement in requires)
    whole = {
        **files,
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in (*whole, f"{information}/RECORD"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, content in {**whole, f"{information}/RECORD": record}.items():
            archive.writestr(inside, content)
    return path
