"""Look a test up among tens of thousands of entries, with a number of probes that does not depend on their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import PurePosixPath
from typing import NamedTuple, Optional

from backend_ci.testing.ids import TestId, same_file
from backend_ci.testing.skips.entry import Entry

# (method, operator, dtype) within a class on a device; an empty part is any.
_Key = tuple[str, str, str]
# By the name of the file that an entry names, or "".
_Bucket = dict[str, list[Entry]]
_ANY = ("",)


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
        # The class and the device first: of most tests no entry names the class, and one step is enough.
        self._by_class: dict[tuple[str, str], dict[_Key, _Bucket]] = {}
        self._files: dict[tuple[str, str], _Bucket] = {}
        for entry in entries:
            if everything or (entry.applies(conditions) and not entry.expired(today)):
                self._add(entry)

    def find(self, test: KnownTest) -> Optional[Entry]:
        """The entry that decides, or None."""
        return next(self.matching(test), None)

    def matching(self, test: KnownTest) -> Iterator[Entry]:
        """All entries that fit, the most specific first. An entry of several dtypes comes once."""
        identity = test.id
        path = identity.path
        name = path.rpartition("/")[2]
        cls, stem, device, dtype = identity.key
        dtypes = (dtype, "") if dtype else _ANY
        operators = (test.operator, "") if test.operator else _ANY
        for owner in (cls, "") if cls else _ANY:
            keys = self._by_class.get((owner, device))
            if keys is None:
                continue
            for method in _methods(test, stem) if owner == cls else _ANY:
                for operator in operators:
                    for each in dtypes:
                        bucket = keys.get((method, operator, each))
                        if bucket is not None:
                            yield from _in_file(bucket, path, name)
        if name and self._files:
            bucket = self._files.get((device, name))
            if bucket is not None:
                yield from _in_file(bucket, path, name)

    def _add(self, entry: Entry) -> None:
        name = PurePosixPath(entry.file).name
        for device in entry.devices:
            if not (entry.cls or entry.method or entry.operator or entry.dtypes):
                self._files.setdefault((device, name), {}).setdefault(name, []).append(entry)
                continue
            owners = [(entry.cls, device)] + [(entry.spelled, "")] * bool(entry.spelled)
            for owner in owners:
                keys = self._by_class.setdefault(owner, {})
                for dtype in entry.dtypes or _ANY:
                    bucket = keys.setdefault((entry.method, entry.operator, dtype), {})
                    bucket.setdefault(name, []).append(entry)


def _methods(test: KnownTest, stem: str) -> tuple[str, ...]:
    """What an entry may call the test's method, the most specific first; last, nothing: the class as a whole."""
    names = (stem, test.id.method, test.source, "")
    return (stem, "") if stem in names[1:] and test.source in (stem, "") else tuple(dict.fromkeys(names))


def _in_file(bucket: _Bucket, path: str, name: str) -> Iterator[Entry]:
    """Entries of a bucket for this file: those that name it, then those that name none."""
    for candidate in (name, "") if name else tuple(bucket):
        for entry in bucket.get(candidate, ()):
            if same_file(entry.file, path):
                yield entry
