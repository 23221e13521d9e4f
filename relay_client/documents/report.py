"""`report.json`: the verdict, what was sent where, and what was answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Optional

from relay_client.protocol import vocabulary as words
from relay_client.protocol.callback import TestResults
from relay_client.protocol.shape import member

DELIVERIES = ("delivered", "ignored", "refused", "undelivered")


@dataclass(frozen=True)
class Verdict:
    """The conclusion of a row and why. Success has no reasons."""

    conclusion: str = member("A conclusion GitHub knows", one_of=words.CONCLUSIONS)
    reasons: tuple[str, ...] = member("Sentences for a person; empty for success")
    results: Optional[TestResults] = member("Counts over all shards", default=None)
    notes: tuple[str, ...] = member("What else a person should know; no part of the decision", default=())


@dataclass(frozen=True)
class Sent:
    """One callback: where to, and how it went."""

    url: str = member("Address of the relay's callback")
    status: str = member("What it reported", one_of=words.STATUSES)
    delivery: str = member("How it went", one_of=DELIVERIES)
    attempts: int = member("Requests that were made", minimum=0)
    http_status: Optional[int] = member("Last answer; null when there was none", default=None)
    answer: str = member("Last answer's body or the transport's error, bounded", default="")


@dataclass(frozen=True)
class Report:
    """What the report stage did."""

    FILE: ClassVar[str] = "report.json"
    VERSION: ClassVar[int] = 1
    WRITTEN_BY: ClassVar[str] = "report"

    row: str = member("Name of the dashboard row")
    check_run_id: str = member("The row's identity, the same in both callbacks")
    sent: Sent = member("The callback")
    verdict: Optional[Verdict] = member("Only when completed", default=None)
