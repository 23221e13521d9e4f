"""Look a test up among tens of thousands of entries, with a number of probes that does not depend on their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple, Optional

from backend_ci.testing.ids import TestId, same_file
from backend_ci.testing.skips.entry import Entry

# (class, method, operator, dtype, device); an empty part but the device is any.
_Key = tuple[str, str, str, str, str]


class KnownTest(NamedTuple):
    """A test, and what only the running PyTorch knows of it: the method's name in the source, the operator."""

    id: TestId
    text: str = ""
    source: str = ""
    operator: str = ""


class SkipIndex:
    """Entries by what they mean. Of several that fit the most specific one holds, of equals the first.

    Expired entries and those for another place are left out, unless `everything` is asked for.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        *,
        today: date,
        conditions: frozenset[str] = frozenset(),
        everything: bool = False,
    ) -> None:
        self._by_key: dict[_Key, dict[str, list[Entry]]] = {}
        self._files: dict[tuple[str, str], dict[str, list[Entry]]] = {}
        for entry in entries:
            if everything or (entry.applies(conditions) and not entry.expired(today)):
                self._add(entry)

    def find(self, test: KnownTest) -> Optional[Entry]:
        """The entry that decides, or None."""
        return next(self.matching(test), None)

    def matching(self, test: KnownTest) -> Iterator[Entry]:
        """All entries that fit, the most specific first. An entry of several dtypes comes once."""
        path = test.id.path
        name = path.rpartition("/")[2]
        for key in _probes(test):
            bucket = self._by_key.get(key)
            if bucket is not None:
                yield from _in_file(bucket, path, name)
        if name and self._files:
            bucket = self._files.get((test.id.device, name))
            if bucket is not None:
                yield from _in_file(bucket, path, name)

    def _add(self, entry: Entry) -> None:
        name = PurePosixPath(entry.file).name
        for device in entry.devices:
            if not (entry.cls or entry.method or entry.operator or entry.dtypes):
                self._files.setdefault((device, name), {}).setdefault(name, []).append(entry)
                continue
            owners = [(entry.cls, device)] + [(entry.spelled, "")] * bool(entry.spelled)
            for dtype in entry.dtypes or ("",):
                for cls, made_for in owners:
                    key = (cls, entry.method, entry.operator, dtype, made_for)
                    self._by_key.setdefault(key, {}).setdefault(name, []).append(entry)


def _in_file(bucket: dict[str, list[Entry]], path: str, name: str) -> Iterator[Entry]:
    """Entries of a bucket for this file: those that name it, then those that name none."""
    for candidate in (name, "") if name else tuple(bucket):
        for entry in bucket.get(candidate, ()):
            if same_file(entry.file, path):
                yield entry


def _probes(test: KnownTest) -> list[_Key]:
    """At most 19 keys, from the most to the least specific."""
    identity = test.id
    cls, stem, device, dtype = identity.key
    methods = [stem]
    for method in (identity.method, test.source):
        if method and method not in methods:
            methods.append(method)
    dtypes = (dtype, "") if dtype else ("",)
    operators = (test.operator, "") if test.operator else ("",)
    probes = [
        (cls, method, operator, each, device)
        for method in methods
        for operator in operators
        for each in dtypes
    ]
    probes += [
        (owner, "", operator, each, device)
        for owner in (cls, "")
        for operator in operators
        for each in dtypes
        if owner or operator or each
    ]
    return probes
