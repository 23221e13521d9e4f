"""Every document of the run folder: written whole, read back equal, and read as hostile input."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from samples import DOCUMENTS, EVIDENCE

import relay_client.documents as package
from relay_client.documents.document import MAX_DOCUMENT_BYTES, Document, load, save
from relay_client.errors import DocumentError

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.FILE)


def refused(document: Document, folder: Path) -> DocumentError:
    """The error of reading a document's file; every such error says what was seen and what to do."""
    with pytest.raises(DocumentError) as caught:
        load(type(document), folder)
    error = caught.value
    assert error.what.startswith(document.FILE)
    assert error.seen
    assert error.fix
    assert len(error.text()) < 1_000
    return error


def write(document: Document, folder: Path, text: str) -> Path:
    path = folder / document.FILE
    path.write_text(text, encoding="utf-8")
    return path


def written(document: Document, folder: Path) -> Any:
    return json.loads(save(document, folder).read_text(encoding="utf-8"))


def test_the_samples_cover_every_document_there_is() -> None:
    folder = Path(package.__path__[0])
    declared = [
        path.stem for path in folder.glob("*.py") if "FILE: ClassVar" in path.read_text(encoding="utf-8")
    ]
    modules = {type(document).__module__.rpartition(".")[2] for document in DOCUMENTS}
    assert modules | {"document"} == set(declared)


@each_document
def test_a_document_is_read_back_as_it_was_saved(document: Document, tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there yet"
    assert save(document, folder) == folder / document.FILE
    assert load(type(document), folder) == document
    assert [path.name for path in folder.iterdir()] == [document.FILE]


@each_document
def test_a_document_says_what_it_is(document: Document, tmp_path: Path) -> None:
    value = written(document, tmp_path)
    assert list(value)[:2] == ["document", "version"]
    assert (value["document"], value["version"]) == (document.FILE, document.VERSION)


@each_document
def test_a_missing_document_names_the_verb_that_writes_it(document: Document, tmp_path: Path) -> None:
    error = refused(document, tmp_path)
    assert "is missing" in error.what
    assert f"`crcr {document.WRITTEN_BY}`" in error.fix
    assert "--run-dir" in error.fix


@each_document
def test_a_truncated_document_is_refused_at_every_length(document: Document, tmp_path: Path) -> None:
    text = save(document, tmp_path).read_text(encoding="utf-8")
    for length in range(0, len(text) - 2, 7):
        write(document, tmp_path, text[:length])
        assert "cannot be read" in refused(document, tmp_path).what


@each_document
@pytest.mark.parametrize("version", [0, 99, "1", None, True, [1]], ids=repr)
def test_another_version_is_refused(document: Document, version: object, tmp_path: Path) -> None:
    write(document, tmp_path, json.dumps({**written(document, tmp_path), "version": version}))
    error = refused(document, tmp_path)
    assert "another version" in error.what
    assert "same commit of the toolkit" in error.fix


@each_document
def test_every_member_without_a_default_is_needed_and_named(document: Document, tmp_path: Path) -> None:
    value = written(document, tmp_path)
    for name in [name for name in value if name not in ("document", "version")]:
        write(document, tmp_path, json.dumps({**value, name: {"wrong": True}}))
        if f"{type(document).__name__}.{name}" in ("Receive.decision",):
            continue
        assert name in refused(document, tmp_path).seen


@each_document
def test_a_file_of_another_document_is_refused(document: Document, tmp_path: Path) -> None:
    write(document, tmp_path, json.dumps({**written(document, tmp_path), "document": "other.json"}))
    assert "other.json" in refused(document, tmp_path).seen


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '"text"',
        "{",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"version":' * 900 + "1" + "}" * 900,
        '{"version": 1, "run_attempt": ' + "9" * 5_000 + "}",
        '{"version": 1, "row": "\\ud800"}',
        "\ufeff{}",
        "\x00",
    ],
    ids=lambda text: ascii(text)[:24],
)
def test_json_that_is_no_document_is_refused(text: str, tmp_path: Path) -> None:
    write(EVIDENCE, tmp_path, text)
    refused(EVIDENCE, tmp_path)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / EVIDENCE.FILE).write_bytes(b"\xff\xfe{}")
    refused(EVIDENCE, tmp_path)


def test_a_document_too_large_to_read_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / EVIDENCE.FILE).open("wb") as file:
        file.truncate(MAX_DOCUMENT_BYTES + 1)  # sparse: takes no room
    error = refused(EVIDENCE, tmp_path)
    assert str(MAX_DOCUMENT_BYTES) in error.seen


def test_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    real = save(EVIDENCE, tmp_path / "elsewhere")
    (tmp_path / EVIDENCE.FILE).symlink_to(real)
    assert "plain file" in refused(EVIDENCE, tmp_path).seen


def test_a_pipe_or_a_folder_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / EVIDENCE.FILE)
    assert "plain file" in refused(EVIDENCE, tmp_path).seen
    (tmp_path / EVIDENCE.FILE).unlink()
    (tmp_path / EVIDENCE.FILE).mkdir()
    assert "plain file" in refused(EVIDENCE, tmp_path).seen


def test_a_document_that_cannot_be_finished_leaves_the_old_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(EVIDENCE, tmp_path)

    def disk_full(self: Path, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", disk_full)
    with pytest.raises(DocumentError, match=r"evidence\.json cannot be written") as caught:
        save(EVIDENCE, tmp_path)
    assert "No space left on device" in caught.value.seen
    assert "--run-dir" in caught.value.fix
    monkeypatch.undo()
    assert load(type(EVIDENCE), tmp_path) == EVIDENCE
    assert [path.name for path in tmp_path.iterdir()] == [EVIDENCE.FILE]


def test_a_run_folder_that_is_a_file_is_an_error_with_a_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(DocumentError) as caught:
        save(EVIDENCE, tmp_path / "file")
    assert "--run-dir" in caught.value.fix
