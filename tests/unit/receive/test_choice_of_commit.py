"""`commit:` on a real repository: the commit that is named is the commit that the choice means."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from step import Step, event

from relay_client.documents.document import load
from relay_client.documents.receive import Receive


class Upstream:
    """A PyTorch in small: main, a pull request with its test merge, a nightly branch."""

    def __init__(self, bare: Path, folder: Path) -> None:
        self.bare, self.work = bare, folder / "work"
        self.git("init", "-q", "-b", "main", str(self.work), at=folder)
        self.git("config", "uploadpack.allowFilter", "true", at=bare)
        self.base = self.commit("Base", "torch/a.py", when=1_000)
        self.git("checkout", "-q", "-b", "topic")
        self.head = self.commit("A change", "torch/csrc/x.cpp", when=2_000)
        self.git("checkout", "-q", "main")
        self.main = self.commit("Main goes on", "docs/b.md", when=3_000)
        self.git("checkout", "-q", "-b", "test-merge")
        self.git("merge", "-q", "--no-ff", "-m", "Merge", "topic", when=3_500)
        self.merge = self.git("rev-parse", "HEAD")
        self.git("checkout", "-q", "main")
        resolved = "Landed\n\nPull Request resolved: https://github.com/pytorch/pytorch/pull/{}"
        self.other = self.commit(resolved.format(424), "torch/c.py", when=4_000)
        self.landed = self.commit(resolved.format(4242) + "\nApproved by: x", "torch/d.py", when=5_000)
        self.tip = self.commit("Reverts 4242, says pull/4242 in a line of its own", "torch/e.py", when=6_000)
        self.git("checkout", "-q", "--orphan", "nightly")
        self.commit(f"2026-11-29 nightly release ({self.base})", "n", when=7_000)
        self.commit(f"2026-11-30 nightly release ({self.main})", "n", when=8_000)
        self.push("main", "topic:refs/pull/4242/head", "test-merge:refs/pull/4242/merge", "nightly")

    def git(self, *arguments: str, at: Path | None = None, when: int = 500) -> str:
        identity = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", f"@{when} +0000"))
        }
        environment = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(self.work), **identity}
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.work,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, message: str, path: str, when: int) -> str:
        file = self.work / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{message}\n")
        self.git("add", ".")
        self.git("commit", "-q", "-m", message, when=when)
        return self.git("rev-parse", "HEAD")

    def push(self, *refs: str) -> None:
        self.git("push", "-q", "--force", str(self.bare), *refs)


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step(tmp_path)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    folder = tmp_path_factory.mktemp("upstream")
    bare = folder / "bare"
    subprocess.run(["git", "init", "--quiet", "--bare", str(bare)], check=True)
    return Upstream(bare, folder)


@pytest.fixture
def upstream(step: Step, template: Upstream, tmp_path: Path) -> Upstream:
    """A copy of one's own: tests push to it."""
    mine = copy.copy(template)
    shutil.rmtree(step.upstream)
    mine.bare = Path(shutil.copytree(template.bare, step.upstream))
    mine.work = Path(shutil.copytree(template.work, tmp_path / "work"))
    return mine


def opened(upstream: Upstream, **changes: Any) -> Any:
    value = event()
    body = value["client_payload"]["payload"]
    body["pull_request"]["head"]["sha"] = upstream.head
    body["pull_request"]["base"].update(sha=upstream.base, ref="main")
    body.update(changes)
    return value


def landing(upstream: Upstream) -> Any:
    value = opened(upstream, action="closed")
    value["client_payload"]["payload"]["pull_request"]["labels"] = [{"name": "Merged"}]
    return value


