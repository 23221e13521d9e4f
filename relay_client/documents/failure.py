"""`failure.json`: the error that ended `crcr run`, so that the report can say why there is no evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from relay_client.protocol.shape import member

STAGES = ("checkout", "build-pytorch", "build-backend", "plan", "hand-over", "install", "test")


@dataclass(frozen=True)
class Failure:
    """One stage's end. The texts may quote a stranger's."""

    FILE: ClassVar[str] = "failure.json"
    VERSION: ClassVar[int] = 1
    WRITTEN_BY: ClassVar[str] = "run"

    row: str = member("Dashboard row the run belongs to")
    run_attempt: int = member("Attempt of the run", minimum=1)
    stage: str = member("The stage that ended", one_of=STAGES)
    error: str = member("Name of the error in relay_client/errors.py")
    what: str = member("What happened")
    seen: str = member("What was seen")
    fix: str = member("What to change")
