"""The lab's artifacts: what actions/upload-artifact v7 and actions/download-artifact v8 do, on a folder.

Run by the stand-in actions as ``python3 artifact_store.py upload|download``; inputs come as ``LAB_*`` variables.
Standard library only and Python >= 3.9: the job's own ``python3`` runs it.

The store (``LAB_ARTIFACTS``) is shared by the attempts of one run:
  artifacts/NAME/   the newest artifact of that name, as plain files
  records/NAME.json its attempt, id, digest, size in bytes and number of files
  superseded/ATTEMPT/NAME/  what a later attempt replaced
  claims/ATTEMPT/NAME  one empty folder per name: whoever makes it may upload
Rules are those of the actions' own sources (src/shared/search.ts, src/download-artifact.ts) and of @actions/glob.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

FORBIDDEN_IN_NAMES = '":<>|*?\r\n\\/'
"""Characters GitHub refuses in an artifact's name (@actions/artifact, path-and-artifact-name-validation)."""

_WILDCARDS = "*?["


class Refused(Exception):
    """The action fails with this message, in the wording of the real one where that is known."""


class Pattern(NamedTuple):
    """One line of ``path:``, absolute. ``segments`` may hold ``**``; everything below a match is matched too."""

    negated: bool
    segments: tuple[str, ...]

    @property
    def search_path(self) -> str:
        """The part before the first wildcard: where a search starts."""
        literal: list[str] = []
        for segment in self.segments:
            if any(character in segment for character in _WILDCARDS):
                break
            literal.append(segment)
        return "/" + "/".join(literal)

    def matches(self, path: str) -> bool:
        return _matches(self.segments, tuple(part for part in path.split("/") if part))


def say(line: str) -> None:
    """One line of the step's log."""
    sys.stdout.write(line + "\n")


def parse_patterns(text: str, workspace: str, home: str) -> list[Pattern]:
    """The lines of a ``path:`` input; empty lines and ``#`` comments fall away, ``~`` and relative paths resolve."""
    patterns = []
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        negated = stripped.startswith("!")
        path = stripped[1:].strip() if negated else stripped
        if path == "~" or path.startswith("~/"):
            path = home + path[1:]
        absolute = _absolute(workspace, path)
        patterns.append(Pattern(negated, tuple(part for part in absolute.split("/") if part)))
    return patterns


def search_paths(patterns: Iterable[Pattern]) -> list[str]:
    """Where the search starts, without what lies below another start. Exclusions do not count."""
    starts = sorted({pattern.search_path for pattern in patterns if not pattern.negated})
    return [path for path in starts if not any(_is_below(path, other) for other in starts)]


def artifact_root(starts: Sequence[str], found: Sequence[str]) -> str:
    """The folder that paths inside the artifact are relative to.

    Several starts: their least common ancestor. One file named outright: its folder. Else the start itself.
    """
    if len(starts) > 1:
        return os.path.commonpath(starts)
    if list(found) == list(starts):
        return str(Path(starts[0]).parent)
    return starts[0]


def files_to_upload(patterns: Sequence[Pattern], hidden: bool) -> Iterator[str]:
    """Files the patterns take, in order. Without ``hidden``, nothing named ``.x`` is entered or taken.

    A hidden folder that is part of a search path does not count: only names met on the way down do, and the start.
    """
    for start in search_paths(patterns):
        for path in _walk(start, hidden):
            taken = False
            for pattern in patterns:  # in order: a later line may take back what an earlier one excluded
                if pattern.matches(path):
                    taken = not pattern.negated
            if taken:
                yield path


def select(names: Sequence[str], pattern: str) -> list[str]:
    """Artifact names that a download pattern takes; an empty pattern takes all. Like minimatch, ``*`` spares ``.x``."""
    if not pattern:
        return list(names)
    if pattern.startswith("!") or any(character in pattern for character in "{}()"):
        raise Refused(f"The lab's stand-in knows only *, ? and [] in patterns, not: {pattern}")
    return [
        name
        for name in names
        if fnmatch.fnmatchcase(name, pattern) and (not name.startswith(".") or pattern.startswith("."))
    ]


