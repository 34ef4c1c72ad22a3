"""A real browser: Debian's Chromium, driven by Playwright, which downloads none of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from kernelgate.ci.report.links import Links

MISSING = "no Chromium on this machine: apt-get install chromium; `make test-all` needs it"
PHONE, DESK = (390, 740), (800, 900)
"""Windows, in pixels."""
ADDRESS = "https://github.com/octo-org/kernels"
PLACES = Links(ADDRESS, f"{ADDRESS}/pull/12", f"{ADDRESS}/actions/runs/7/artifacts/70", f"{ADDRESS}/actions/runs/7")


def executable() -> str | None:
    """Where the browser is; None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None)


@contextmanager
def opened() -> Iterator[Page]:
    """One window, which reaches no network."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable())
        yield browser.new_context(offline=True).new_page()
        browser.close()


def shown(tab: Page, folder: Path, html: str) -> list[str]:
    """Opens the page from a file; what the browser complained of."""
    said: list[str] = []
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.emulate_media(media="screen")  # whatever a test that failed has left
    tab.goto(file.as_uri())
    return said
