"""Read a skip list of any format. What the file's name ends with, and for JSON its shape, say which it is."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips import fields
from backend_ci.testing.skips.entry import Entry, Problem, SkipList
from backend_ci.testing.skips.foreign import read_foreign
from backend_ci.testing.skips.text import read_text
from relay_client.errors import BadSkipList
from relay_client.protocol.shape import show

MAX_LIST_BYTES = 64 * 1024 * 1024
_KEYS = ("skips", "backend")


def read_skip_list(path: Path, backends: Sequence[str] = ()) -> SkipList:
    """What a list says. `backends`: names that stand for the backend's device in the ids.

    Raises BadSkipList when the file as a whole cannot be read; single entries become problems.
    """
    text = _content(path)
    parse = _PARSERS.get(path.suffix.lower())
    if parse is None:
        return read_text(text, path.name, TestNames(backends))
    value = parse(text, path)
    if not isinstance(value, dict):
        raise _wrong_shape(path, value)
    if "skips" in value or not value:
        return _read_ours(value, path, backends)
    if path.suffix.lower() != ".json" or not all(isinstance(each, list) for each in value.values()):
        raise _wrong_shape(path, value)
    # torch_npu's list writes `npu` into the names, whoever reads it.
    return read_foreign(value, path.name, TestNames((*backends, "npu")))


def read_skip_lists(paths: Sequence[Path], backends: Sequence[str] = ()) -> SkipList:
    """Several lists as one, in their order. Raises BadSkipList."""
    lists = [read_skip_list(path, backends) for path in paths]
    return SkipList(
        tuple(entry for each in lists for entry in each.entries),
        tuple(problem for each in lists for problem in each.problems),
        strict=any(each.strict and each.problems for each in lists),
    )


def _read_ours(value: Mapping[str, Any], path: Path, backends: Sequence[str]) -> SkipList:
    problems = [
        Problem(path.name, f"there is no {show(key)}; allowed are {', '.join(_KEYS)}")
        for key in value
        if key not in _KEYS
    ]
    listed, backend = value.get("skips") or [], value.get("backend", "")
    if not isinstance(listed, list) or not isinstance(backend, str):
        raise _wrong_shape(path, value)
    names = TestNames((*backends, backend))
    entries: list[Entry] = []
    for number, given in enumerate(listed, start=1):
        where = f"{path.name}: entry {number}"
        try:
            if not isinstance(given, dict):
                raise fields.BadField(f"{show(given)} is no entry; write `test: …`")
            entries += [replace(entry, where=where) for entry in _several(given, names)]
        except fields.BadField as error:
            problems.append(Problem(where, str(error)))
    return SkipList(tuple(entries), tuple(problems))


def _several(given: Mapping[str, Any], names: TestNames) -> list[Entry]:
    """One entry for each thing that is named: `test`, `class`, `file` and `operator` may be lists."""
    for name in ("test", "class", "file", "operator"):
        if isinstance(given.get(name), list):
            return [entry for each in given[name] for entry in _several({**given, name: each}, names)]
    return [fields.from_members(given, names)]


def _content(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_LIST_BYTES:
            raise BadSkipList(
                "A skip list is too large.",
                seen=f"{path}: {path.stat().st_size} bytes; the limit is {MAX_LIST_BYTES}",
                fix="fold it with `crcr skips compress`, or split it",
            )
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise BadSkipList(
            "A skip list cannot be read.", seen=f"{path}: {error}", fix="skips: files in the repository"
        ) from error


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, error) from None


def _toml(text: str, path: Path) -> Any:
    toml = _package("tomllib", path, "Python 3.11 or newer")
    try:
        return toml.loads(text)
    except (ValueError, RecursionError) as error:
        raise _unreadable(path, error) from None


def _yaml(text: str, path: Path) -> Any:
    yaml = _package("yaml", path, "PyYAML")
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from None


_PARSERS: dict[str, Callable[[str, Path], Any]] = {
    ".json": _json,
    ".toml": _toml,
    ".yml": _yaml,
    ".yaml": _yaml,
}


def _package(name: str, path: Path, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise BadSkipList(
            f"A skip list needs {what}, which the Python that runs crcr does not have.",
            seen=str(path),
            fix="write the list as JSON or one-line text: `crcr skips compress` converts it elsewhere",
        ) from None


def _unreadable(path: Path, error: Exception) -> BadSkipList:
    return BadSkipList(
        "A skip list is not what its name says.",
        seen=f"{path}: {' '.join(str(error).split())[:300]}",
        fix=f"correct it as {path.suffix[1:].upper()}, or give it the ending of its format",
    )


def _wrong_shape(path: Path, value: object) -> BadSkipList:
    return BadSkipList(
        "A skip list has a shape that no format has.",
        seen=f"{path}: {show(value)}",
        fix="write `skips:` with a list of entries; docs/skips.md shows each format",
    )
