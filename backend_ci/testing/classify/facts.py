"""What one test file says, as plain data: the result of reading it once, and what the cache keeps.

Nothing here depends on where the file lies. Names are dotted and written out through the file's own imports;
where a name may come from several places (`try: import … except: import …`) they are joined by `|`.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, Optional


class Tag(NamedTuple):
    """An assignment to `hw_classification`.

    `kind` is `member` (value: the enum's member), `none`, `of` (value: the class whose tag it repeats) or
    `unreadable` (value: the source text).
    """

    kind: str
    value: str
    line: int


class Test(NamedTuple):
    """One test method. `device` is whether it takes the parameter `device` or `devices`."""

    name: str
    line: int
    device: bool
    decorators: tuple[str, ...]


class TestClass(NamedTuple):
    """One class of a module, test class or not. `nested` is whether it stands below an `if`, `try` or loop."""

    name: str
    line: int
    bases: tuple[str, ...]
    decorators: tuple[str, ...]
    tag: Optional[Tag]
    tests: tuple[Test, ...]
    nested: bool


class Call(NamedTuple):
    """A call that may instantiate a class for devices.

    `only_for` and `except_for` are None when not given; a value that cannot be read is `("?", source text)`.
    `parameter` is, for a call inside a function, the position of the parameter that is instantiated, else -1;
    then `function` is that function's name.
    """

    name: str
    target: str
    arguments: tuple[str, ...]
    only_for: Optional[tuple[str, ...]]
    except_for: Optional[tuple[str, ...]]
    line: int
    nested: bool
    function: str
    parameter: int


class DeviceUse(NamedTuple):
    """A place that names an accelerator. `owner` is the class, `method` the function, empty in the module."""

    kind: str
    device: str
    text: str
    line: int
    column: int
    owner: str
    method: str


class FileFacts(NamedTuple):
    """One file. `problem` is why it could not be read, with its line; then the rest is empty."""

    imports: dict[str, str]
    stars: tuple[str, ...]
    classes: tuple[TestClass, ...]
    calls: tuple[Call, ...]
    uses: tuple[DeviceUse, ...]
    problem: str = ""
    problem_line: int = 0


UNREADABLE = "?"


def unreadable(problem: str, line: int = 0) -> FileFacts:
    return FileFacts({}, (), (), (), (), problem, line)


def to_json(facts: FileFacts) -> str:
    """One line without line breaks."""
    return json.dumps(facts, separators=(",", ":"))


def from_json(text: str) -> FileFacts:
    """Facts that `to_json` wrote. Raises ValueError, TypeError or RecursionError on anything else."""
    imports, stars, classes, calls, uses, problem, line = json.loads(text)
    return FileFacts(
        dict(imports),
        tuple(stars),
        tuple(_class(value) for value in classes),
        tuple(_call(value) for value in calls),
        tuple(map(DeviceUse._make, uses)),
        str(problem),
        int(line),
    )


def _class(value: Any) -> TestClass:
    name, line, bases, decorators, tag, tests, nested = value
    return TestClass(
        name,
        line,
        tuple(bases),
        tuple(decorators),
        Tag(*tag) if tag is not None else None,
        tuple(map(_test, tests)),
        nested,
    )


def _test(value: Any) -> Test:
    if value[3]:
        return Test(value[0], value[1], value[2], tuple(value[3]))
    value[3] = ()
    return Test._make(value)


def _call(value: Any) -> Call:
    name, target, arguments, only_for, except_for, *rest = value
    return Call(
        name,
        target,
        tuple(arguments),
        None if only_for is None else tuple(only_for),
        None if except_for is None else tuple(except_for),
        *rest,
    )
