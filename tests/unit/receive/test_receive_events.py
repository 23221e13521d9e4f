"""`crcr receive` as a process on every kind of event: what it decides, or which field it names and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from step import HEAD, Step, event

from relay_client.errors import BadEventField, EventTooLarge, NoDispatchPayload, NoEvent

HOSTILE = "x\n::error::no\n::set-output name=a::b ##[error]no `id` $(id) '\" ${{ github.token }} <script>"
Change = Callable[[Any], object]


def payload(value: Any) -> Any:
    return value["client_payload"]["payload"]


def pull(value: Any) -> Any:
    return payload(value)["pull_request"]


def changed(change: Change, name: str = "pull_request") -> Any:
    value = event(name)
    change(value)
    return value


BROKEN: dict[str, tuple[Any, type[Any], str]] = {
    "no client_payload": (changed(lambda e: e.pop("client_payload")), NoDispatchPayload, "client_payload"),
    "null client_payload": (changed(lambda e: e.update(client_payload=None)), NoDispatchPayload, "client_payload"),
    "list": ([], NoEvent, "JSON object"),
    "no JSON": ("{", NoEvent, "event file"),
    "deep": ("[" * 100_000, NoEvent, "event file"),
    "other event": (
        changed(lambda e: e["client_payload"].update(event_type="issues")), BadEventField, "client_payload.event_type"
    ),
    "no delivery id": (
        changed(lambda e: e["client_payload"].pop("delivery_id")), BadEventField, "client_payload.delivery_id"
    ),
    "hostile delivery id": (
        changed(lambda e: e["client_payload"].update(delivery_id=HOSTILE)), BadEventField, "client_payload.delivery_id"
    ),
    "other repository": (
        changed(lambda e: payload(e)["repository"].update(full_name="other/pytorch")),
        BadEventField,
        "client_payload.payload.repository.full_name",
    ),
    "hostile repository": (
        changed(lambda e: payload(e)["repository"].update(full_name=HOSTILE)),
        BadEventField,
        "client_payload.payload.repository.full_name",
    ),
    "short SHA": (
        changed(lambda e: pull(e)["head"].update(sha=HEAD[:7])), BadEventField, "client_payload.payload.pull_request.head.sha"
    ),
    "upper-case SHA": (
        changed(lambda e: pull(e)["head"].update(sha=HEAD.upper())),
        BadEventField,
        "client_payload.payload.pull_request.head.sha",
    ),
    "SHA with a line end": (
        changed(lambda e: pull(e)["head"].update(sha=HEAD + "\n")),
        BadEventField,
        "client_payload.payload.pull_request.head.sha",
    ),
    "number as text": (
        changed(lambda e: pull(e).update(number="7")), BadEventField, "client_payload.payload.pull_request.number"
    ),
    "number zero": (
        changed(lambda e: pull(e).update(number=0)), BadEventField, "client_payload.payload.pull_request.number"
    ),
    "hostile action": (
        changed(lambda e: payload(e).update(action=HOSTILE)), BadEventField, "client_payload.payload.action"
    ),
    "tag without refs/": (
        changed(lambda e: payload(e).update(ref="v1"), "push"), BadEventField, "client_payload.payload.ref"
    ),
    "200 kB body": (changed(lambda e: pull(e).update(body="b" * 200_000)), EventTooLarge, "client_payload"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_event_names_the_field_and_the_fix(step: Step, kind: str) -> None:
    value, error, field = BROKEN[kind]
    step.arrive(value)
    ended = step.run("receive")
    assert ended.exit_code == error.exit_code
    assert field in ended.stdout
    assert "Fix: " in ended.stdout.replace("%0A", "\n")
    assert "Traceback" not in ended.everything
    assert [command.name for command in ended.commands] == ["error"]
    assert ended.outputs == {}
    assert not (step.run_folder / "receive.json").exists()


def test_without_an_event_file_it_says_where_to_get_one(step: Step) -> None:
    for variable in (None, str(step.folder / "nowhere")):
        ended = step.run("receive", GITHUB_EVENT_PATH=variable)
        assert ended.exit_code == NoEvent.exit_code
        assert "--event-file" in ended.stdout


@pytest.mark.parametrize("name", ["pull_request", "push"])
def test_a_good_event_runs(step: Step, name: str) -> None:
    step.arrive(event(name))
    ended = step.run("receive")
    assert ended.exit_code == 0
    assert ended.outputs["should-run"] == "true"
    assert ended.outputs["commit"] == HEAD
    assert ended.outputs["event-type"] == name


@pytest.mark.parametrize(
    ("value", "outcome", "field"),
    [
        (changed(lambda e: payload(e).update(action="closed")), "closed", "payload.action"),
        (changed(lambda e: pull(e)["head"].update(repo=None)), "deleted-fork", "head.repo"),
        (
            changed(lambda e: payload(e).update(deleted=True, after="0" * 40), "push"),
            "deleted-ref",
            "deleted",
        ),
        (changed(lambda e: payload(e).update(after="0" * 40), "push"), "deleted-ref", "deleted"),
    ],
)
def test_nothing_to_run_is_an_outcome_with_its_reason(
    step: Step, value: Any, outcome: str, field: str
) -> None:
    step.arrive(value)
    ended = step.run("receive")
    assert ended.exit_code == 0
    assert (ended.outputs["should-run"], ended.outputs["outcome"]) == ("false", outcome)
    assert field in ended.outputs["reason"]
    assert step.run("receive", "--exit-code", "true").exit_code == 3
