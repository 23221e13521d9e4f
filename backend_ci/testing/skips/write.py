"""Write a list: JSON, YAML or TOML in our shape, or one line an entry. Nothing is needed to write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from backend_ci.testing.skips.entry import Entry

# Controls, line ends and marks that YAML 1.1 does not take, or takes for a line's end.
_NOT_PLAIN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

FORMATS = ("json", "yml", "yaml", "toml", "txt")


def render(entries: Iterable[Entry], path: PurePath) -> str:
    """The list in the format that the file's name ends with."""
    return _WRITERS[path.suffix[1:].lower()]([members(entry) for entry in entries])


def members(entry: Entry) -> dict[str, Any]:
    """An entry as the structured formats have it: what is absent is left out."""
    values: dict[str, Any] = {}
    cls = entry.spelled or entry.cls
    if entry.method and not entry.method.startswith("test"):
        # Between `::` it would be taken for a class.
        values["test"], values["file"] = f"{entry.method} (__main__.{cls})", entry.file
    elif entry.method:
        values["test"] = "::".join(part for part in (entry.file, cls, entry.method) if part)
    else:
        values["file"], values["class"] = entry.file, cls
    values["operator"] = entry.operator
    values["device"] = "" if entry.spelled else entry.device
    values["dtypes"] = list(entry.dtypes)
    values["mode"] = entry.mode if entry.mode != "skip" else ""
    values["reason"], values["issue"] = entry.reason, entry.issue
    values["expires"] = entry.expires.isoformat() if entry.expires else ""
    values["on"] = list(entry.on)
    return {name: value for name, value in values.items() if value}


def _json(listed: list[dict[str, Any]]) -> str:
    lines = ",\n".join("    " + json.dumps(each) for each in listed)
    return f'{{\n  "skips": [\n{lines}\n  ]\n}}\n' if lines else '{"skips": []}\n'


def _yaml(listed: list[dict[str, Any]]) -> str:
    """Each entry as a flow mapping."""
    return "skips:\n" + "".join(f"  - {_quoted(each)}\n" for each in listed) if listed else "skips: []\n"


def _toml(listed: list[dict[str, Any]]) -> str:
    if not listed:
        return "skips = []\n"
    return "\n".join(
        "[[skips]]\n" + "".join(f"{name} = {_quoted(value)}\n" for name, value in each.items())
        for each in listed
    )


def _quoted(value: Any) -> str:
    """JSON that is YAML and TOML too: no surrogate pairs, and no character that one of them does not take as it is."""
    return _NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _text(listed: list[dict[str, Any]]) -> str:
    return "".join(_line(each) + "\n" for each in listed)


def _line(given: Mapping[str, Any]) -> str:
    parts = []
    if "test" in given:
        parts.append(given["test"])
    elif "file" in given:
        parts.append("::".join(part for part in (given["file"], given.get("class")) if part))
    elif "class" in given:
        parts.append(given["class"])
    options = ["operator", "device", "dtypes", "mode", "issue", "expires", "on"]
    for name in (["file"] if "test" in given else []) + options:
        if name in given:
            value = given[name]
            parts.append(f"{name}={','.join(value) if isinstance(value, list) else value}")
    if "reason" in given:
        parts.append("# " + " ".join(given["reason"].split()))
    return " ".join(parts)


_WRITERS = {"json": _json, "yml": _yaml, "yaml": _yaml, "toml": _toml, "txt": _text}
