"""The scenarios of the demo: which webhooks go in, and what must stand on the dashboard afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dispatch_lab.events import Delivery, pull_request_delivery, push_delivery
from dispatch_lab.lab import TOOLKIT, Downstream
from dispatch_lab.small_upstream import make_small_upstream
from dispatch_lab.upstream import Edit, Upstream, make_upstream
from relay_client.protocol.vocabulary import ZERO_SHA
from relay_client.receive.decide import DEFAULT_APPROVAL_LABEL

SOURCE_BUILD = Downstream("lab-vendor/source-build", TOOLKIT / "examples" / "source-build")
REFERENCE = Downstream("lab-vendor/reference-backend", TOOLKIT / "examples" / "reference-backend")


@dataclass(frozen=True)
class Step:
    """One webhook, the commit it is about, and what the dashboard must say of it.

    `failing` are names of tests, one of which each failed test of the row must contain, and each must occur.
    `crashed` is how many tests must have brought their process down. `tested` is false when the run must end
    before any test. `not_run` are words of the receive job's summary: then no other job may run, and no row appear.
    """

    title: str
    delivery: Delivery
    commit: str
    conclusion: str = "success"
    failing: tuple[str, ...] = ()
    crashed: int = 0
    tested: bool = True
    not_run: tuple[str, ...] = ()
    built: tuple[str, bool] | None = None


@dataclass(frozen=True)
class Scenario:
    """A story in one sentence, and its steps, made once the upstream exists."""

    name: str
    story: str
    steps: Callable[[Upstream], tuple[Step, ...]]
    downstream: Downstream = REFERENCE
    environment: Mapping[str, str] = field(default_factory=dict)
    make_upstream: Callable[[Path, Path], Upstream] = make_upstream


HARMLESS_NUMBER = 180_001
HARMLESS = Edit(
    "torch/random.py",
    "Sets the seed for generating random numbers on all devices. Returns a\n    `torch.Generator` object.\n",
    "Sets the seed for generating random numbers on all devices, those of\n"
    "    out-of-tree backends too. Returns a `torch.Generator` object.\n",
)
# A mistake that no test of PyTorch's own on a CPU can notice: only the backend's tests do.
BREAKING_NUMBER = 180_002
BREAKING = Edit(
    "torch/random.py",
    "    _seed_custom_device(seed)\n\n    return default_generator.manual_seed(seed)\n",
    "    return default_generator.manual_seed(seed)\n",
)
BROKEN_TESTS = (
    "test_manual_seed_repeats",
    "test_manual_seed_reaches_every_device",
    "test_every_source_is_seeded",
)


def _harmless(upstream: Upstream) -> tuple[Step, ...]:
    commit = upstream.pull_request(
        HARMLESS_NUMBER, "Say that manual_seed reaches out-of-tree backends", HARMLESS
    )
    delivery = pull_request_delivery(number=HARMLESS_NUMBER, head_sha=commit, base_sha=upstream.main)
    return (Step(f"pull request {HARMLESS_NUMBER} opened", delivery, commit, "success"),)


def _breaking(upstream: Upstream) -> tuple[Step, ...]:
    commit = upstream.pull_request(BREAKING_NUMBER, "Seed only the devices that PyTorch knows", BREAKING)
    push = push_delivery(before=upstream.first, after=upstream.main)
    opened = pull_request_delivery(number=BREAKING_NUMBER, head_sha=commit, base_sha=upstream.main)
    return (
        Step("push to main", push, upstream.main, "success"),
        Step(f"pull request {BREAKING_NUMBER} opened", opened, commit, "failure", BROKEN_TESTS),
    )


# PyTorch moves its public headers, and tells its own build helper: an extension that is compiled now finds none.
MOVING_NUMBER = 180_003
MOVING = Edit(
    "torch/utils/cpp_extension.py",
    "    lib_include = os.path.join(_TORCH_PATH, 'include')\n    if torch_include_dirs:\n        paths.extend([\n",
    "    lib_include = os.path.join(_TORCH_PATH, 'include', 'public')\n"
    "    if torch_include_dirs:\n        paths.extend([\n",
)
# The reference backend's fault, and the one test whose operator it hits.
CRASH = {"REFDEV_FAULT": "segfault:aten::bincount"}
CRASHING_TEST = "test_matches_cpu_bincount"


def _not_compiling(upstream: Upstream) -> tuple[Step, ...]:
    commit = upstream.pull_request(MOVING_NUMBER, "Move the public headers to include/public", MOVING)
    opened = pull_request_delivery(number=MOVING_NUMBER, head_sha=commit, base_sha=upstream.main)
    return (
        Step(
            f"pull request {MOVING_NUMBER} opened",
            opened,
            commit,
            "failure",
            failing=("build-backend",),
            tested=False,
        ),
    )


def _crashing(upstream: Upstream) -> tuple[Step, ...]:
    push = push_delivery(before=upstream.first, after=upstream.main)
    return (Step("push to main", push, upstream.main, "failure", failing=(CRASHING_TEST,), crashed=1),)


# A stranger's first pull request. The label is what a maintainer of upstream adds after reading it.
FIRST_NUMBER = 180_004
FIRST_TIME = "FIRST_TIME_CONTRIBUTOR"
MAINTAINER = "upstream-maintainer"


def _not_trusted(upstream: Upstream) -> tuple[Step, ...]:
    commit = upstream.pull_request(
        FIRST_NUMBER, "Say that manual_seed reaches out-of-tree backends", HARMLESS
    )

    def event(action: str, **more: Any) -> Delivery:
        return pull_request_delivery(
            number=FIRST_NUMBER,
            head_sha=commit,
            base_sha=upstream.main,
            action=action,
            author_association=FIRST_TIME,
            **more,
        )

    labelled = ("open source", DEFAULT_APPROVAL_LABEL)
    return (
        Step(
            f"pull request {FIRST_NUMBER} of a first-time contributor opened",
            event("opened"),
            commit,
            not_run=("Not run", FIRST_TIME, f'adds the label "{DEFAULT_APPROVAL_LABEL}"'),
        ),
        # The bot sets labels for anybody: the label alone, and an act of the author's, are not enough.
        Step(
            f"pull request {FIRST_NUMBER} reopened by its author, with the label",
            event("reopened", labels=labelled),
            commit,
            not_run=("Not run", FIRST_TIME, "nobody with triage rights"),
        ),
        Step(
            f"pull request {FIRST_NUMBER} labelled and reopened by a maintainer",
            event("reopened", labels=labelled, sender=MAINTAINER),
            commit,
        ),
    )


# A pull request that changes C++: no ready wheel can stand for it.
SOURCE_NUMBER = 180_005
SOURCE = Edit("csrc/sum.cpp", '"The sum of whole numbers."', '"The sum of whole numbers, however large."')


def _source(upstream: Upstream) -> tuple[Step, ...]:
    commit = upstream.pull_request(SOURCE_NUMBER, "Say how large the numbers may be", SOURCE)
    push = push_delivery(before=upstream.first, after=upstream.main)
    # PyTorch tags commits of main so; the tag is a push of its own.
    tag = push_delivery(before=ZERO_SHA, after=upstream.main, ref=f"refs/tags/trunk/{upstream.main}")
    opened = pull_request_delivery(number=SOURCE_NUMBER, head_sha=commit, base_sha=upstream.main)
    return (
        Step("push to main", push, upstream.main, built=("source", False)),
        Step("tag on the same commit", tag, upstream.main, built=("source", True)),
        Step(f"pull request {SOURCE_NUMBER} of a fork", opened, commit, built=("source", False)),
    )


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            "pull-request",
            "an outside collaborator's pull request, with a hostile title, is built, tested and green",
            _harmless,
        ),
        Scenario(
            "upstream-breaks",
            "main is green; a pull request that changes PyTorch's Python turns the backend red",
            _breaking,
        ),
        Scenario(
            "backend-does-not-compile",
            "a pull request moves PyTorch's headers; the row says which line of the backend no longer compiles",
            _not_compiling,
        ),
        Scenario(
            "device-crashes",
            "one test brings the process down; every other test has its result, and the row counts the crash",
            _crashing,
            environment=CRASH,
        ),
        Scenario(
            "not-trusted",
            "a first-time contributor's pull request does not run, and the summary says which label lets it; then it does",
            _not_trusted,
        ),
        Scenario(
            "source",
            "C++ with submodules is built from source once, tested in two shards, and not built again for a tag on it",
            _source,
            downstream=SOURCE_BUILD,
            make_upstream=make_small_upstream,
        ),
    )
}


def hostile_traces(folder: Path) -> list[Path]:
    """Files that exist only if text of the webhook was run as a command."""
    return sorted(folder.rglob("pwned*"))
