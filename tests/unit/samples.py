"""One complete value of every document, for tests that hold for all of them."""

from __future__ import annotations

from relay_client.documents.build import Backend, Build, Overlay, Torch, Wheel
from relay_client.documents.checkout import ChangedFile, Checkout
from relay_client.documents.document import Document
from relay_client.documents.evidence import Counts, Evidence
from relay_client.documents.failure import Failure
from relay_client.documents.manifest import Manifest, Named, Recipe
from relay_client.documents.plan import Collected, Plan, Selection
from relay_client.documents.receive import Decision, Receive
from relay_client.documents.report import Report, Sent, Verdict
from relay_client.protocol.callback import FailedTest, TestResults

COMMIT = "5f" * 20
BASE = "0b" * 20
_WHEEL = Wheel("torch-2.0-py3-none-any.whl", "ab" * 32)

EVIDENCE = Evidence(
    row="test",
    run_attempt=1,
    commit=COMMIT,
    torch_git_version=COMMIT,
    shard=1,
    shards=1,
    counts=Counts(planned=5, passed=3, failed=0, skipped=1, xfailed=1, crashed=0, lost=0),
    broken_files=(),
    failures=(),
    exit_code=0,
    started_at="2026-11-30T10:11:12Z",
    completed_at="2026-11-30T10:12:12Z",
    junit=("junit.xml",),
)

DOCUMENTS: tuple[Document, ...] = (
    Receive(
        "pull_request", "8f0c", "pytorch/pytorch", COMMIT, Decision("run", "why"), "opened", 7, BASE, "main"
    ),
    Checkout(
        "https://host.invalid/r.git", COMMIT, "/w", "fetch-by-sha", 1.5, BASE, (ChangedFile("M", "a.py"),)
    ),
    Build(
        provider="overlay",
        commit=COMMIT,
        interpreter="/run/python",
        torch=Torch("2.0", COMMIT, "/run/torch"),
        wheel=_WHEEL,
        seconds=3,
        overlay=Overlay(BASE, ("a.py",), ("b.py",), 2_300),
        backends=(Backend(".", _WHEEL), Backend("other")),
    ),
    Manifest(
        recipe=Recipe(
            commit=COMMIT,
            submodules=(Named("third_party/x", BASE),),
            flags=(Named("USE_CUDA", "0"),),
            requirements=("ninja",),
            command="",
            compiler="g++ 12",
            python="cpython-311",
            platform="linux x86_64",
            image="",
            recipe_version=1,
        ),
        file=_WHEEL.file,
        sha256=_WHEEL.sha256,
        built_at="2026-11-30T10:11:12+00:00",
        seconds=3.5,
        jobs=2,
    ),
    Plan(
        commit=COMMIT,
        selection=Selection(("GENERIC",), "skip"),
        collected=Collected(1, 2, 3, 4, 5),
        paths=("/w/tests",),
        tests=("tests/test_a.py::A::test_b",),
        unclassified_classes=("C",),
        broken_files=("tests/test_c.py: SyntaxError",),
    ),
    EVIDENCE,
    Failure("test", 1, "build-pytorch", "WrongTorch", "what", "seen", "fix"),
    Report(
        "test",
        "77-1-9f86d081",
        Sent("https://relay.invalid/github/callback", "completed", "delivered", 2, 200, '{"ok":true}'),
        Verdict("failure", ("1 test failed",), TestResults(1, 1, 0, 2)),
    ),
)

FAILED = FailedTest("test_b", "A", "it broke", "Traceback", 0.25)
