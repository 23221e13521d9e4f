"""Lead a build through ccache or sccache, count the hits, and leave nothing behind but what the trust allows.

    with compiler_cache(options, environment, "build-backend", roots=…, torch=…) as cache:
        build with cache.environment
    cache.statistics  # for build.json

Setting a cache up never fails a build: whatever is missing or broken is said, and the build goes on without.
docs/compiler-cache.md has the reasons, the figures, and what each place to keep a cache can guarantee.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from backend_ci.build import cache_seed
from backend_ci.build.cache_settings import (
    MODES,
    OLDEST,
    TOOLS,
    TRUSTS,
    Situation,
    Variables,
    check_size,
    choose,
    decide,
    old,
    without_cache,
)
from backend_ci.build.cache_statistics import COMMANDS, READERS
from backend_ci.build.cache_tools import Found, ask, server
from backend_ci.build.environment import RunEnvironment
from backend_ci.job import JobOptions
from relay_client.documents.build import CompilerCache
from relay_client.errors import UsageError
from relay_client.runner.commands import Commands
from relay_client.runner.options import option

_WRAPPER = '#!/bin/sh\nexec {program} {compiler} "$@"\n'


@dataclass(frozen=True)
class CompilerCacheOptions(JobOptions):
    """What every stage that may compile takes."""

    compiler_cache: str = option(
        "Compiler cache to build through; auto takes the one that is on PATH", default="none", one_of=MODES
    )
    compiler_cache_dir: Optional[Path] = option(
        "Folder of the cache (default: crcr-compiler-cache beside the run folder)", default=None
    )
    trust: str = option(
        "Whether the commit has landed, as receive-dispatch says: what a pull request's build leaves behind "
        "reaches no other run",
        default="pull-request",
        one_of=TRUSTS,
    )
    compiler_cache_size: str = option("How large it may grow, in M, G or T", default="5G")
    compiler_cache_remote: Optional[str] = option(
        "A shared cache for ccache, such as http://cache.example or redis://cache.example, read-only for pull "
        "requests; sccache takes its SCCACHE_* variables",
        default=None,
    )


@dataclass
class Cached:
    """How to build, and after the block what the cache did: one entry, or none without a cache."""

    environment: RunEnvironment
    statistics: tuple[CompilerCache, ...] = ()


@contextlib.contextmanager
def compiler_cache(
    options: CompilerCacheOptions,
    environment: RunEnvironment,
    phase: str,
    *,
    roots: Sequence[Path],
    torch: Optional[Path] = None,
) -> Iterator[Cached]:
    """Build inside the block with `environment` of what is yielded.

    `roots`: folders that differ from run to run, the sources first. `torch`: the installed package, when an
    extension is built against it. Raises UsageError for options, CC or CXX that cannot work.
    """
    check_size(options.compiler_cache_size)
    found = Found.on_path(environment)
    tool = _choose(options, found, environment.commands)
    plain = Cached(_with(environment, without_cache(environment.environment)))
    if tool is None:
        yield plain
        return
    with contextlib.ExitStack() as stack:
        try:
            at = _Place.make(options, tool, environment, roots, stack)
            settings = decide(
                Situation(
                    tool, found.programs, _torch_wraps(torch), environment.environment, at.roots,
                    seed=str(at.seed), private=str(at.private), wrappers=str(at.folder / "compilers"),
                    socket=str(at.socket), trust=at.trust, size=options.compiler_cache_size,
                    remote=options.compiler_cache_remote or "",
                )
            )  # fmt: skip
            _write(settings.scripts)
            cached = Cached(_with(environment, settings.variables))
            if tool == "sccache":
                stack.enter_context(server(found.programs[tool], cached.environment, at.socket))
            environment.commands.line(f"Compiler cache: {found.versions[tool]}, {at.describe()}")
        except OSError as error:
            _go_on_without(environment.commands, tool, f"{tool}: {error}")
            cached = plain
        try:
            yield cached
        finally:
            if cached is not plain:
                cached.statistics = _count(cached.environment, tool, found.programs[tool], phase, at)


@dataclass(frozen=True)
class _Place:
    """Where this build keeps what. `seed` outlives the run; `folder` and what is below do not."""

    folder: Path
    seed: Path
    private: Path
    socket: Path
    roots: tuple[str, ...]
    trust: str

    @classmethod
    def make(
        cls,
        options: CompilerCacheOptions,
        tool: str,
        environment: RunEnvironment,
        roots: Sequence[Path],
        stack: contextlib.ExitStack,
    ) -> _Place:
        """Make the folders; they are removed with the stack. Raises OSError."""
        given = options.compiler_cache_dir or environment.folder.parent / "crcr-compiler-cache"
        store = given.absolute()
        folder = environment.folder / "compiler-cache"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        # A socket's path may have about a hundred characters; run folders have more.
        short = Path(tempfile.mkdtemp(prefix="crcr-"))
        stack.callback(shutil.rmtree, short, ignore_errors=True)
        trust, seed, private = options.trust, store / tool, folder / "private"
        if trust == "landed" and tool == "sccache" and not stack.enter_context(cache_seed.only_writer(seed)):
            environment.commands.notice("Another build writes to this cache. This one works on a copy.")
            trust = "pull-request"
        if trust == "pull-request":
            _guard(store, environment.commands, stack)
            if tool == "sccache":
                cache_seed.copy(seed, private)
        else:
            seed.mkdir(parents=True, exist_ok=True)
        spelled = tuple(dict.fromkeys(str(root.absolute()) for root in (*roots, environment.folder)))
        return cls(folder, seed, private, short / "sccache.sock", spelled, trust)

    def describe(self) -> str:
        if self.trust == "landed":
            return f"fills {self.seed}"
        return f"reads {self.seed}; what it compiles is thrown away" if self.seed.is_dir() else "starts empty"


def _guard(store: Path, commands: Commands, stack: contextlib.ExitStack) -> None:
    before = cache_seed.entries(store)

    def look() -> None:
        removed = cache_seed.take_out_what_changed(store, before)
        if removed:
            commands.warning(
                f"The build of a pull request wrote {removed} file(s) into {store}. They are removed. "
                "Give pull requests a machine, or a user, that cannot write there.",
                title="Compiler cache",
            )

    stack.callback(look)


def _choose(options: CompilerCacheOptions, found: Found, commands: Commands) -> Optional[str]:
    """The tool, or None after saying why. Raises UsageError."""
    mode = options.compiler_cache
    if mode == "none":
        return None
    usable = {
        tool: program for tool, program in found.programs.items() if not old(tool, found.versions[tool])
    }
    tool = choose(mode, usable)
    if tool is None:
        wanted = TOOLS if mode == "auto" else (mode,)
        seen = ", ".join(f"{name}: {found.versions.get(name) or 'not on PATH'}" for name in wanted)
        needed = " or ".join(f"{name} {'.'.join(map(str, OLDEST[name]))}" for name in wanted)
        _go_on_without(commands, mode, f"{seen} (needs {needed} or newer)")
        return None
    if tool == "sccache" and options.compiler_cache_remote:
        raise UsageError(
            "compiler-cache-remote is for ccache.",
            seen=f"compiler-cache: {mode}, which is sccache here",
            fix="give the step sccache's own variables, such as SCCACHE_BUCKET and SCCACHE_REGION",
        )
    return tool


def _go_on_without(commands: Commands, mode: str, why: str) -> None:
    text = f"Building without a compiler cache: {why}"
    if mode == "auto":
        commands.line(text)
    else:
        commands.warning(text, title="Compiler cache")


def _torch_wraps(torch: Optional[Path]) -> Optional[bool]:
    """Whether this torch's extension builds look for a cache by themselves (pytorch/pytorch#175696, 2026)."""
    if torch is None:
        return None
    try:
        return "TORCH_NO_COMPILER_WRAPPER" in (torch / "utils" / "cpp_extension.py").read_text(
            "utf-8", "replace"
        )
    except OSError:
        return False


