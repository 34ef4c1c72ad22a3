"""The README's pictures, of a comment on a phone and of a page; take them anew:
`.venv/bin/python -m tests.ci.report.pictures`"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.page import write
from tests.ci.report.browser import PHONE, PLACES, opened, shown
from tests.ci.report.situations import situation
from tests.demo.page import framed, rendered
from tests.gallery.examples import texts

FOLDER = Path(__file__).parents[3] / "docs" / "pictures"
SHOWN = "slower-and-why.md"
"""Of docs/examples: what the phone shows the top of."""
LARGEST = 60_000
"""Bytes."""


def take_phone(tab: Page, folder: Path) -> None:
    tab.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    tab.emulate_media(color_scheme="light")
    comment = f'<div class="bot"><div class="markdown-body">{rendered(texts()[SHOWN])}</div></div>'
    shown(tab, folder, framed("A comment", f'<p class="by"><b>github-actions</b> bot</p>{comment}'))
    keep(tab, FOLDER / "phone.webp")


def take_page(tab: Page, folder: Path) -> None:
    """The first case is open."""
    shown(tab, folder, write(situation("measured: swiglu"), Gates(), PLACES))
    tab.set_viewport_size({"width": 1000, "height": 760})
    tab.emulate_media(color_scheme="light")
    tab.evaluate("document.getElementById('case-1').open = true")
    keep(tab, FOLDER / "page.webp")


def keep(tab: Page, picture: Path) -> None:
    for quality in (82, 70, 55, 40):
        picture.write_bytes(webp(tab, quality))
        if picture.stat().st_size <= LARGEST:
            return


def webp(tab: Page, quality: int) -> bytes:
    """What the window shows; Playwright itself takes PNG and JPEG alone, which are twice as large."""
    session = tab.context.new_cdp_session(tab)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
    session.detach()
    return base64.b64decode(taken["data"])


if __name__ == "__main__":
    with opened() as tab, tempfile.TemporaryDirectory() as folder:
        take_phone(tab, Path(folder))
        take_page(tab, Path(folder))
