"""The capabilities of a run: read, held against the installed PyTorch, and turned into what a plan needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from backend_ci.testing.capabilities.database import read_database
from backend_ci.testing.capabilities.derive import skips, tolerances, validate
from backend_ci.testing.capabilities.read import read_capabilities
from backend_ci.testing.session import SessionPlace
from backend_ci.testing.skips.entry import Entry
from backend_ci.testing.skips.read import Python
from relay_client.documents.plan import PlannedTolerance


@dataclass(frozen=True)
class Stated:
    """What the backend does not do, as entries of a skip list, and its tolerances."""

    skips: tuple[Entry, ...] = ()
    tolerances: tuple[PlannedTolerance, ...] = ()


NOTHING = Stated()


def state(path: Path, place: SessionPlace, python: Python) -> Stated:
    """Raises BadCapabilities."""
    capabilities = read_capabilities(path, python=python)
    place.commands.line("Asking the installed PyTorch for its operators ...")
    database = read_database(place, python.interpreter)
    validate(capabilities, database)
    return Stated(tuple(skips(capabilities, database)), tolerances(capabilities))
