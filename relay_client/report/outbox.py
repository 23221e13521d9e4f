"""The outbox: callbacks that could not be delivered, kept to be sent later. No token is in it.

Whoever reads it must not trust it: artifacts of a run can be written by every job of the run. So a letter names
its relay for a person, and is sent only to the relay that the sender names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from relay_client.errors import BadOutbox
from relay_client.protocol.callback import CallbackBody, parse_callback
from relay_client.protocol.shape import ShapeError, dump, show
from relay_client.protocol.vocabulary import MAX_CALLBACK_BYTES

_MAX_LETTERS = 1_000
_MAX_LETTER_BYTES = 3 * MAX_CALLBACK_BYTES
SENT = ".sent"


@dataclass(frozen=True)
class Letter:
    """One callback; `start` is the in_progress of its row, for a relay that never got it."""

    url: str
    audience: str
    body: CallbackBody
    start: Optional[CallbackBody] = None


def keep(letter: Letter, outbox: Path) -> Path:
    """Write a letter and return its path."""
    outbox.mkdir(parents=True, exist_ok=True)
    value = {"url": letter.url, "audience": letter.audience, "body": dump(letter.body)}
    if letter.start is not None:
        value["start"] = dump(letter.start)
    workflow = letter.body.workflow
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{workflow.check_run_id}-{workflow.status}")
    path = outbox / f"{name}.json"
    path.write_text(json.dumps(value) + "\n", encoding="utf-8")
    return path


def letters(outbox: Path, url: str, audience: str) -> Iterator[tuple[Path, Letter]]:
    """The letters below a folder, first reports first. Raises BadOutbox for one that must not be sent."""
    if not outbox.is_dir():
        raise BadOutbox("There is no outbox.", seen=f"no folder {outbox}", fix="crcr resend FOLDER")
    paths = sorted(outbox.rglob("*.json"), key=lambda path: ("-in_progress" not in path.name, path.name))
    found = [(path, _read(path)) for path in paths[:_MAX_LETTERS]]
    if not found:
        raise BadOutbox(
            "The outbox is empty.", seen=f"no .json file below {outbox}", fix="crcr resend FOLDER"
        )
    for path, letter in found:
        if (letter.url, letter.audience) != (url, audience):
            raise BadOutbox(
                "A letter of the outbox is for another relay.",
                seen=f"{path.name}: {show(letter.url)}, audience {show(letter.audience)}",
                fix="check that you know this relay, then name it: --relay-url and --audience exactly as there",
            )
        yield path, letter


def _read(path: Path) -> Letter:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_LETTER_BYTES:
            raise ValueError("not a plain file, or too large")
        value = json.loads(path.read_text(encoding="utf-8"))
        start = value.get("start")
        letter = Letter(
            value["url"],
            value["audience"],
            parse_callback(value["body"]),
            None if start is None else parse_callback(start),
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, ShapeError) as error:
        raise BadOutbox(
            "A letter of the outbox is not what `crcr report` writes.",
            seen=f"{path.name}: {type(error).__name__}: {error}"[:500],
            fix="take the outbox from the artifact of the report job, unchanged",
        ) from error
    return letter
