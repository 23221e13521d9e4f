"""From capabilities and the installed PyTorch's operators to skips and tolerances.

PyTorch's own `op_allowlist` and `test_exclusions` are not used: what they leave out is gone from the report, and an
allowlist also shrinks the tests of devices whose classes are made later.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace

from backend_ci.testing.capabilities.read import Capabilities, Operator
from backend_ci.testing.ids import DTYPES, PRIVATEUSE1
from backend_ci.testing.skips.entry import Entry
from relay_client.documents.plan import PlannedTolerance
from relay_client.errors import BadCapabilities

# Dtypes by OpInfo.full_name.
Database = Mapping[str, frozenset[str]]
_SHOWN = 5


def validate(capabilities: Capabilities, database: Database) -> None:
    """Raises BadCapabilities for names that PyTorch does not have, and operators that no dtype is left of."""
    unknown = [name for name in capabilities.operators if name not in database]
    if unknown:
        raise BadCapabilities(
            f"The capabilities name {len(unknown)} operators that the installed PyTorch has no tests for.",
            seen="; ".join(f"{name} (near: {_near(name, database)})" for name in unknown[:_SHOWN]),
            fix="write OpInfo.full_name: the operator's name, and after a dot its variant if it has one",
        )
    empty = [
        operator.name
        for operator in capabilities.operators.values()
        if operator.supported and not left_dtypes(capabilities, operator, database)
    ]
    if empty:
        raise BadCapabilities(
            f"The capabilities leave {len(empty)} operators without a dtype, so none of their tests could run.",
            seen="; ".join(
                f"{name}: PyTorch tests {', '.join(sorted(database[name]))}" for name in empty[:_SHOWN]
            ),
            fix="name one of these dtypes, or say `supported: false` with a reason",
        )


def left_dtypes(capabilities: Capabilities, operator: Operator, database: Database) -> frozenset[str]:
    """The dtypes of an operator's tests that the backend is good for."""
    stated = [dtypes for dtypes in (capabilities.dtypes, operator.dtypes) if dtypes is not None]
    return database[operator.name].intersection(*stated)


def skips(capabilities: Capabilities, database: Database) -> list[Entry]:
    """What the backend does not do, as entries of a skip list: its tests are planned, and skipped with the reason.

    They name the backend's device, so the tests of the CPU stay as they are.
    """
    entries = [entry for name in sorted(database) for entry in _of_operator(capabilities, name)]
    if capabilities.dtypes is not None:
        missing = tuple(dtype for dtype in DTYPES if dtype not in capabilities.dtypes)
        entries.append(_entry(dtypes=missing, reason="the device does not have this dtype"))
    for feature in capabilities.missing:
        reason = f"feature {feature.name}: {feature.reason or 'not supported'}"
        entries += [replace(entry, reason=reason, where="capabilities") for entry in feature.tests]
    return entries


def _of_operator(capabilities: Capabilities, name: str) -> list[Entry]:
    operator = capabilities.operators.get(name)
    if operator is None:
        if capabilities.unlisted == "run":
            return []
        return [_entry(operator=name, reason=f"operator {name} is not among the backend's capabilities")]
    if not operator.supported:
        return [_entry(operator=name, reason=f"operator {name}: {operator.reason or 'not supported'}")]
    if operator.dtypes is None:
        return []
    missing = tuple(dtype for dtype in DTYPES if dtype not in operator.dtypes)
    return [_entry(operator=name, dtypes=missing, reason=f"operator {name} does not support this dtype")]


def _entry(operator: str = "", dtypes: tuple[str, ...] = (), reason: str = "") -> Entry:
    return Entry(operator=operator, dtypes=dtypes, device=PRIVATEUSE1, reason=reason, where="capabilities")


def tolerances(capabilities: Capabilities) -> tuple[PlannedTolerance, ...]:
    """What becomes op_overrides in the session."""
    return tuple(
        PlannedTolerance(operator.name, each.dtype, each.atol, each.rtol)
        for operator in capabilities.operators.values()
        if operator.supported
        for each in operator.tolerances
    )


def _near(name: str, database: Database) -> str:
    """The operator's variants, the operator of a variant that is not there, or what is spelled nearly so."""
    base = name.partition(".")[0]
    family = sorted(each for each in database if each == base or each.startswith(base + "."))
    found = dict.fromkeys((*family, *difflib.get_close_matches(name, database, 3, 0.6)))
    return ", ".join(tuple(found)[:3]) or "none"
