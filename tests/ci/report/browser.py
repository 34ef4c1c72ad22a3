"""A real browser: Debian's Chromium, driven by Playwright, which downloads none of its own; and axe, which says what
readers with a keyboard, a screen reader or weak eyes cannot use."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from kernelgate.ci.report.links import Links

MISSING = "no Chromium on this machine: apt-get install chromium; `make test-all` needs it"
PHONE, DESK = (390, 740), (800, 900)
"""Windows, in pixels."""
ADDRESS = "https://github.com/octo-org/kernels"
AXE = Path(__file__).parents[2] / "workflows" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = """
async () => (await axe.run(document, {preload: false, resultTypes: ['violations']})).violations
  .filter(({impact}) => impact === 'serious' || impact === 'critical')
  .flatMap(({id, nodes}) => nodes.map(({html}) => `${id}: ${html.slice(0, 120)}`))
"""
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
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    return visited(tab, file.as_uri())


def visited(tab: Page, address: str) -> list[str]:
    """What the browser complained of."""
    said: list[str] = []
    tab.goto("about:blank")  # another fragment alone would load nothing
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.emulate_media(media="screen")  # whatever a test that failed has left
    tab.goto(address)
    return said


def serious(tab: Page) -> list[str]:
    """What axe finds serious or critical on the page as it stands, each as RULE: ELEMENT."""
    assert AXE.is_file(), "axe is missing; `make test` brings it"
    tab.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[str] = tab.evaluate(SERIOUS)
    return found


class Elements(HTMLParser):
    """The elements of a page in their order, each with its attributes' names; its text; what could fetch or run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.values: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(f"{tag} {' '.join(name for name, _ in attrs)}")
        runs = (one for one in attrs if one[0] in ("href", "src", "style", "srcset") or one[0].startswith("on"))
        self.values += [f"{name}={value}" for name, value in runs]

    def handle_endtag(self, tag: str) -> None:
        self.elements.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.elements.append(f"comment {data}")

    def handle_decl(self, decl: str) -> None:
        self.elements.append(f"decl {decl}")

    def handle_data(self, data: str) -> None:
        self.text += data
