"""The pictures in docs/pictures, for people to look at; take them anew:
`.venv/bin/python -m tests.ci.report.pictures`"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Literal, NamedTuple

from playwright.sync_api import Page

from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.page import write
from tests.ci.report.browser import DESK, PHONE, PLACES, opened, shown
from tests.ci.report.situations import situation

FOLDER = Path(__file__).parents[3] / "docs" / "pictures"
LARGEST = 60_000
"""Bytes of one picture."""


class Picture(NamedTuple):
    situation: str
    window: tuple[int, int]
    scheme: Literal["light", "dark"]
    case: int | None = None
    """The case that is open."""
    scrolled: str = ""
    """To which part of that case."""


TAKEN = {
    "page": Picture("measured: swiglu", (1000, 760), "light", 1),
    "page-dark": Picture("less occupancy", (1000, 900), "dark", 1),
    "phone": Picture("measured: swiglu", PHONE, "light"),
    "phone-dark": Picture("two speeds", PHONE, "dark"),
    "at-the-power-limit": Picture("measured: at the power limit", (800, 700), "light", 1, scrolled=".drawings"),
    "two-speeds": Picture("two speeds", (800, 700), "light", 1, scrolled=".drawings"),
    "source-lines": Picture("samples by line", (1000, 760), "light", 1, scrolled=".samples"),
    "250-cases": Picture("250 cases", DESK, "light"),
    "27-cases": Picture("measured: 27 cases", (900, 900), "dark"),
    "wrong-result": Picture("wrong_result", DESK, "light"),
    "two-gpus": Picture("two GPUs", DESK, "dark"),
}


def take(tab: Page, name: str, picture: Picture, folder: Path) -> None:
    shown(tab, folder, write(situation(picture.situation), Gates(), PLACES))
    tab.set_viewport_size({"width": picture.window[0], "height": picture.window[1]})
    tab.emulate_media(color_scheme=picture.scheme)
    if picture.case:
        tab.evaluate(f"document.getElementById('case-{picture.case}').open = true")
    if picture.scrolled:
        tab.evaluate(f"document.querySelector('.case[open] {picture.scrolled}').scrollIntoView()")
    path = FOLDER / f"{name}.webp"
    for quality in (82, 70, 55, 40):
        path.write_bytes(webp(tab, quality))
        if path.stat().st_size <= LARGEST:
            return


def webp(tab: Page, quality: int) -> bytes:
    """What the window shows; Playwright itself takes PNG and JPEG alone, which are twice as large."""
    session = tab.context.new_cdp_session(tab)
    taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": quality})
    session.detach()
    return base64.b64decode(taken["data"])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    with opened() as tab, tempfile.TemporaryDirectory() as folder:
        for name, picture in TAKEN.items():
            take(tab, name, picture, Path(folder))
