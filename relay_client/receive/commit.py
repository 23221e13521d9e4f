"""Choose the commit to test, and prove with git that it is what the choice means."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Optional

from relay_client.errors import CommitNotFound, UsageError
from relay_client.protocol import vocabulary as words
from relay_client.receive.trust import landed_branch
from relay_client.receive.upstream import Upstream

CHOICES = ("event", "pr-head", "pr-merge", "landed", "base-head", "nightly")
_NIGHTLY_REF = "refs/heads/nightly"
# PyTorch's nightly commits are made from a commit of main, whose SHA ends their title: "… (40 digits)".
_SOURCE = re.compile(rf"\(({words.SHA_PATTERN})\)\s*$")
_NIGHTLIES_LOOKED_AT = 30
_RESOLVED = re.compile(r"^Pull Request resolved: \S+/pull/([0-9]+)\s*$", re.MULTILINE)
# The bot lands within minutes; `main` gets about a hundred commits a day.
_LANDED_LOOKED_AT = 500


@dataclass(frozen=True)
class Subject:
    """What the choice starts from. Fields are empty where the event has none."""

    event_commit: str = ""
    pull_request: Optional[int] = None
    base_ref: str = "main"
    has_landed: bool = False


@dataclass(frozen=True)
class Chosen:
    """The commit, and how it was found. `superseded_by` is the newer head of a pull request that moved on."""

    commit: str
    how: str
    superseded_by: str = ""


def choose(choice: str, subject: Subject, upstream: Upstream, latest: Callable[[], float]) -> Chosen:
    """The commit of a choice. `latest` is the time (Unix) after which no nightly counts: asked for `nightly` only.

    Raises UsageError for a choice the event does not fit, CommitNotFound, RemoteUnreachable.
    """
    if re.fullmatch(words.SHA_PATTERN, choice):
        return Chosen(choice, "the commit that was named")
    if choice not in CHOICES:
        raise UsageError(
            "commit is not a choice.",
            seen=choice[:100],
            fix=f"commit: {', '.join(CHOICES)}, or {words.SHA_EXPECTS}",
        )
    return _CHOOSERS[choice](subject, upstream, latest)


Chooser = Callable[[Subject, Upstream, Callable[[], float]], Chosen]


def _event(subject: Subject, upstream: Upstream, latest: Callable[[], float]) -> Chosen:
    """What the event itself is about: what landed, the head of a pull request, a pushed commit, or a nightly."""
    if subject.has_landed:
        return _landed(subject, upstream, latest)
    if subject.pull_request:
        return _pr_head(subject, upstream, latest)
    if subject.event_commit:
        return Chosen(subject.event_commit, "the commit of the event")
    return _nightly(subject, upstream, latest)


def _pr_head(subject: Subject, upstream: Upstream, _latest: Callable[[], float]) -> Chosen:
    number = _number(subject, "pr-head")
    if subject.has_landed:
        # Anybody can have the bot set the label `Merged`; what landed is on the branch.
        _landed(subject, upstream, _latest)
    head = upstream.ref(f"refs/pull/{number}/head")
    if not head and subject.event_commit:
        return Chosen(subject.event_commit, "the head of the pull request when it was dispatched")
    if not head:
        raise _nothing(f"refs/pull/{number}/head", "the number of a pull request of upstream")
    if subject.event_commit and head != subject.event_commit:
        return Chosen(subject.event_commit, "the head of the pull request when it was dispatched", head)
    return Chosen(head, "the head of the pull request")


def _pr_merge(subject: Subject, upstream: Upstream, latest: Callable[[], float]) -> Chosen:
    """GitHub's test merge. It can lag behind a push: its second parent says of which head it is."""
    number = _number(subject, "pr-merge")
    ref = f"refs/pull/{number}/merge"
    head = _pr_head(subject, upstream, latest)
    if head.superseded_by:
        return head
    if not upstream.ref(ref):
        raise _nothing(ref, "a pull request without conflicts; or `commit: pr-head`")
    commit, _, parents = upstream.log(ref, 2, "%H %P")[0].strip().partition(" ")
    if parents.split()[1:] != [head.commit]:
        raise CommitNotFound(
            "GitHub has not merged the newest head for testing yet.",
            seen=f"{ref} is a merge of {parents or 'nothing'}; the head is {head.commit}",
            fix="run the job again in a minute; or `commit: pr-head`",
        )
    return Chosen(commit, f"GitHub's test merge of {head.commit[:12]}")


def _landed(subject: Subject, upstream: Upstream, _latest: Callable[[], float]) -> Chosen:
    """The bot rewrites what it lands, and names the pull request in the message."""
    number = _number(subject, "landed")
    # A pull request of a stack (ghstack) wants to land on a branch of its author's; the bot lands it on main.
    branch = subject.base_ref if landed_branch(subject.base_ref) else "main"
    commits = upstream.log(f"refs/heads/{branch}", _LANDED_LOOKED_AT, "%H%n%B")
    for text in commits:
        commit, _, message = text.strip().partition("\n")
        # The author's own words stand above the bot's line.
        if _RESOLVED.findall(message)[-1:] == [str(number)]:
            return Chosen(commit, f"the commit that landed pull request {number} on {branch}")
    raise CommitNotFound(
        "The pull request is not among what landed last.",
        seen=f"none of the newest {len(commits)} commits of {branch} says "
        f'"Pull Request resolved: …/pull/{number}"',
        fix="commit: landed, only for events that are `landed`; or name the SHA",
    )


def _base_head(subject: Subject, upstream: Upstream, _latest: Callable[[], float]) -> Chosen:
    ref = f"refs/heads/{subject.base_ref}"
    head = upstream.ref(ref)
    if not head:
        raise _nothing(ref, "a branch of upstream")
    return Chosen(head, f"the newest commit of {subject.base_ref}")


def _nightly(_subject: Subject, upstream: Upstream, latest: Callable[[], float]) -> Chosen:
    """The newest nightly that was there at a time that is the same for all attempts of a run."""
    limit = latest()
    lines = upstream.log(_NIGHTLY_REF, _NIGHTLIES_LOOKED_AT, "%ct %s")
    for line in lines:
        made, _, title = line.strip().partition(" ")
        source = _SOURCE.search(title)
        if source and made.isdecimal() and int(made) <= limit:
            return Chosen(source[1], "the commit of main that the newest nightly was made from")
    raise CommitNotFound(
        "No nightly names the commit that it was made from.",
        seen=f"none of the newest {len(lines)} commits of {_NIGHTLY_REF} ends in (40 digits), "
        f"and is older than this run's first attempt",
        fix="commit: base-head, or a SHA",
    )


_CHOOSERS: dict[str, Chooser] = {
    "event": _event,
    "pr-head": _pr_head,
    "pr-merge": _pr_merge,
    "landed": _landed,
    "base-head": _base_head,
    "nightly": _nightly,
}


def _number(subject: Subject, choice: str) -> int:
    if subject.pull_request is None:
        raise UsageError(
            f"commit: {choice} needs a pull request, and the event is of none.",
            seen=f"commit: {choice}",
            fix="commit: event",
        )
    return subject.pull_request


def _nothing(ref: str, fix: str) -> CommitNotFound:
    return CommitNotFound("The upstream repository has no such ref.", seen=ref, fix=fix)
