"""`crcr checkout`: the dispatched commit as a working tree, and `checkout.json`."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from backend_ci.checkout.fetch import changed_files, checkout, fetch
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import save
from relay_client.errors import UsageError
from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import show
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.git import without_credentials
from relay_client.runner.options import StageOptions, option


@dataclass(frozen=True)
class CheckoutOptions(StageOptions):
    commit: str = option("Upstream commit, 40 hexadecimal digits", default="")
    base_commit: str = option("Commit it is compared with; the overlay needs it", default="")
    repository: str = option(
        "Git remote of the upstream repository", default=f"https://github.com/{words.UPSTREAM_REPOSITORY}.git"
    )
    path: Optional[Path] = option("Working tree to make (default: pytorch in the run folder)", default=None)
    fetch_timeout_minutes: float = option("How long one fetch may take", default=15.0)


OPTIONS = (CheckoutOptions,)

OUTPUTS = {"path": "The working tree, absolute", "commit": "What is checked out"}


def run(options: CheckoutOptions, context: RunContext, commands: Commands) -> None:
    """Raises CheckoutError, UsageError."""
    require_sha("commit", options.commit)
    if options.base_commit:
        require_sha("base-commit", options.base_commit)
    started = time.monotonic()
    folder = context.run_folder(options.run_dir)
    path = (options.path or folder / "pytorch").absolute()
    deadline = options.fetch_timeout_minutes * 60
    with commands.group(f"Check out {options.commit[:12]} of {without_credentials(options.repository)}"):
        git = checkout(options.repository, options.commit, path, context.environment, deadline)
        changed = None
        if options.base_commit:
            fetch(git, options.repository, options.base_commit, deadline)
            changed = changed_files(git, options.base_commit, options.commit)
            commands.line(f"{len(changed)} changed file(s) since {options.base_commit[:12]}")
    document = Checkout(
        remote=without_credentials(options.repository),
        commit=options.commit,
        path=str(path),
        how="fetch-by-sha",
        seconds=round(time.monotonic() - started, 3),
        base_commit=options.base_commit or None,
        changed_files=changed,
    )
    save(document, folder)
    commands.output("path", str(path))
    commands.output("commit", options.commit)
    commands.line(f"{path} is at {options.commit} ({document.seconds:.1f} s)")


def require_sha(name: str, value: str) -> None:
    """Raises UsageError unless the value is a full SHA: git takes short ones only from local commits."""
    if not re.fullmatch(words.SHA_PATTERN, value):
        raise UsageError(
            f"{name} is not a full commit SHA.", seen=show(value), fix=f"{name}: {words.SHA_EXPECTS}"
        )
