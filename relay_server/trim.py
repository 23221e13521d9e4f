"""Make an event fit GitHub's 64 KB limit for a dispatch, losing prose before structure.

GitHub refuses a `repository_dispatch` of 64 KB or more ("Create a repository dispatch event": the total size
of the JSON payload must be less than 64KB) with 422, and the pull request would go untested everywhere.
So an event that is too large is trimmed in these steps, each only if the one before was not enough:

1. `texts`: every `body`, `message` and `description` is cut to 1,024 characters;
2. `files`: the file lists of a push's commits, and all but the last 20 of its commits, are left out;
3. `links`: API addresses (`…_url`, `_links`) are left out; `html_url` and `clone_url` stay;
4. `minimum`: only the members that CRCR's consumers are known to read stay.

`payload.crcr_trimmed` then lists the steps. An event that fits is passed on untouched.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

# Below 64 * 1000 as well as 64 * 1024: GitHub does not say which of the two a KB is.
LIMIT_BYTES = 64_000
TEXT_CHARACTERS = 1_024
MARK = "crcr_trimmed"

_TEXTS = {"body", "message", "description"}
_KEPT_LINKS = {"html_url", "clone_url"}
_COMMITS = 20
_ALL = True  # in a pattern: keep this member whole

_REPOSITORY = {"full_name": _ALL, "html_url": _ALL, "clone_url": _ALL, "default_branch": _ALL}
_USER = {"login": _ALL}
_TIP = {"sha": _ALL, "ref": _ALL, "repo": _REPOSITORY}
_MINIMUM: dict[str, Any] = {
    "action": _ALL,
    "number": _ALL,
    "repository": _REPOSITORY,
    "sender": _USER,
    "pull_request": {
        **dict.fromkeys(
            ("number", "title", "state", "draft", "merged", "html_url", "author_association"), _ALL
        ),
        "user": _USER,
        "head": _TIP,
        "base": _TIP,
        "labels": {"name": _ALL},
    },
    **dict.fromkeys(("ref", "before", "after", "created", "deleted", "forced", "base_ref", "compare"), _ALL),
    "head_commit": {"id": _ALL, "message": _ALL, "timestamp": _ALL},
}


def encode(value: Any) -> bytes:
    """The compact UTF-8 JSON that is sent, and measured."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def fit(envelope: dict[str, Any], limit: int = LIMIT_BYTES) -> dict[str, Any]:
    """The envelope of a dispatch, trimmed until a dispatch with it is at most `limit` bytes."""
    steps: list[str] = []
    payload = envelope["payload"]
    for name, step in _STEPS:
        if len(_request(envelope)) <= limit:
            break
        steps.append(name)
        payload = step(payload)
        envelope = {**envelope, "payload": {**payload, MARK: steps}}
    return envelope


def _request(envelope: dict[str, Any]) -> bytes:
    return encode({"event_type": envelope["event_type"], "client_payload": envelope})


def _cut_texts(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _cut_texts(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut_texts(item) for item in value]
    if key in _TEXTS and isinstance(value, str) and len(value) > TEXT_CHARACTERS:
        return value[: TEXT_CHARACTERS - 1] + "…"
    return value


def _drop_files(payload: dict[str, Any]) -> dict[str, Any]:
    def slim(commit: Any) -> Any:
        if not isinstance(commit, dict):
            return commit
        return {name: item for name, item in commit.items() if name not in ("added", "removed", "modified")}

    changed = dict(payload)
    if isinstance(changed.get("commits"), list):
        changed["commits"] = [slim(commit) for commit in changed["commits"][-_COMMITS:]]
    if "head_commit" in changed:
        changed["head_commit"] = slim(changed["head_commit"])
    return changed


def _drop_links(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _drop_links(item)
            for name, item in value.items()
            if name in _KEPT_LINKS or not (name.endswith("_url") or name in ("url", "_links"))
        }
    if isinstance(value, list):
        return [_drop_links(item) for item in value]
    return value


def _keep(pattern: Any, value: Any) -> Any:
    if pattern is _ALL:
        return value[:TEXT_CHARACTERS] if isinstance(value, str) else value
    if isinstance(value, list):
        return [_keep(pattern, item) for item in value]
    if isinstance(value, dict):
        return {name: _keep(inner, value[name]) for name, inner in pattern.items() if name in value}
    return value


def _minimum(payload: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = _keep(_MINIMUM, payload)
    return kept


_STEPS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("texts", _cut_texts),
    ("files", _drop_files),
    ("links", _drop_links),
    ("minimum", _minimum),
)