def upload(environment: Mapping[str, str]) -> dict[str, str]:
    """Upload by the ``LAB_*`` inputs. Returns the action's outputs, none if there was nothing to upload."""
    name, wanted = environment["LAB_NAME"], environment["LAB_IF_NO_FILES_FOUND"]
    if not name or any(character in name for character in FORBIDDEN_IN_NAMES):
        raise Refused(
            f"The artifact name is not valid: {name!r}. It may not contain any of {FORBIDDEN_IN_NAMES!r}"
        )
    if wanted not in ("warn", "error", "ignore"):
        raise Refused(
            f"Unrecognized if-no-files-found input. Provided: {wanted}. Available options: warn,error,ignore"
        )
    if environment["LAB_ARCHIVE"] != "true":
        raise Refused("The lab's stand-in knows only archive: true")
    patterns = parse_patterns(environment["LAB_PATH"], environment["GITHUB_WORKSPACE"], environment["HOME"])
    if not any(not pattern.negated for pattern in patterns):
        raise Refused("Input required and not supplied: path")
    found = list(files_to_upload(patterns, environment["LAB_INCLUDE_HIDDEN_FILES"] == "true"))
    if not found:
        message = f"No files were found with the provided path: {environment['LAB_PATH']}. No artifacts will be uploaded."
        if wanted == "error":
            raise Refused(message)
        say(f"::warning::{_escaped(message)}" if wanted == "warn" else message)
        return {}
    root = artifact_root(search_paths(patterns), found)
    say(f"With the provided path, there will be {len(found)} file{'' if len(found) == 1 else 's'} uploaded")
    record = _store(environment, name, root, found, environment["LAB_OVERWRITE"] == "true")
    run = f"{environment['GITHUB_SERVER_URL']}/{environment['GITHUB_REPOSITORY']}/actions/runs"
    return {
        "artifact-id": str(record["id"]),
        "artifact-url": f"{run}/{environment['GITHUB_RUN_ID']}/artifacts/{record['id']}",
        "artifact-digest": str(record["digest"]),
    }


def download(environment: Mapping[str, str]) -> dict[str, str]:
    """Download by the ``LAB_*`` inputs. Returns the action's outputs.

    One artifact (by name, or the only one that matches) lands in the path itself; several get a folder each, unless
    they are to be merged.
    """
    if environment["LAB_ARTIFACT_IDS"] or environment["LAB_SKIP_DECOMPRESS"] == "true":
        raise Refused("The lab's stand-in knows neither artifact-ids nor skip-decompress")
    if environment["LAB_RUN_ID"] not in ("", environment["GITHUB_RUN_ID"]):
        raise Refused("The lab's stand-in knows only artifacts of the run itself")
    store = Path(environment["LAB_ARTIFACTS"])
    wanted = environment["LAB_PATH"] or environment["GITHUB_WORKSPACE"]
    if wanted.startswith("~"):
        wanted = environment["HOME"] + wanted[1:]
    target = Path(_absolute(environment["GITHUB_WORKSPACE"], wanted))
    present = sorted(path.name[: -len(".json")] for path in (store / "records").glob("*.json"))
    name = environment["LAB_NAME"]
    if name and name not in present:
        raise Refused(
            f"Unable to download artifact(s): Artifact not found for name: {name}. Present: {', '.join(present) or 'none'}"
        )
    chosen = [name] if name else select(present, environment["LAB_PATTERN"])
    flat = bool(name) or environment["LAB_MERGE_MULTIPLE"] == "true" or len(chosen) == 1
    for artifact in chosen:
        into = target if flat else target / artifact
        say(f"- {artifact} -> {into}")
        shutil.copytree(store / "artifacts" / artifact, into, dirs_exist_ok=True, copy_function=_copy_content)
    say(f"Total of {len(chosen)} artifact(s) downloaded")
    return {"download-path": str(target)}


