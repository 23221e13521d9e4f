"""The dashboard: HTML and JSON say the same, and a stranger's text stays text."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from relay_world import L1, L2, L3, World, pull_request, push, report, sha

from relay_client.protocol.vocabulary import WORKFLOW_SCHEMA_VERSION

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> `$(id)` \" onmouseover='x' {{ 7*7 }}"
COUNTS = {"passed": 3, "failed": 2, "skipped": 1}
FAILED = [{"name": "test_add", "classname": "TestOps", "message": "AssertionError"}, {"name": "<b>x</b>"}]


class Text(HTMLParser):
    """The visible words of a page, its links, and the names of its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self._style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self._style = tag == "style"
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        if not self._style:
            self.words.append(data.strip())

    @property
    def text(self) -> str:
        return " ".join(self.words)


def page(world: World, path: str) -> Text:
    answer = world.get(path)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return Text(answer.text)


@pytest.fixture
def told(own_world: Callable[..., World]) -> World:
    """A relay that has one of each: a failure, a success, a running job, a push, a re-run."""
    world = own_world()
    broken = world.dispatch(pull_request(7, title=HOSTILE))
    failure = {"conclusion": "failure", "test_results": COUNTS, "failed_tests_detail": FAILED}
    changed = {"name": HOSTILE, "url": "javascript:alert(1)"}
    send(world, report(broken, **changed), report(broken, "completed", **failure, **changed))
    send(world, report(broken), report(broken, "completed"), repository=L3)
    landed = world.dispatch(push("refs/heads/main", after=sha("landed")), "push")
    send(world, report(landed), report(landed, "completed", conclusion="timed_out"))
    again = {"run_attempt": 2}
    send(world, report(landed, **again), report(landed, "completed", **again))
    send(world, report(world.dispatch(pull_request(8))))
    return world


def send(world: World, *bodies: dict[str, Any], repository: str = L2) -> None:
    for body in bodies:
        answer = world.callback(body, repository)
        assert answer.status_code == 200, answer.text


def test_overview_names_everyone(told: World) -> None:
    data = told.get("/crcr.json").json()
    by_name = {each["repository"]: each for each in data["repositories"]}
    assert [each["level"] for each in data["repositories"]] == ["L4", "L3", "L2", "L2", "L1"]
    # The re-run succeeded, so its first attempt does not count: one success, one failure.
    assert (by_name[L2]["rows"], by_name[L2]["in_progress"], by_name[L2]["pass_rate"]) == (3, 1, 0.5)
    assert by_name[L2]["last"]["verdict"] == "in_progress"
    assert by_name[L2]["recent"] == ["failure", "timed_out", "success", "in_progress"]
    assert by_name[L3]["pass_rate"] == 1
    assert by_name[L1]["last"] is None
    shown = page(told, "/crcr")
    for name in by_name:
        assert name in shown.text
        assert f"/crcr/{name}" in shown.links
    assert "50 %" in shown.text


def test_repository_page_and_json_agree(told: World) -> None:
    data = told.get(f"/crcr/{L2}.json").json()
    shown = page(told, f"/crcr/{L2}")
    assert [row["verdict"] for row in data["rows"]] == ["in_progress", "success", "timed_out", "failure"]
    assert [row["event"] for row in data["rows"]] == ["pull_request", "push", "push", "pull_request"]
    for row in data["rows"]:
        assert row["verdict"].replace("_", " ") in shown.text
        assert row["commit"][:10] in shown.text
        assert row["job"] in shown.text
        assert row["title"] in shown.text
    assert "3 passed · 2 failed · 1 skipped" in shown.text.replace("  ", " ")
    assert "2 failed tests" in shown.text
    assert "TestOps::test_add" in shown.text
    assert "<b>x</b>" in shown.text
    assert {"/pr/7", "/pr/8"} <= set(shown.links)
    assert "main" in shown.text
    assert "attempt 2" in shown.text


def test_pull_request_page_shows_all_backends(told: World) -> None:
    data = told.get("/pr/7.json").json()
    assert {(row["repository"], row["verdict"]) for row in data["rows"]} == {(L2, "failure"), (L3, "success")}
    assert data["title"] == HOSTILE
    shown = page(told, "/pr/7")
    assert L2 in shown.text
    assert L3 in shown.text


@pytest.mark.parametrize("path", ["/crcr", f"/crcr/{L2}", "/pr/7"])
def test_hostile_text_stays_text_and_nothing_is_loaded(told: World, path: str) -> None:
    answer = told.get(path)
    shown = Text(answer.text)
    assert not shown.elements & {"script", "img", "iframe", "b>x"}
    assert not any(name.startswith("on") or name in ("style", "src") for name in shown.attributes)
    assert not any(link.startswith("javascript") for link in shown.links)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    if path != "/crcr":
        assert HOSTILE[:40] in shown.text
        assert "{{ 7*7 }}" in shown.text


def test_the_style_sheet_is_the_one_that_the_policy_allows(world: World) -> None:
    import base64
    import hashlib
    import re

    answer = world.get("/crcr")
    style = re.search("<style>(.*?)</style>", answer.text, re.DOTALL)
    assert style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in answer.headers["Content-Security-Policy"]
    assert "prefers-color-scheme: dark" in style[1]
    assert "http" not in style[1]
    assert "@import" not in style[1]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/crcr/no/body", 404),
        ("/crcr/no/body.json", 404),
        ("/pr/0", 404),
        ("/pr/99999999999999999999", 404),
        ("/pr/x", 404),
        ("/pr/424242", 200),
        (f"/crcr/{L1}", 200),
        (f"/crcr/{L2.upper()}", 200),
    ],
)
def test_what_is_not_known(world: World, path: str, status: int) -> None:
    assert world.get(path).status_code == status


def test_version_and_health(world: World) -> None:
    version = world.get("/version").json()
    assert version["service"] == "crcr-relay"
    assert version["schema_version"] == WORKFLOW_SCHEMA_VERSION
    assert "idempotent-callbacks" in version["extensions"]
    health = world.get("/healthz")
    assert health.status_code == 200
    assert json.loads(health.text)["ok"] is True
