"""The dashboard in a real browser: the style sheet applies under our own policy, and hostile text does nothing."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest
from relay_world import L2, World
from test_pages import told  # noqa: F401 - the fixture

_QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr",
)  # fmt: skip
PAPER = (0xFA, 0xF9, 0xF6)  # --paper of the style sheet, on a light screen


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    assert found, "these tests need Chromium: apt-get install chromium"
    return found


@pytest.mark.parametrize("path", ["/crcr", f"/crcr/{L2}", "/pr/7"])
def test_the_page_is_styled_and_runs_nothing(chromium: str, told: World, path: str, tmp_path: Path) -> None:  # noqa: F811
    picture = tmp_path / "page.png"
    done = subprocess.run(
        [chromium, *_QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,800",
         f"--screenshot={picture}", told.url + path],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "Content Security Policy" not in done.stderr  # Chromium says so when it blocks something
    assert first_pixel(picture) == PAPER


def first_pixel(picture: Path) -> tuple[int, ...]:
    """Red, green and blue of the pixel top left. Every PNG filter leaves the first pixel as it is."""
    data = picture.read_bytes()
    at, pixels = 8, b""
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            pixels += data[at + 8 : at + 8 + length]
        at += 12 + length
    return tuple(zlib.decompress(pixels)[1:4])
