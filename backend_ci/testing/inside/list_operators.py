"""Runs inside the environment under test: the operators that the installed PyTorch has tests for, and their dtypes.

Started by path (`python …/list_operators.py OUTPUT`). Imports nothing of the toolkit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def operators() -> dict[str, list[str]]:
    """Dtypes by OpInfo.full_name, from every database that @ops is used with."""
    from torch.testing._internal import common_methods_invocations as invocations

    found: dict[str, set[str]] = {}
    for name in dir(invocations):
        database = getattr(invocations, name)
        if not name.endswith("_db") or not isinstance(database, list):
            continue
        for operator in database:
            if hasattr(operator, "full_name"):
                found.setdefault(operator.full_name, set()).update(map(dtype_name, operator.dtypes))
    return {name: sorted(dtypes) for name, dtypes in found.items()}


def dtype_name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps({"operators": operators()}), encoding="utf-8")
