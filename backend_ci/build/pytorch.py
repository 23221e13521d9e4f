"""`crcr build-pytorch`: PyTorch at the dispatched commit, in the run's own environment, and `build.json`."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from backend_ci.build.compiler_cache import CompilerCacheOptions, compiler_cache
from backend_ci.build.environment import (
    RunEnvironment,
    describe_wheel,
    make_environment,
    require_commit,
    the_wheel,
)
from backend_ci.build.overlay import PACKAGES, lay_over
from relay_client.documents.build import PROVIDERS, Build, Overlay
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import load, save
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.git import Git
from relay_client.runner.options import option


@dataclass(frozen=True)
class BuildPytorchOptions(CompilerCacheOptions):
    provider: str = option("How PyTorch is got at the commit", default="overlay", one_of=PROVIDERS)
    torch_wheel: str = option(
        "The wheel: a path, a pattern that one file matches, or a requirement such as torch==2.13.0",
        default="torch",
    )
    requirements: tuple[str, ...] = option(
        "Packages the tests need beside torch, one requirement a line", default=()
    )
    python: Optional[Path] = option(
        "Interpreter to install into as it is (default: a new environment in the run folder)", default=None
    )
    build_timeout_minutes: float = option("How long one build or install command may take", default=60.0)


OPTIONS = (BuildPytorchOptions,)

OUTPUTS = {
    "python": "The interpreter that holds torch, absolute",
    "torch-version": "torch.__version__ of what was installed",
}


def run(options: BuildPytorchOptions, context: RunContext, commands: Commands) -> None:
    """Raises BuildError, UsageError, DocumentError."""
    folder = context.run_folder(options.run_dir)
    checkout = load(Checkout, folder)
    started = time.monotonic()
    with commands.group("Make the run's environment"):
        environment = make_environment(
            folder, options.python, context.environment, commands, options.build_timeout_minutes * 60
        )
    with commands.group(f"Install {options.torch_wheel}"):
        wheel = _find_wheel(options.torch_wheel, environment, folder / "wheels")
        if options.python is not None:
            _make_way(environment)
        # Bytecode of 2,300 files costs ten seconds; the tests compile what they import.
        with compiler_cache(options, environment, "build-pytorch", roots=(Path(checkout.path),)) as cache:
            cache.environment.pip("install", "--no-compile", str(wheel), *options.requirements)
    overlay: Optional[Overlay] = None
    if options.provider == "overlay":
        with commands.group(f"Lay {checkout.commit[:12]} over {wheel.name}"):
            git = Git(Path(checkout.path), context.environment)
            overlay = lay_over(checkout, git, environment.platlib())
            commands.line(
                f"{len(overlay.laid)} file(s) laid, {len(overlay.removed)} removed; "
                f"{overlay.files_compared} Python files equal the checkout"
            )
    commands.line("Asking torch which commit it is ...")
    torch = environment.torch()
    require_commit(
        torch,
        checkout.commit,
        "torch-wheel: a wheel built from the dispatched commit, or `provider: overlay`",
    )
    build = Build(
        provider=options.provider,
        commit=checkout.commit,
        interpreter=str(environment.interpreter),
        torch=torch,
        wheel=describe_wheel(wheel),
        seconds=round(time.monotonic() - started, 3),
        overlay=overlay,
        compiler_cache=cache.statistics,
    )
    save(build, folder)
    commands.output("python", build.interpreter)
    commands.output("torch-version", torch.version)
    commands.line(
        f"torch {torch.version} at {torch.git_version} in {build.interpreter} ({build.seconds:.1f} s)"
    )


def _make_way(environment: RunEnvironment) -> None:
    """An interpreter that outlives the run still has the torch of the run before, with another commit's files
    laid over it. pip would call that installed already, and uninstalls only the files it brought.
    """
    environment.pip("uninstall", "--yes", "torch")
    site = environment.platlib()
    for package in PACKAGES:
        shutil.rmtree(site / package, ignore_errors=True)


def _find_wheel(named: str, environment: RunEnvironment, downloads: Path) -> Path:
    """The wheel file: one on disk, or what pip gets for a requirement."""
    if named.endswith(".whl"):
        return the_wheel(Path.cwd(), named)
    for old in downloads.glob("torch-*.whl"):
        old.unlink()
    environment.pip("download", "--no-deps", "--dest", str(downloads), named)
    return the_wheel(downloads, "torch-*.whl")
