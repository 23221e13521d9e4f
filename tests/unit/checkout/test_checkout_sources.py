"""Submodules, logins, mirrors, bundles, and whose fault it is when git cannot fetch: with a real git."""

from __future__ import annotations

import copy
import io
import os
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from step import Step

from backend_ci.checkout import fetch
from backend_ci.checkout.failures import kind_of
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import load
from relay_client.errors import (
    CheckoutDiskFull,
    CommitNotFound,
    RateLimited,
    RemoteUnreachable,
    SubmodulePinMissing,
)
from relay_client.runner.git import GitAnswer


def git(at: Path, *arguments: str) -> str:
    identity = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "a"), ("EMAIL", "a@b"), ("DATE", "@1000 +0000"))
    }
    environment = {**os.environ, **identity, "GIT_ALLOW_PROTOCOL": "file:https:http"}
    done = subprocess.run(
        ["git", *arguments], cwd=at, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class Sources:
    """`https://github.com/pytorch/pytorch.git` with a submodule that has one of its own."""

    def __init__(self, github: Path) -> None:
        self.inner = self.repository(github / "lib" / "inner.git", {"i.h": "inner\n"})
        self.outer = self.repository(github / "lib" / "outer.git", {"o.h": "outer\n"})
        self.add(github / "lib" / "outer.git", "https://github.com/lib/inner.git", "deep/inner", self.inner)
        self.outer = git(github / "lib" / "outer.git", "rev-parse", "HEAD")
        self.path = github / "pytorch" / "pytorch.git"
        self.base = self.repository(self.path, {"torch/a.py": "a\n"})
        self.commit = self.add(self.path, "https://github.com/lib/outer.git", "third_party/outer", self.outer)

    def repository(self, path: Path, files: dict[str, str]) -> str:
        """A repository with a working tree: git serves it as it serves a bare one."""
        path.mkdir(parents=True, exist_ok=True)
        git(path, "init", "-q", "-b", "main")
        git(path, "config", "core.bare", "false")
        git(path, "config", "uploadpack.allowFilter", "true")
        return self.write(path, files)

    def write(self, path: Path, files: dict[str, str]) -> str:
        for name, text in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
        git(path, "add", *files)
        git(path, "commit", "-q", "-m", "x")
        return git(path, "rev-parse", "HEAD")

    def add(self, path: Path, url: str, name: str, pin: str) -> str:
        with (path / ".gitmodules").open("a") as file:
            file.write(f'[submodule "{name}"]\n\tpath = {name}\n\turl = {url}\n')
        git(path, "add", ".gitmodules")
        git(path, "update-index", "--add", "--cacheinfo", f"160000,{pin},{name}")
        git(path, "commit", "-q", "-m", "pin")
        return git(path, "rev-parse", "HEAD")


@pytest.fixture
def step(tmp_path: Path) -> Step:
    step = Step(tmp_path)
    shutil.rmtree(step.upstream.parent.parent)
    step.environment.update(GIT_ALLOW_PROTOCOL="file:https:http", HOME=str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[user]\n\tname = me\n")
    return step


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(tmp_path_factory.mktemp("template") / "github")


@pytest.fixture
def sources(step: Step, template: Sources, tmp_path: Path) -> Sources:
    """A copy of one's own: tests change it."""
    mine = copy.copy(template)
    mine.path = (
        Path(shutil.copytree(template.path.parent.parent, tmp_path / "github")) / "pytorch" / "pytorch.git"
    )
    return mine


def out(step: Step, commit: str, *options: str, **variables: str) -> Any:
    return step.run("checkout", "--commit", commit, *options, **variables)


def test_submodules_stand_at_their_pins_and_are_written_down(step: Step, sources: Sources) -> None:
    ended = out(step, sources.commit, "--submodules", "recursive")
    assert ended.exit_code == 0, ended.everything
    document = load(Checkout, step.run_folder)
    assert {(item.path, item.commit) for item in document.submodules or ()} == {
        ("third_party/outer", sources.outer),
        ("third_party/outer/deep/inner", sources.inner),
    }
    tree = step.run_folder / "pytorch"
    assert (tree / "third_party/outer/deep/inner/i.h").read_text() == "inner\n"
    assert git(tree / "third_party/outer", "rev-list", "--count", "HEAD") == "1"  # shallow


@pytest.mark.parametrize(("choice", "there"), [("none", []), ("top", ["third_party/outer"])])
def test_only_the_submodules_that_were_asked_for(
    step: Step, sources: Sources, choice: str, there: list[str]
) -> None:
    assert out(step, sources.commit, "--submodules", choice).exit_code == 0
    found = load(Checkout, step.run_folder).submodules
    assert [item.path for item in found or ()] == there
    assert (found is None) == (choice == "none")


def test_a_pin_that_its_repository_does_not_have_is_upstream_s_fault(step: Step, sources: Sources) -> None:
    bad = sources.add(sources.path, "https://github.com/lib/outer.git", "third_party/other", "ab" * 20)
    ended = out(step, bad, "--submodules", "recursive")
    assert ended.exit_code == 34
    assert "names a commit that its submodule does not have" in ended.stdout


def test_a_submodule_whose_repository_is_gone_is_unreachable(step: Step, sources: Sources) -> None:
    bad = sources.add(sources.path, "https://github.com/lib/gone.git", "third_party/gone", sources.outer)
    assert out(step, bad, "--submodules", "top").exit_code == 30


def test_changes_are_counted_from_the_merge_base(step: Step, sources: Sources) -> None:
    git(sources.path, "checkout", "-q", "-b", "topic", sources.commit)
    head = sources.write(sources.path, {"torch/b.py": "b\n"})
    git(sources.path, "checkout", "-q", "main")
    tip = sources.write(sources.path, {"torch/meanwhile.py": "m\n"})
    git(sources.path, "update-ref", "refs/pull/7/head", head)
    assert out(step, head, "--base-commit", tip).exit_code == 0
    document = load(Checkout, step.run_folder)
    assert document.base_commit == sources.commit
    assert [(file.change, file.path) for file in document.changed_files or ()] == [("A", "torch/b.py")]


def test_a_server_that_cannot_leave_trees_out_still_answers(step: Step, sources: Sources) -> None:
    git(sources.path, "config", "uploadpack.allowFilter", "false")
    ended = out(step, sources.commit, "--base-commit", sources.base)
    assert ended.exit_code == 0
    assert "does not leave trees out" in ended.stdout
    assert load(Checkout, step.run_folder).base_commit == sources.base


def test_the_token_reaches_the_server_and_nothing_else(step: Step, sources: Sources, server: Any) -> None:
    """The login is git's own for github.com; here the lab's address stands for it."""
    step.environment.update(
        GIT_CONFIG_KEY_0=f"url.http://127.0.0.1:{server.server_port}/.insteadOf",
        CRCR_GIT_TOKEN="s3cr3t-token",
    )
    server.RequestHandlerClass.status = 404
    before = (Path(step.environment["HOME"]) / ".gitconfig").read_text()
    ended = out(step, sources.commit)
    assert ended.exit_code == 30
    everything = ended.stdout.replace("::add-mask::s3cr3t-token", "")
    assert "s3cr3t-token" not in everything
    assert [command.name for command in ended.commands if command.name == "add-mask"] == ["add-mask"] * 2
    for path in step.folder.rglob("*"):
        if path.is_file() and path != step.event_file:
            data = path.read_bytes()
            assert b"s3cr3t-token" not in data
            assert b"eC1hY2Nlc3MtdG9rZW4" not in data  # its base64
    assert (Path(step.environment["HOME"]) / ".gitconfig").read_text() == before


def test_a_mirror_stands_for_a_server_also_for_submodules(
    step: Step, sources: Sources, tmp_path: Path
) -> None:
    step.environment["GIT_CONFIG_COUNT"] = "0"
    mirror = f"{(tmp_path / 'github').as_uri()}/ = https://github.com/"
    ended = out(step, sources.commit, "--submodules", "recursive", "--mirrors", mirror)
    assert ended.exit_code == 0, ended.everything
    assert len(load(Checkout, step.run_folder).submodules or ()) == 2


@pytest.mark.parametrize("line", ["https://mirror.example/", "= https://github.com/", "x = y"])
def test_a_mirror_that_is_none_is_a_usage_error(step: Step, sources: Sources, line: str) -> None:
    assert out(step, sources.commit, "--mirrors", line).exit_code == 2


def test_a_reference_repository_lends_its_objects(step: Step, sources: Sources, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--bare", str(sources.path), str(clone))
    assert out(step, sources.commit, "--reference-repository", str(clone)).exit_code == 0
    packed = list((step.run_folder / "pytorch/.git/objects").rglob("*.pack"))
    loose = list((step.run_folder / "pytorch/.git/objects").glob("??/*"))
    assert not packed
    assert not loose


def test_a_reference_that_is_none_costs_time_and_not_the_run(step: Step, sources: Sources) -> None:
    ended = out(step, sources.commit, "--reference-repository", str(step.folder / "nowhere"))
    assert ended.exit_code == 0
    assert [command.name for command in ended.commands if command.name == "warning"] == ["warning"]


class Refusing(BaseHTTPRequestHandler):
    status = 403

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    class Mine(Refusing):
        pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Mine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("status", "code"), [(401, 33), (403, 33), (429, 33), (404, 30), (500, 30)])
def test_a_server_that_refuses_is_told_apart_from_one_that_fails(
    server: Any, status: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_PAUSE_SECONDS", 0.2)
    server.RequestHandlerClass.status = status
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    url = f"http://127.0.0.1:{server.server_port}/pytorch.git"
    with pytest.raises((RateLimited, RemoteUnreachable)) as caught:
        fetch.checkout(url, "ab" * 20, tmp_path / "tree", environment, 30)
    assert caught.value.exit_code == code, caught.value.seen
    assert "4 attempts" in caught.value.seen
    assert caught.value.fix


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("fatal: remote error: upload-pack: not our ref ab", CommitNotFound),
        ("error: Server does not allow request for unadvertised object ab", CommitNotFound),
        ("fatal: write error: No space left on device\nfatal: fetch-pack: invalid index-pack output", CheckoutDiskFull),
        ("error: RPC failed; HTTP 429 curl 22\nfatal: Fetched in submodule path 'x', but it did not contain "
         + "ab" * 20, RateLimited),
        ("fatal: could not read Username for 'https://github.com': terminal prompts disabled", RateLimited),
        ("fatal: Fetched in submodule path 'x', but it did not contain " + "ab" * 20
         + ". Direct fetching of that commit failed.", SubmodulePinMissing),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", RemoteUnreachable),
        ("", RemoteUnreachable),
    ],
)  # fmt: skip
def test_git_s_words_decide_whose_fault_it_is(words: str, error: type[Exception]) -> None:
    assert kind_of(GitAnswer(128, "", words)).error is error


@pytest.fixture
def bundle(step: Step, sources: Sources) -> Path:
    path = step.folder / "bundle.tar.gz"
    ended = out(
        step, sources.commit, "--submodules", "recursive", "--write-bundle", str(path), "--path", "first"
    )
    assert ended.exit_code == 0, ended.everything
    return path


NO_NETWORK = {"GIT_CONFIG_KEY_0": "url.file:///nowhere/.insteadOf"}


def test_a_bundle_needs_no_network_and_keeps_the_commit(step: Step, sources: Sources, bundle: Path) -> None:
    first = load(Checkout, step.run_folder)
    ended = out(step, sources.commit, "--source-bundle", str(bundle), "--path", "second", **NO_NETWORK)
    assert ended.exit_code == 0, ended.everything
    document = load(Checkout, step.run_folder)
    assert (document.how, document.submodules) == ("bundle", first.submodules)
    tree = Path(document.path)
    assert git(tree, "rev-parse", "HEAD") == sources.commit
    assert (tree / "third_party/outer/deep/inner/i.h").read_text() == "inner\n"
    assert git(tree, "status", "--porcelain") == ""


def test_a_bundle_of_another_commit_is_refused(step: Step, sources: Sources, bundle: Path) -> None:
    ended = out(step, sources.base, "--source-bundle", str(bundle), "--path", "second")
    assert ended.exit_code == 36
    assert "another commit" in ended.stdout


def repacked(bundle: Path, change: Callable[[tarfile.TarFile], None], drop: str = "") -> Path:
    target = bundle.with_name("changed.tar")
    with tarfile.open(bundle) as old, tarfile.open(target, "w") as new:
        for item in old:
            if item.name != drop:
                new.addfile(item, old.extractfile(item) if item.isfile() else None)
        change(new)
    return target


def a_file(name: str, text: bytes) -> Callable[[tarfile.TarFile], None]:
    def change(archive: tarfile.TarFile) -> None:
        item = tarfile.TarInfo(name)
        item.size = len(text)
        archive.addfile(item, io.BytesIO(text))

    return change


def a_link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Callable[[tarfile.TarFile], None]:
    def change(archive: tarfile.TarFile) -> None:
        item = tarfile.TarInfo(name)
        item.type, item.linkname = kind, target
        archive.addfile(item)

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (a_file("../outside", b"x"), "no checkout holds"),
        (a_file("/tmp/crcr-outside", b"x"), "no checkout holds"),
        (a_link("torch/link", "../../outside"), "no checkout holds"),
        (a_link("torch/link", "/etc/passwd"), "no checkout holds"),
        (a_link(".git/objects", "torch"), "no checkout holds"),
        (a_link("torch/hard", "torch/a.py", tarfile.LNKTYPE), "no checkout holds"),
        (a_link("torch/fifo", "", tarfile.FIFOTYPE), "no checkout holds"),
        (a_file("torch/a.py", b"changed\n"), "other files than its commit"),
    ],
)
def test_a_bundle_that_was_tampered_with_is_refused(
    step: Step, sources: Sources, bundle: Path, change: Callable[[tarfile.TarFile], None], says: str
) -> None:
    changed = repacked(bundle, change)
    ended = out(step, sources.commit, "--source-bundle", str(changed), "--path", "second")
    assert ended.exit_code == 36
    assert says in ended.stdout
    assert not (step.folder / "outside").exists()
    assert not (step.workspace / "outside").exists()
    assert not Path("/tmp/crcr-outside").exists()


def test_a_bundle_that_was_cut_short_is_refused(step: Step, sources: Sources, bundle: Path) -> None:
    cut = bundle.with_name("cut.tar.gz")
    cut.write_bytes(bundle.read_bytes()[: bundle.stat().st_size // 2])
    for path, says in ((cut, "cut short"), (bundle.with_name("none.tar"), "no source bundle")):
        ended = out(step, sources.commit, "--source-bundle", str(path), "--path", "second")
        assert ended.exit_code == 36
        assert says in ended.stdout


def test_a_bundle_that_cannot_be_written_says_where(step: Step, sources: Sources) -> None:
    """/dev/full is a device: no folder can be made below it."""
    ended = out(step, sources.commit, "--write-bundle", "/dev/full/bundle.tar")
    assert ended.exit_code == 35
    assert "/dev/full/bundle.tar" in ended.stdout
    assert "Traceback" not in ended.stdout
