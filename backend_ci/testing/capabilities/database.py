"""Ask the installed PyTorch which operators its tests have. Its answer is read as a stranger's."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from backend_ci.testing.capabilities.derive import Database
from backend_ci.testing.session import SessionPlace
from relay_client.errors import BadCapabilities
from relay_client.runner.process import run, scrubbed

_SCRIPT = Path(__file__).parent.parent / "inside" / "list_operators.py"
_SECONDS = 300.0


def read_database(place: SessionPlace, interpreter: str) -> Database:
    """Some seconds of importing. Raises BadCapabilities when this PyTorch cannot be asked."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "operators.json"
        try:
            completed = run(
                [interpreter, str(_SCRIPT), str(output)],
                cwd=Path(folder),
                environment=scrubbed(place.environment),
                deadline_seconds=_SECONDS,
                log=place.folder / "test.log",
            )
            value = json.loads(output.read_text(encoding="utf-8")) if output.is_file() else {}
            said = f"{completed.describe()}: {' | '.join(completed.tail[-3:])[:500]}"
        except (OSError, ValueError, RecursionError) as error:
            value, said = {}, str(error)
    found = value.get("operators") if isinstance(value, dict) else None
    if not isinstance(found, dict) or not found:
        raise BadCapabilities(
            "The installed PyTorch did not say which operators it tests.",
            seen=said,
            fix="mend what is seen above; PyTorch's test classes need numpy and expecttest beside torch",
        )
    return {
        str(name): frozenset(str(dtype) for dtype in dtypes)
        for name, dtypes in found.items()
        if isinstance(dtypes, list)
    }
