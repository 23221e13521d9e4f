"""`make generate`: write every file that has its source elsewhere; `--check` only says which are stale."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from dev.manifests import MANIFESTS
from relay_client.documents.build import Build
from relay_client.documents.checkout import Checkout
from relay_client.documents.document import Document
from relay_client.documents.evidence import Evidence
from relay_client.documents.failure import Failure
from relay_client.documents.journal import JournalLine
from relay_client.documents.plan import Plan
from relay_client.documents.receive import Receive
from relay_client.documents.report import Report
from relay_client.protocol.callback import CallbackBody
from relay_client.protocol.dispatch import DispatchEnvelope
from relay_client.protocol.shape import json_schema

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS: tuple[type[Document], ...] = (Receive, Checkout, Build, Plan, Evidence, Failure, Report)
_WORKFLOW = Path("examples/reference-backend/.github/workflows/crcr.yml")
_WIRE = {"dispatch": DispatchEnvelope, "callback": CallbackBody, "journal-line": JournalLine}


def files() -> Mapping[Path, str]:
    """Every generated file, relative to the root, with what it must hold."""
    schemas = {name: json_schema(cls, name) for name, cls in _WIRE.items()}
    for cls in DOCUMENTS:
        name = cls.FILE.partition(".")[0]
        schema = json_schema(cls, cls.FILE)
        schema["properties"] = {
            "document": {"const": cls.FILE},
            "version": {"const": cls.VERSION},
            **schema["properties"],
        }
        schema["required"] = ["document", "version", *schema["required"]]
        schemas[name] = schema
    result = {
        Path("schemas") / f"{name}.schema.json": json.dumps(schema, indent=2) + "\n"
        for name, schema in schemas.items()
    }
    result |= {Path(manifest.folder) / "action.yml": manifest.render() for manifest in MANIFESTS}
    workflow = (ROOT / _WORKFLOW).read_text(encoding="utf-8")
    # The template is the workflow that the lab runs, not a sibling of it.
    result[Path("workflow-templates/hardware-job.yml")] = workflow
    result[Path("README.md")] = _with_block((ROOT / "README.md").read_text(encoding="utf-8"), workflow)
    return result


def _with_block(readme: str, workflow: str) -> str:
    """The README with the workflow file between its two markers."""
    before, begin, rest = readme.partition("<!-- workflow: begin (make generate) -->\n")
    _, end, after = rest.partition("<!-- workflow: end -->")
    if not begin or not end:
        raise SystemExit("README.md has lost the markers of the workflow file")
    return f"{before}{begin}```yaml\n{workflow}```\n{end}{after}"


def stale(root: Path = ROOT) -> list[Path]:
    """The generated files that do not hold what they must."""
    return [
        path
        for path, text in files().items()
        if not (root / path).is_file() or (root / path).read_text(encoding="utf-8") != text
    ]


def main(arguments: list[str]) -> int:
    outdated = stale()
    for path in outdated:
        print(f"{'stale' if '--check' in arguments else 'written'}: {path}")  # noqa: T201
        if "--check" not in arguments:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(files()[path], encoding="utf-8")
    return 1 if outdated and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
