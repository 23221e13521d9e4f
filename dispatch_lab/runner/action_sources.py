"""Where every ``uses:`` of a run comes from: a local folder, or a clear error before act starts.

act would fetch what is not mapped from the network; the lab never does. What is followed: the workflow, the
downstream's own actions (``./path``), and the toolkit's composites, as deep as they nest.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from dispatch_lab.errors import LabError
from dispatch_lab.runner.workflow_copy import REMOTE_ACTION, Use, find_uses

STAND_INS = Path(__file__).with_name("stand_ins")
"""One folder per action of the ``actions`` organisation that the lab plays, and the script they share."""

_NOT_IN_A_TOOLKIT = shutil.ignore_patterns(".git", ".venv", "__pycache__")


@dataclass
class ActionSources:
    """Collects the ``--local-repository`` mappings of one run.

    ``home``: OWNER/NAME of the toolkit, ``toolkit``: its snapshot. ``repository``, ``sha``, ``workspace``: the
    downstream and its working copy. ``stand_ins``: folder that holds the assembled stand-in actions.
    """

    home: str
    toolkit: Path
    repository: str
    sha: str
    workspace: Path
    stand_ins: Path
    mappings: dict[str, Path] = field(default_factory=dict)
    _seen: set[Path] = field(default_factory=set)

    def add(self, use: Use) -> None:
        """Map one ``uses:`` line and all that it nests. Raises LabError naming the line if that cannot be done."""
        text = self.rewritten(use.text)
        if text.startswith("./"):
            self._follow(self.workspace / text, use)
            return
        found = REMOTE_ACTION.fullmatch(text)
        if text.startswith("docker://") or found is None:
            raise LabError("The lab cannot run this action", use.place, "Use OWNER/REPO[/path]@ref or ./path")
        owner_and_name = f"{found['owner']}/{found['name']}"
        inner = found["path"] or ""
        if owner_and_name.lower() == self.home.lower():
            folder = self.toolkit
            self._follow(folder / inner, use)
        elif owner_and_name.lower() == self.repository.lower():
            folder = self.workspace
            self._follow(folder / inner, use)
        elif owner_and_name == "actions/checkout":
            _check_plain_checkout(use)
            return
        elif found["owner"] == "actions" and (self.stand_ins / found["name"] / inner).is_dir():
            folder = self.stand_ins / found["name"]
        else:
            raise LabError(
                "The lab has no local copy of this action, and act must not fetch it",
                use.place,
                f"Use {self.home} or one of: actions/checkout, "
                + ", ".join(f"actions/{name}" for name in stand_in_names()),
            )
        self.mappings[f"{owner_and_name}@{found['ref']}"] = folder

    def rewritten(self, text: str) -> str:
        """``$/path`` as ``OWNER/REPO/path@SHA``: act 0.2.89 rejects the short form; anything else unchanged."""
        if not text.startswith("$/"):
            return text
        inner = text.removeprefix("$/").strip("/")
        return f"{self.repository}/{inner}@{self.sha}" if inner else f"{self.repository}@{self.sha}"

    def _follow(self, folder: Path, use: Use) -> None:
        manifest = next((folder / n for n in ("action.yml", "action.yaml") if (folder / n).is_file()), None)
        if manifest is None:
            raise LabError("The action has no action.yml", use.place, "Correct the path, or add the action")
        if manifest in self._seen:
            return
        self._seen.add(manifest)
        root = self.toolkit if manifest.is_relative_to(self.toolkit) else self.workspace
        for nested in find_uses(manifest.read_text(encoding="utf-8"), str(manifest.relative_to(root))):
            if nested.text.startswith("$/"):
                raise LabError(
                    "act cannot resolve $/ inside a composite action", nested.place, "Use OWNER/REPO/path@ref"
                )
            self.add(nested)


def stand_in_names() -> list[str]:
    """Names of the actions the lab plays itself, without their owner."""
    return sorted(folder.name for folder in STAND_INS.iterdir() if (folder / "action.yml").is_file())


def assemble_stand_ins(folder: Path) -> None:
    """Copy each stand-in with the script it runs: act copies an action alone, so nothing beside it can be reached."""
    for name in stand_in_names():
        shutil.copytree(STAND_INS / name, folder / name)
        shutil.copy(STAND_INS / "artifact_store.py", folder / name)


def snapshot(tree: Path, folder: Path) -> None:
    """Copy a working tree as a commit of it would be: tracked and new files, nothing that git ignores.

    Needed because act copies a mapped folder whole for each use of it, virtual environments included.
    """
    listing = subprocess.run(
        ["git", "-C", str(tree), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listing.returncode != 0:
        shutil.copytree(tree, folder, symlinks=True, ignore=_NOT_IN_A_TOOLKIT)
        return
    folder.mkdir(parents=True)
    for name in filter(None, listing.stdout.decode().split("\0")):
        source, target = tree / name, folder / name
        if source.is_file() or source.is_symlink():  # a tracked file may be deleted in the tree
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)


def _check_plain_checkout(use: Use) -> None:
    """act plays actions/checkout itself (it copies the workspace), but only for the workflow's own commit."""
    foreign = {key: use.inputs[key] for key in ("repository", "ref") if key in use.inputs}
    if foreign:
        raise LabError(
            "The lab cannot check out another repository or ref with actions/checkout",
            f"{use.place} with {foreign}",
            "Check out the workflow's own commit only; fetch others with the toolkit's checkout action",
        )
