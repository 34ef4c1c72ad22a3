"""The README's picture of a page; take it anew: `.venv/bin/python -m tests.ci.report.pictures`"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.page import write
from tests.ci.report.browser import PLACES, opened, shown
from tests.ci.report.situations import situation

PICTURE = Path(__file__).parents[3] / "docs" / "pictures" / "page.webp"
LARGEST = 60_000
"""Bytes."""


def take(tab: Page, folder: Path) -> None:
    """The first case is open."""
    shown(tab, folder, write(situation("measured: swiglu"), Gates(), PLACES))
    tab.set_viewport_size({"width": 1000, "height": 760})
    tab.emulate_media(color_scheme="light")
    tab.evaluate("document.getElementById('case-1').open = true")
    for quality in (82, 70, 55, 40):
        PICTURE.write_bytes(webp(tab, quality))
        if PICTURE.stat().st_size <= LARGEST:
            return


def webp(tab: Page, quality: int) -> bytes:
    """What the window shows; Playwright itself takes PNG and JPEG alone, which are twice as large."""
    session = tab.context.new_cdp_session(tab)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
    session.detach()
    return base64.b64decode(taken["data"])


if __name__ == "__main__":
    with opened() as tab, tempfile.TemporaryDirectory() as folder:
        take(tab, Path(folder))
