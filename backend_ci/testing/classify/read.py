"""From paths to facts: find the test files, take from the cache what is known, read the rest in two processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Optional

import backend_ci
from backend_ci.testing.classify.cache import Cache, digest
from backend_ci.testing.classify.facts import FileFacts, from_json, unreadable
from backend_ci.testing.classify.scan import INSTANTIATE
from backend_ci.testing.classify.tree import repository_root
from backend_ci.testing.classify.worker import content
from relay_client.errors import UsageError
from relay_client.runner.process import scrubbed

PROCESSES = 2
_PROGRESS_SECONDS = 2.0
_LEFT_OUT = frozenset({"__pycache__", "node_modules", "build", "dist"})
_ROOT = Path(backend_ci.__file__).resolve().parent.parent
_START = (
    "import sys; sys.path.append(sys.argv[1]); from backend_ci.testing.classify.worker import main; main()"
)


def is_test_file(name: str) -> bool:
    """Upstream's rule: `test_*.py` and `*_test.py`."""
    return name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py"))


def find_files(paths: Iterable[str], folder: Path) -> list[str]:
    """The test files below the paths, absolute and sorted; a file that is named counts whatever its name.

    `@LIST` names a file that holds paths, one a line. Raises UsageError when a path is not there.
    Folders behind symbolic links are not entered, so that a link to a parent has no end.
    """
    found: set[str] = set()
    for given in _listed(paths, folder):
        path = os.path.abspath(folder / given)  # symbolic links keep their name
        if os.path.isdir(path):
            found.update(_below(path))
        elif os.path.lexists(path):
            found.add(path)
        else:
            raise UsageError("A path is not there.", seen=path, fix="name test files or folders that exist")
    return sorted(found)


def _listed(paths: Iterable[str], folder: Path) -> Iterable[str]:
    for given in paths:
        if not given.startswith("@"):
            yield given
            continue
        try:
            text = (folder / given[1:]).read_text(encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise UsageError(
                "The list of paths cannot be read.",
                seen=f"{given[1:]}: {error.strerror}",
                fix="name a text file",
            ) from None
        yield from filter(None, (line.strip() for line in text.splitlines()))


def _below(top: str) -> Iterable[str]:
    todo = [top]
    while todo:
        try:
            entries = list(os.scandir(todo.pop()))
        except OSError:  # a folder that may not be entered holds nothing for us
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _LEFT_OUT:
                    todo.append(entry.path)
            elif is_test_file(entry.name):
                yield entry.path


def instantiating_files(files: Sequence[str]) -> list[str]:
    """Test files of the same repository that may instantiate a class of these: they name the module and the call.

    PyTorch keeps classes in one file and runs them from another (test/quantization). Only the first folder below
    the repository's root is searched, by the bytes of its files.
    """
    known = set(files)
    tops: dict[str, set[bytes]] = {}
    roots: dict[str, Optional[str]] = {}
    for file in files:
        folder, name = os.path.split(file)
        if folder not in roots:
            roots[folder] = repository_root(folder)
        root = roots[folder]
        if root is not None and root != folder:
            top = os.path.join(root, os.path.relpath(folder, root).split(os.sep)[0])
            tops.setdefault(top, set()).add(os.fsencode(os.path.splitext(name)[0]))
    found = []
    for top, stems in tops.items():
        for path in _below(top):
            if path in known:
                continue
            try:
                text = content(path)
            except OSError:
                continue
            if INSTANTIATE.encode() in text and any(stem in text for stem in stems):
                found.append(path)
    return found


class Reader:
    """Gives the facts of files. `say` is told how far it is, when that takes longer than two seconds."""

    def __init__(self, cache: Cache, environment: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._cache = cache
        self._environment = environment
        self._say = say
        self.parsed = 0

    def read(self, paths: Sequence[str]) -> dict[str, FileFacts]:
        """The facts of every path, from the cache where its content is known."""
        found: dict[str, FileFacts] = {}
        unknown: list[str] = []
        for path in paths:
            known = None if self._cache.empty else self._known(path)
            if known is None:
                unknown.append(path)
            else:
                found[path] = known
        if unknown:
            self.parsed += len(unknown)
            for path, (key, text) in self._parse(unknown).items():
                found[path] = from_json(text) if text else unreadable(key)
                if text and key:
                    self._cache.put(key, text)
        return found

    def _known(self, path: str) -> Optional[FileFacts]:
        try:
            return self._cache.get(digest(content(path)))
        except OSError:
            return None

    def _parse(self, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Read in processes of their own: `(digest, facts)`, or `(why not, "")`."""
        results: dict[str, tuple[str, str]] = {}
        shares = shares_by_size(paths, PROCESSES if len(paths) > PROCESSES else 1)
        threads = [
            threading.Thread(target=self._share, args=(share, results), daemon=True) for share in shares
        ]
        for thread in threads:
            thread.start()
        next_word = time.monotonic() + _PROGRESS_SECONDS
        for thread in threads:
            while thread.is_alive():
                thread.join(max(0.05, next_word - time.monotonic()))
                if thread.is_alive() and time.monotonic() >= next_word:
                    self._say(f"Reading test files: {len(results):,} of {len(paths):,}")
                    next_word = time.monotonic() + _PROGRESS_SECONDS
        return results

    def _share(self, share: Sequence[str], results: dict[str, tuple[str, str]]) -> None:
        try:
            self._read_share(list(share), results)
        except OSError as error:
            for path in share:
                results.setdefault(path, (f"no process could be started to read it: {error}", ""))

    def _read_share(self, todo: list[str], results: dict[str, tuple[str, str]]) -> None:
        """One process after another, until each path of the share has an answer."""
        while todo:
            with subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-X", "utf8", "-c", _START, str(_ROOT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=scrubbed(self._environment),
            ) as process:
                feeder = threading.Thread(target=_feed, args=(process, todo), daemon=True)
                feeder.start()
                done = 0
                assert process.stdout is not None
                for line in process.stdout:
                    if not line.endswith(b"\n"):
                        break  # it died while it wrote
                    key, _, text = line.decode("utf-8", errors="replace").rstrip("\n").partition("\t")
                    results[todo[done]] = (key, text)
                    done += 1
                feeder.join()
            if done < len(todo):
                results[todo[done]] = (f"Python's parser died on it ({_ending(process.returncode)})", "")
            todo = todo[done + 1 :]


def _feed(process: subprocess.Popen[bytes], paths: Sequence[str]) -> None:
    assert process.stdin is not None
    try:
        for path in paths:
            process.stdin.write(json.dumps(path).encode() + b"\n")
        process.stdin.close()
    except (BrokenPipeError, OSError):
        pass  # it died; the answers say at which file


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def shares_by_size(paths: Sequence[str], count: int) -> list[list[str]]:
    """The paths in shares of about the same size: the largest first, each to the share that has least."""
    sized = sorted(((_size(path), path) for path in paths), reverse=True)
    shares: list[list[str]] = [[] for _ in range(count)]
    sums = [0] * count
    for size, path in sized:
        at = sums.index(min(sums))
        shares[at].append(path)
        sums[at] += size + 1_000
    return [share for share in shares if share]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
