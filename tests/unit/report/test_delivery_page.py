"""docs/delivery.md promises numbers; these are the code's."""

from __future__ import annotations

import re

import pytest
from step import ROOT

from relay_client.report import deliver


@pytest.mark.parametrize(
    ("row", "number"),
    [
        ("calls to one relay", deliver.CALLS_PER_MINUTE),
        ("one request", deliver.REQUEST_SECONDS),
        ("the first report", deliver.TOTAL_SECONDS["in_progress"]),
        ("the last report", deliver.TOTAL_SECONDS["completed"]),
        ("all callbacks of one step", deliver.REPORT_SECONDS),
        ("tries of one callback", deliver.MAX_ATTEMPTS),
    ],
)
def test_the_numbers_of_the_page_are_the_code_s(row: str, number: float) -> None:
    text = (ROOT / "docs" / "delivery.md").read_text(encoding="utf-8")
    found = re.search(rf"^\| {row}[^|]*\| (?:at most )?([0-9]+)", text, re.MULTILINE)
    assert found is not None
    assert float(found[1]) == number


def test_one_request_outlasts_the_relay_s_own_47_seconds() -> None:
    assert deliver.REQUEST_SECONDS > 47
