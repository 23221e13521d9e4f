"""Changes to a recorded dispatch: what an outsider or a maintainer did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Change = Callable[[Any], object]


def payload(value: Any) -> Any:
    return value["client_payload"]["payload"]


def pull(value: Any) -> Any:
    return payload(value)["pull_request"]


def with_labels(*names: str) -> Change:
    return lambda value: pull(value).update(labels=[{"name": name} for name in names])


def by(association: str) -> Change:
    return lambda value: pull(value).update(author_association=association)


def letting_run(act: str, who: str = "maintainer", label: str = "ciflow/crcr") -> Change:
    """A first-time contributor's pull request with the label; `who` did what the event is about."""

    def change(value: Any) -> None:
        by("FIRST_TIME_CONTRIBUTOR")(value)
        with_labels("open source", "ciflow/crcr")(value)
        payload(value).update(action=act, sender={"login": who})
        if act == "labeled":
            payload(value)["label"] = {"name": label}

    return change


AUTHOR = "outside-contributor"


def action(name: str) -> Change:
    return lambda value: payload(value).update(action=name)


def pushed(ref: str) -> Change:
    return lambda value: payload(value).update(ref=ref)


def onto(branch: str) -> Change:
    return lambda value: pull(value)["base"].update(ref=branch)
