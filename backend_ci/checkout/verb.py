"""`crcr checkout`: the dispatched commit as a working tree, and `checkout.json`."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

from backend_ci.checkout.bundle import require_commit, unpack_bundle, write_bundle
from backend_ci.checkout.fetch import changed_files, checkout, fetch, make_room, merge_base
from backend_ci.checkout.submodules import CHOICES, fetch_submodules, submodules_here
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import load, save
from relay_client.errors import BadBundle, UsageError
from relay_client.protocol import vocabulary as words
from relay_client.protocol.shape import show
from relay_client.runner.commands import Commands
from relay_client.runner.context import RunContext
from relay_client.runner.git import Git, without_credentials
from relay_client.runner.options import StageOptions, option


@dataclass(frozen=True)
class CheckoutOptions(StageOptions):
    commit: str = option("Upstream commit, 40 hexadecimal digits", default="")
    base_commit: str = option("Commit it is compared with; the overlay needs it", default="")
    repository: str = option(
        "Git remote of the upstream repository", default=f"https://github.com/{words.UPSTREAM_REPOSITORY}.git"
    )
    path: Optional[Path] = option("Working tree to make (default: pytorch in the run folder)", default=None)
    submodules: str = option(
        "Which submodules to fetch; building from source needs all of them", default="none", one_of=CHOICES
    )
    git_token: Optional[str] = option(
        "Token that may read the upstream repositories, against rate limits: github.token. Only this stage sees it, "
        "and no disk does",
        default=None,
    )
    mirrors: tuple[str, ...] = option(
        "Where else to fetch from, `https://mirror.example/ = https://github.com/`, one a line", default=()
    )
    reference_repository: Optional[Path] = option(
        "A clone of PyTorch on this machine, to borrow objects from (self-hosted runners)", default=None
    )
    source_bundle: Optional[Path] = option(
        "Checkout as one file, written by another job: unpacked instead of fetched", default=None
    )
    write_bundle: Optional[Path] = option(
        "File to write the checkout to, for runners that cannot reach GitHub (*.tar or *.tar.gz)",
        default=None,
    )
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
    with commands.group(f"Check out {options.commit[:12]} of {without_credentials(options.repository)}"):
        if options.source_bundle is not None:
            document = _from_bundle(options, path, context, commands)
        else:
            document = _from_remote(options, path, context, commands)
        document = replace(document, seconds=round(time.monotonic() - started, 3))
        if options.write_bundle is not None:
            commands.line(f"Writing {options.write_bundle} ...")
            save(document, path / ".git")
            write_bundle(path, options.write_bundle.absolute())
    save(document, folder)
    commands.output("path", str(path))
    commands.output("commit", options.commit)
    commands.line(f"{path} is at {options.commit} ({document.seconds:.1f} s)")


def _from_remote(options: CheckoutOptions, path: Path, context: RunContext, commands: Commands) -> Checkout:
    deadline = options.fetch_timeout_minutes * 60
    settings = git_settings(options.git_token, options.mirrors, commands)
    reference = _reference(options.reference_repository, commands)
    git = checkout(
        options.repository, options.commit, path, context.environment, deadline, settings, reference
    )
    submodules = None
    if options.submodules != "none":
        commands.line("Fetching submodules ...")
        submodules = fetch_submodules(git, options.submodules, deadline)
        commands.line(f"{len(submodules)} submodule(s), each at its pin")
    base, changed = None, None
    if options.base_commit:
        base = merge_base(options.repository, options.base_commit, options.commit, git, deadline, commands)
        fetch(git, options.repository, base, deadline)
        changed = changed_files(git, base, options.commit)
        commands.line(f"{len(changed)} changed file(s) since {base[:12]}")
    return Checkout(
        remote=without_credentials(options.repository),
        commit=options.commit,
        path=str(path),
        how="fetch-by-sha",
        seconds=0.0,
        base_commit=base,
        changed_files=changed,
        submodules=submodules,
    )


def _from_bundle(options: CheckoutOptions, path: Path, context: RunContext, commands: Commands) -> Checkout:
    """What the job that wrote the bundle found out, for files that are proven to be the commit's."""
    if options.source_bundle is None:
        raise AssertionError("called for a bundle")
    make_room(path)
    path.mkdir(parents=True)
    commands.line(f"Unpacking {options.source_bundle} ...")
    unpack_bundle(options.source_bundle.absolute(), path)
    git = Git(path, context.environment)
    require_commit(git, options.commit)
    written = load(Checkout, path / ".git")
    pins = dict.fromkeys(item.path for item in written.submodules or ())
    if pins and submodules_here(git, "recursive") != written.submodules:
        raise BadBundle(
            "A submodule of the source bundle does not stand at its pin.",
            seen=f"{len(pins)} submodules were written",
            fix="write it again with `crcr checkout --write-bundle`",
        )
    return replace(written, path=str(path), how="bundle")


def git_settings(
    token: Optional[str], mirrors: Sequence[str], commands: Commands
) -> tuple[tuple[str, str], ...]:
    """What git is told through its environment: the login, and where else to fetch from. Raises UsageError."""
    settings = []
    if token:
        commands.mask(token)
        login = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        commands.mask(login)
        # As actions/checkout does: the header is sent to this host alone.
        settings.append(("http.https://github.com/.extraheader", f"AUTHORIZATION: basic {login}"))
    for line in mirrors:
        mirror, equals, original = (part.strip() for part in line.partition("="))
        if not equals or "://" not in mirror or "://" not in original:
            raise UsageError(
                "mirrors has a line that names no mirror.",
                seen=show(line),
                fix="mirrors: https://mirror.example/ = https://github.com/",
            )
        settings.append((f"url.{mirror}.insteadOf", original))
    return tuple(settings)


def _reference(repository: Optional[Path], commands: Commands) -> Optional[Path]:
    """The objects of a repository to borrow from. One that is not there costs time, not the run."""
    if repository is None:
        return None
    for objects in (repository / ".git" / "objects", repository / "objects"):
        if objects.is_dir():
            return objects.absolute()
    commands.warning(f"reference-repository is no git repository: {repository}. Fetching everything.")
    return None


def require_sha(name: str, value: str) -> None:
    """Raises UsageError unless the value is a full SHA: git takes short ones only from local commits."""
    if not re.fullmatch(words.SHA_PATTERN, value):
        raise UsageError(
            f"{name} is not a full commit SHA.", seen=show(value), fix=f"{name}: {words.SHA_EXPECTS}"
        )
