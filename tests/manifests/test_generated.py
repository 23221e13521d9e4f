"""Generated files are in step with their source; a linter that finds nothing to check fails."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from dev import lint_workflows
from dev.generate import files, stale

_SCHEMAS = sorted(path for path in files() if path.parent.name == "schemas")


def test_generated_files_are_in_step() -> None:
    assert stale() == []


def test_a_changed_file_is_stale(tmp_path: Path) -> None:
    for path, text in files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    assert stale(tmp_path) == []
    (tmp_path / "action.yml").write_text("changed", encoding="utf-8")
    (tmp_path / "schemas/plan.schema.json").unlink()
    assert set(stale(tmp_path)) == {Path("action.yml"), Path("schemas/plan.schema.json")}


@pytest.mark.parametrize("path", _SCHEMAS, ids=str)
def test_schemas_are_json_schemas(path: Path) -> None:
    import json

    jsonschema.Draft202012Validator.check_schema(json.loads(files()[path]))


@pytest.mark.parametrize(
    ("planted", "linter"),
    [
        ("      - run: echo ${{ github.event.client_payload.payload.pull_request.title }}\n", "zizmor"),
        ("      - uses: actions/checkout@v7\n", "zizmor"),
        ("      - run: echo ${{ github.run_id }}\n", "zizmor"),  # found only when it is pedantic
        ("      - run: echo ${{ needs.nobody.result }}\n", "actionlint"),
        ("      - runn: typo\n", "workflow schema"),
    ],
)
def test_the_lint_turns_red(
    tmp_path: Path, planted: str, linter: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "workflow-templates").mkdir()
    (tmp_path / "action.yml").write_text(files()[Path("action.yml")], encoding="utf-8")
    good = files()[Path("workflow-templates/hardware-job.yml")]
    target = tmp_path / "workflow-templates" / "one.yml"
    target.write_text(good, encoding="utf-8")
    assert lint_workflows.main(tmp_path) == 0
    target.write_text(good.replace("    steps:\n", "    steps:\n" + planted, 1), encoding="utf-8")
    assert lint_workflows.main(tmp_path) == 1
    assert f"FAIL {linter}" in capsys.readouterr().out


def test_nothing_to_lint_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="nothing was checked"):
        lint_workflows.main(tmp_path)
