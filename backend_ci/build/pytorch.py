"""`crcr build-pytorch`: PyTorch at the dispatched commit, in the run's own environment, and `build.json`."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from backend_ci.build.compiler_cache import compiler_cache
from backend_ci.build.disk import full_disk_told
from backend_ci.build.environment import (
    RunEnvironment,
    describe_wheel,
    make_environment,
    require_commit,
    unconstrained,
)
from backend_ci.build.handover import keep_wheel
from backend_ci.build.overlay import PACKAGES, lay_over
from backend_ci.build.providers import AUTO, PROVIDERS, Provided, ProviderOptions, choose_provider
from backend_ci.job import prepared
from relay_client.documents.build import Build, Overlay
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import load, save
from relay_client.errors import NotOverlayable, WrongTorch
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.git import Git
from relay_client.runner.options import option


@dataclass(frozen=True)
class BuildPytorchOptions(ProviderOptions):
    requirements: tuple[str, ...] = option(
        "Packages the tests need beside torch, one requirement a line", default=()
    )
    python: Optional[Path] = option(
        "Interpreter to install into as it is (default: a new environment in the run folder)", default=None
    )


OPTIONS = (BuildPytorchOptions,)

OUTPUTS = {
    "python": "The interpreter that holds torch, absolute",
    "torch-version": "torch.__version__ of what was installed",
    "provider": "How PyTorch was got: overlay, wheel, source or command",
    "reused": "true when the wheel of an equal build was taken, else false",
}


@full_disk_told()
def run(options: BuildPytorchOptions, context: RunContext, commands: Commands) -> None:
    """Raises BuildError, UsageError, DocumentError."""
    context = prepared(options, context, commands)
    folder = context.run_folder(options.run_dir)
    checkout = load(Checkout, folder)
    started = time.monotonic()
    provider, why = choose_provider(options, checkout)
    if why:
        commands.notice(f"PyTorch comes by {provider}: {why}.")
    with commands.group("Make the run's environment"):
        environment = make_environment(
            folder, options.python, context.environment, commands, options.build_timeout_minutes * 60
        )
    try:
        provided, overlay = _install(replace(options, provider=provider), checkout, environment)
    except (NotOverlayable, WrongTorch) as error:
        if (options.provider, provider) != (AUTO, "overlay"):
            raise
        commands.notice(f"PyTorch comes by source: {error.what} Seen: {error.seen}")
        _make_way(environment)
        provider = "source"
        provided, overlay = _install(replace(options, provider=provider), checkout, environment)
    commands.line("Asking torch which commit it is ...")
    torch = environment.torch()
    require_commit(
        torch,
        checkout.commit,
        "torch-wheel: a wheel built from the dispatched commit, or `provider: overlay`, or `provider: source`",
    )
    build = Build(
        provider=provider,
        commit=checkout.commit,
        interpreter=str(environment.interpreter),
        torch=torch,
        wheel=describe_wheel(provided.wheel),
        seconds=round(time.monotonic() - started, 3),
        overlay=overlay,
        manifest=provided.manifest,
        reused=provided.reused,
        requirements=options.requirements,
        compiler_cache=provided.compiler_cache,
    )
    keep_wheel(provided.wheel, folder)
    save(build, folder)
    for name, value in (
        ("python", build.interpreter),
        ("torch-version", torch.version),
        ("provider", provider),
        ("reused", str(build.reused).lower()),
    ):
        commands.output(name, value)
    commands.line(
        f"torch {torch.version} at {torch.git_version} in {build.interpreter} ({build.seconds:.1f} s)"
    )


def _install(
    options: BuildPytorchOptions, checkout: Checkout, environment: RunEnvironment
) -> tuple[Provided, Optional[Overlay]]:
    """Get the wheel, install it with what the tests need, and lay the change over it where that is asked for."""
    commands = environment.commands
    title = options.torch_wheel if options.provider in ("overlay", "wheel") else checkout.commit[:12]
    with commands.group(f"Get PyTorch by {options.provider} ({title})"):
        provided = PROVIDERS[options.provider](options, checkout, environment)
    with commands.group(f"Install {provided.wheel.name}"):
        if options.python is not None:
            _make_way(environment)
        # A requirement may have to be compiled. Bytecode of 2,300 files costs ten seconds; the tests compile
        # what they import.
        with compiler_cache(options, environment, "build-pytorch", roots=(Path(checkout.path),)) as cache:
            unconstrained(cache.environment).pip(
                "install", "--no-compile", str(provided.wheel), *options.requirements
            )
    provided = replace(provided, compiler_cache=(*provided.compiler_cache, *cache.statistics))
    if options.provider != "overlay":
        return provided, None
    with commands.group(f"Lay {checkout.commit[:12]} over {provided.wheel.name}"):
        overlay = lay_over(checkout, Git(Path(checkout.path), environment.environment), environment.platlib())
        commands.line(
            f"{len(overlay.laid)} file(s) laid, {len(overlay.removed)} removed; "
            f"{overlay.files_compared} Python files equal the checkout"
        )
    return provided, overlay


def _make_way(environment: RunEnvironment) -> None:
    """An interpreter that outlives the run still has the torch of the run before, with another commit's files
    laid over it. pip would call that installed already, and uninstalls only the files it brought.
    """
    environment.pip("uninstall", "--yes", "torch")
    site = environment.platlib()
    for package in PACKAGES:
        shutil.rmtree(site / package, ignore_errors=True)
