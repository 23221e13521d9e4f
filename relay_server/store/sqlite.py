"""The store in one SQLite file: write-ahead log, one connection behind a lock, full synchronisation.

One connection is enough: a callback writes once or twice, each well under a millisecond of SQLite's time.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path

from relay_client.protocol.shape import dump, parse
from relay_server.records import FAILED, PENDING, DispatchRecord, RepositoryTotals, Row, RowKey
from relay_server.store import StoreUnavailable

_VERSION = 1
_SCHEMA = """
CREATE TABLE dispatches (
    delivery_id TEXT NOT NULL, repository TEXT NOT NULL COLLATE NOCASE, event_type TEXT NOT NULL,
    upstream TEXT NOT NULL, "commit" TEXT NOT NULL, claimed_at REAL NOT NULL, pull_request INTEGER,
    ref TEXT NOT NULL, title TEXT NOT NULL, outcome TEXT NOT NULL, error TEXT NOT NULL,
    PRIMARY KEY (delivery_id, repository)
) WITHOUT ROWID;
CREATE TABLE rows (
    repository TEXT NOT NULL COLLATE NOCASE, delivery_id TEXT NOT NULL, run_id TEXT NOT NULL,
    job_name TEXT NOT NULL, run_attempt INTEGER NOT NULL, pull_request INTEGER, status TEXT NOT NULL,
    conclusion TEXT, first_seen_at REAL NOT NULL, revision INTEGER NOT NULL, document TEXT NOT NULL,
    PRIMARY KEY (repository, delivery_id, run_id, job_name, run_attempt)
);
CREATE INDEX rows_of_repository ON rows (repository, first_seen_at);
CREATE INDEX rows_of_pull_request ON rows (pull_request, first_seen_at) WHERE pull_request IS NOT NULL;
CREATE TABLE calls (repository TEXT NOT NULL COLLATE NOCASE, at REAL NOT NULL);
CREATE INDEX calls_of_repository ON calls (repository, at);
"""

_KEY = "repository = ? AND delivery_id = ? AND run_id = ? AND job_name = ? AND run_attempt = ?"
_DISPATCH_COLUMNS = (  # in the order of DispatchRecord's members
    'delivery_id, repository, event_type, upstream, "commit", claimed_at, pull_request, ref, title,'
    " outcome, error"
)

_INSERT_DISPATCH = f"INSERT OR REPLACE INTO dispatches ({_DISPATCH_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608
_SELECT_DISPATCH = f"SELECT {_DISPATCH_COLUMNS} FROM dispatches WHERE delivery_id = ? AND repository = ?"  # noqa: S608
_SELECT_ROW = f"SELECT document FROM rows WHERE {_KEY}"  # noqa: S608
_INSERT_ROW = "INSERT OR IGNORE INTO rows VALUES (?,?,?,?,?,?,?,?,?,?,?)"
_UPDATE_ROW = f"UPDATE rows SET status=?, conclusion=?, revision=?, document=? WHERE {_KEY} AND revision = ?"  # noqa: S608
_NEWEST_FIRST = "ORDER BY first_seen_at DESC, rowid DESC LIMIT ?"
_NEWEST_OF_REPOSITORY = f"SELECT document FROM rows WHERE repository = ? {_NEWEST_FIRST}"  # noqa: S608
_NEWEST_OF_PULL_REQUEST = f"SELECT document FROM rows WHERE pull_request = ? {_NEWEST_FIRST}"  # noqa: S608
_SELECT_TOTALS = """
SELECT min(repository), count(*), sum(status = 'in_progress'),
       sum(conclusion IS 'success'), sum(conclusion IN ('failure', 'timed_out') AND conclusion IS NOT NULL)
