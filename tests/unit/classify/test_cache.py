"""The cache: unchanged files are not parsed again, and nothing that happens to its file can make a result wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend_ci.testing.classify import cache as module
from backend_ci.testing.classify.cache import Cache, cache_path, digest
from backend_ci.testing.classify.facts import FileFacts
from backend_ci.testing.classify.read import Reader

SOURCE = "import torch\nclass TestA:\n    def test_a(self, device): torch.ones(1).cuda()\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"test_{number}.py" for number in range(5)]
    for number, path in enumerate(paths):
        path.write_text(f"# {number}\n{SOURCE}", encoding="utf-8")
    return [str(path) for path in paths]


def read(files: list[str], path: Path) -> tuple[dict[str, FileFacts], int]:
    """The facts, and how many files had to be parsed for them."""
    cache = Cache(path)
    reader = Reader(cache, {}, print)
    found = reader.read(files)
    cache.save()
    return found, reader.parsed


def test_unchanged_files_are_not_parsed_again(files: list[str], tmp_path: Path) -> None:
    first, parsed = read(files, tmp_path / "cache")
    assert parsed == 5
    assert read(files, tmp_path / "cache") == (first, 0)


def test_a_change_is_seen_although_size_and_times_stay(files: list[str], tmp_path: Path) -> None:
    import os

    read(files, tmp_path / "cache")
    path = Path(files[2])
    before = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("TestA", "TestB"), encoding="utf-8")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    found, parsed = read(files, tmp_path / "cache")
    assert parsed == 1
    assert found[files[2]].classes[0].name == "TestB"


def test_the_same_content_elsewhere_is_known(files: list[str], tmp_path: Path) -> None:
    read(files, tmp_path / "cache")
    copy = tmp_path / "test_copy.py"
    copy.write_bytes(Path(files[0]).read_bytes())
    assert read([str(copy)], tmp_path / "cache")[1] == 0


@pytest.mark.parametrize(
    ("damage", "parsed"),
    [
        (lambda _: "", 5),
        (lambda _: "\x00\xff" * 100, 5),
        (lambda text: text.replace("crcr-facts", "crcr-fact", 1), 5),  # another version
        (lambda text: text[: len(text) - 40], 1),  # cut off
        (lambda text: text.replace("TestA", "TestX", 1), 1),  # a bit flipped in one line
        (lambda text: text + "rubbish\n\t\t\n" + "0" * 64 + "\tx\t[]\n", 0),
        (lambda text: "\n".join(line.partition("\t")[0] for line in text.split("\n")), 5),
    ],
)
def test_damage_costs_only_what_it_hit(files: list[str], tmp_path: Path, damage: object, parsed: int) -> None:
    path = tmp_path / "cache"
    first, _ = read(files, path)
    text = damage(path.read_text(encoding="utf-8"))  # type: ignore[operator]
    path.write_bytes(text.encode("latin-1", errors="replace"))
    assert read(files, path) == (first, parsed)
    assert read(files, path) == (first, 0)  # and it is mended


def test_well_formed_facts_of_another_shape_are_not_taken(files: list[str], tmp_path: Path) -> None:
    path = tmp_path / "cache"
    first, _ = read(files, path)
    key = digest(Path(files[0]).read_bytes())
    for wrong in ("[]", "{}", "null", '[1,2,3,4,5,"",0]', "[" * 10_000):
        cache = Cache(path)
        cache.put(key, wrong)
        cache.save()
        assert read(files, path) == (first, 1)


def test_facts_of_other_code_are_forgotten(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(files, tmp_path / "cache")
    monkeypatch.setattr(module, "_CODE", module._CODE[:-1])  # as if a line of the scanner had changed
    assert read(files, tmp_path / "cache")[1] == 5


def test_files_of_another_tree_are_kept_but_not_without_end(
    files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache"
    read(files[:3], path)
    read(files[3:], path)
    assert read(files, path)[1] == 0
    monkeypatch.setattr(module, "_KEPT_UNUSED", 1)
    Path(files[0]).write_text("x = 1\n", encoding="utf-8")
    read(files[:1], path)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1 + 1 + 1  # version, one unused, one used


def test_a_cache_that_cannot_be_written_is_no_error(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert read(files, tmp_path / "file" / "cache")[1] == 5
    assert not list(tmp_path.glob("*.tmp"))


def test_nothing_half_written_is_left(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()  # cannot be replaced by a file
    assert read(files, tmp_path / "cache")[1] == 5
    assert not list(tmp_path.glob("*.tmp"))


def test_where_the_cache_lies() -> None:
    assert cache_path("none", {"HOME": "/h"}) is None
    assert cache_path("/x/y", {}) == Path("/x/y")
    assert cache_path("", {"HOME": "/h"}) == Path("/h/.cache/crcr/facts.txt")
    assert cache_path("", {"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == Path("/c/crcr/facts.txt")
    assert cache_path("", {}) is None
