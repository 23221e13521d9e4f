"""How PyTorch is got at the commit: a table of providers, each of which gives one wheel."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from backend_ci.build.compiler_cache import CompilerCacheOptions, compiler_cache
from backend_ci.build.disk import free_disk, require_space
from backend_ci.build.environment import RunEnvironment, the_wheel
from backend_ci.build.overlay import plan_overlay
from backend_ci.build.recipe import recipe_of
from backend_ci.build.source import SourceBuild, build_environment, build_wheel
from backend_ci.build.store import WheelStore
from relay_client.documents.build import CompilerCache
from relay_client.documents.checkout import Checkout
from relay_client.documents.manifest import Manifest
from relay_client.errors import NotOverlayable, UsageError
from relay_client.runner.options import option

AUTO = "auto"


@dataclass(frozen=True)
class ProviderOptions(CompilerCacheOptions):
    """What every provider may be told."""

    provider: str = option(
        "How PyTorch is got at the commit; auto lays Python changes over a wheel, and builds what is more",
        default="overlay",
        one_of=("overlay", "wheel", "source", "command", AUTO),
    )
    torch_wheel: str = option(
        "overlay, wheel: a path, a pattern that one file matches, an address, or a requirement such as torch==2.13.0",
        default="torch",
    )
    build_command: Optional[str] = option(
        "command: shell command that puts one wheel of the checkout into the folder $WHEELS, with $PYTHON",
        default=None,
    )
    build_requirements: tuple[str, ...] = option(
        "source, command: packages for the build beside those of the checkout's pyproject.toml, one a line",
        default=(),
    )
    image_digest: Optional[str] = option(
        "source, command: digest of the container image of this job; a wheel built in another one is not reused",
        default=None,
    )
    build_disk_gigabytes: float = option("source, command: disk that the build needs", default=12.0)
    free_disk: bool = option(
        "Whether to remove the tool chains that GitHub's hosted runners bring (25 GB)", default=False
    )
    wheel_cache: Optional[Path] = option(
        "source, command: folder of wheels that outlives the run; used for landed commits only", default=None
    )
    wheel_cache_gigabytes: float = option(
        "How large that folder may grow; the wheels that served nobody for longest go first", default=20.0
    )
    build_timeout_minutes: float = option("How long one build or install command may take", default=60.0)


@dataclass(frozen=True)
class Provided:
    """One wheel, and how it came about. `manifest` is there if it was built here, now or before."""

    wheel: Path
    manifest: Optional[Manifest] = None
    reused: bool = False
    compiler_cache: tuple[CompilerCache, ...] = ()


Provider = Callable[[ProviderOptions, Checkout, RunEnvironment], Provided]


def choose_provider(options: ProviderOptions, checkout: Checkout) -> tuple[str, str]:
    """The provider to use, and why if it is not the one that was named. Pure."""
    if options.provider != AUTO:
        return options.provider, ""
    if checkout.changed_files is None:
        return "source", "no base-commit was given, so nobody knows what changed"
    try:
        change = plan_overlay(checkout.changed_files)
    except NotOverlayable as error:
        return "source", f"{error.what} ({error.seen})"
    return "overlay", f"the change is {len(change.lay) + len(change.remove)} Python file(s)"


def _ready_wheel(options: ProviderOptions, _checkout: Checkout, environment: RunEnvironment) -> Provided:
    """The wheel file: one on disk, or what pip gets for a requirement or an address."""
    named, downloads = options.torch_wheel, environment.folder / "wheels"
    if named.endswith(".whl") and "://" not in named:
        return Provided(the_wheel(Path.cwd(), named))
    for old in downloads.glob("torch-*.whl"):
        old.unlink()
    environment.pip("download", "--no-deps", "--dest", str(downloads), named)
    return Provided(the_wheel(downloads, "torch-*.whl"))


def _built(options: ProviderOptions, checkout: Checkout, environment: RunEnvironment) -> Provided:
    """Built from the checkout, unless an equal build was made before and may be used here."""
    command = options.build_command or "" if options.provider == "command" else ""
    if options.provider == "command" and not command:
        raise UsageError(
            "provider: command has no command.",
            seen="build-command is empty",
            fix="build-command: a shell command that puts one wheel into $WHEELS",
        )
    commands = environment.commands
    submodules = {item.path: item.commit for item in checkout.submodules or ()}
    recipe = recipe_of(
        checkout.commit,
        submodules,
        options.build_requirements,
        command,
        environment,
        options.image_digest or "",
    )
    source = SourceBuild(Path(checkout.path), command, options.build_requirements)
    statistics: list[CompilerCache] = []

    def build(out: Path) -> Manifest:
        if options.free_disk:
            free_disk(environment.environment, commands)
        require_space(environment.folder, options.build_disk_gigabytes, "Building PyTorch", commands)
        commands.line("Making the build's environment ...")
        made = build_environment(environment, source)
        with compiler_cache(options, made, "build-pytorch", roots=(source.checkout,)) as cache:
            manifest = build_wheel(cache.environment, source, recipe, out)
        statistics.extend(cache.statistics)
        shutil.rmtree(made.interpreter.parent.parent, ignore_errors=True)
        return manifest

    shared = _shared_folder(options)
    store = WheelStore(shared or environment.folder / "built-wheels", commands)
    wheel, manifest, reused = store.get(recipe, build, options.build_timeout_minutes * 60)
    if shared is not None and not reused:
        store.trim(options.wheel_cache_gigabytes)
    if reused:
        commands.line(f"Reusing {wheel.name}, which an equal build made at {manifest.built_at}")
    else:
        memory = f", largest process {manifest.peak_memory / 1e9:.1f} GB" if manifest.peak_memory else ""
        commands.line(f"Built {wheel.name} in {manifest.seconds:.1f} s with {manifest.jobs} job(s){memory}")
    return Provided(wheel, manifest, reused, tuple(statistics))


def _shared_folder(options: ProviderOptions) -> Optional[Path]:
    """A landed commit's wheel may serve every run; a pull request's only its own. Pure."""
    if options.wheel_cache is not None and options.trust == "landed":
        return options.wheel_cache.absolute()
    return None


PROVIDERS: dict[str, Provider] = {
    "overlay": _ready_wheel,
    "wheel": _ready_wheel,
    "source": _built,
    "command": _built,
}
