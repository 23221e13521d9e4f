"""What the documents say of exit codes is what the code does; each link of theirs leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relay_client import errors

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*/README.md")])


def codes_below(base: type[errors.CrcrError]) -> set[int]:
    found = set()
    for cls in base.__subclasses__():
        found |= codes_below(cls) | {cls.exit_code}
    return found


@pytest.mark.parametrize(("page", "base"), [("checkout", errors.CheckoutError), ("build", errors.BuildError)])
def test_a_page_lists_each_exit_code_of_its_stage(page: str, base: type[errors.CrcrError]) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == codes_below(base)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target and not target.startswith("mailto:"):
            assert (page.parent / target).exists(), target
