"""Write and read one document of the run folder.

Reading treats the file as hostile: it may have passed through a job that ran a stranger's code.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from relay_client.errors import DocumentError
from relay_client.protocol.shape import ShapeError, dump, parse, show

MAX_DOCUMENT_BYTES = 64 * 1024 * 1024


class Document(Protocol):
    """What a document class declares: the stage's file name, and the version of its shape."""

    FILE: ClassVar[str]
    VERSION: ClassVar[int]
    WRITTEN_BY: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


D = TypeVar("D", bound=Document)


def save(document: Document, folder: Path) -> Path:
    """Write the document whole or not at all, and return its path. Raises DocumentError."""
    path = folder / document.FILE
    value = {"document": document.FILE, "version": document.VERSION, **dump(document)}
    unfinished = path.with_name(path.name + f".{os.getpid()}.tmp")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
        unfinished.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise DocumentError(
            f"{document.FILE} cannot be written.",
            seen=f"{path}: {error}",
            fix="name a folder that can be written with --run-dir, or make room on its disk",
        ) from error
    return path


def load(cls: type[D], folder: Path) -> D:
    """Read the document from its folder. Raises DocumentError."""
    return load_file(cls, folder / cls.FILE)


def load_file(cls: type[D], path: Path) -> D:
    """Read the document from a path. Raises DocumentError when it is missing, broken or of another version."""
    try:
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise DocumentError(
                f"{cls.FILE} cannot be read.",
                seen=f"{path} is not a plain file",
                fix=f"remove it, and run `crcr {cls.WRITTEN_BY}` again",
            )
        if path.stat().st_size > MAX_DOCUMENT_BYTES:
            raise DocumentError(
                f"{cls.FILE} is too large to be read.",
                seen=f"{path.stat().st_size} bytes in {path}; the limit is {MAX_DOCUMENT_BYTES}",
                fix="plan fewer tests per shard, so that the document stays small",
            )
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DocumentError(
            f"{cls.FILE} is missing.",
            seen=f"no file {path}",
            fix=f"run `crcr {cls.WRITTEN_BY}` first with the same --run-dir, or name the right --run-dir",
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise DocumentError(
            f"{cls.FILE} cannot be read.", seen=f"{path}: {error}", fix=f"run `crcr {cls.WRITTEN_BY}` again"
        ) from error
    version = value.get("version") if isinstance(value, dict) else None
    if version is True or version != cls.VERSION:
        raise DocumentError(
            f"{cls.FILE} was written by another version of this toolkit.",
            seen=f"version {show(version)} in {path}; this toolkit reads version {cls.VERSION}",
            fix="pin every step of the workflow file to the same commit of the toolkit",
        )
    try:
        if value.get("document") != cls.FILE:
            raise ShapeError("document", show(value.get("document")), cls.FILE)
        return parse(cls, value)
    except ShapeError as error:
        raise DocumentError(
            f"{cls.FILE} is not what `crcr {cls.WRITTEN_BY}` writes.",
            seen=str(error),
            fix=f"run `crcr {cls.WRITTEN_BY}` again",
        ) from error
