"""The list of files that do not keep the rules yet. It can only shrink.

Its format is upstream's: a JSON array of paths from the repository's root, sorted, two blanks of indentation.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from relay_client.errors import UsageError
from relay_client.runner.git import Git

_MAX_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True)
class Judgement:
    """Entries that must go, by reason, and the list without them."""

    clean: tuple[str, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    left: tuple[str, ...]


def judge(
    listed: Collection[str],
    before: Optional[Collection[str]],
    examined: Collection[str],
    dirty: Collection[str],
    gone: Collection[str],
) -> Judgement:
    """`before` is the list as it was, None when there was none; then no entry is new.

    Only files that were examined can be found clean: linting one folder says nothing of another.
    """
    clean = {path for path in listed if path in examined and path not in dirty}
    new = {path for path in listed if before is not None and path not in before}
    missing = set(listed) & set(gone)
    left = set(listed) - clean - new - missing
    return Judgement(*(tuple(sorted(each)) for each in (clean - missing, missing, new - missing, left)))


class RatchetFile:
    """The list on disk, and as it was in git."""

    def __init__(self, path: Path, base: str, environment: Mapping[str, str]) -> None:
        """Raises UsageError when the list cannot be read, or `base` is no commit of the repository."""
        self.path = path
        self._git = Git(path.parent if path.parent.is_dir() else Path.cwd(), environment)
        top = self._git("rev-parse", "--show-toplevel")
        self.root = Path(top.output.rstrip("\n")) if top.ok else path.parent
        self.compared = top.ok
        self.listed = _read(path)
        self.before = self._before(base) if top.ok else None

    def entry(self, file: str) -> str:
        """How a file is written in the list: from the repository's root, with forward slashes."""
        return Path(os.path.relpath(os.path.realpath(file), os.path.realpath(self.root))).as_posix()

    def gone(self) -> set[str]:
        return {path for path in self.listed or () if not (self.root / path).exists()}

    def write(self, paths: Collection[str]) -> None:
        """Replace the list as a whole. Raises UsageError."""
        unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}.tmp")
        try:
            unfinished.write_text(json.dumps(sorted(paths), indent=2) + "\n", encoding="utf-8")
            unfinished.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise UsageError(
                "The list of exceptions cannot be written.",
                seen=f"{self.path}: {error}",
                fix="name a writable file",
            ) from None

    def _before(self, base: str) -> Optional[tuple[str, ...]]:
        if base.startswith("-") or not self._git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}").ok:
            if base == "HEAD":  # a repository without a commit
                return None
            raise UsageError(
                "The commit to compare the list with is not there.",
                seen=base,
                fix="--ratchet-base: a commit that was fetched; in CI, fetch-depth: 0 or fetch the base branch",
            )
        found = self._git("show", f"{base}:./{self.path.name}")
        return _parse(found.output, f"{self.path} at {base}") if found.ok else None


def _read(path: Path) -> Optional[tuple[str, ...]]:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise _broken(str(path), f"{path.stat().st_size} bytes")
        return _parse(path.read_text(encoding="utf-8"), str(path))
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _broken(str(path), str(error)) from None


def _parse(text: str, name: str) -> tuple[str, ...]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _broken(name, str(error)) from None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise _broken(name, "it is no array of texts")
    return tuple(value)


def _broken(name: str, seen: str) -> UsageError:
    return UsageError(
        "The list of exceptions cannot be read.",
        seen=f"{name}: {seen}",
        fix='a JSON array of paths from the repository\'s root: ["test/test_a.py"]',
    )
