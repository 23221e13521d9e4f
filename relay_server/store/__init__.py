"""What the relay needs of a database, as one small protocol. Every write is durable when it returns."""

from __future__ import annotations

from typing import Protocol

from relay_server.records import DispatchRecord, RepositoryTotals, Row, RowKey


class StoreUnavailable(Exception):
    """The database did not take or give what was asked. Nothing was changed; trying later may help."""


class Store(Protocol):
    """Safe to call from many threads. Repository names are compared without regard to case.

    Every call may raise StoreUnavailable.
    """

    def claim_dispatch(self, record: DispatchRecord, *, stale_before: float) -> bool:
        """Write the record before its dispatch call, if the call is ours to make.

        False: it was sent, or another claim made since `stale_before` (seconds since the epoch) is under way.
        """

    def finish_dispatch(self, delivery_id: str, repository: str, outcome: str, error: str = "") -> None:
        """Note how the dispatch call of a claim ended."""

    def dispatch(self, delivery_id: str, repository: str) -> DispatchRecord | None:
        """The record of one dispatch."""

    def count_call(self, repository: str, *, now: float, window: float, limit: int) -> float | None:
        """Count a call and return None, or leave it uncounted and return the seconds until there is room."""

    def row(self, key: RowKey) -> Row | None:
        """One row."""

    def put_row(self, row: Row, *, replaces: int | None) -> bool:
        """Write a row if the stored one still has revision `replaces` (None: if there is none)."""

    def newest_rows_of_repository(self, repository: str, limit: int) -> list[Row]:
        """Rows of one downstream, the last started first."""

    def newest_rows_of_pull_request(self, number: int, limit: int) -> list[Row]:
        """Rows of one upstream pull request, the last started first."""

    def totals(self) -> list[RepositoryTotals]:
        """Counts of every repository that has rows."""

    def close(self) -> None:
        """Release the database. Later calls fail."""
