"""`receive.json`: which event arrived, what was decided and why, and the commit to test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional

from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import member

OUTCOMES = ("run", "closed", "deleted-ref", "deleted-fork", "not-wanted", "not-trusted", "superseded")
MANUAL = "manual"
# What reached the run, and whether its code has landed: who may read what it leaves behind.
TRUST = ("pull-request", "landed")


@dataclass(frozen=True)
class Decision:
    """Whether the tests run, and why. `outcome` is `run` or the name of the reason not to."""

    outcome: str = member("run, or why not", one_of=OUTCOMES)
    reason: str = member("One sentence for a person")

    @property
    def should_run(self) -> bool:
        return self.outcome == "run"


@dataclass(frozen=True)
class Receive:
    """What the receive stage found out."""

    FILE: ClassVar[str] = "receive.json"
    VERSION: ClassVar[int] = 2
    WRITTEN_BY: ClassVar[str] = "receive"

    event_type: str = member(
        "pull_request or push; nightly for a scheduled run, manual for one by hand",
        one_of=(*words.EVENT_TYPES, MANUAL),
    )
    delivery_id: str = member("GUID of the upstream delivery; for a nightly its commit; empty by hand")
    upstream: str = member("owner/name of the upstream repository")
    commit: str = member("The commit to test", pattern=words.SHA_PATTERN, expects=words.SHA_EXPECTS)
    decision: Decision = member("Whether to run")
    action: Optional[str] = member("Action of a pull_request event", default=None)
    pull_request: Optional[int] = member("Number of the pull request", default=None, minimum=1)
    base_commit: Optional[str] = member(
        "What the commit is compared with: the pull request's base, or the commit before the push",
        default=None,
        pattern=words.SHA_PATTERN,
        expects=words.SHA_EXPECTS,
    )
    ref: Optional[str] = member("Base branch of a pull request, or the pushed ref", default=None)
    mode: str = member("The door through which the run came", default="dispatch")
    chosen: str = member("How the commit was chosen", default="")
    trust: str = member("Whether the commit has landed", one_of=TRUST, default="pull-request")
    dispatched_commit: Optional[str] = member(
        "The commit the event is about, if another one was chosen",
        default=None,
        pattern=words.SHA_PATTERN,
        expects=words.SHA_EXPECTS,
    )
