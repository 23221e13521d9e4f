"""One entry a line: `WHAT [name=value …] [# reason]`."""

from __future__ import annotations

import re
from dataclasses import replace

from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips import fields
from backend_ci.testing.skips.entry import Entry, Problem, SkipList

# A test in unittest's spelling has one space in it.
_LINE = re.compile(
    r"(?P<what>(?![a-z]+=)[^\s#]+(?: \([^)]*\))?)?(?P<options>(?:\s*[a-z]+=\S+)*)\s*(?:#\s*(?P<reason>.*))?"
)
OPTIONS = ("file", "class", "operator", "dtypes", "device", "mode", "issue", "expires", "on")


def read_text(text: str, file: str, names: TestNames) -> SkipList:
    """All lines; one that cannot be read becomes a problem."""
    entries, problems = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{file}:{number}"
        try:
            entries.append(replace(_entry(line.strip(), names), where=where))
        except fields.BadField as error:
            problems.append(Problem(where, str(error)))
    return SkipList(tuple(entries), tuple(problems))


def _entry(line: str, names: TestNames) -> Entry:
    found = _LINE.fullmatch(line)
    if found is None:
        raise fields.BadField("a line is `WHAT [name=value …] [# reason]`")
    given: dict[str, object] = {}
    for part in found["options"].split():
        name, _, value = part.partition("=")
        if name not in OPTIONS:
            raise fields.BadField(f"there is no {name}=; allowed are {', '.join(OPTIONS)}")
        given[name] = value.split(",") if name in ("dtypes", "on") else value
    if found["what"]:
        given["test"] = found["what"]
    if found["reason"]:
        given["reason"] = found["reason"].strip()
    return fields.from_members(given, names)
