"""The runner, with the real act on tiny workflows: what docs/act-vs-github.md says is emulated or proven by act."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dispatch_lab.errors import LabError
from dispatch_lab.runner import JobIdentity, WorkflowRun, WorkflowRunner
from dispatch_lab.runner.act_process import tracked_processes

HOME = "example/crcr-actions"
PATH = ".github/workflows/ci.yml"
EVENT = {
    "action": "pull_request",
    "client_payload": {"delivery_id": "d-1"},
    "repository": {"full_name": "down/stream", "default_branch": "main"},
    "sender": {"login": "relay[bot]"},
}
HEADER = "name: CI\non:\n  repository_dispatch:\n    types: [pull_request]\n"

ROOT_ACTION = """
name: Root
description: A root action.
inputs:
  needs:
    description: Results of earlier jobs.
    default: ""
outputs:
  greeting:
    description: A greeting.
    value: ${{ steps.say.outputs.greeting }}
runs:
  using: composite
  steps:
    - id: say
      shell: sh
      env:
        NEEDS: ${{ inputs.needs }}
      run: |
        sh "$GITHUB_ACTION_PATH/bin/tool"
        printf '%s' "$NEEDS" > needs.txt
        echo "greeting=hello" >> "$GITHUB_OUTPUT"
        echo "# A summary" >> "$GITHUB_STEP_SUMMARY"
"""
SUB_ACTION = """
name: Sub
description: Fails in the middle.
runs:
  using: composite
  steps:
    - shell: sh
      run: sh "$GITHUB_ACTION_PATH/../../bin/tool"; exit 3
    - shell: sh
      if: ${{ always() }}
      run: echo "composite-always job=$JOB_LEVEL step=$STEP_LEVEL"
    - shell: sh
      if: ${{ success() }}
      run: echo must-not-run
    - if: always()
      uses: actions/upload-artifact@0123456789012345678901234567890123456789
      with:
        name: from-composite
        path: kept.txt
