"""From the words of a list to an Entry. Each part that is wrong is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime
from typing import Optional

from backend_ci.testing.ids import DTYPES, PRIVATEUSE1, BadTestId, TestId, TestNames
from backend_ci.testing.skips.entry import MODES, Entry
from relay_client.protocol.shape import show

_DTYPES = frozenset(DTYPES)


class BadField(ValueError):
    """A part of an entry that is wrong. The message says which, what stood there, and what is allowed."""


def target(names: TestNames, text: str) -> Entry:
    """What a text means: a test in any spelling, `file.py`, `Class`, or `file.py::Class`. Raises BadField."""
    path, _, rest = text.partition("::")
    if text.endswith(".py") and "::" not in text:
        return Entry(file=text, device=None)
    if path.endswith(".py") and rest and not _is_method(rest.rpartition("::")[2]):
        return of_class(names, rest, file=path)
    if not any(sign in text for sign in (" ", "::", ".", "/")):
        if _is_method(text):
            raise BadField(f"{show(text)} is a test without its class; write Class::{text}")
        return of_class(names, text)
    if (
        path
        and rest
        and not path.endswith(".py")
        and not _is_method(text.rpartition("::")[2].partition("[")[0])
    ):
        return of_class(names, text)
    try:
        return of_test(names, names.parse(text))
    except BadTestId as error:
        raise BadField(f"{show(text)} names no test: {error}") from None


def of_test(names: TestNames, test: TestId) -> Entry:
    """The entry for one test. A test that is spelled without a device may be the source's name of many."""
    if not test.device:
        return replace(of_class(names, test.owner, test.path), method=test.stem)
    dtypes = (test.dtype,) if test.dtype else ()
    return Entry(test.path, test.class_name, test.stem, device=test.device, dtypes=dtypes)


def of_class(names: TestNames, name: str, file: str = "") -> Entry:
    """The entry for a class. One that is spelled with a device means that device's."""
    generic, device, _ = names.device_of_class(name)
    spelled = name.replace("::", ".") if device else ""
    return Entry(file=file, cls=generic.replace("::", "."), device=device or None, spelled=spelled)


def read_dtypes(values: Iterable[object]) -> tuple[str, ...]:
    """Names of dtypes, with or without `torch.`; a test of two has both, joined by `_`. Raises BadField."""
    names = []
    for value in values:
        name = str(value).removeprefix("torch.")
        if name not in _DTYPES and not _is_joined(name):
            raise BadField(f"dtypes has {show(value)}; allowed are {', '.join(DTYPES[:16])}, …")
        names.append(name)
    return tuple(dict.fromkeys(names))


def read_mode(value: object) -> str:
    if value not in MODES:
        raise BadField(f"mode is {show(value)}; allowed are {', '.join(MODES)}")
    return str(value)


def read_date(value: object) -> date:
    """A day: what YAML and TOML make of one, or YYYY-MM-DD. Raises BadField."""
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date(*(int(part) for part in str(value).split("-", 2)))
    except (TypeError, ValueError):
        raise BadField(f"expires is {show(value)}; write YYYY-MM-DD") from None


def read_issue(value: object) -> str:
    """A link or a number. Raises BadField."""
    text = str(value)
    if isinstance(value, (bool, dict, list)) or not (
        text.startswith(("https://", "http://")) or text.lstrip("#").isdecimal()
    ):
        raise BadField(f"issue is {show(value)}; write its https:// address or its number")
    return text


def read_device(names: TestNames, value: object) -> Optional[str]:
    """A device by any of its names. Raises BadField."""
    known = names.canonical(str(value))
    if known is None:
        raise BadField(
            f"device is {show(value)}; allowed are {PRIVATEUSE1}, the backend's name, cpu, cuda, …"
        )
    return known


def _is_method(name: str) -> bool:
    return name.startswith("test")


def _is_joined(name: str) -> bool:
    parts = name.split("_")
    return len(parts) > 1 and all(part in _DTYPES for part in parts)


_WHAT = ("test", "class", "file", "operator")
MEMBERS = (*_WHAT, "device", "dtypes", "mode", "reason", "issue", "expires", "on")


def from_members(given: Mapping[str, object], names: TestNames) -> Entry:
    """An entry from its members, as a structured list has them. Raises BadField."""
    unknown = [str(name) for name in given if name not in MEMBERS]
    if unknown:
        raise BadField(f"there is no {show(unknown[0])}; allowed are {', '.join(MEMBERS)}")
    if not any(given.get(name) for name in _WHAT):
        raise BadField("nothing is named; one of test, class, file or operator is needed")
    entry = _what(given, names)
    if "device" in given:
        entry = replace(entry, device=read_device(names, given["device"]))
    if "dtypes" in given:
        if entry.dtypes:
            raise BadField("the test's name holds a dtype already; leave it or `dtypes` out")
        entry = replace(entry, dtypes=read_dtypes(_list("dtypes", given["dtypes"])))
    return replace(
        entry,
        mode=read_mode(given.get("mode", "skip")),
        reason=_text("reason", given.get("reason", "")),
        issue=read_issue(given["issue"]) if given.get("issue") else "",
        expires=read_date(given["expires"]) if given.get("expires") else None,
        on=tuple(_text("on", each) for each in _list("on", given.get("on", []))),
    )


def _what(given: Mapping[str, object], names: TestNames) -> Entry:
    entry = Entry()
    if given.get("test"):
        entry = target(names, _text("test", given["test"]))
    if given.get("class"):
        if entry.cls:
            raise BadField("`test` names a class already; leave `class` out")
        named = of_class(names, _text("class", given["class"]))
        entry = replace(entry, cls=named.cls, device=named.device, spelled=named.spelled)
    if given.get("file"):
        if entry.file:
            raise BadField("`test` names a file already; leave `file` out")
        entry = replace(entry, file=_text("file", given["file"]))
    if given.get("operator"):
        entry = replace(entry, operator=_text("operator", given["operator"]))
    return entry


def _list(name: str, value: object) -> list[object]:
    if isinstance(value, str):
        return list(value.split())
    if not isinstance(value, (list, tuple)):
        raise BadField(f"{name} is {show(value)}; write a list")
    return list(value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise BadField(f"{name} is {show(value)}; write text")
    return value.strip()
