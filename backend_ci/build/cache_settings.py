"""Decide how a build is led through a compiler cache: facts in, environment variables out. No I/O.

The traps behind these rules are in docs/compiler-cache.md. The shortest form: PyTorch's own build and its
`cpp_extension` both look for a cache by themselves and prefer ccache; put before `CC` as a second word, a cache
breaks extension builds; and a hit in another directory needs base directories, told in each tool's own way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Optional
from urllib.parse import quote

from relay_client.errors import UsageError

TOOLS = ("ccache", "sccache")
MODES = ("none", "auto", *TOOLS)
TRUSTS = ("pull-request", "landed")
# Older ones lack what a shared cache needs: `remote_only` and `--trim-dir`; base directories and a Unix socket.
OLDEST = {"ccache": (4, 8), "sccache": (0, 14)}

_LAUNCHERS = ("CMAKE_C_COMPILER_LAUNCHER", "CMAKE_CXX_COMPILER_LAUNCHER", "CMAKE_CUDA_COMPILER_LAUNCHER")
# Without Python's own `-g`, entries are a tenth of the size and a compiler needs a quarter less memory.
_NO_DEBUG_INFORMATION = {"CFLAGS": "-g0", "CXXFLAGS": "-g0"}
_SCCACHE_BACKENDS = ("S3", "REDIS", "MEMCACHED", "GCS", "AZURE", "WEBDAV", "OSS", "COS", "GHA")
_OFF = {"CCACHE_DISABLE": "1", "TORCH_NO_COMPILER_WRAPPER": "1", "USE_CCACHE": "0"}

# A variable's value, or None for one that must not be set.
Variables = Mapping[str, Optional[str]]


@dataclass(frozen=True)
class Situation:
    """What the decision rests on. Paths are absolute.

    `programs` has each tool that was found; `torch_wraps` is None while PyTorch itself is built. `seed` is the
    folder that builds of landed commits fill, `private` one that only this build uses.
    """

    tool: str
    programs: Mapping[str, str]
    torch_wraps: Optional[bool]
    environment: Mapping[str, str]
    roots: Sequence[str]
    seed: str
    private: str
    wrappers: str
    socket: str
    trust: str
    size: str
    remote: str = ""


@dataclass(frozen=True)
class Settings:
    """The variables of the build, and the wrapper scripts to write first: path and the command before `"$@"`."""

    variables: Variables
    scripts: Mapping[str, tuple[str, str]]


def decide(situation: Situation) -> Settings:
    """Lead the build through the tool. Raises UsageError for a `CC` or `CXX` of two words."""
    _refuse_two_words(situation.environment)
    storage = _ccache(situation) if situation.tool == "ccache" else _sccache(situation)
    lead, scripts = _lead(situation)
    flags: Variables = {} if _has_flags(situation.environment) else _NO_DEBUG_INFORMATION
    return Settings({**flags, **storage, **lead}, scripts)


def without_cache(environment: Mapping[str, str]) -> Variables:
    """No cache is used. One on PATH would join by itself, write to a folder that outlives the run, and be
    read by the next: it is switched off, unless the step's variables show that somebody set it up.
    """
    if any(name.startswith(("CCACHE_", "SCCACHE_")) for name in environment):
        return {}
    return {name: value for name, value in _OFF.items() if name not in environment}


def _refuse_two_words(environment: Mapping[str, str]) -> None:
    """`CXX="ccache c++"` is one quoted word in the rules that torch writes, and no such program exists."""
    for name, usual in (("CC", "cc"), ("CXX", "c++")):
        words = environment.get(name, "").split()
        if len(words) > 1:
            raise UsageError(
                f"{name} has more than one word; PyTorch's extension builds take it for the name of one program.",
                seen=f"{name}={environment[name]}",
                fix=f"{name}: {words[-1] if words[0].endswith('ccache') else words[0] or usual} "
                "(compiler-cache puts the cache before it), or compiler-cache: none",
            )


def choose(mode: str, programs: Mapping[str, str]) -> Optional[str]:
    """The tool to use, of those that were found. `auto` takes the one that PyTorch would take: ccache first."""
    wanted = TOOLS if mode == "auto" else (mode,)
    return next((tool for tool in wanted if tool in programs), None)


def old(tool: str, version: str) -> bool:
    """Whether a tool's own `--version` line names one that is too old, or none."""
    match = re.search(r"(\d+)\.(\d+)", version)
    return match is None or (int(match[1]), int(match[2])) < OLDEST[tool]


