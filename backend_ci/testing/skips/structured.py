"""JSON, YAML and TOML as one: what a file holds, by what its name ends with.

`crcr` runs isolated, without anybody's packages. So YAML is read by the Python of the run, where that has PyYAML.
"""

from __future__ import annotations

import importlib
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from relay_client.errors import CrcrError
from relay_client.runner.process import run, scrubbed

MAX_BYTES = 64 * 1024 * 1024
_SECONDS = 120.0
# Dates become their text; nothing but plain data is made.
_CONVERT = (
    "import sys, json, yaml\n"
    "data = yaml.safe_load(open(sys.argv[1], encoding='utf-8'))\n"
    "json.dump(data, open(sys.argv[2], 'w'), default=str)\n"
)


class StructuredFile:
    """A file of the user's. `fault` is the error that it raises, `what` names it in a sentence.

    `python` with `environment`: an interpreter that may have PyYAML when this one has not.
    """

    def __init__(
        self, path: Path, fault: type[CrcrError], what: str, python: str, environment: Mapping[str, str]
    ) -> None:
        self.path, self.fault, self.what = path, fault, what
        self.python, self.environment = python, environment

    def text(self) -> str:
        try:
            size = self.path.stat().st_size
            if size > MAX_BYTES:
                raise self.fault(
                    f"{self.what} is too large.",
                    seen=f"{self.path}: {size} bytes; the limit is {MAX_BYTES}",
                    fix="split it, or fold it with `crcr skips compress`",
                )
            return self.path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise self.fault(
                f"{self.what} cannot be read.",
                seen=f"{self.path}: {error}",
                fix="name a file in the repository",
            ) from error

    def value(self) -> Any:
        """What the file holds. Raises `fault`."""
        text = self.text()
        try:
            return _READERS[self.path.suffix.lower()](self, text)
        except (ValueError, RecursionError) as error:
            raise self.unreadable(str(error)) from None

    def unreadable(self, why: str) -> CrcrError:
        return self.fault(
            f"{self.what} is not what its name says.",
            seen=f"{self.path}: {' '.join(why.split())[:300]}",
            fix=f"correct it as {self.path.suffix[1:].upper()}, or give it the ending of its format",
        )

    def toml(self, text: str) -> Any:
        try:
            reader = importlib.import_module("tomllib")
        except ImportError:
            raise self.without("Python 3.11 or newer") from None
        return reader.loads(text)

    def yaml(self, text: str) -> Any:
        try:
            reader: Any = importlib.import_module("yaml")
        except ImportError:
            return self.yaml_elsewhere()
        try:
            return reader.safe_load(text)
        except reader.YAMLError as error:
            raise self.unreadable(str(error)) from None

    def yaml_elsewhere(self) -> Any:
        if not self.python:
            raise self.without("PyYAML")
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "value.json"
            command = [self.python, "-I", "-c", _CONVERT, str(self.path.absolute()), str(output)]
            try:
                completed = run(
                    command,
                    cwd=Path(folder),
                    environment=scrubbed(self.environment),
                    deadline_seconds=_SECONDS,
                )
            except OSError:
                raise self.without("PyYAML") from None
            said = " ".join(completed.tail)
            if "No module named" in said:
                raise self.without("PyYAML")
            if completed.exit_code != 0:
                raise self.unreadable(said[-300:] or completed.describe())
            return json.loads(output.read_text(encoding="utf-8"))

    def without(self, package: str) -> CrcrError:
        seen = f"{self.path}; looked in the Python that runs crcr" + (
            f", and in {self.python}" if self.python else ""
        )
        return self.fault(
            f"{self.what} needs {package}, and it is not there.",
            seen=seen,
            fix="write it as JSON, or add the package to what the tests' environment installs",
        )


_READERS: dict[str, Callable[[StructuredFile, str], Any]] = {
    ".json": lambda _, text: json.loads(text),
    ".toml": StructuredFile.toml,
    ".yml": StructuredFile.yaml,
    ".yaml": StructuredFile.yaml,
}
ENDINGS = tuple(_READERS)
