"""Hostile text in every field of an event, one at a time: it is refused, or stays text wherever it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Union

import pytest
from step import Ended, Step, event

# Each is short: what is shown is cut after a hundred characters, and nothing may hide behind that.
TEXTS = {
    "shell": "'\"`touch pwned`$(touch pwned);${{github.token}}",
    "commands": "x\n::error::no\r::set-output name=should-run::true\n##[error]no",
    "output file": "x\nshould-run=true\nshould-run<<E\ntrue\nE\n",
    "markup": "<script>alert(1)</script>|**bold**|[link](javascript:x)@pytorch/core",
    "picture": "![i](https://evil.test/i) <img src=x>\n\n# heading",
    "unseen": "\u202e\u2066\x1b[31m\x00\x08\u2028\x85\ud800",
}
HOSTILE = "".join(TEXTS.values())
RAW = re.compile("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x85\u2028\u2029]")
Place = tuple[Union[str, int], ...]


def strings(value: Any, at: Place = ()) -> Iterator[Place]:
    """Where text stands in a JSON value, the names of members aside."""
    if isinstance(value, str):
        yield at
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from strings(inner, (*at, key))


def put(value: Any, at: Place, text: str) -> None:
    for key in at[:-1]:
        value = value[key]
    value[at[-1]] = text


def distinct(kind: str) -> list[Place]:
    """One of each: addresses that GitHub derives from a name differ in nothing that matters here."""
    found = list(strings(event(kind)))
    return [
        at for at in found if not str(at[-1]).endswith("_url") or str(at[-1]) in ("html_url", "clone_url")
    ]


def stays_text(ended: Ended) -> None:
    assert "Traceback" not in ended.everything
    assert {command.name for command in ended.commands} <= {"notice", "warning", "error"}
    for command in ended.commands:
        assert command.properties == "" or command.properties.startswith("title=crcr")
    for text in (ended.stdout, ended.stderr, ended.summary, ended.output_file):
        assert RAW.search(text) is None, text
    assert all("\n" not in value for value in ended.outputs.values())
    assert ended.outputs.get("should-run", "false") in ("true", "false")
    outside_code = re.sub(r"```.*?```", "", ended.summary, flags=re.DOTALL)
    for markup in ("<script", "<img", "**bold**", "[link]", "![i]", "${{", "@pytorch"):
        assert markup not in outside_code


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("kind", ["pull_request", "push"])
def test_all_fields_whose_text_is_free_at_once(tmp_path: Path, kind: str, text: str) -> None:
    step = Step(tmp_path)
    value = event(kind)
    free = [at for at in distinct(kind) if not refused(kind, at)]
    for at in free:
        put(value, at, TEXTS[text])
    step.arrive(value)
    assert len(free) > 20
    for condition in (
        "label is never or base is never or ref is never or author is never",
        "label is **",
        "",
    ):
        ended = step.run("receive", CRCR_WHEN=condition)
        assert ended.exit_code == 0, ended.everything
        stays_text(ended)
    assert not list(tmp_path.rglob("pwned*"))


def refused(kind: str, at: Place) -> bool:
    """Whether a field has a form of its own: the reader refuses other text."""
    inside = ".".join(map(str, at))
    return any(inside == path or inside.endswith(f".{path}") for path in CHECKED[kind])


CHECKED = {
    "pull_request": (
        "client_payload.event_type", "client_payload.delivery_id", "payload.action", "payload.repository.full_name",
        "pull_request.head.sha", "pull_request.base.sha", "pull_request.head.repo.full_name",
    ),
    "push": (
        "client_payload.event_type", "client_payload.delivery_id", "payload.ref", "payload.after", "payload.before",
        "payload.repository.full_name",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", ["commands", "markup", "unseen"])
@pytest.mark.parametrize(
    ("kind", "field"), [(kind, field) for kind, fields in CHECKED.items() for field in fields]
)
def test_a_field_with_a_form_refuses_other_text_and_shows_it_harmlessly(
    tmp_path: Path, kind: str, field: str, text: str
) -> None:
    step = Step(tmp_path)
    value = event(kind)
    (at,) = [at for at in strings(value) if ".".join(map(str, at)).endswith(field)]
    put(value, at, TEXTS[text])
    step.arrive(value)
    ended = step.run("receive")
    assert ended.exit_code == 12
    assert ended.outputs == {}
    stays_text(ended)


@pytest.mark.parametrize("text", TEXTS)
def test_members_nobody_knows_and_what_is_typed_in(tmp_path: Path, text: str) -> None:
    step = Step(tmp_path)
    hostile = TEXTS[text]
    for value in (
        {**event(), hostile: hostile},
        {hostile: hostile},
        {"inputs": {"sha": hostile}},
        {"inputs": {"pull-request": hostile}},
        {"inputs": {"envelope": hostile}},
        {"schedule": hostile},
        {"repository": {"full_name": hostile}, "ref": hostile, "before": hostile, "after": hostile},
    ):
        step.arrive(value)
        stays_text(step.run("receive", CRCR_REPOSITORY="file:///nowhere"))
