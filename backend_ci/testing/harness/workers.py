"""Run batches side by side, one process per worker, each worker on its device."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue
from typing import TextIO, cast

from backend_ci.testing.harness.batch import Assignment, Batch, BatchResult, run_batch
from backend_ci.testing.harness.batches import batches
from backend_ci.testing.session import SessionPlace
from relay_client.documents import journal as journals


@dataclass(frozen=True)
class Workers:
    """How many processes run at a time, and which variable shows each of them its device alone."""

    count: int
    device_variable: str = ""
    devices: tuple[str, ...] = ()

    def environment(self, worker: int) -> dict[str, str]:
        """What a worker's processes get beside the job's environment. Workers are numbered from 0."""
        if not self.device_variable:
            return {}
        return {self.device_variable: self.devices[worker % len(self.devices)]}


def run_workers(
    place: SessionPlace, assignment: Assignment, tests: Sequence[str], workers: Workers
) -> list[tuple[Batch, BatchResult]]:
    """Run all tests. A worker takes the next batch as soon as it has ended one."""
    parts = batches(tests, workers.count)
    if len(parts) <= 1:
        batch = Batch("", tuple(tests), place.folder / journals.FILE)
        bound = replace(place, environment={**place.environment, **workers.environment(0)})
        return [(batch, run_batch(bound, assignment, batch, place.commands.warning))]
    todo: SimpleQueue[Batch] = SimpleQueue()
    for number, part in enumerate(parts, 1):
        todo.put(Batch(f"{number}-", part, place.folder / f"journal-{number}.jsonl"))
    done: list[tuple[Batch, BatchResult]] = []
    notes: list[str] = []
    with place.commands.foreign_output() as stream:
        lock = threading.Lock()

        def work(worker: int) -> None:
            said = _Prefixed(stream, f"[{worker}] ", lock)
            bound = replace(
                place,
                environment={**place.environment, **workers.environment(worker)},
                stream=cast(TextIO, said),
            )
            with contextlib.suppress(Empty):
                while True:
                    batch = todo.get_nowait()
                    done.append((batch, run_batch(bound, assignment, batch, notes.append)))

        with ThreadPoolExecutor(workers.count) as pool:
            for future in [pool.submit(work, number) for number in range(workers.count)]:
                future.result()
    for note in notes:
        place.commands.warning(note)
    return done


class _Prefixed:
    """Whole lines of several processes into one stream, each with its worker's number."""

    def __init__(self, stream: TextIO, prefix: str, lock: threading.Lock) -> None:
        self._stream = stream
        self._prefix = prefix
        self._lock = lock

    def write(self, text: str) -> int:
        with self._lock:
            return self._stream.write(self._prefix + text)

    def flush(self) -> None:
        with self._lock:
            self._stream.flush()
