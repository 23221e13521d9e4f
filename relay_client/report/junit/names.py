"""One name per test, however the writer of the report spells it.

pytest writes `classname="tests.test_a.TestX" name="test_b[1]"`; xmlrunner puts a subtest's parameters behind the
name; node ids have a path. All of them become `tests.test_a.TestX::test_b[1]`.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

MAX_NAME_CHARACTERS = 1_000

# xmlrunner: `test_sub (i=1)`, `test_sub [message] (i=1)`. A method's own name holds no blank.
_SUBTEST = re.compile(r"([A-Za-z_]\w*) (?:\[.*\] ?)?(?:\(.*\))?", re.DOTALL)
# unittest: a class that could not be prepared is reported as a test of this name.
_FIXTURE = re.compile(r"(setUpClass|tearDownClass|setUpModule|tearDownModule) \((.*)\)", re.DOTALL)


class Name(NamedTuple):
    """`part` says that it is one subtest of the test, so that the test is as bad as the worst of them."""

    classname: str
    name: str
    part: bool = False

    @property
    def key(self) -> str:
        return f"{self.classname}::{self.name}" if self.classname else self.name


def of_junit(classname: str, name: str) -> Name:
    """The name of a `<testcase>`."""
    fixture = _FIXTURE.fullmatch(name)
    if fixture:
        return Name(_bounded(_dotted(classname or fixture[2])), fixture[1])
    subtest = _SUBTEST.fullmatch(name) if " " in name else None
    if subtest:
        return Name(_bounded(_dotted(classname)), _bounded(subtest[1]), part=True)
    return Name(_bounded(_dotted(classname)), _bounded(name))


def of_node(node: str) -> Name:
    """The name of a pytest node id: `tests/test_a.py::TestX::test_b[a::b]`."""
    head, bracket, parameters = node.partition("[")
    owner, _, name = head.rpartition("::")
    return Name(_bounded(_dotted(owner)), _bounded(name + bracket + parameters))


def of_parts(owner: str, name: str) -> Name:
    """The name of a failed test as evidence and callbacks spell it: `tests/test_a.py::TestX` and `test_b`."""
    return Name(_bounded(_dotted(owner)), _bounded(name))


def _dotted(owner: str) -> str:
    path, colons, rest = owner.partition("::")
    if path.endswith(".py"):
        path = path[:-3].replace("/", ".").replace("\\", ".")
    return (path + colons + rest).replace("::", ".")


def _bounded(text: str) -> str:
    """Names that are too long are cut, and stay different."""
    if len(text) <= MAX_NAME_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"{text[: MAX_NAME_CHARACTERS - 18]}…#{digest}"