FROM rows AS one
WHERE NOT EXISTS (
    SELECT 1 FROM rows AS later
    WHERE later.repository = one.repository AND later.delivery_id = one.delivery_id
      AND later.run_id = one.run_id AND later.job_name = one.job_name AND later.run_attempt > one.run_attempt
)
GROUP BY repository ORDER BY repository
"""


class SQLiteStore:
    """See `Store`."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=5)
        self._database.execute("PRAGMA journal_mode = WAL")
        # FULL: an acknowledged callback survives a power cut, which WAL's default does not promise.
        self._database.execute("PRAGMA synchronous = FULL")
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version == 0:
            self._database.executescript(f"BEGIN IMMEDIATE;{_SCHEMA}PRAGMA user_version = {_VERSION};COMMIT;")
        elif version != _VERSION:
            self.close()
            raise ValueError(f"{path} has schema version {version}; this relay reads version {_VERSION}")

    def close(self) -> None:
        with self._lock:
            self._database.close()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._database
            except sqlite3.Error as error:
                raise StoreUnavailable(f"{type(error).__name__}: {error}") from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._reading() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    def claim_dispatch(self, record: DispatchRecord, *, stale_before: float) -> bool:
        with self._writing() as database:
            known = self.dispatch(record.delivery_id, record.repository)
            if known is not None:
                abandoned = known.outcome == PENDING and known.claimed_at < stale_before
                if known.outcome != FAILED and not abandoned:
                    return False
            database.execute(_INSERT_DISPATCH, astuple(record))
            return True

    def finish_dispatch(self, delivery_id: str, repository: str, outcome: str, error: str = "") -> None:
        with self._writing() as database:
            database.execute(
                "UPDATE dispatches SET outcome = ?, error = ? WHERE delivery_id = ? AND repository = ?",
                (outcome, error, delivery_id, repository),
            )

    def dispatch(self, delivery_id: str, repository: str) -> DispatchRecord | None:
        with self._reading() as database:
            found = database.execute(_SELECT_DISPATCH, (delivery_id, repository)).fetchone()
        return None if found is None else DispatchRecord(*found)

    def count_call(self, repository: str, *, now: float, window: float, limit: int) -> float | None:
        with self._writing() as database:
            database.execute("DELETE FROM calls WHERE at <= ?", (now - window,))
            times = database.execute(
                "SELECT at FROM calls WHERE repository = ? ORDER BY at DESC LIMIT ?", (repository, limit)
            ).fetchall()
            if len(times) < limit:
                database.execute("INSERT INTO calls VALUES (?, ?)", (repository, now))
                return None
            return float(times[-1][0]) + window - now

    def row(self, key: RowKey) -> Row | None:
        with self._reading() as database:
            found = database.execute(_SELECT_ROW, _key(key)).fetchone()
        return None if found is None else parse(Row, json.loads(found[0]))

    def put_row(self, row: Row, *, replaces: int | None) -> bool:
        document = json.dumps(dump(row))
        state = (row.status, row.conclusion)
        with self._writing() as database:
            if replaces is None:
                about = (row.pull_request, *state, row.first_seen_at, row.revision, document)
                done = database.execute(_INSERT_ROW, (*_key(row.key), *about))
            else:
                done = database.execute(
                    _UPDATE_ROW, (*state, row.revision, document, *_key(row.key), replaces)
                )
            return done.rowcount == 1

    def newest_rows_of_repository(self, repository: str, limit: int) -> list[Row]:
        return self._rows(_NEWEST_OF_REPOSITORY, repository, limit)

    def newest_rows_of_pull_request(self, number: int, limit: int) -> list[Row]:
        return self._rows(_NEWEST_OF_PULL_REQUEST, number, limit)

    def _rows(self, query: str, *values: str | int) -> list[Row]:
        with self._reading() as database:
            found = database.execute(query, values).fetchall()
        return [parse(Row, json.loads(document)) for (document,) in found]

    def totals(self) -> list[RepositoryTotals]:
        with self._reading() as database:
            found = database.execute(_SELECT_TOTALS).fetchall()
        return [RepositoryTotals(*counts) for counts in found]


def _key(key: RowKey) -> tuple[str, str, str, str, int]:
    return (key.repository, key.delivery_id, key.run_id, key.job_name, key.run_attempt)
