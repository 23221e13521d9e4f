"""Whether a condition holds for an event, and the terms that decided. Pure but for `Facts.changed`."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass

from relay_client.protocol.shape import show
from relay_client.receive.condition.facts import Facts
from relay_client.receive.condition.globs import glob_matches
from relay_client.receive.condition.syntax import And, Condition, Flag, Is, Not, Or, Sample

_SHOWN_VALUES = 5


@dataclass(frozen=True)
class Answer:
    """`why` names the terms that decided, with what stood in the event."""

    holds: bool
    why: str


def evaluate(condition: Condition, facts: Facts) -> Answer:
    """From left to right; what cannot change the answer any more is not looked at."""
    if isinstance(condition, Flag):
        holds = facts.flag(condition.name)
        return Answer(holds, f"it is {'' if holds else 'not '}{condition.name}")
    if isinstance(condition, Sample):
        return _sample(condition, facts)
    if isinstance(condition, Is):
        return _is(condition, facts.values(condition.field))
    if isinstance(condition, Not):
        inner = evaluate(condition.inner, facts)
        return Answer(not inner.holds, inner.why)
    # An `and` is decided by its first part that fails, an `or` by the first that holds.
    deciding = isinstance(condition, Or)
    whys = []
    for part in condition.parts:
        answer = evaluate(part, facts)
        if answer.holds is deciding:
            return answer
        whys.append(answer.why)
    return Answer(not deciding, " and ".join(dict.fromkeys(whys)))


def uses(condition: Condition, field: str) -> bool:
    """Whether a field or flag stands anywhere in a condition."""
    if isinstance(condition, (And, Or)):
        return any(uses(part, field) for part in condition.parts)
    if isinstance(condition, Not):
        return uses(condition.inner, field)
    return isinstance(condition, (Flag, Is)) and field in (
        condition.name if isinstance(condition, Flag) else condition.field,
    )


def _is(condition: Is, values: Collection[str]) -> Answer:
    wanted = ", ".join(condition.globs)
    for value in values:
        if any(glob_matches(glob, value) for glob in condition.globs):
            return Answer(True, f"{condition.field} is {show(value)}")
    shown = ", ".join(map(show, sorted(values)[:_SHOWN_VALUES])) or "nothing"
    more = f" and {len(values) - _SHOWN_VALUES} more" if len(values) > _SHOWN_VALUES else ""
    return Answer(False, f"{condition.field} is {shown}{more}, not {wanted}")


def _sample(condition: Sample, facts: Facts) -> Answer:
    """The same subjects are in the sample each time, whatever run or attempt asks."""
    digest = hashlib.sha256(facts.subject.encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64 * 100
    inside = place < condition.percent
    return Answer(inside, f"it is {'' if inside else 'not '}in the sample of {condition.percent:g} %")
