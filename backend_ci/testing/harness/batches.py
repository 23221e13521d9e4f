"""Cut planned tests into batches, each of which one process runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

# Workers that share several batches end at about the same time; each batch costs a start of Python and torch.
_BATCHES_PER_WORKER = 4


def batches(tests: Sequence[str], workers: int) -> tuple[tuple[str, ...], ...]:
    """The tests in their order, cut where a class ends. One worker gets one batch: nothing is gained by more.

    A class stays whole, for its set-up, unless it is twice as large as a batch should be.
    """
    if not tests:
        return ()
    if workers <= 1:
        return (tuple(tests),)
    size = -(-len(tests) // (workers * _BATCHES_PER_WORKER))
    result: list[tuple[str, ...]] = []
    current: list[str] = []
    for test in tests:
        new_class = bool(current) and owner(current[-1]) != owner(test)
        if len(current) >= 2 * size or (len(current) >= size and new_class):
            result.append(tuple(current))
            current = []
        current.append(test)
    return (*result, tuple(current))


def owner(test: str) -> str:
    """File and class of a node id; the file for a plain function."""
    return test.partition("[")[0].rpartition("::")[0]


def files(tests: Sequence[str]) -> tuple[str, ...]:
    """The files that hold the tests, each once, in order."""
    return tuple(dict.fromkeys(test.partition("::")[0] for test in tests))
