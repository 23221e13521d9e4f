"""The floors of the house, read from the imports of every file."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("relay_client", "backend_ci", "crcr", "relay_server", "dispatch_lab", "dev")

# Package: what else of the house it may import. Everything it may import of itself is in `_WALLS`.
_FLOORS = {
    "relay_client": (),
    "backend_ci": ("relay_client",),
    "crcr": ("relay_client", "backend_ci"),
    "relay_server": ("relay_client.protocol",),
    "dispatch_lab": ("relay_client", "backend_ci", "crcr", "relay_server"),
    "dev": ("relay_client", "backend_ci", "crcr"),
}
# Stages do not know each other; they meet through documents. (importer, what it must not import, but may)
_WALLS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("relay_client.protocol", ("relay_client.",), ("relay_client.protocol",)),
    ("relay_client.documents", ("relay_client.",),
     ("relay_client.protocol", "relay_client.documents", "relay_client.errors")),
    ("relay_client.runner", ("relay_client.receive", "relay_client.token", "relay_client.report"), ()),
    ("relay_client.receive", ("relay_client.token", "relay_client.report"), ()),
    ("relay_client.token", ("relay_client.receive", "relay_client.report"), ()),
    # report mints a token per send, and decides again from the event when the receive job died.
    ("relay_client.report", ("relay_client.token", "relay_client.receive"),
     ("relay_client.token.mint", "relay_client.receive.event", "relay_client.receive.doors", "relay_client.receive.untestable")),
    ("backend_ci", ("relay_client.receive", "relay_client.token", "relay_client.report", "relay_client.http"), ()),
    ("backend_ci.checkout", ("backend_ci.build", "backend_ci.testing"), ()),
    ("backend_ci.build", ("backend_ci.checkout", "backend_ci.testing"), ()),
    ("backend_ci.testing", ("backend_ci.checkout", "backend_ci.build"), ()),
)  # fmt: skip
_STANDARD_ONLY = ("relay_client", "backend_ci", "crcr")
# Runs inside the environment under test, as a stranger among strangers.
_INSIDE = {
    "backend_ci.testing.inside.crcr_session": {"pytest", "torch"},
    "backend_ci.testing.inside.list_operators": {"torch"},
}


def modules() -> Iterator[tuple[str, str]]:
    """Every module of the house, as (dotted name, source)."""
    for package in OURS:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "stand_ins" in path.parts:
                continue  # a script of its own
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path.read_text(encoding="utf-8")


def imports(module: str, source: str, is_package: bool = False) -> set[str]:
    """The dotted names a module imports, relative ones resolved, names taken from a module included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")[: None if is_package and node.level == 1 else -node.level]
                base = ".".join([*parents, *filter(None, [node.module])])
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def below(name: str, prefix: str) -> bool:
    return name == prefix.rstrip(".") or name.startswith(prefix.rstrip(".") + ".")


def is_any(name: str, prefixes: Iterable[str]) -> bool:
    """Whether a name is one of the prefixes, below one, or a package on the way to one."""
    return any(below(name, prefix) or prefix.startswith(name + ".") for prefix in prefixes)


def offences(module: str, source: str) -> list[str]:
    """What a module imports and must not."""
    package = module.partition(".")[0]
    wrong = []
    for name in sorted(imports(module, source)):
        top = name.partition(".")[0]
        if top in OURS and top != package and not is_any(name, _FLOORS[package]):
            wrong.append(f"{module} imports {name}: not a floor below")
        wrong += [
            f"{module} imports {name}: a wall stands between"
            for importer, forbidden, allowed in _WALLS
            if below(module, importer)
            and any(below(name, each) for each in forbidden)
            and not is_any(name, (importer, *allowed))
        ]
        foreign = top not in OURS and top not in sys.stdlib_module_names
        if package in _STANDARD_ONLY and foreign and top not in _INSIDE.get(module, ()):
            wrong.append(f"{module} imports {name}: not in the standard library")
    return wrong


def test_every_import_points_down() -> None:
    found = list(modules())
    assert len(found) > 60
    assert [offence for module, source in found for offence in offences(module, source)] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("relay_client.http", "import requests"),
        ("relay_client.http", "import backend_ci.build"),
        ("relay_client.receive.verb", "from relay_client.report.deliver import deliver"),
        ("relay_client.report.verb", "from relay_client.receive.verb import run"),
        ("relay_client.protocol.shape", "from relay_client.errors import CrcrError"),
        ("relay_client.protocol.shape", "from .. import errors"),
        ("backend_ci.build.pytorch", "from relay_client.token import mint"),
        ("backend_ci.build.pytorch", "from relay_client import token"),
        ("backend_ci.build.pytorch", "from backend_ci.testing.plan import run"),
        ("backend_ci.testing.plan", "import torch"),
        ("crcr.run", "import yaml"),
        ("crcr.run", "from dispatch_lab import lab"),
        ("relay_server.app", "from relay_client.errors import CrcrError"),
        ("relay_server.app", "import crcr"),
    ],
)
def test_a_forbidden_import_is_found(module: str, line: str) -> None:
    assert offences(module, line)


def test_only_the_runner_starts_processes_on_the_side_that_holds_tokens() -> None:
    starters = {
        module
        for module, source in modules()
        if module.startswith("relay_client.") and {"subprocess", "os.system", "pty"} & imports(module, source)
    }
    assert starters == {"relay_client.runner.process", "relay_client.runner.git"}


@pytest.mark.parametrize("package", _STANDARD_ONLY)
def test_the_runner_side_is_python_3_9(package: str) -> None:
    for module, source in modules():
        if below(module, package):
            ast.parse(source, feature_version=(3, 9))
