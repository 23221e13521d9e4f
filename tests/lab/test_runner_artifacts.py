"""The stand-ins of upload-artifact and download-artifact, against the rules of the real actions' sources."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dispatch_lab.runner.stand_ins import artifact_store


class Job:
    """A workspace and the store of a run."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        self.store = folder / "store"
        self.outputs = folder / "outputs"
        self.workspace.mkdir()

    def files(self, *names: str) -> None:
        for name in names:
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name, encoding="utf-8")

    def upload(self, path: str, name: str = "artifact", attempt: int = 1, **inputs: str) -> tuple[int, str]:
        given = {
            "IF_NO_FILES_FOUND": "warn",
            "OVERWRITE": "false",
            "INCLUDE_HIDDEN_FILES": "false",
            "ARCHIVE": "true",
        }
        return self._run("upload", attempt, {**given, "NAME": name, "PATH": path, **inputs})

    def download(self, **inputs: str) -> tuple[int, str]:
        given = dict.fromkeys(("NAME", "PATH", "PATTERN", "ARTIFACT_IDS", "RUN_ID"), "")
        return self._run(
            "download", 1, {**given, "MERGE_MULTIPLE": "false", "SKIP_DECOMPRESS": "false", **inputs}
        )

    def _run(self, verb: str, attempt: int, inputs: dict[str, str]) -> tuple[int, str]:
        environment = {
            "LAB_ARTIFACTS": str(self.store),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(self.outputs),
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "down/stream",
            "HOME": str(self.workspace.parent),
            **{f"LAB_{key}": value for key, value in inputs.items()},
        }
        command = [sys.executable, "-I", "-S", artifact_store.__file__, verb]
        done = subprocess.run(
            command, env=environment, cwd=self.workspace, capture_output=True, text=True, check=False
        )
        assert done.stderr == ""
        return done.returncode, done.stdout

    def stored(self, name: str = "artifact") -> list[str]:
        root = self.store / "artifacts" / name
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    def got(self, folder: str) -> list[str]:
        root = self.workspace / folder
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("out/a.txt", ["a.txt"]),  # one file, named outright: its folder is the root
        ("out", ["a.txt", "deep/b.log", "deep/c.txt"]),
        ("out/", ["a.txt", "deep/b.log", "deep/c.txt"]),
        ("out/*", ["a.txt", "deep/b.log", "deep/c.txt"]),  # what lies below a match is matched
        ("out/*.txt", ["a.txt"]),
        ("out/**/*.txt", ["a.txt", "deep/c.txt"]),
        ("out/[ab].tx?", ["a.txt"]),
        ("out\n!out/**/*.log", ["a.txt", "deep/c.txt"]),
        ("out\n!out/deep\nout/deep/b.log", ["a.txt", "deep/b.log"]),  # a later line takes back
        ("out/a.txt\nout/deep/b.log", ["a.txt", "deep/b.log"]),  # least common ancestor
        ("out/deep\nother", ["other/d.txt", "out/deep/b.log", "out/deep/c.txt"]),
        ("out/a.txt\nabsent/x", ["out/a.txt"]),  # a path without files still counts for the ancestor
        ("# a comment\n\nout/a.txt", ["a.txt"]),
        ("~/workspace/other", ["d.txt"]),
    ],
)
def test_paths_and_the_root_of_the_artifact(job: Job, path: str, expected: list[str]) -> None:
    job.files("out/a.txt", "out/deep/b.log", "out/deep/c.txt", "other/d.txt")
    (job.workspace / "out" / "empty").mkdir()
    assert job.upload(path)[0] == 0
    assert job.stored() == expected


@pytest.mark.parametrize(
    ("path", "without", "with_hidden"),
    [
        ("out", ["a"], [".h", ".d/x", "a"]),
        (".d", [], ["x"]),  # a hidden folder named outright is not entered either
        (".d/x", ["x"], ["x"]),  # but a file in it, named outright, is taken
    ],
)
def test_hidden_files_are_left_out_unless_asked_for(
    job: Job, path: str, without: list[str], with_hidden: list[str]
) -> None:
    job.files("out/a", "out/.h", "out/.d/x", ".d/x")
    job.upload(path, name="without")
    job.upload(path, name="with", INCLUDE_HIDDEN_FILES="true")
    assert job.stored("without") == without
    assert job.stored("with") == sorted(with_hidden)


@pytest.mark.parametrize(
    ("wanted", "code", "prefix"),
    [("warn", 0, "::warning::"), ("error", 1, "::error::"), ("ignore", 0, "No files")],
)
def test_no_files(job: Job, wanted: str, code: int, prefix: str) -> None:
    returned, text = job.upload("absent/**", IF_NO_FILES_FOUND=wanted)
    assert (returned, text.startswith(prefix)) == (code, True)
    assert not (job.store / "artifacts" / "artifact").exists()


def test_a_name_is_taken_once_per_attempt(job: Job) -> None:
    job.files("a", "b")
    assert job.upload("a")[0] == 0
    code, text = job.upload("b")
    assert code == 1
    assert "(409) Conflict: an artifact with this name already exists on the workflow run" in text
    assert job.upload("b", OVERWRITE="true")[0] == 0
    assert job.stored() == ["b"]
    assert job.upload("a", attempt=2)[0] == 0
    assert job.stored() == ["a"]
    assert json.loads((job.store / "records" / "artifact.json").read_text())["attempt"] == 2


def test_a_bad_name_and_unknown_inputs_are_refused(job: Job) -> None:
    job.files("a")
    assert "name is not valid" in job.upload("a", name="x/y")[1]
    assert "archive" in job.upload("a", ARCHIVE="false")[1]
    assert "run itself" in job.download(RUN_ID="8")[1]
    assert "artifact-ids" in job.download(ARTIFACT_IDS="1")[1]
    assert "patterns" in job.download(PATTERN="{a,b}")[1]


def test_where_a_download_lands(job: Job) -> None:
    job.files("x/one", "y/two")
    job.upload("x", name="evidence-a")
    job.upload("y", name="evidence-b")
    job.upload("x", name="wheels")
    job.download(NAME="evidence-a", PATH="named")
    job.download(PATTERN="evidence-*", PATH="folders")
    job.download(PATTERN="evidence-*", PATH="merged", MERGE_MULTIPLE="true")
    job.download(PATTERN="wheel*", PATH="single")  # v8: one match lands in the path itself
    job.download(PATH="all")
    code, _ = job.download(PATTERN="nothing-*", PATH="nothing")
    assert code == 0
    assert job.got("named") == ["one"]
    assert job.got("folders") == ["evidence-a/one", "evidence-b/two"]
    assert job.got("merged") == ["one", "two"]
    assert job.got("single") == ["one"]
    assert job.got("all") == ["evidence-a/one", "evidence-b/two", "wheels/one"]
    assert job.got("nothing") == []
    code, text = job.download(NAME="absent")
    assert (code, "Artifact not found for name: absent" in text) == (1, True)


def test_permissions_are_lost_and_links_to_files_are_followed(job: Job) -> None:
    job.files("out/tool")
    (job.workspace / "out" / "tool").chmod(0o755)
    (job.workspace / "out" / "link").symlink_to("tool")
    (job.workspace / "out" / "broken").symlink_to("nowhere")
    (job.workspace / "out" / "loop").symlink_to(".")
    job.upload("out")
    assert job.stored() == ["link", "tool"]
    assert not (job.store / "artifacts" / "artifact" / "tool").stat().st_mode & 0o111
