"""Compiles the backend against the PyTorch that is installed, and writes down which one that was."""

import json
import subprocess
import sys
from pathlib import Path

from setuptools import setup


def compiled() -> dict:
    """The compiled part. Torch is imported here only: that takes seconds, and pip asks for metadata twice before."""
    import torch
    from torch.utils.cpp_extension import BuildExtension, CppExtension, get_cxx_compiler

    class Build(BuildExtension):
        """Adds `torch_refdev/build_info.json`, which anybody can compare with the torch that is installed."""

        def run(self) -> None:
            super().run()
            answer = subprocess.run(
                [get_cxx_compiler(), "--version"], capture_output=True, text=True, check=True
            )
            info = {
                "torch_version": str(torch.__version__),
                "torch_git_version": str(torch.version.git_version),
                "cxx11_abi": bool(torch._C._GLIBCXX_USE_CXX11_ABI),
                "compiler": answer.stdout.splitlines()[0],
            }
            package = Path(self.get_ext_fullpath("torch_refdev._C")).parent
            (package / "build_info.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")

    extension = CppExtension(
        "torch_refdev._C",
        # The largest first: on two cores the build ends when the longest file does.
        sources=[
            str(path) for path in sorted(Path("csrc").glob("*.cpp"), key=lambda path: -path.stat().st_size)
        ],
        depends=sorted(map(str, Path("csrc").glob("*.h"))),
        extra_compile_args=["-g0", "-O1", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-parameter"],
    )
    # A plain library, not a Python module: torch.ops.load_library loads it, and its name says no Python version.
    return {
        "ext_modules": [extension],
        "cmdclass": {"build_ext": Build.with_options(no_python_abi_suffix=True)},
    }


setup(**({} if {"egg_info", "dist_info"} & set(sys.argv) else compiled()))
