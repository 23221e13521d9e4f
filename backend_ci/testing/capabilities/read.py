"""Read `capabilities.yml` (or .toml, .json): what the backend states of itself, each part checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

from backend_ci.testing.ids import TestNames
from backend_ci.testing.skips import fields
from backend_ci.testing.skips.entry import Entry
from backend_ci.testing.skips.read import Python
from backend_ci.testing.skips.structured import ENDINGS, StructuredFile
from relay_client.errors import BadCapabilities
from relay_client.protocol.shape import show

UNLISTED = ("run", "skip")


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be off, absolutely and relative to what is expected, for one dtype."""

    dtype: str
    atol: float
    rtol: float


@dataclass(frozen=True)
class Operator:
    """One operator. `dtypes` None: all that PyTorch's tests have for it."""

    name: str
    supported: bool = True
    dtypes: Optional[tuple[str, ...]] = None
    tolerances: tuple[Tolerance, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Feature:
    """A feature that the backend does not have, and the tests that need it."""

    name: str
    tests: tuple[Entry, ...]
    reason: str = ""


@dataclass(frozen=True)
class Capabilities:
    """`dtypes` None: the device has all of them. `unlisted`: what happens to operators that are not listed."""

    dtypes: Optional[tuple[str, ...]]
    operators: Mapping[str, Operator]
    unlisted: str
    missing: tuple[Feature, ...]


def read_capabilities(
    path: Path, backends: tuple[str, ...] = (), python: Optional[Python] = None
) -> Capabilities:
    """Raises BadCapabilities at the first part that is wrong."""
    python = python or Python()
    file = StructuredFile(
        path, BadCapabilities, "The capabilities file", python.interpreter, python.environment
    )
    try:
        if path.suffix.lower() not in ENDINGS:
            raise fields.BadField(f"its name must end with one of {', '.join(ENDINGS)}")
        value = _object("the file", file.value())
        _only("the file", value, ("backend", "dtypes", "operators", "unlisted", "features"))
        names = TestNames((*backends, str(value.get("backend", ""))))
        unlisted = value.get("unlisted", "run")
        if unlisted not in UNLISTED:
            raise fields.BadField(f"unlisted is {show(unlisted)}; allowed are {', '.join(UNLISTED)}")
        operators = _object("operators", value.get("operators") or {})
        features = _object("features", value.get("features") or {})
        return Capabilities(
            _dtypes(value),
            {name: _operator(name, given) for name, given in operators.items()},
            unlisted,
            tuple(feature for name, given in features.items() for feature in _missing(name, given, names)),
        )
    except fields.BadField as error:
        raise BadCapabilities(
            "The capabilities have a part that cannot be read.",
            seen=f"{path.name}: {error}",
            fix="correct it; docs/skips.md shows the whole file",
        ) from None


def _operator(name: str, given: object) -> Operator:
    if isinstance(given, bool):
        return Operator(name, given)
    if given is None:
        return Operator(name)
    members = _object(f"operators.{name}", given)
    _only(f"operators.{name}", members, ("supported", "dtypes", "tolerances", "reason"))
    supported = members.get("supported", True)
    if not isinstance(supported, bool):
        raise fields.BadField(f"operators.{name}.supported is {show(supported)}; write true or false")
    tolerances = _object(f"operators.{name}.tolerances", members.get("tolerances") or {})
    return Operator(
        name,
        supported,
        _dtypes(members),
        tuple(
            _tolerance(f"operators.{name}.tolerances.{dtype}", dtype, each)
            for dtype, each in tolerances.items()
        ),
        str(members.get("reason", "")),
    )


def _tolerance(where: str, dtype: str, given: object) -> Tolerance:
    (dtype,) = fields.read_dtypes([dtype])
    members = _object(where, given)
    _only(where, members, ("atol", "rtol"))
    for name in ("atol", "rtol"):
        number = members.get(name)
        if isinstance(number, bool) or not isinstance(number, (int, float)) or not 0 <= number < float("inf"):
            raise fields.BadField(f"{where}.{name} is {show(number)}; write a number, 0 or more")
    return Tolerance(dtype, float(members["atol"]), float(members["rtol"]))


def _missing(name: str, given: object, names: TestNames) -> list[Feature]:
    members = _object(f"features.{name}", given)
    _only(f"features.{name}", members, ("supported", "tests", "reason"))
    supported, tests = members.get("supported"), members.get("tests")
    if not isinstance(supported, bool) or not isinstance(tests, list) or not tests:
        raise fields.BadField(f"features.{name} needs `supported: true` or `false`, and `tests:` with a list")
    entries = tuple(fields.from_members({"test": test}, names) for test in tests)
    return [] if supported else [Feature(name, entries, str(members.get("reason", "")))]


def _dtypes(members: Mapping[str, Any]) -> Optional[tuple[str, ...]]:
    given = members.get("dtypes")
    if given is None:
        return None
    if not isinstance(given, list) or not given:
        raise fields.BadField(f"dtypes is {show(given)}; write a list of at least one")
    return fields.read_dtypes(given)


def _object(where: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
        raise fields.BadField(f"{where} is {show(value)}; write `name: …` lines")
    return value


def _only(where: str, members: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    for name in members:
        if name not in allowed:
            raise fields.BadField(f"{where} has {show(name)}; allowed are {', '.join(allowed)}")
