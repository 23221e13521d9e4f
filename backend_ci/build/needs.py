"""What an installed backend says it needs, and does not have.

A backend is installed as it is, without what it requires: its `torch~=2.13.0` would replace the torch under test, a
`2.15.0a0+git…`, by a release. So that nothing is missing unnoticed, pip is asked afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from backend_ci.build.environment import RunEnvironment

# The two sentences of `pip check` (pip 9 to 26).
_ABSENT = re.compile(r"^(?P<who>\S+) \S+ requires (?P<needs>.+), which is not installed\.$")
_OTHER = re.compile(r"^(?P<who>\S+) \S+ has requirement (?P<needs>.+), but you have (?P<found>\S+ .+)\.$")
_TORCH = re.compile(r"torch(?![A-Za-z0-9._-])")


@dataclass(frozen=True)
class Need:
    """One requirement that is not met. `found` is what is there instead; empty when nothing is."""

    who: str
    needs: str
    found: str = ""

    @property
    def of_torch(self) -> bool:
        return _TORCH.match(self.needs) is not None


def unmet_needs(lines: Iterable[str], of: Collection[str]) -> list[Need]:
    """The unmet requirements among the lines of `pip check`, of these distributions. Pure."""
    names = {normalized(name) for name in of}
    result = []
    for line in lines:
        match = _ABSENT.match(line.strip()) or _OTHER.match(line.strip())
        if match and normalized(match["who"]) in names:
            result.append(Need(match["who"], match["needs"], match.groupdict().get("found") or ""))
    return result


def tell_needs(environment: RunEnvironment, wheels: Iterable[str]) -> None:
    """Say what the distributions of these wheels (file names) need and do not have. It is not an error yet: whether
    the tests need it as well, they will show.
    """
    of = [name.partition("-")[0] for name in wheels]
    if not of:
        return
    for need in unmet_needs(environment.pip_check(), of):
        if need.of_torch:
            environment.commands.line(
                f"{need.who} asks for {need.needs}; under test is {need.found or 'another'}. That is the point of "
                "this run, so the requirement is not applied"
            )
        else:
            environment.commands.warning(
                f"{need.who} needs {need.needs}, and {need.found or 'nothing of it'} is installed. It was installed "
                f"without what it requires. requirements: add a line `{need.needs}`"
            )


def normalized(name: str) -> str:
    """A distribution's name for comparing (packaging.python.org, "Names and normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()
