"""Lists that others keep: PyTorch's disabled tests, and torch_npu's, which has their shape with chips in it.

PyTorch: `{"test (__main__.Class)": [issue, link, [platforms]]}` (generated-stats branch of pytorch/test-infra).
torch_npu: `{"test (__main__.Class)": [reason, [chips]]}` (test/unsupported_test_cases in Ascend/pytorch); an empty
chip means all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips import fields
from backend_ci.testing.skips.entry import Problem, SkipList
from relay_client.protocol.shape import show

_CONDITION = re.compile(r"[\w.+-]*")


def read_foreign(value: Mapping[str, object], file: str, names: TestNames) -> SkipList:
    """All entries; one that cannot be read becomes a problem, and does not spoil the others."""
    entries, problems = [], []
    for number, (key, details) in enumerate(value.items(), start=1):
        where = f"{file}: entry {number}"
        try:
            test = fields.target(names, key)
            if not test.method:
                raise fields.BadField(f"{show(key)} names no test; the key is `test (module.Class)`")
            reason, issue, on = _details(details)
        except fields.BadField as error:
            problems.append(Problem(where, str(error)))
            continue
        # Where a class cannot be set up, unittest reports this name, and no test of it runs.
        method = "" if test.method == "setUpClass" else test.method
        entries.append(replace(test, method=method, reason=reason, issue=issue, on=on, where=where))
    return SkipList(tuple(entries), tuple(problems), strict=False)


def _details(details: object) -> tuple[str, str, tuple[str, ...]]:
    """Reason, issue and the places where an entry applies. Raises BadField."""
    if not isinstance(details, list) or len(details) not in (2, 3) or not isinstance(details[-1], list):
        raise fields.BadField(f"{show(details)} is neither [issue, link, [platforms]] nor [reason, [chips]]")
    places = [str(place) for place in details[-1]]
    # Some chips are sentences: they say why, not where.
    sentences = [place for place in places if not _CONDITION.fullmatch(place)]
    on = () if "" in places else tuple(place for place in places if place not in sentences)
    if len(details) == 3:
        return f"disabled in PyTorch's own CI, issue {details[0]}", str(details[1]), on
    return "; ".join(text for text in (str(details[0]), *sentences) if text), "", on