def _with(environment: RunEnvironment, variables: Variables) -> RunEnvironment:
    merged: dict[str, Optional[str]] = {**environment.environment, **variables}
    return replace(environment, environment={k: v for k, v in merged.items() if v is not None})


def _write(scripts: Mapping[str, tuple[str, str]]) -> None:
    for path, (program, compiler) in scripts.items():
        # Found now: on the build's PATH the name may be taken by something else.
        text = _WRAPPER.format(program=_quoted(program), compiler=_quoted(shutil.which(compiler) or compiler))
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
        Path(path).chmod(0o755)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _count(
    environment: RunEnvironment, tool: str, program: str, phase: str, at: _Place
) -> tuple[CompilerCache, ...]:
    """Say what the cache did, in the log and in the summary. The counters began at zero: they are this build's."""
    counted = READERS[tool]("\n".join(ask(environment, program, *COMMANDS[tool])))
    commands = environment.commands
    if counted is None:
        commands.line(f"Compiler cache: {tool} gives no statistics")
        return ()
    commands.line(f"Compiler cache ({phase}): {tool}, {counted.describe()}")
    if counted.rate is not None:
        commands.summary(f"Compiler cache of {phase}: {tool}, {counted.describe()}\n")
    if tool == "ccache" and at.trust == "landed":
        size = environment.environment["CCACHE_MAXSIZE"]
        trim = ("--trim-dir", str(at.seed), "--trim-max-size", size, "--trim-method", "mtime")
        for line in ask(environment, program, *trim):
            commands.line(f"Compiler cache: {line}")
    return (CompilerCache(phase, tool, at.trust, counted.hits, counted.misses, counted.uncached),)