@pytest.mark.parametrize(
    ("choice", "expected", "trust"),
    [
        ("event", "head", "pull-request"),
        ("pr-head", "head", "pull-request"),
        ("pr-merge", "merge", "pull-request"),
        ("base-head", "tip", "landed"),
        ("nightly", "main", "landed"),
        ("base", "base", "pull-request"),
    ],
)
def test_a_pull_request_s_choices(
    step: Step, upstream: Upstream, choice: str, expected: str, trust: str
) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--commit", upstream.base if choice == "base" else choice)
    assert ended.exit_code == 0, ended.everything
    commit = getattr(upstream, expected)
    assert (ended.outputs["outcome"], ended.outputs["commit"], ended.outputs["trust"]) == (
        "run",
        commit,
        trust,
    )
    received = load(Receive, step.run_folder)
    assert received.dispatched_commit == (upstream.head if commit != upstream.head else None)
    assert received.chosen
    assert commit in ended.summary


@pytest.mark.parametrize("choice", ["event", "landed"])
def test_what_landed_is_found_by_the_bot_s_line(step: Step, upstream: Upstream, choice: str) -> None:
    step.arrive(landing(upstream))
    ended = step.run("receive", "--commit", choice, "--when", "landed")
    assert (ended.exit_code, ended.outputs["commit"]) == (0, upstream.landed)
    assert ended.outputs["trust"] == "landed"


def test_what_has_not_landed_is_not_guessed(step: Step, upstream: Upstream) -> None:
    value = landing(upstream)
    value["client_payload"]["payload"]["pull_request"]["number"] = 42
    step.arrive(value)
    ended = step.run("receive", "--when", "landed")
    assert ended.exit_code == 31
    assert "is not among what landed last" in ended.stdout


@pytest.mark.parametrize("choice", ["event", "pr-head", "pr-merge"])
def test_a_pull_request_that_moved_on_is_superseded_and_no_failure(
    step: Step, upstream: Upstream, choice: str
) -> None:
    step.arrive(opened(upstream))
    upstream.git("checkout", "-q", "topic")
    newer = upstream.commit("Again", "torch/csrc/x.cpp", when=9_000)
    upstream.push("topic:refs/pull/4242/head")
    ended = step.run("receive", "--commit", choice)
    assert (ended.exit_code, ended.outputs["should-run"], ended.outputs["outcome"]) == (
        0,
        "false",
        "superseded",
    )
    assert newer in ended.outputs["reason"]


def test_a_test_merge_of_an_older_head_is_not_taken(step: Step, upstream: Upstream) -> None:
    upstream.git("checkout", "-q", "topic")
    upstream.head = upstream.commit("Again", "torch/csrc/x.cpp", when=9_000)
    upstream.push("topic:refs/pull/4242/head")
    step.arrive(opened(upstream))
    ended = step.run("receive", "--commit", "pr-merge")
    assert ended.exit_code == 31
    assert "has not merged the newest head" in ended.stdout


def test_without_a_network_the_dispatched_commit_still_runs(step: Step, upstream: Upstream) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--repository", "file:///nowhere/at.all")
    assert (ended.exit_code, ended.outputs["commit"]) == (0, upstream.head)
    assert [command.name for command in ended.commands] == ["warning", "notice"]
    for choice in ("pr-head", "pr-merge", "base-head", "nightly"):
        assert step.run("receive", "--repository", "file:///nowhere", "--commit", choice).exit_code == 30


def test_by_hand_a_pull_request_s_number_is_enough(step: Step, upstream: Upstream) -> None:
    step.arrive({"inputs": {"sha": "", "pull-request": "#4242"}})
    ended = step.run("receive")
    assert (ended.outputs["commit"], ended.outputs["pull-request"]) == (upstream.head, "4242")


@pytest.mark.parametrize("choice", ["landed", "pr-merge"])
def test_a_choice_that_the_event_does_not_fit_is_a_usage_error(
    step: Step, upstream: Upstream, choice: str
) -> None:
    step.arrive(event("push"))
    assert step.run("receive", "--commit", choice).exit_code == 2
    assert step.run("receive", "--commit", "HEAD~1").exit_code == 2


