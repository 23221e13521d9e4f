"""Read a skip list of any format. What the file's name ends with, and for JSON its shape, say which it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional

from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips import fields
from backend_ci.testing.skips.entry import Entry, Problem, SkipList
from backend_ci.testing.skips.foreign import read_foreign
from backend_ci.testing.skips.structured import ENDINGS, StructuredFile
from backend_ci.testing.skips.text import read_text
from relay_client.errors import BadSkipList
from relay_client.protocol.shape import show

_KEYS = ("skips", "backend")


@dataclass(frozen=True)
class Python:
    """An interpreter that may have PyYAML when the one that runs crcr has not, and its environment."""

    interpreter: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def read_skip_list(path: Path, backends: Sequence[str] = (), python: Optional[Python] = None) -> SkipList:
    """What a list says. `backends`: names that stand for the backend's device in the ids.

    Raises BadSkipList when the file as a whole cannot be read; single entries become problems.
    """
    python = python or Python()
    file = StructuredFile(path, BadSkipList, "A skip list", python.interpreter, python.environment)
    if path.suffix.lower() not in ENDINGS:
        return read_text(file.text(), path.name, TestNames(backends))
    value = file.value()
    if not isinstance(value, dict):
        raise _wrong_shape(path, value)
    if "skips" in value or not value:
        return _read_ours(value, path, backends)
    if path.suffix.lower() != ".json" or not all(isinstance(each, list) for each in value.values()):
        raise _wrong_shape(path, value)
    # torch_npu's list writes `npu` into the names, whoever reads it.
    return read_foreign(value, path.name, TestNames((*backends, "npu")))


def read_skip_lists(
    paths: Sequence[Path], backends: Sequence[str] = (), python: Optional[Python] = None
) -> SkipList:
    """Several lists as one, in their order. Raises BadSkipList."""
    lists = [read_skip_list(path, backends, python) for path in paths]
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


def _wrong_shape(path: Path, value: object) -> BadSkipList:
    return BadSkipList(
        "A skip list has a shape that no format has.",
        seen=f"{path}: {show(value)}",
        fix="write `skips:` with a list of entries; docs/skips.md shows each format",
    )