def check_size(size: str) -> None:
    """Raises UsageError unless both tools read it alike."""
    if not re.fullmatch(r"[1-9][0-9]{0,5}[MGT]", size):
        raise UsageError(
            "compiler-cache-size is not a size.",
            seen=size[:100],
            fix='compiler-cache-size: "5G" (a number and M, G or T)',
        )


def base_directory(roots: Sequence[str]) -> str:
    """The folder that everything of the run lies in: ccache makes paths below it relative.

    When the roots have nothing but `/` in common, the first one: relative paths through `/` would differ anyway.
    """
    common = os.path.commonpath(roots)
    return common if common != os.path.sep else roots[0]


def _ccache(at: Situation) -> Variables:
    reader = at.trust == "pull-request"
    layers = [f"file:{quote(at.seed)}|{'read-only=true' if reader else 'update-mtime=true'}"]
    if at.remote:
        layers.append(f"{at.remote}|read-only=true" if reader else at.remote)
    return {
        "CCACHE_DIR": at.private,
        "CCACHE_REMOTE_STORAGE": " ".join(layers),
        # What a landed commit compiles belongs in the seed; a second copy beside it would only cost time.
        "CCACHE_REMOTE_ONLY": None if reader else "1",
        "CCACHE_BASEDIR": base_directory(at.roots),
        # Debug information holds the working folder; without this, `-g` would tie an entry to its folder.
        "CCACHE_NOHASHDIR": "1",
        # The time stamp of the same compiler is another one in each container.
        "CCACHE_COMPILERCHECK": "content",
        "CCACHE_MAXSIZE": at.size,
        **dict.fromkeys(("CCACHE_DISABLE", "CCACHE_READONLY", "CCACHE_RECACHE")),
    }


def _sccache(at: Situation) -> Variables:
    reader = at.trust == "pull-request"
    return {
        "SCCACHE_DIR": at.private if reader else at.seed,
        "SCCACHE_CACHE_SIZE": at.size,
        "SCCACHE_BASEDIRS": os.pathsep.join(at.roots),
        # A socket of this build only: the server of another would have other folders and another cache.
        "SCCACHE_SERVER_UDS": at.socket,
        "SCCACHE_SERVER_PORT": None,
        "SCCACHE_IDLE_TIMEOUT": "0",
        # When the server is gone, the compiler still is there.
        "SCCACHE_IGNORE_SERVER_IO_ERROR": "1",
        # One cache entry of GitHub's per file: a build of PyTorch uses up the hour's uploads in its first minutes.
        "SCCACHE_GHA_ENABLED": None,
        "SCCACHE_LOCAL_RW_MODE": None,
        **({f"SCCACHE_{name}_RW_MODE": "READ_ONLY" for name in _SCCACHE_BACKENDS} if reader else {}),
    }


def _lead(at: Situation) -> tuple[Variables, dict[str, tuple[str, str]]]:
    """How compilers come to be started through the tool: exactly one way at a time."""
    program = at.programs[at.tool]
    torch_takes = next((tool for tool in TOOLS if tool in at.programs), None)
    if at.torch_wraps is None or (at.torch_wraps and torch_takes == at.tool):
        variables: dict[str, Optional[str]] = dict.fromkeys(_LAUNCHERS, program)
        return {**variables, "TORCH_NO_COMPILER_WRAPPER": None, "USE_CCACHE": _use_ccache(at.tool)}, {}
    # Torch would take no tool, or the other one: compilers that are scripts work with every torch, and with CMake.
    scripts = {}
    variables = dict.fromkeys(_LAUNCHERS)
    for name, usual in (("CC", "cc"), ("CXX", "c++")):
        compiler = at.environment.get(name, "").strip() or usual
        path = f"{at.wrappers}/{os.path.basename(compiler)}"  # noqa: PTH119 - a name, not a file
        scripts[path] = (program, compiler)
        variables[name] = path
    return {**variables, "TORCH_NO_COMPILER_WRAPPER": "1", "USE_CCACHE": "0"}, scripts


def _use_ccache(tool: str) -> Optional[str]:
    """PyTorch's CMake takes a ccache that it finds, unless told not to."""
    return None if tool == "ccache" else "0"


def _has_flags(environment: Mapping[str, str]) -> bool:
    return any(environment.get(name, "").strip() for name in _NO_DEBUG_INFORMATION)
