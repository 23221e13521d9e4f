"""What a build would be made from, and whether two builds are the same."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields

from backend_ci.build.environment import RunEnvironment
from relay_client.documents.manifest import Named, Recipe
from relay_client.errors import CommandFailed
from relay_client.protocol.shape import dump

_PYTHON = """
import platform, sys, sysconfig
print(sys.implementation.cache_tag, platform.python_version(), sysconfig.get_config_var("SOABI"))
"""
# Raised when this toolkit builds in another way: wheels of before are then built anew.
RECIPE_VERSION = 1
# PyTorch's build reads these (CONTRIBUTING.md and setup of pytorch/pytorch), compilers and CMake the others.
_FLAGS = re.compile(
    r"(USE|BUILD|CMAKE|TORCH|PYTORCH|CUDA|CUDNN|ROCM|HIP|NCCL|MKL|BLAS|INTEL|XPU|SYCL|ATEN|GLIBCXX|_GLIBCXX)_\w+"
    r"|CC|CXX|CPP|LD|AR|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|DEBUG|REL_WITH_DEB_INFO|BLAS|LIBRARY_PATH|CPATH"
    r"|C_INCLUDE_PATH|CPLUS_INCLUDE_PATH|SETUPTOOLS_SCM_PRETEND_VERSION\w*|SOURCE_DATE_EPOCH|ARCHFLAGS"
)
# They change how fast a build is, not what it is.
_NO_FLAGS = re.compile(
    r"(CMAKE_BUILD_PARALLEL_LEVEL|CMAKE_\w+_COMPILER_LAUNCHER|BUILD_(URL|ID|NUMBER|TAG)|PYTORCH_TESTING_\w+"
    r"|USE_CCACHE|TORCH_NO_COMPILER_WRAPPER|TORCH_DEVICE_BACKEND_AUTOLOAD)"
)


def recipe_of(
    commit: str,
    submodules: Mapping[str, str],
    requirements: Sequence[str],
    command: str,
    environment: RunEnvironment,
    image: str,
) -> Recipe:
    """What a build here and now, with the interpreter of `environment`, would be made from.

    Raises CommandFailed when that interpreter does not run.
    """
    variables = environment.environment
    return Recipe(
        commit=commit,
        submodules=_named(submodules),
        flags=_named(build_flags(variables)),
        requirements=tuple(sorted(requirements)),
        command=command,
        compiler=_compiler(environment),
        python=_python(environment),
        platform=" ".join(filter(None, (sys.platform, platform.machine(), *platform.libc_ver()))),
        # GitHub's hosted runners name theirs.
        image=image or f"{variables.get('ImageOS', '')} {variables.get('ImageVersion', '')}".strip(),
        recipe_version=RECIPE_VERSION,
    )


def build_flags(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that change what a build is. Pure."""
    return {
        name: value
        for name, value in variables.items()
        if _FLAGS.fullmatch(name) and not _NO_FLAGS.fullmatch(name)
    }


def differences(wanted: Recipe, found: Recipe) -> list[str]:
    """In what two recipes differ, in words; empty when they are the same build. Pure."""
    result = []
    for field in fields(Recipe):
        ours, theirs = getattr(wanted, field.name), getattr(found, field.name)
        if ours == theirs:
            continue
        if isinstance(ours, tuple):
            mine, other = ({_name(item): _value(item) for item in items} for items in (ours, theirs))
            result += [
                f"{field.name} {name}: {other.get(name, 'absent')}, now {mine.get(name, 'absent')}"
                for name in sorted({**mine, **other})
                if mine.get(name) != other.get(name)
            ]
        else:
            result.append(f"{field.name}: {theirs or 'none'}, now {ours or 'none'}")
    return result


def recipe_key(recipe: Recipe) -> str:
    """A name for a recipe: the commit's start, and a digest of all of it. Pure."""
    text = json.dumps(dump(recipe), sort_keys=True)
    return f"{recipe.commit[:12]}-{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def _named(values: Mapping[str, str]) -> tuple[Named, ...]:
    return tuple(Named(name, value) for name, value in sorted(values.items()))


def _name(item: Named | str) -> str:
    return item.name if isinstance(item, Named) else item


def _value(item: Named | str) -> str:
    return item.value if isinstance(item, Named) else "there"


def _python(environment: RunEnvironment) -> str:
    """Asked of the interpreter itself: the user's own need not be the one that runs this tool."""
    done = environment.run([str(environment.interpreter), "-I", "-c", _PYTHON], quiet=True)
    if not done.ok or not done.tail:
        raise CommandFailed(
            "The interpreter does not run.",
            seen=f"{environment.interpreter}: {done.describe()}",
            fix="python: the absolute path of a Python that works on this machine",
        )
    return done.tail[-1]


def _compiler(environment: RunEnvironment) -> str:
    command: Sequence[str] = (environment.environment.get("CXX") or "c++").split()
    try:
        done = environment.run([*command, "--version"], quiet=True)
    except OSError:
        return f"none ({command[0]} is not there)"
    return next((line for line in done.tail if line.strip()), "unknown") if done.ok else "unknown"
