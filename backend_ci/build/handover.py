"""`crcr hand-over`: what a build made, as one folder that other jobs can install from without compiling anything."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from relay_client.documents.build import Build
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import Document, load
from relay_client.documents.plan import Plan
from relay_client.errors import DiskFull, WheelNotFound
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.options import StageOptions

FOLDER = "handover"
WHEELS = "wheels"
OVERLAY = "overlay"
CARRIED: tuple[type[Document], ...] = (Checkout, Build, Plan)


@dataclass(frozen=True)
class HandOverOptions(StageOptions):
    pass


OPTIONS = (HandOverOptions,)

OUTPUTS = {"handover": "Folder to give to the jobs that test"}


def keep_wheel(wheel: Path, folder: Path) -> None:
    """Remember where an installed wheel lies, at no cost: most runs hand nothing over."""
    link = folder / FOLDER / WHEELS / wheel.name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(wheel.absolute())


def run(options: HandOverOptions, context: RunContext, commands: Commands) -> None:
    """Raises DocumentError, WheelNotFound, DiskFull."""
    folder = context.run_folder(options.run_dir)
    build, checkout = load(Build, folder), load(Checkout, folder)
    target = folder / FOLDER
    with commands.group("Gather what the test jobs need"):
        for wheel in (build.wheel, *(backend.wheel for backend in build.backends)):
            if wheel is None:
                raise WheelNotFound(
                    "A backend that its own command installed cannot be handed to another job.",
                    seen="build.json names no wheel of it",
                    fix="leave out backend-command, so that a wheel is made; or build and test in one job",
                )
            _materialize(target / WHEELS / wheel.file)
        shutil.rmtree(target / OVERLAY, ignore_errors=True)
        for path in build.overlay.laid if build.overlay else ():
            (target / OVERLAY / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(checkout.path) / path, target / OVERLAY / path)
        for document in CARRIED:
            shutil.copyfile(folder / document.FILE, target / document.FILE)
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        commands.line(f"{size / 1e6:.0f} MB in {target}")
    commands.output("handover", str(target))


def _materialize(link: Path) -> None:
    """A file of its own in place of the link: an artifact must not depend on this machine."""
    if not link.is_symlink():
        return
    source = link.resolve()
    part = link.with_name(f".{link.name}.part")
    try:
        try:
            os.link(source, part)
        except OSError:
            shutil.copyfile(source, part)
        part.replace(link)
    except OSError as error:
        raise DiskFull(
            "A wheel could not be copied for the test jobs.",
            seen=f"{source.name}: {error}",
            fix="a larger disk, or free-disk: true on GitHub's hosted runners",
        ) from error