@pytest.mark.parametrize(
    ("pattern", "outcome"),
    [("torch/csrc/**", "run"), ("docs/**", "not-wanted"), ("**.cpp", "run"), ("torch/*", "not-wanted")],
)
def test_changed_files_are_those_since_the_merge_base(
    step: Step, upstream: Upstream, pattern: str, outcome: str
) -> None:
    """docs/b.md changed on main only: a comparison with the tip of main would name it."""
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["sha"] = upstream.main
    step.arrive(value)
    ended = step.run("receive", "--when", f"changed is {pattern}")
    assert ended.exit_code == 0, ended.everything
    assert ended.outputs["outcome"] == outcome
    assert "torch/csrc/x.cpp" in ended.outputs["reason"]


def test_changed_files_that_cannot_be_had_are_an_error_and_no_guess(step: Step, upstream: Upstream) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--when", "changed is x", "--repository", "file:///nowhere")
    assert (ended.exit_code, ended.outputs) == (30, {})
    # Decided before it is asked: no network is needed.
    ended = step.run("receive", "--when", "push and changed is x", "--repository", "file:///nowhere")
    assert ended.outputs["outcome"] == "not-wanted"


class Api(BaseHTTPRequestHandler):
    created = ""
    bearer: ClassVar[list[str]]

    def do_GET(self) -> None:
        self.bearer.append(self.headers.get("Authorization", ""))
        found = self.path == "/repos/example-downstream/backend/actions/runs/77" and self.created
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"created_at": self.created}).encode())

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[Any]:
    class Mine(Api):
        bearer: ClassVar[list[str]] = []

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_every_attempt_tests_the_nightly_of_the_first(step: Step, upstream: Upstream, api: Any) -> None:
    step.environment["GITHUB_API_URL"] = f"http://127.0.0.1:{api.server_port}"
    step.arrive({"schedule": "0 8 * * *"})
    api.RequestHandlerClass.created = "1970-01-01T02:05:00Z"  # 7,500 s: the first nightly is there
    for attempt in ("1", "2"):
        outputs = step.run("receive", GITHUB_RUN_ATTEMPT=attempt, CRCR_GITHUB_TOKEN="a-token").outputs
        assert (outputs["commit"], outputs["event-type"]) == (upstream.base, "nightly")
        assert outputs["delivery-id"] == upstream.base
        assert outputs["trust"] == "landed"
    assert api.RequestHandlerClass.bearer == ["Bearer a-token"] * 2


def test_a_later_attempt_that_cannot_know_the_first_fails_instead_of_testing_another_commit(
    step: Step, upstream: Upstream, api: Any
) -> None:
    step.arrive({"schedule": "0 8 * * *"})
    ended = step.run("receive", GITHUB_RUN_ATTEMPT="1")
    assert ended.outputs["commit"] == upstream.main
    assert [command.name for command in ended.commands] == ["warning", "notice"]
    for url in (f"http://127.0.0.1:{api.server_port}", "http://127.0.0.1:1"):
        ended = step.run("receive", GITHUB_RUN_ATTEMPT="2", GITHUB_API_URL=url)
        assert ended.exit_code == 31
        assert "first attempt" in ended.stdout


