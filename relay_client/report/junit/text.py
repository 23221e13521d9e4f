"""The bytes of a report, made legal: tests print what no XML may hold, and writers let some of it through."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

_CHUNK_BYTES = 64 * 1024


class UnreadableText(Exception):
    """The file is not read. Its text is for a person."""


def chunks(file: IO[bytes]) -> Iterator[bytes]:
    first = file.read(_CHUNK_BYTES)
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UnreadableText("it is UTF-16; test reports are read as UTF-8")
    while first:
        yield first
        first = file.read(_CHUNK_BYTES)


# Bytes that no XML may hold. In UTF-8 they are never part of another character.
_ILLEGAL = bytes(n for n in range(32) if n not in (9, 10, 13))
_TO_BLANK = bytes.maketrans(_ILLEGAL, b"?" * len(_ILLEGAL))
_REFERENCE = re.compile(rb"&#(?:x([0-9A-Fa-f]{1,8})|([0-9]{1,10}));")
_LONGEST_REFERENCE = 16


def legal(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same text with a question mark for what XML does not allow: reports quote what tests print."""
    rest = b""
    for piece in pieces:
        data = rest + piece.translate(_TO_BLANK)
        # A character or a reference may go on in the next piece.
        cut = data.rfind(b"&", max(len(data) - _LONGEST_REFERENCE, 0))
        if cut < 0 or b";" in data[cut:]:
            cut = _whole_characters(data)
        rest, data = data[cut:], data[:cut]
        yield _clean(data)
    yield _clean(rest)


def _clean(data: bytes) -> bytes:
    if not data.isascii():
        text = data.decode("utf-8", errors="replace")
        data = text.replace("\ufffe", "?").replace("\uffff", "?").encode()
    return _REFERENCE.sub(_legal_reference, data) if b"&#" in data else data


def _legal_reference(match: re.Match[bytes]) -> bytes:
    number = int(match[1], 16) if match[1] else int(match[2])
    legal = number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number < 0xFFFE
    return match[0] if legal or 0x10000 <= number <= 0x10FFFF else b"?"


def _whole_characters(data: bytes) -> int:
    """Where to cut so that no UTF-8 character is split: before an unfinished one at the end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            need = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if back < need else len(data)
    return len(data)
