"""The dispatch envelope and the two upstream events inside it."""

from __future__ import annotations

from typing import Any

import pytest
from step import BASE, HEAD, event

from relay_client.protocol import dispatch
from relay_client.protocol.dispatch import (
    DispatchEnvelope,
    PullRequestEvent,
    PushEvent,
    UpstreamEvent,
    parse_event,
    require_repository,
)
from relay_client.protocol.shape import ShapeError, parse
from relay_client.protocol.vocabulary import SHA_EXPECTS, ZERO_SHA

MISSING = object()


def read(value: Any) -> UpstreamEvent:
    return parse_event(parse(DispatchEnvelope, value["client_payload"], "client_payload"))


def changed(name: str, path: str, value: object) -> Any:
    """The event with one member changed; `path` is dotted, from client_payload."""
    whole = event(name)
    *parents, last = path.split(".")
    place = whole
    for parent in parents:
        place = place[parent]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return whole


def test_a_pull_request_of_real_size_is_read() -> None:
    read_event = read(event())
    assert isinstance(read_event, PullRequestEvent)
    assert (read_event.action, read_event.pull_request.number) == ("opened", 4242)
    assert read_event.pull_request.base.sha == BASE
    assert dispatch.tested_commit(read_event) == HEAD


def test_a_push_is_read_and_names_the_pushed_commit() -> None:
    read_event = read(event("push"))
    assert isinstance(read_event, PushEvent)
    assert (read_event.ref, read_event.before, read_event.deleted) == ("refs/heads/main", BASE, False)
    assert dispatch.tested_commit(read_event) == HEAD


PR = "client_payload.payload.pull_request"
SHA = SHA_EXPECTS
ACTIONS = "one of opened, reopened, synchronize, closed, labeled"


@pytest.mark.parametrize(
    ("name", "path", "value", "found", "allowed"),
    [
        ("pull_request", "client_payload.event_type", "issues", '"issues"', "one of pull_request, push"),
        ("pull_request", "client_payload.event_type", MISSING, "nothing", "one of pull_request, push"),
        (
            "pull_request",
            "client_payload.delivery_id",
            "a b",
            '"a b"',
            "the GUID of the upstream delivery (X-GitHub-Delivery)",
        ),
        ("pull_request", "client_payload.payload", "text", '"text"', "a JSON object"),
        ("pull_request", "client_payload.payload.action", "edited", '"edited"', ACTIONS),
        ("pull_request", f"{PR}.number", "7", '"7"', "a whole number, 1 or more"),
        ("pull_request", f"{PR}.number", 0, "0", "a whole number, 1 or more"),
        ("pull_request", f"{PR}.head", None, "null", "a JSON object"),
        ("pull_request", f"{PR}.head.sha", "5f5f5f", '"5f5f5f"', SHA),
        ("pull_request", f"{PR}.head.sha", HEAD.upper(), f'"{HEAD.upper()}"', SHA),
        ("pull_request", f"{PR}.head.sha", HEAD + "\n", f'"{HEAD}\\n"', SHA),
        ("pull_request", f"{PR}.base.sha", MISSING, "nothing", SHA),
        ("pull_request", f"{PR}.head.repo.full_name", "no-slash", '"no-slash"', "owner/name"),
        ("push", "client_payload.payload.after", "main", '"main"', SHA),
        ("push", "client_payload.payload.after", MISSING, "nothing", SHA),
        ("push", "client_payload.payload.before", None, "null", SHA),
        ("push", "client_payload.payload.ref", "main", '"main"', "a ref that starts with refs/"),
        ("push", "client_payload.payload.ref", "refs/a\nb", '"refs/a\\nb"', "a ref that starts with refs/"),
        ("push", "client_payload.payload.deleted", "yes", '"yes"', "true or false"),
        ("push", "client_payload.payload.repository", [], "[]", "a JSON object"),
    ],
)
def test_a_wrong_field_is_named_with_its_whole_path(
    name: str, path: str, value: object, found: str, allowed: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        read(changed(name, path, value))
    assert (caught.value.field, caught.value.found, caught.value.allowed) == (path, found, allowed)


def test_a_deleted_fork_is_a_valid_event_without_a_repository() -> None:
    read_event = read(changed("pull_request", f"{PR}.head.repo", None))
    assert isinstance(read_event, PullRequestEvent)
    assert read_event.pull_request.head.repo is None


def test_a_deleted_ref_is_a_valid_event() -> None:
    whole = event("push")
    whole["client_payload"]["payload"].update(deleted=True, after=ZERO_SHA)
    read_event = read(whole)
    assert isinstance(read_event, PushEvent)
    assert read_event.deleted


@pytest.mark.parametrize("spelled", ["pytorch/pytorch", "PyTorch/PyTorch"])
def test_the_upstream_repository_is_compared_without_regard_to_case(spelled: str) -> None:
    require_repository(read(event()), spelled)


def test_another_upstream_is_refused_with_both_names() -> None:
    with pytest.raises(ShapeError) as caught:
        require_repository(read(event()), "pytorch/vision")
    assert caught.value.field == "client_payload.payload.repository.full_name"
    assert (caught.value.found, caught.value.allowed) == ('"pytorch/pytorch"', '"pytorch/vision"')