def _store(
    environment: Mapping[str, str], name: str, root: str, found: Sequence[str], overwrite: bool
) -> dict[str, object]:
    store, attempt = Path(environment["LAB_ARTIFACTS"]), environment["GITHUB_RUN_ATTEMPT"]
    _claim(store / "claims" / attempt / name, overwrite)
    record = {
        "name": name,
        "attempt": int(attempt),
        "id": time.time_ns() // 1000,
        "digest": _digest(root, found),
        "size": sum(Path(path).stat().st_size for path in found),
        "files": len(found),
        "job": environment.get("GITHUB_JOB", ""),
        "created_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    for folder in ("artifacts", "records", "incoming"):
        (store / folder).mkdir(parents=True, exist_ok=True)
    incoming = Path(tempfile.mkdtemp(dir=store / "incoming"))
    for path in found:
        target = incoming / os.path.relpath(path, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy_content(path, str(target))
    _set_aside(store, name)
    incoming.rename(store / "artifacts" / name)
    (store / "records" / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return record


def _claim(claim: Path, overwrite: bool) -> None:
    """Take the name, once per attempt: making a folder is atomic, so of two jobs at once one is refused."""
    claim.parent.mkdir(parents=True, exist_ok=True)
    try:
        claim.mkdir()
    except FileExistsError:
        if not overwrite:
            raise Refused(
                "Failed to CreateArtifact: Received non-retryable error: Failed request: (409) Conflict: "
                "an artifact with this name already exists on the workflow run"
            ) from None


def _set_aside(store: Path, name: str) -> None:
    """Move the artifact that this one replaces to where its attempt's are kept."""
    record = store / "records" / f"{name}.json"
    if not record.exists():
        return
    attempt = json.loads(record.read_text(encoding="utf-8"))["attempt"]
    kept = store / "superseded" / str(attempt) / name
    shutil.rmtree(kept, ignore_errors=True)
    kept.parent.mkdir(parents=True, exist_ok=True)
    record.unlink()
    (store / "artifacts" / name).rename(kept)


def _copy_content(source: str, target: str) -> str:
    """Copy without permissions: an artifact does not keep them."""
    return shutil.copyfile(source, target)


def _digest(root: str, found: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(os.path.relpath(path, root).encode() + b"\0" + Path(path).read_bytes())
    return digest.hexdigest()


def _walk(start: str, hidden: bool) -> Iterator[str]:
    if not hidden and Path(start).name.startswith("."):
        return
    if Path(start).is_file():
        yield start
    visited = set()
    for folder, folders, files in os.walk(start, followlinks=True):
        real = os.path.realpath(folder)
        if real in visited:  # a link to a folder above would never end
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if hidden or not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            if (hidden or not name.startswith(".")) and path.exists():
                yield str(path)


def _matches(pattern: tuple[str, ...], path: tuple[str, ...]) -> bool:
    if not pattern:
        return True  # what lies below a match is matched: @actions/glob's implicit descendants
    if pattern[0] == "**":
        return any(_matches(pattern[1:], path[i:]) for i in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and _matches(pattern[1:], path[1:])


def _absolute(workspace: str, path: str) -> str:
    """Like node's path.resolve: ``..`` is resolved in the text, links are not followed."""
    return os.path.normpath(Path(workspace, path))


def _is_below(path: str, other: str) -> bool:
    return path != other and path.startswith(other.rstrip("/") + "/")


def _escaped(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def main(verb: str, environment: Mapping[str, str]) -> int:
    try:
        outputs = {"upload": upload, "download": download}[verb](environment)
    except Refused as refusal:
        say(f"::error::{_escaped(str(refusal))}")
        return 1
    with Path(environment["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.writelines(f"{key}={value}\n" for key, value in outputs.items())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], os.environ))
