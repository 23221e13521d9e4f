"""The verbs of `crcr` as a table. A verb's module is imported only when it is asked for.

Each module has OPTIONS (its options classes), OUTPUTS (what it sets, with descriptions) and
`run(options…, context, commands)`. The composite actions and their tests read the same table.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Verb:
    """One verb: where it lives, the action that wraps it (none: for the shell alone), what it does in a line."""

    name: str
    module: str
    action: str
    summary: str

    def load(self) -> ModuleType:
        return importlib.import_module(self.module)


VERBS = (
    Verb("receive", "relay_client.receive.verb", "actions/receive-dispatch",
         "Read the dispatch, decide whether to run, and name the commit"),
    Verb("token", "relay_client.token.verb", "actions/fetch-oidc-token",
         "Get an OIDC token for the relay as a masked output"),
    Verb("checkout", "backend_ci.checkout.verb", "actions/checkout-pytorch",
         "Check out the exact upstream commit"),
    Verb("build-pytorch", "backend_ci.build.pytorch", "actions/build-pytorch",
         "Install PyTorch at that commit in the run's own environment"),
    Verb("build-backend", "backend_ci.build.backend", "actions/build-backend",
         "Build the backend extension against it"),
    Verb("hand-over", "backend_ci.build.handover", "",
         "Gather what other jobs need to install this build"),
    Verb("install", "backend_ci.build.install", "",
         "Install a build that another job handed over"),
    Verb("plan", "backend_ci.testing.plan", "actions/run-classified-tests",
         "Collect the tests that fit the hardware"),
    Verb("test", "backend_ci.testing.execute", "actions/run-classified-tests",
         "Run them and leave the evidence"),
    Verb("report", "relay_client.report.verb", "actions/report-status",
         "Tell the relay that a row runs, or how it ended"),
    Verb("classify", "backend_ci.testing.classify.verb", "",
         "Say which hardware each test class is for, without importing it"),
    Verb("lint", "backend_ci.testing.lint.verb", "",
         "Check test classes against PyTorch's rules, and find hard-coded devices"),
    Verb("doctor", "crcr.doctor.verb", "",
         "Say before the first run why results would not show"),
    Verb("resend", "relay_client.report.resend", "",
         "Deliver the callbacks that wait in an outbox"),
    Verb("skips check", "backend_ci.testing.skips.check_verb", "",
         "Find what is wrong with skip lists: stale, expired, malformed, redundant entries"),
    Verb("skips compress", "backend_ci.testing.skips.compress_verb", "",
         "Fold a skip list's entries into rules, and prove that they match the same tests"),
    Verb("run", "crcr.run", ".",
         "Walk checkout, build-pytorch, build-backend, plan and test"),
)  # fmt: skip

BY_NAME = {verb.name: verb for verb in VERBS}
