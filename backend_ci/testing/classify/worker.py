"""The process that reads test files: paths on standard input, one line of facts each on standard output.

A parser may die on a stranger's file (Python 3.9 and 3.10 do, by segmentation fault): then it is this process
that dies, and whoever started it knows at which file.
"""

from __future__ import annotations

import gc
import json
import os
import stat
import sys
import warnings

from backend_ci.testing.classify.cache import digest
from backend_ci.testing.classify.facts import FileFacts, to_json, unreadable
from backend_ci.testing.classify.scan import MAX_BYTES, scan


def main() -> None:
    warnings.simplefilter("ignore")  # of the sources, such as an invalid escape
    gc.disable()  # a syntax tree has no cycles; collecting costs a quarter of the parsing
    for line in sys.stdin:
        key, facts = read(json.loads(line))
        sys.stdout.write(f"{key}\t{to_json(facts)}\n")
        sys.stdout.flush()


def read(path: str) -> tuple[str, FileFacts]:
    """The digest of a file's content, and its facts."""
    try:
        source = content(path)
    except OSError as error:
        return "", unreadable(f"it cannot be read: {os.strerror(error.errno) if error.errno else error}")
    return digest(source), scan(source)


def content(path: str) -> bytes:
    """What is in a plain file; of one that is too large only enough to say so. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a plain file")
        # One byte more than it has: a file that grows meanwhile is read to its new end.
        parts = [os.read(handle, min(status.st_size, MAX_BYTES) + 1)]
        room = MAX_BYTES + 1 - len(parts[0])
        while room > 0 and len(parts[-1]) and not (len(parts) == 1 and len(parts[0]) == status.st_size):
            parts.append(os.read(handle, room))
            room -= len(parts[-1])
        return b"".join(parts)
    finally:
        os.close(handle)


if __name__ == "__main__":
    main()