"""


class Lab:
    """A toolkit, a downstream and a runner in one temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.toolkit = folder / "toolkit"
        self.downstream = folder / "downstream"
        self.identities: list[JobIdentity] = []
        self.progress: list[str] = []
        write(self.toolkit / "action.yml", ROOT_ACTION)
        write(self.toolkit / "actions/sub/action.yml", SUB_ACTION)
        write(self.toolkit / "bin/tool", "echo tool-ran\n")
        write(self.toolkit / ".gitignore", ".venv\n")
        write(self.toolkit / ".venv/big", "not part of a commit")
        git(self.toolkit, "init", "--quiet", "--initial-branch", "main")

    def runner(self, **environment: str) -> WorkflowRunner:
        def mint(identity: JobIdentity) -> str:
            self.identities.append(identity)
            return f"request-token-for-{identity.job}"

        return WorkflowRunner(
            toolkit=self.toolkit,
            home=HOME,
            folder=self.folder / "runs",
            api_url="http://127.0.0.1:1/api",
            oidc_request_url="http://127.0.0.1:1/token?api-version=2.0",
            mint_request_token=mint,
            environment=environment,
            progress=self.progress.append,
        )

    def commit(self, workflow: str, **files: str) -> None:
        write(self.downstream / PATH, HEADER + workflow)
        for name, text in files.items():
            write(self.downstream / name, text)
        git(self.downstream, "init", "--quiet", "--initial-branch", "main")
        git(self.downstream, "add", "--all")
        git(
            self.downstream,
            "-c",
            "user.name=T",
            "-c",
            "user.email=t@example.org",
            "commit",
            "--quiet",
            "-m",
            "x",
        )

    def run(self, workflow: str, run_id: int = 7, **options: Any) -> WorkflowRun:
        self.commit(workflow)
        return self.again(run_id, **options)

    def again(self, run_id: int = 7, **options: Any) -> WorkflowRun:
        return self.runner().run(
            "down/stream", self.downstream, PATH, "repository_dispatch", EVENT, run_id=run_id, **options
        )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def git(folder: Path, *arguments: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def printed(run: WorkflowRun, job: str) -> str:
    """What the job's steps wrote, without act's own lines."""
    events = [json.loads(line) for line in run.events.read_text(encoding="utf-8").splitlines()]
    return "".join(
        e["msg"].rstrip("\n") + "\n" for e in events if e.get("raw_output") and e.get("jobID") == job
    )


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def test_only_jobs_that_grant_id_token_see_the_request_variables(lab: Lab) -> None:
    show = """
    runs-on: ubuntu-latest
    steps:
      - run: echo "url=${ACTIONS_ID_TOKEN_REQUEST_URL-unset} token=${#ACTIONS_ID_TOKEN_REQUEST_TOKEN}"
      - uses: actions/checkout@v7
      - run: 'grep -rl "request-token-f[o]r" . || echo none-in-workspace'
      - run: echo "$ACTIONS_ID_TOKEN_REQUEST_TOKEN"
"""
    run = lab.run(
        "permissions:\n  id-token: write\njobs:\n"
        f"  inherits:{show}"
        f"  narrows:\n    permissions:\n      contents: read{show}"
        f"  drops-all:\n    permissions: {{}}{show}"
        f"  grants:\n    permissions:\n      id-token: write{show}"
    )
    assert run.conclusion == "success"
    for job in ("inherits", "grants"):
        length = len(f"request-token-for-{job}")
        assert f"url=http://127.0.0.1:1/token?api-version=2.0 token={length}" in printed(run, job)
    for job in ("narrows", "drops-all"):
        assert "url=unset token=0" in printed(run, job)
    for job in run.jobs:
        assert "none-in-workspace" in printed(run, job)
    assert [identity.job for identity in lab.identities] == ["inherits", "grants"]
    assert len({identity.check_run_id for identity in lab.identities}) == 2
    assert "request-token-for" not in run.log.read_text() + run.events.read_text()
    left = [
        path for path in run.folder.rglob("*") if path.is_file() and b"request-token-for" in path.read_bytes()
    ]
    assert left == []


def test_the_github_context_and_variables_are_right(lab: Lab) -> None:
    run = lab.run(
        """
jobs:
  show:
    name: Show it
    runs-on: [self-hosted, gpu]
    steps:
      - uses: actions/checkout@v7
      - name: variables
        env:
          TOKEN: ${{ github.token }}
        run: |
          echo "$GITHUB_REPOSITORY $GITHUB_RUN_ID $GITHUB_RUN_ATTEMPT $GITHUB_SERVER_URL $GITHUB_API_URL $GITHUB_REF"
          echo "${{ github.repository }} ${{ github.run_id }} ${{ github.run_attempt }} ${{ github.event.client_payload.delivery_id }}"
          cat "$GITHUB_EVENT_PATH"; echo
          git rev-parse HEAD; echo "$GITHUB_SHA"; git remote get-url origin
          echo "token=${#TOKEN} actor=$GITHUB_ACTOR check=[${{ job.check_run_id }}]"
          echo "temp=$RUNNER_TEMP home=$HOME no_proxy=$NO_PROXY"
""",
        run_attempt=2,
    )
    assert run.conclusion == "success"
    text = printed(run, "show")
    assert "down/stream 7 2 https://github.com http://127.0.0.1:1/api refs/heads/main" in text
    assert "down/stream 7 2 d-1" in text
    assert json.dumps(EVENT) in text
    assert text.count(git(lab.downstream, "rev-parse", "HEAD")) == 2
    assert "https://github.com/down/stream" in text
    assert "actor=relay[bot]" in text
    assert "token=49 " in text  # never empty on GitHub
    assert "check=[]" in text  # act has no job.check_run_id
    assert f"home={run.folder}" in text
    assert f"temp={run.folder}" in text
    assert "127.0.0.1" in text.split("no_proxy=")[1]
    job = run.jobs["show"]
    assert (job.name, job.result) == ("Show it", "success")
    assert [step.name for step in job.steps] == ["actions/checkout@v7", "variables"]
    assert job.started_at


def test_composites_of_the_toolkit_run_from_a_clean_copy_and_always_steps_run(lab: Lab) -> None:
    run = lab.run(
        """
jobs:
  first:
    runs-on: ubuntu-latest
    env:
      JOB_LEVEL: from-job
    outputs:
      greeting: ${{ steps.root.outputs.greeting }}
    steps:
      - id: root
        uses: example/crcr-actions@v1.2.3
      - run: echo kept > kept.txt; ls -a
      - uses: example/crcr-actions/actions/sub@0123456789012345678901234567890123456789 # v1
        env:
          STEP_LEVEL: from-step
      - run: echo must-not-run-either
      - if: always()
        run: echo job-always
  skipped:
    needs: first
    runs-on: ubuntu-latest
    steps: [{run: echo never}]
  report:
    needs: [first, skipped]
    if: always()
    runs-on: ubuntu-latest
    steps:
      - uses: example/crcr-actions@v1.2.3
        with:
          needs: ${{ toJSON(needs) }}
      - run: cat needs.txt
      - run: part=hunter2; echo "::add-mask::$part-secret"
      - run: part=hunter2; echo "$part-secret"
"""
    )
    text = printed(run, "first")
    assert text.count("tool-ran") == 2
    assert "composite-always job=from-job step=from-step" in text
    assert "job-always" in text
    assert "must-not-run" not in text
    assert [step.outcome for step in run.jobs["first"].steps] == [
        "success",
        "success",
        "failure",
        "skipped",
        "success",
    ]
    assert {job: result.result for job, result in run.jobs.items()} == {
        "first": "failure",
        "skipped": "skipped",
        "report": "success",
    }
    assert run.conclusion == "failure"
    needs = json.loads(printed(run, "report").split("tool-ran\n")[1].split("***")[0])
    assert needs["first"] == {"outputs": {"greeting": "hello"}, "result": "failure"}
    assert needs["skipped"]["result"] == "skipped"
    assert "hunter2-secret" not in run.log.read_text() + run.events.read_text()
    assert (run.summaries / "report.md").read_text().strip() == "# A summary"
    assert (run.artifacts / "from-composite" / "kept.txt").read_text() == "kept\n"


def test_artifacts_travel_between_jobs_and_attempts(lab: Lab) -> None:
    workflow = """
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        shard: [a, b]
    steps:
      - run: mkdir -p out/.hidden && echo "$GITHUB_RUN_ATTEMPT" > "out/result-$GITHUB_RUN_ATTEMPT" && echo x > out/.hidden/y
      - uses: actions/upload-artifact@v7
        with:
          name: evidence-${{ matrix.shard }}
          path: out
          retention-days: 1
      - id: again
        continue-on-error: true
        uses: actions/upload-artifact@v7
        with:
          name: evidence-${{ matrix.shard }}
          path: out
      - run: test "${{ steps.again.outcome }}" = failure
  collect:
    needs: test
    runs-on: ubuntu-latest
    steps:
      - uses: actions/download-artifact@v8
        with:
          pattern: evidence-*
          path: all
      - uses: actions/download-artifact@v8
        with:
          pattern: evidence-a*
          path: only
      - uses: actions/download-artifact@v8
        with:
          pattern: nothing-*
          path: nothing
      - uses: actions/download-artifact@v8
        with:
          name: evidence-b
          path: named
      - run: find all only named -type f | sort
      - uses: actions/download-artifact@v8
        with:
          name: absent
"""
    run = lab.run(workflow)
    assert run.jobs["test (a)"].result == run.jobs["test (b)"].result == "success"
    assert run.jobs["test (a)"].name == "test (a)"
    files = "all/evidence-a/result-1\nall/evidence-b/result-1\nnamed/result-1\nonly/result-1\n"
    assert files in printed(run, "collect")
    assert run.jobs["collect"].steps[-1].outcome == "failure"
    assert "Artifact not found for name: absent" in run.log.read_text()
    assert "(409) Conflict" in run.log.read_text()
    assert sorted(path.name for path in run.artifacts.iterdir()) == ["evidence-a", "evidence-b"]

    second = lab.again(run_attempt=2)
    assert second.artifacts == run.artifacts
    assert "named/result-2" in printed(second, "collect")
    record = json.loads((second.artifacts.parent / "records" / "evidence-a.json").read_text())
    assert record["attempt"] == 2
    assert (second.artifacts.parent / "superseded" / "1" / "evidence-a" / "result-1").is_file()


def test_two_runs_at_once_do_not_meet(lab: Lab) -> None:
    lab.commit(
        """
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - run: echo "$GITHUB_RUN_ID" > "$RUNNER_TEMP/id"; echo "$GITHUB_RUN_ID" > "$HOME/id"; sleep 1
      - run: cat "$RUNNER_TEMP/id" "$HOME/id" > both.txt
      - uses: actions/upload-artifact@v7
        with: {path: both.txt}
"""
    )
    with ThreadPoolExecutor() as pool:
        runs = list(pool.map(lab.again, (11, 12)))
    for run in runs:
        assert (run.artifacts / "artifact" / "both.txt").read_text() == f"{run.run_id}\n{run.run_id}\n"


SLOW = """
jobs:
  quick:
    runs-on: ubuntu-latest
    steps: [{run: echo quick}]
  slow:
    needs: quick
    runs-on: ubuntu-latest
    steps:
      - run: (setsid sleep 987 &) ; echo "tracking=$RUNNER_TRACKING_ID"; sleep 986
      - if: always()
        run: echo cleaned-up
  report:
    needs: slow
    if: always()
    runs-on: ubuntu-latest
    steps: [{run: echo reported}]
"""


def test_a_run_past_its_time_is_cancelled_and_leaves_no_process(lab: Lab) -> None:
    run = lab.run(SLOW, timeout=2)
    assert run.conclusion == "cancelled"
    assert [job.result for job in run.jobs.values()] == ["success", "cancelled", "cancelled"]
    assert "cleaned-up" in printed(run, "slow")
    assert "stopped after 2 s" in run.log.read_text()
    tracking = printed(run, "slow").split("tracking=")[1].split()[0]
    assert tracked_processes(tracking) == []


def test_a_run_can_be_cancelled_from_outside(lab: Lab) -> None:
    cancel = threading.Event()
    threading.Timer(1.5, cancel.set).start()
    begun = time.monotonic()
    run = lab.run(SLOW, cancel=cancel)
    assert run.conclusion == "cancelled"
    assert time.monotonic() - begun < 10


def test_variables_of_the_machine_reach_every_job_and_the_workflow_wins(lab: Lab) -> None:
    lab.commit(
        """
env:
  PIP_TIMEOUT: "9"
jobs:
  one:
    runs-on: ubuntu-latest
    steps: [{run: 'echo "index=$PIP_INDEX_URL timeout=$PIP_TIMEOUT no=$NO_PROXY"'}]
"""
    )
    runner = lab.runner(PIP_INDEX_URL="http://127.0.0.1/simple", PIP_TIMEOUT="1", NO_PROXY="example.org")
    run = runner.run("down/stream", lab.downstream, PATH, "repository_dispatch", EVENT, run_id=7)
    assert "index=http://127.0.0.1/simple timeout=9 no=example.org,127.0.0.1" in printed(run, "one")


def test_a_reference_to_the_own_repository_is_resolved(lab: Lab) -> None:
    lab.commit(
        """
jobs:
  one:
    runs-on: ubuntu-latest
    steps:
      - uses: $/mine
""",
        **{"mine/action.yml": ROOT_ACTION.replace("bin/tool", "action.yml").replace('sh "', 'ls "')},
    )
    assert lab.again().conclusion == "success"


@pytest.mark.parametrize(
    ("step", "seen"),
    [
        ("uses: astral-sh/setup-uv@v8", f"{PATH}:9: uses: astral-sh/setup-uv@v8"),
        ("uses: docker://alpine", "docker://alpine"),
        ("uses: example/crcr-actions/actions/absent@v1", "actions/absent"),
        ("{uses: actions/checkout@v7, with: {repository: pytorch/pytorch}}", "pytorch/pytorch"),
    ],
)
def test_what_would_need_the_network_is_refused_before_act_starts(lab: Lab, step: str, seen: str) -> None:
    with pytest.raises(LabError, match=r"seen:") as refused:
        lab.run(f"jobs:\n  one:\n    runs-on: ubuntu-latest\n    steps:\n    - {step}\n")
    assert seen in refused.value.seen
    assert not (lab.folder / "runs" / "7-1" / "act.log").exists()


def test_what_a_composite_of_the_toolkit_nests_is_checked_too(lab: Lab) -> None:
    write(
        lab.toolkit / "actions/sub/action.yml", SUB_ACTION.replace("actions/upload-artifact", "someone/else")
    )
    with pytest.raises(LabError) as refused:
        lab.run("jobs:\n  a:\n    runs-on: x\n    steps: [{uses: example/crcr-actions/actions/sub@v1}]\n")
    assert refused.value.seen.startswith("actions/sub/action.yml:16: uses: someone/else@")


def test_a_workflow_that_does_not_listen_starts_no_run(lab: Lab) -> None:
    lab.commit("jobs:\n  a:\n    runs-on: x\n    steps: [{run: true}]\n")
    event = {**EVENT, "action": "push"}
    with pytest.raises(LabError, match="does not listen"):
        lab.runner().run("down/stream", lab.downstream, PATH, "repository_dispatch", event, run_id=1)


def test_an_invalid_workflow_is_told_with_acts_own_words(lab: Lab) -> None:
    with pytest.raises(LabError, match="act could not run the workflow"):
        lab.run("jobs:\n  a:\n    needs: nobody\n    runs-on: x\n    steps: [{run: echo}]\n")


def test_a_manifest_that_act_rejects_is_no_result_at_all(lab: Lab) -> None:
    """act ends the whole run then, `always()` jobs included; GitHub would fail the one job. So the lab gives no result."""
    write(
        lab.toolkit / "actions/sub/action.yml", SUB_ACTION.replace("shell: sh", "shell: ${{ secrets.X }}", 1)
    )
    with pytest.raises(LabError, match="Unknown Variable Access secrets"):
        lab.run(
            "jobs:\n  a:\n    runs-on: x\n    steps: [{uses: example/crcr-actions/actions/sub@v1}]\n"
            "  b:\n    needs: a\n    if: always()\n    runs-on: x\n    steps: [{run: echo}]\n"
        )


def test_a_refused_run_may_be_tried_again(lab: Lab) -> None:
    job = "jobs:\n  a:\n    runs-on: x\n    steps: [{%s}]\n"
    with pytest.raises(LabError):
        lab.run(job % "uses: some/action@v1")
    assert lab.run(job % "run: echo").conclusion == "success"
    with pytest.raises(LabError, match="run before"):
        lab.again()


def test_the_known_differences_of_act_are_still_there(lab: Lab) -> None:
    """Each line here is a row of docs/act-vs-github.md: when one changes, change the table."""
    write(
        lab.toolkit / "actions/sub/action.yml",
        """
name: Sub
description: Shows what act gets wrong.
runs:
  using: composite
  steps:
    - shell: sh
      run: echo "matrix=[${{ matrix.k }}] status=[${{ github.action_status }}]"; echo undeclared=leaks >> "$GITHUB_OUTPUT"
""",
    )
    run = lab.run(
        """
concurrency: {group: g, cancel-in-progress: true}
jobs:
  a:
    runs-on: x
    timeout-minutes: 0
    continue-on-error: true
    strategy: {matrix: {k: [v]}}
    steps:
      - id: sub
        uses: example/crcr-actions/actions/sub@v1
      - run: |
          echo "undeclared=[${{ steps.sub.outputs.undeclared }}] ref=[${{ github.workflow_ref }}] env=$GITHUB_WORKFLOW_REF"
          test -t 1 && echo terminal; exit 1
  b:
    needs: a
    if: always()
    runs-on: x
    steps:
      - run: echo '${{ toJSON(needs.a) }}'
"""
    )
    text = printed(run, "a")
    assert "matrix=[] status=[]" in text
    assert "undeclared=[leaks] ref=[] env=down/stream/.github/workflows/ci.yml@refs/heads/main" in text
    assert "terminal" in text
    assert json.loads(printed(run, "b")) == {"outputs": None, "result": "failure"}
    assert run.conclusion == "failure"


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_what_a_failing_step_wrote_last_is_kept(lab: Lab, shell: str) -> None:
    run = lab.run(
        """
jobs:
  a:
    runs-on: x
    strategy: {matrix: {n: [1, 2, 3, 4, 5, 6, 7, 8]}}
    steps:
      - shell: SHELL
        run: |
          command -v sh bash
          seq 1 300; echo "the-${{ matrix.n }}-reason"; exit 3
""".replace("SHELL", shell)
    )
    assert [job.result for job in run.jobs.values()] == ["failure"] * 8
    text = printed(run, "a")
    assert [text.count(f"the-{number}-reason\n") for number in range(1, 9)] == [1] * 8
    assert "machine/bin" not in text  # a step itself meets the real shells only
