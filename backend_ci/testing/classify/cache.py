"""Facts by content: one file, so that an unchanged test file is not parsed twice.

The key is the SHA-256 of the content, and nothing else: the content is always read. Times and sizes would be
cheaper to compare, and wrong: a file changed within one tick of the clock, or given an older time by `git`, `cp -p`
or an archive, looks unchanged. Reading and hashing 1,200 files takes about a tenth of a second.

The version is the digest of the code that makes the facts, and of the Python that parses: neither can change
without the old facts being forgotten. Each line carries its own check, so damage costs only the lines it hit.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Optional

from backend_ci.testing.classify.facts import FileFacts, from_json

_CODE = ("facts.py", "names.py", "tags.py", "devices.py", "scan.py")
_MAX_BYTES = 256 * 1024 * 1024
# Facts of files that were not looked at this time (another tree, another branch) are kept up to this many.
_KEPT_UNUSED = 4_000


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def version() -> str:
    """What the facts depend on beside the content."""
    code = hashlib.sha256()
    for name in _CODE:
        code.update(Path(__file__).with_name(name).read_bytes())
    return (
        f"crcr-facts {code.hexdigest()} {sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}"
    )


class Cache:
    """Lines `digest, check, facts`, read when they are asked for. Without a path it forgets everything."""

    def __init__(self, path: Optional[Path]) -> None:
        self._path = path
        self._version = version() if path else ""
        self._lines: dict[str, str] = {}
        self._used: dict[str, str] = {}
        self._changed = False
        if path is not None:
            self._load(path)

    def get(self, key: str) -> Optional[FileFacts]:
        line = self._lines.get(key)
        if line is None:
            return None
        check, _, text = line.partition("\t")
        try:
            if check != _check(key, text):
                return None
            facts = from_json(text)
        except (ValueError, TypeError, RecursionError):
            return None
        self._used[key] = line
        return facts

    def put(self, key: str, text: str) -> None:
        """Remember the facts of a content, as `to_json` wrote them."""
        self._used[key] = self._lines[key] = f"{_check(key, text)}\t{text}"
        self._changed = True

    @property
    def empty(self) -> bool:
        return not self._lines

    def save(self) -> None:
        """Replace the file as a whole. A cache that cannot be written is a cache less, not an error."""
        if self._path is None or not self._changed:
            return
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with unfinished.open("w", encoding="utf-8", newline="\n") as file:
                file.write(self._version + "\n")
                file.writelines(f"{key}\t{line}\n" for key, line in self._kept())
            unfinished.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()

    def _kept(self) -> Iterable[tuple[str, str]]:
        """What was used now comes last: the oldest go first when there are too many."""
        unused = [(key, line) for key, line in self._lines.items() if key not in self._used]
        return [*unused[-_KEPT_UNUSED:], *self._used.items()]

    def _load(self, path: Path) -> None:
        try:
            if path.stat().st_size > _MAX_BYTES:
                return
            header, *lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        except OSError:
            return
        if header == self._version:
            for line in lines:
                key, found, rest = line.partition("\t")
                if found:
                    self._lines[key] = rest


def _check(key: str, text: str) -> str:
    return hashlib.blake2b(f"{key}\t{text}".encode(), digest_size=8).hexdigest()


def cache_path(given: str, environment: Mapping[str, str]) -> Optional[Path]:
    """Where the cache lies: as given, nowhere for `none`, else in the user's cache folder (XDG)."""
    if given == "none":
        return None
    if given:
        return Path(given)
    home = environment.get("XDG_CACHE_HOME") or (environment.get("HOME") and f"{environment['HOME']}/.cache")
    return Path(home) / "crcr" / "facts.txt" if home else None
