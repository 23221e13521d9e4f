"""A folder of built wheels. Each is there whole or not at all, and is built once, whoever asks at the same time."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Optional

try:
    import fcntl
except ImportError:  # Windows: one build at a time is not guarded there
    fcntl = None  # type: ignore[assignment]

from backend_ci.build.environment import describe_wheel
from backend_ci.build.recipe import differences, recipe_key
from relay_client.documents.document import load_file, save
from relay_client.documents.manifest import Manifest, Recipe
from relay_client.errors import BuildBusy, DocumentError
from relay_client.runner.commands import Commands

_PAUSE_SECONDS = 0.2
_TELL_SECONDS = 15.0
_SURELY_UNUSED_SECONDS = 86_400.0
Build = Callable[[Path], Manifest]


class WheelStore:
    """`folder/<key of the recipe>/` holds a wheel and its manifest. The manifest is written last."""

    def __init__(self, folder: Path, commands: Commands) -> None:
        self._folder = folder
        self._commands = commands

    def get(self, recipe: Recipe, build: Build, wait_seconds: float) -> tuple[Path, Manifest, bool]:
        """The wheel of a recipe, its manifest, and whether it was there already.

        `build` is given a new folder on the same disk; it puts one wheel there and returns the manifest.
        Raises BuildBusy when another process holds the same wheel for too long, and what `build` raises.
        """
        key = recipe_key(recipe)
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._locked(key, wait_seconds):
            place = self._folder / key
            manifest = self._ready(place, recipe)
            if manifest is not None:
                os.utime(place)  # when it served last
                return place / manifest.file, manifest, True
            self._tell_nearest(recipe)
            for left in self._folder.glob(f".building-{key}-*") if fcntl else ():
                shutil.rmtree(left, ignore_errors=True)  # of a builder that died: the lock is ours
            scratch = Path(tempfile.mkdtemp(prefix=f".building-{key}-", dir=self._folder))
            try:
                manifest = build(scratch)
                self._require_whole(scratch, manifest)
                save(manifest, scratch)
                _sync(scratch / manifest.file, scratch / Manifest.FILE)
                shutil.rmtree(place, ignore_errors=True)
                scratch.rename(place)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            return place / manifest.file, manifest, False

    def trim(self, gigabytes: float) -> None:
        """Remove the wheels that served nobody for longest until the folder is not larger than that.

        What served within a day stays: a run may still be installing it. Never fails a build.
        """
        try:
            self._trim(gigabytes)
        except OSError as error:  # another run removes at the same time
            self._commands.warning(f"The folder of wheels could not be trimmed: {error}")

    def _trim(self, gigabytes: float) -> None:
        wheels = [path.parent for path in self._folder.glob(f"*/{Manifest.FILE}")]
        sizes = {place: _size(place) for place in wheels}
        used = {place: place.stat().st_mtime for place in wheels}
        for place in surplus(sizes, used, int(gigabytes * 1e9), time.time() - _SURELY_UNUSED_SECONDS):
            with contextlib.suppress(BuildBusy), self._locked(place.name, 0.0):
                shutil.rmtree(place, ignore_errors=True)
                self._commands.line(f"Removed {place.name} ({sizes[place] / 1e9:.1f} GB), unused for longest")

    def _ready(self, place: Path, recipe: Recipe) -> Optional[Manifest]:
        """The manifest of a wheel that is whole and is what would be built; else None, and why."""
        if not place.is_dir():
            return None
        try:
            manifest = load_file(Manifest, place / Manifest.FILE)
        except DocumentError as error:
            self._commands.line(f"{place.name} is not reused: {error.seen}")
            return None
        wheel = place / Path(manifest.file).name
        different = differences(recipe, manifest.recipe)
        if different or wheel.name != manifest.file or not wheel.is_file() or wheel.is_symlink():
            self._commands.line(
                f"{place.name} is not reused: {'; '.join(different) or 'its wheel is not there'}"
            )
            return None
        if describe_wheel(wheel).sha256 != manifest.sha256:
            self._commands.line(f"{place.name} is not reused: its wheel is not the one that was built")
            return None
        return manifest

    def _tell_nearest(self, recipe: Recipe) -> None:
        """Why a wheel of the same commit is not good enough: the first question of whoever waits for a build."""
        for path in sorted(self._folder.glob(f"{recipe.commit[:12]}-*/{Manifest.FILE}")):
            with contextlib.suppress(DocumentError):
                different = differences(recipe, load_file(Manifest, path).recipe)
                self._commands.line(
                    f"{path.parent.name} is of the same commit, and differs: {'; '.join(different[:5])}"
                )

    def _require_whole(self, folder: Path, manifest: Manifest) -> None:
        wheel = describe_wheel(folder / manifest.file)
        if wheel != replace(wheel, sha256=manifest.sha256):
            raise AssertionError("the manifest is not of this wheel")

    @contextlib.contextmanager
    def _locked(self, key: str, wait_seconds: float) -> Iterator[None]:
        """Hold the key's lock. The system gives it back when a holder dies, however it dies."""
        path = self._folder / f".{key}.lock"
        with path.open("a+", encoding="utf-8") as file:
            self._wait(file, wait_seconds)
            file.seek(0)
            file.truncate()
            file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}))
            file.flush()
            yield

    def _wait(self, file: IO[str], wait_seconds: float) -> None:
        if fcntl is None:
            return
        started = time.monotonic()
        told = started - _TELL_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                now = time.monotonic()
            except OSError as error:
                # A file system without locks: two builds may then do the same work, and each ends whole.
                self._commands.warning(
                    f"The folder of wheels cannot be locked ({error}); built without waiting"
                )
                return
            if now - started > wait_seconds:
                raise BuildBusy(
                    "Another process builds the same wheel, and does not end.",
                    seen=f"{_holder(file)} holds {file.name} for more than {wait_seconds:.0f} s",
                    fix="end that process, or raise build-timeout-minutes",
                )
            if now - told >= _TELL_SECONDS:
                self._commands.line(f"Waiting for the same wheel, which {_holder(file)} builds ...")
                told = now
            time.sleep(_PAUSE_SECONDS)


def surplus(sizes: Mapping[Path, int], used: Mapping[Path, float], limit: int, before: float) -> list[Path]:
    """Which folders to remove, those last used longest ago first, until the rest is within `limit`. Pure.

    Sizes in bytes, times in seconds (Unix). What was used after `before` stays.
    """
    total, result = sum(sizes.values()), []
    for place in sorted(sizes, key=lambda each: used[each]):
        if total <= limit or used[place] > before:
            break
        total -= sizes[place]
        result.append(place)
    return result


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())


def _holder(file: IO[str]) -> str:
    file.seek(0)
    try:
        value = json.loads(file.read(4_096))
        return f"process {int(value['pid'])} on {str(value['host'])[:64]!r}"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "another process"


def _sync(*paths: Path) -> None:
    """Onto the disk before the rename: after a power cut a manifest must not stand beside half a wheel."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
