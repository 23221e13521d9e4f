"""The tests a list is held against: those of a plan, or ids one a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from backend_ci.testing.ids import BadTestId, TestId, TestNames
from backend_ci.testing.skips.match import KnownTest
from relay_client.documents.document import load_file
from relay_client.documents.plan import Plan, TestOrigin
from relay_client.errors import UsageError
from relay_client.protocol.shape import show


def known_tests(tests: Iterable[str], origins: Iterable[TestOrigin], names: TestNames) -> list[KnownTest]:
    """Tests with what the session knows of each. A node id of no known form is a test without a class."""
    of = {test: origin for origin in origins for test in origin.tests}
    known = []
    for test in tests:
        try:
            identity = names.parse(test)
        except BadTestId:
            identity = TestId("", test)
        origin = of.get(test)
        source, operator = (origin.source, origin.operator) if origin else ("", "")
        known.append(KnownTest(identity, test, source, operator))
    return known


def read_universe(path: Path, backends: Sequence[str]) -> tuple[list[KnownTest], tuple[str, ...]]:
    """The tests of `plan.json`, or of a text with one id a line (and, after a tab, its operator).

    Also the names of the backend's device: those given, and the plan's. Raises UsageError, DocumentError.
    """
    if path.suffix == ".json":
        plan = load_file(Plan, path)
        backends = tuple(dict.fromkeys((*backends, plan.device))) if plan.device else tuple(backends)
        return known_tests(plan.tests, plan.origins, TestNames(backends)), backends
    names, tests, origins = TestNames(backends), [], []
    for number, line in enumerate(_lines(path), start=1):
        test, _, operator = line.partition("\t")
        if not test.strip() or test.startswith("#"):
            continue
        try:
            names.parse(test.strip())
        except BadTestId as error:
            raise UsageError(
                "A line of the tests names no test.",
                seen=f"{path}:{number}: {show(test)}: {error}",
                fix="one test id a line, as `pytest --collect-only -q` prints them",
            ) from None
        tests.append(test.strip())
        origins.append(TestOrigin((test.strip(),), operator=operator.strip()))
    return known_tests(tests, origins, names), tuple(backends)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(
            "The tests cannot be read.", seen=f"{path}: {error}", fix="--tests: plan.json, or ids one a line"
        ) from error