def test_a_stack_s_pull_request_is_looked_for_on_main(step: Step, upstream: Upstream) -> None:
    value = landing(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["ref"] = "gh/someone/1/base"
    step.arrive(value)
    ended = step.run("receive", "--when", "landed")
    assert (ended.exit_code, ended.outputs["commit"]) == (0, upstream.landed)


def test_an_author_s_words_about_another_pull_request_are_not_the_bot_s_line(
    step: Step, upstream: Upstream
) -> None:
    upstream.git("checkout", "-q", "main")
    line = "Pull Request resolved: https://github.com/pytorch/pytorch/pull/{}"
    upstream.commit(f"Other\n\n{line.format(4242)}\n\n{line.format(9)}", "torch/z.py", when=9_000)
    upstream.push("main")
    step.arrive(landing(upstream))
    assert step.run("receive", "--when", "landed").outputs["commit"] == upstream.landed


@pytest.mark.parametrize("choice", ["pr-head", "pr-merge"])
def test_a_label_that_claims_it_landed_lets_no_unlanded_head_run(
    step: Step, upstream: Upstream, choice: str
) -> None:
    """Anybody can have the bot set `Merged`, and close a pull request of their own."""
    value = landing(upstream)
    step.arrive(value)
    assert step.run("receive", "--when", "landed", "--commit", choice).outputs["outcome"] == "run"
    value["client_payload"]["payload"]["pull_request"]["number"] = 42
    step.arrive(value)
    upstream.push("topic:refs/pull/42/head", "test-merge:refs/pull/42/merge")
    (step.folder / "output").unlink()
    ended = step.run("receive", "--when", "landed", "--commit", choice)
    assert (ended.exit_code, ended.outputs) == (31, {})


@pytest.mark.parametrize(("base", "trust"), [("main", "landed"), ("topic-of-somebody", "pull-request")])
def test_the_head_of_somebody_s_branch_has_not_landed(
    step: Step, upstream: Upstream, base: str, trust: str
) -> None:
    upstream.push("topic:refs/heads/topic-of-somebody")
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["ref"] = base
    step.arrive(value)
    assert step.run("receive", "--commit", "base-head").outputs["trust"] == trust


def test_the_dispatched_commit_is_shown_next_to_the_chosen_one(step: Step, upstream: Upstream) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--commit", "base-head")
    assert f"| dispatched | `{upstream.head}` |" in ended.summary


def test_a_new_ref_is_compared_with_main(step: Step, upstream: Upstream) -> None:
    value = event("push")
    value["client_payload"]["payload"].update(
        ref="refs/tags/ciflow/npu/1", before="0" * 40, after=upstream.head
    )
    step.arrive(value)
    for pattern, outcome in (("torch/csrc/**", "run"), ("docs/**", "not-wanted")):
        assert step.run("receive", "--when", f"changed is {pattern}").outputs["outcome"] == outcome


def test_git_is_asked_once_and_only_if_the_condition_gets_there(step: Step, upstream: Upstream) -> None:
    step.arrive(opened(upstream))
    ended = step.run("receive", "--when", "changed is a or changed is b or push and changed is c")
    assert ended.stdout.count("Asking git") == 1
    assert "Asking git" not in step.run("receive", "--when", "trusted or changed is b").stdout


def test_unrelated_histories_are_an_error_and_no_guess(step: Step, upstream: Upstream) -> None:
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["sha"] = upstream.git("rev-parse", "nightly")
    step.arrive(value)
    ended = step.run("receive", "--when", "changed is **")
    assert (ended.exit_code, ended.outputs) == (31, {})
    assert "no history in common" in ended.stdout


def test_an_untrusted_pull_request_whose_files_cannot_be_had_is_still_only_not_trusted(
    step: Step, upstream: Upstream
) -> None:
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["author_association"] = "NONE"
    step.arrive(value)
    ended = step.run("receive", "--when", "trusted and changed is x", "--repository", "file:///nowhere")
    assert (ended.exit_code, ended.outputs["outcome"]) == (0, "not-trusted")


def test_a_history_deeper_than_the_first_look_is_found(step: Step, upstream: Upstream) -> None:
    """The pull request left main more commits ago than the first fetch reads."""
    upstream.git("checkout", "-q", "main")
    tree = upstream.git("rev-parse", "HEAD^{tree}")
    tip = upstream.git("rev-parse", "HEAD")
    for number in range(120):
        tip = upstream.git("commit-tree", tree, "-p", tip, "-m", f"{number}")
    upstream.git("update-ref", "refs/heads/main", tip)
    upstream.push("main")
    value = opened(upstream)
    value["client_payload"]["payload"]["pull_request"]["base"]["sha"] = tip
    step.arrive(value)
    assert "torch/csrc/x.cpp" in step.run("receive", "--when", "changed is x").outputs["reason"]
