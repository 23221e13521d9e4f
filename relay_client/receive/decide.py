"""Decide whether an event asks for a test run. Pure: event and policy in, decision out."""

from __future__ import annotations

from dataclasses import replace

from relay_client.documents.receive import Decision
from relay_client.errors import CheckoutError
from relay_client.protocol.dispatch import PullRequestEvent
from relay_client.protocol.shape import show
from relay_client.receive.condition.evaluate import evaluate, uses
from relay_client.receive.condition.facts import Facts
from relay_client.receive.condition.syntax import Condition, read_condition
from relay_client.receive.trust import added_label, has_label, landed
from relay_client.receive.untestable import untestable

# Upstream's own code, and what somebody vouches for.
DEFAULT_WHEN = "push or pull_request and trusted"
# Stricter than GitHub's own rule for forks, which lets everybody run who ever landed a typo.
DEFAULT_TRUSTED_AUTHORS = ("OWNER", "MEMBER", "COLLABORATOR")
# Below the labels that upstream has for this relay, `ciflow/crcr/<device>`.
DEFAULT_APPROVAL_LABEL = "ciflow/crcr"


def decide(facts: Facts, when: str) -> Decision:
    """Whether to run the tests. Every other outcome names what it read. Raises BadCondition."""
    condition = read_condition(when)
    nothing = untestable(facts.event)
    if nothing is not None:
        return nothing
    added = added_label(facts.event)
    if added and added != facts.policy.label and not uses(condition, "added"):
        return Decision(
            "not-wanted", f"only the label {show(added)} was added, and `when` asks for no added label"
        )
    answer = evaluate(condition, facts)
    if answer.holds:
        return Decision("run", answer.why)
    if _only_trust_is_missing(condition, facts):
        return _not_trusted(facts)
    if landed(facts.event):
        return Decision(
            "closed",
            "the pull request has landed, and `when` does not ask for landed ones; its push is an event of its own",
        )
    return Decision("not-wanted", f"{answer.why}. `when` is: {when}")


def _only_trust_is_missing(condition: Condition, facts: Facts) -> bool:
    """Whether the approval label alone would let the event run."""
    event = facts.event
    if not isinstance(event, PullRequestEvent) or facts.flag("trusted"):
        return False
    approved = replace(
        facts, policy=replace(facts.policy, authors=(event.pull_request.author_association.upper(),))
    )
    try:
        return evaluate(condition, approved).holds
    except CheckoutError:
        # It does not run, whatever git would have said; a stranger's pull request makes no red job.
        return True


def _not_trusted(facts: Facts) -> Decision:
    event = facts.event
    author = event.pull_request.author_association if isinstance(event, PullRequestEvent) else ""
    label = show(facts.policy.label)
    if has_label(event, facts.policy.label):
        lacks = f"has the label {label}, but nobody with triage rights has acted on its newest commit since"
        act = "to let exactly that commit run, such a person closes and reopens the pull request"
    else:
        lacks = f"has no label {label}"
        act = (
            f"to let exactly this commit run, somebody with triage rights there adds the label {label}, then closes "
            "and reopens the pull request (the relay of PyTorch sends nothing for a label alone)"
        )
    return Decision(
        "not-trusted",
        f"the author is {show(author)} to {event.repository.full_name}, and the pull request {lacks}; {act}. "
        "Nothing is reported",
    )
