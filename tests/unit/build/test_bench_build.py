"""The benchmark's own judgement: what it takes from ninja's log, and when it is red."""

from __future__ import annotations

from typing import Optional

import pytest

from backend_ci.build.cache_statistics import Counted
from benchmarks.build import ROWS, Measured, Row, compile_seconds, table, verdict

COLD = Row("ccache, cold", "ccache", "a", cold=True)
WARM = Row("ccache, warm", "ccache", "b")


def test_the_compile_part_is_from_the_first_start_to_the_last_end() -> None:
    assert compile_seconds("# ninja log v7\n500\t9000\t0\ta.o\tff\n120\t4000\t0\tb.o\tee\n") == 8.88


@pytest.mark.parametrize(
    ("seconds", "counted", "said"),
    [
        (4.0, Counted(19, 1, 0), None),
        (4.1, Counted(20, 0, 0), "9.8 times faster than cold, promised is 10."),
        (1.0, Counted(18, 2, 0), "90 % hits, promised are 95 %."),
        (1.0, Counted(0, 0, 20), "no statistics hits"),
        (1.0, None, "no statistics hits"),
    ],
)
def test_a_warm_build_that_breaks_a_promise_is_named(
    seconds: float, counted: Optional[Counted], said: Optional[str]
) -> None:
    measured = [Measured(COLD, 40.0, 45.0, Counted(0, 20, 0)), Measured(WARM, seconds, 9.0, counted)]
    faults = verdict(measured)
    assert len(faults) == (0 if said is None else 1)
    assert said is None or (said in faults[0] and "ccache, warm" in faults[0])


def test_each_tool_starts_cold_and_is_then_measured_warm_elsewhere_and_for_a_pull_request() -> None:
    for tool in ("ccache", "sccache"):
        rows = [row for row in ROWS if row.tool == tool]
        assert [row.cold for row in rows] == [True, False, False, False]
        assert len({row.place for row in rows}) == 3
        assert [row.trust for row in rows] == ["landed", "landed", "landed", "pull-request"]


def test_the_table_has_a_line_per_build() -> None:
    lines = table([Measured(COLD, 40.0, 45.0, Counted(0, 4, 0)), Measured(WARM, 0.5, 5.0, Counted(4, 0, 0))])
    assert lines[2:] == [
        "| ccache, cold | 40.00 |  | 45.0 | 0 | 4 | 0 % |",
        "| ccache, warm | 0.50 | 80 | 5.0 | 4 | 0 | 100 % |",
    ]
