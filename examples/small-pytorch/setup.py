"""Builds the small torch: one extension, and torch/version.py, which knows the commit."""

import subprocess
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
COMMIT = subprocess.run(
    ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
).stdout.strip()
VERSION = f"2.15.0a0+git{COMMIT[:7]}"

(ROOT / "torch" / "version.py").write_text(
    f'__version__ = "{VERSION}"\ngit_version = "{COMMIT}"\n', encoding="utf-8"
)
setup(
    version=VERSION,
    packages=["torch"],
    ext_modules=[
        Extension(
            "torch._sum",
            ["csrc/sum.cpp"],
            include_dirs=["third_party/wide/include", "third_party/wide/third_party/start/include"],
            language="c++",
            extra_compile_args=["-std=c++17"],
        )
    ],
)
