"""`crcr doctor`: each thing that keeps a row from showing is found, with the line to change; a sound file is ready."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Optional

import pytest

yaml = pytest.importorskip("yaml", reason="a workflow file is YAML")

from step import ROOT, Step

from crcr.doctor.verb import examine
from crcr.doctor.workflow import read_workflow

SOUND = (
    (ROOT / "examples/reference-backend/.github/workflows/crcr.yml")
    .read_text(encoding="utf-8")
    .replace("OWNER/crcr-actions", "pytorch/crcr-actions")
    .replace("0" * 40, "5f" * 20)
    .replace("unreleased", "v1.2.3")
)


def findings(folder: Path, text: str) -> list[Any]:
    path = folder / "crcr.yml"
    path.write_text(text, encoding="utf-8")
    return examine(read_workflow(path))


def test_the_template_with_a_release_pinned_is_sound(tmp_path: Path) -> None:
    assert findings(tmp_path, SOUND) == []


def test_the_template_as_it_is_says_that_its_pin_is_a_placeholder(tmp_path: Path) -> None:
    text = (ROOT / "workflow-templates/hardware-job.yml").read_text(encoding="utf-8")
    assert {finding.what for finding in findings(tmp_path, text)} == {
        "The pin of the toolkit is the template's placeholder."
    }


def swap(old: str, new: str, times: int = 1) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new, times)

    return change


def last(old: str, new: str) -> Callable[[str], str]:
    """Change the last occurrence: the report job stands at the end."""

    def change(text: str) -> str:
        before, found, after = text.rpartition(old)
        assert found
        return before + new + after

    return change


# What is changed, the level, a part of what is said, and the text that must stand in the line it points at.
CASES: dict[str, tuple[Callable[[str], str], str, str, str]] = {
    "no dispatch": (
        swap("  repository_dispatch:\n    types: [pull_request, push]", "  push:"),
        "error", "No dispatch starts", "on:",
    ),
    "on is a list": (
        swap("on:\n  repository_dispatch:\n    types: [pull_request, push]", "on: [push, workflow_dispatch]"),
        "error", "No dispatch starts", "on:",
    ),
    "every dispatch": (
        swap("on:\n  repository_dispatch:\n    types: [pull_request, push]", "on: repository_dispatch"),
        "warning", "Every dispatch starts", "on:",
    ),
    "an event of the RFC that was never sent": (
        swap("types: [pull_request, push]", "types: [pytorch-pr-trigger]"),
        "error", "never sends", "types:",
    ),
    "no report": (
        swap("          needs: ${{ toJSON(needs) }}", "          needs: x\n          status: in_progress"),
        "error", "Nothing tells the relay", "",
    ),
    "report only on success": (
        swap("if: always() && needs.receive.outputs.should-run != 'false'", "if: needs.receive.outputs.should-run"),
        "error", "does not run when a job before it failed", "report:",
    ),
    "report knows no results": (
        swap("needs: ${{ toJSON(needs) }}", "needs: ${{ needs.test.result }}"),
        "error", "does not know how", "- name:",
    ),
    "report does not wait": (
        swap("needs: [receive, test]", "needs: receive"), "error", "does not wait for the job", "report:",
    ),
    "report may not ask for a token": (
        last("      id-token: write # to tell the relay how the row ended", "      contents: read"),
        "error", "may not ask for the token", "report:",
    ),
    "a colon in a row": (
        swap("          torch-wheel:", "          row: 'py3.12: npu'\n          torch-wheel:"),
        "error", "colon", "- name:",
    ),
    "legs of a matrix share a row": (
        swap("    timeout-minutes: 120", "    strategy: {matrix: {device: [a, b]}}\n    timeout-minutes: 120"),
        "error", "same row", "- name:",
    ),
    "a row that nobody tests": (
        swap("          torch-wheel:", "          row: other\n          torch-wheel:"),
        "error", "no job tests", "",
    ),
    "no limit": (swap("    timeout-minutes: 120\n", ""), "warning", "six hours", "test:"),
    "tests that outlive their job": (
        swap("    timeout-minutes: 120", "    timeout-minutes: 60"), "error", "evidence would be lost", "- name:",
    ),
    "no concurrency": (
        swap("  cancel-in-progress: true", "  cancel-in-progress: false"), "warning", "outdated", "concurrency:",
    ),
    "token beside foreign code": (
        swap("      contents: read # to check out this repository", "      contents: read\n      id-token: write"),
        "error", "may ask for a token in your", "permissions:",
    ),
    "write-all": (swap("permissions: {}", "permissions: write-all"), "", "", ""),
    "write beside foreign code": (
        swap("      contents: read # to check out this repository", "      contents: write"),
        "error", "may write to your repository", "permissions:",
    ),
    "secret beside foreign code": (
        swap("          torch-wheel:", "          setup: ${{ secrets.OBS_KEY }}\n          torch-wheel:"),
        "error", "holds a secret", "test:",
    ),
    "credentials on disk": (
        swap("          persist-credentials: false", "          fetch-depth: 1"),
        "warning", "leaves the token", "- name:",
    ),
    "script injection": (
        swap(
            "      - name: Check out the backend",
            "      - run: echo ${{ github.event.client_payload.payload.pull_request.title }}\n"
            "      - name: Check out the backend",
        ),
        "error", "part of a shell script", "- run:",
    ),
    "a tag instead of a SHA": (
        swap("actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "actions/checkout@v7"),
        "warning", "not pinned", "- name:",
    ),
    "two versions of the toolkit": (
        swap("crcr-actions@" + "5f" * 20, "crcr-actions@" + "6a" * 20), "error", "different versions", "- name:",
    ),
    "pull requests on a machine of one's own": (
        last("    runs-on: ubuntu-latest\n    timeout-minutes: 120", "    runs-on: [self-hosted, npu]\n    timeout-minutes: 120"),
        "warning", "GitHub asks nobody before", "runs-on:",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", [name for name in CASES if CASES[name][1]])
def test_each_fault_is_found_at_its_line(case: str, tmp_path: Path) -> None:
    change, level, words, at = CASES[case]
    text = change(SOUND)
    found = [finding for finding in findings(tmp_path, text) if words in finding.what]
    assert [finding.level for finding in found] == [level]
    assert found[0].seen
    assert found[0].fix
    if at:
        assert at in text.splitlines()[found[0].line - 1]


def test_write_all_of_the_workflow_reaches_jobs_without_permissions_only(tmp_path: Path) -> None:
    text = swap("permissions: {}", "permissions: write-all")(SOUND)
    assert findings(tmp_path, text) == []
    text = swap("    permissions:\n      contents: read # to check out this repository\n", "")(text)
    whats = " ".join(finding.what for finding in findings(tmp_path, text))
    assert "may ask for a token in your repository's name" in whats
    assert "may write to your repository" in whats


def test_landed_commits_may_run_on_a_machine_of_one_s_own(tmp_path: Path) -> None:
    text = CASES["pull requests on a machine of one's own"][0](SOUND)
    assert findings(tmp_path, text.replace("types: [pull_request, push]", "types: [push]")) == []


BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 30))


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("jobs: [", "while parsing"),
        ("- a\n- b\n", "no `jobs:`"),
        ("", "no `jobs:`"),
        ("a: &a [*a]", "40 levels"),
        (BOMB, "50,000 values"),
        ("\0", "special characters"),
        ("[" * 300, ""),
        ("jobs:\n  a: 1\n  b: [1]\n  c: {steps: 7}\n", None),
    ],
)
def test_what_is_no_workflow_gets_an_error_and_no_traceback(
    text: str, seen: Optional[str], tmp_path: Path
) -> None:
    step = Step(tmp_path)
    (step.workspace / "crcr.yml").write_text(text, encoding="utf-8")
    ended = doctor(step, "--workflow", "crcr.yml")
    assert ended.exit_code == (4 if seen is None else 2)
    assert "Traceback" not in ended.everything
    assert (seen or "") in ended.everything


def doctor(step: Step, *arguments: str) -> Any:
    step.environment["GITHUB_ACTIONS"] = "false"
    return step.run("doctor", *arguments)


def test_the_verdict_comes_first_and_decides_the_exit_code(tmp_path: Path) -> None:
    step = Step(tmp_path)
    place = step.workspace / ".github" / "workflows"
    place.mkdir(parents=True)
    (place / "crcr.yml").write_text(SOUND, encoding="utf-8")
    ended = doctor(step)
    assert ended.exit_code == 0
    assert ended.stdout.startswith("READY: 0 error(s), 0 warning(s)")
    (place / "crcr.yml").write_text(CASES["no report"][0](SOUND), encoding="utf-8")
    ended = doctor(step)
    assert ended.exit_code == 4
    assert ended.stdout.startswith("NOT READY: ")
    assert ended.stdout.count("  fix:") >= 1


def test_a_file_that_is_not_on_the_default_branch_is_never_started(tmp_path: Path) -> None:
    step = Step(tmp_path)
    origin = tmp_path / "origin"
    for command in (
        ["init", "-q", "-b", "trunk", str(origin)],
        [
            "-C",
            str(origin),
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "x",
        ],
        ["clone", "-q", str(origin), str(step.workspace / "clone")],
    ):
        subprocess.run(["git", *command], check=True)
    (step.workspace / "clone" / "crcr.yml").write_text(SOUND, encoding="utf-8")
    ended = doctor(step, "--workflow", "clone/crcr.yml")
    assert ended.exit_code == 4
    assert "crcr.yml is not in origin/trunk" in ended.stdout


class Relay(BaseHTTPRequestHandler):
    date, body = "", "{}"

    def do_GET(self) -> None:
        self.send_response_only(200 if self.path == "/version" else 404)
        self.send_header("Date", type(self).date or self.date_time_string())
        self.end_headers()
        self.wfile.write(self.body.encode())

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def relay() -> Iterator[ThreadingHTTPServer]:
    class Mine(Relay):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("date", "body", "code", "said"),
    [
        ("", "{}", 4, "another version of the callback"),
        ("", "not json", 0, "READY"),
        ("Wed, 21 Oct 2015 07:28:00 GMT", "not json", 0, "clock is wrong"),
        ("no date", "not json", 0, "0 warning(s)"),
    ],
)
def test_the_relay_is_asked_for_its_version_and_time(
    relay: ThreadingHTTPServer, date: str, body: str, code: int, said: str, tmp_path: Path
) -> None:
    handler: Any = relay.RequestHandlerClass
    handler.date, handler.body = date, body
    ended = ask(tmp_path, f"http://127.0.0.1:{relay.server_port}/github/callback")
    assert ended.exit_code == code
    assert said in ended.stdout


def test_a_relay_that_speaks_our_version_is_fine(relay: ThreadingHTTPServer, tmp_path: Path) -> None:
    from relay_client.protocol.vocabulary import WORKFLOW_SCHEMA_VERSION

    handler: Any = relay.RequestHandlerClass
    handler.body = json.dumps({"schema_version": WORKFLOW_SCHEMA_VERSION})
    ended = ask(tmp_path, f"http://127.0.0.1:{relay.server_port}/github/callback")
    assert (ended.exit_code, "0 warning(s)" in ended.stdout) == (0, True)


def test_a_relay_that_cannot_be_reached_names_the_proxy(tmp_path: Path) -> None:
    ended = ask(tmp_path, "http://127.0.0.1:1/callback", HTTPS_PROXY="http://proxy.example:3128")
    assert ended.exit_code == 4
    assert "cannot be reached" in ended.stdout
    assert "HTTPS_PROXY=http://proxy.example:3128" in ended.stdout
    assert "usual path" in ended.stdout


def ask(folder: Path, url: str, **environment: str) -> Any:
    step = Step(folder)
    step.environment.update(environment)
    (step.workspace / "crcr.yml").write_text(SOUND, encoding="utf-8")
    return doctor(step, "--workflow", "crcr.yml", "--relay-url", url)


def test_the_launcher_s_python_may_use_the_yaml_of_its_site_packages() -> None:
    """The launcher starts Python with -S; the tests above went through it."""
    assert "yaml" in sys.modules


def test_the_workflow_of_four_jobs_is_sound_too(tmp_path: Path) -> None:
    text = (ROOT / "examples/source-build/.github/workflows/crcr.yml").read_text(encoding="utf-8")
    pinned = text.replace("OWNER/crcr-actions", "pytorch/crcr-actions").replace("0" * 40, "5f" * 20)
    assert findings(tmp_path, pinned) == []
