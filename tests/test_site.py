"""The documentation's site: every page is in it, every link leads somewhere, nothing comes from elsewhere, and readers
with a keyboard, a screen reader or weak eyes can use it."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

from tests.ci.report import browser

ROOT = Path(__file__).parent.parent


SOURCES = "https://github.com/kernelgate/kernelgate/blob/HEAD"


def test_links_out_of_docs_lead_to_the_sources() -> None:
    rewritten = runpy.run_path(str(ROOT / "docs" / "site.py"))["rewritten"]
    for text, folder, found in (
        ("[a](docs/cards.md#axes)", "", "[a](cards.md#axes)"),
        ("![a](docs/pictures/page.webp)", "", "![a](pictures/page.webp)"),
        ("[a](timing.md) [b](#here)", "docs", "[a](timing.md) [b](#here)"),
        ("[a](../ci/judge/stats.py#L3)", "docs", f"[a]({SOURCES}/ci/judge/stats.py#L3)"),
        ("[a](https://a.test/b) [c](mailto:d)", "docs", "[a](https://a.test/b) [c](mailto:d)"),
    ):
        assert rewritten(text, folder) == found


def build(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    done = build(folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_the_site_is_built_and_fetches_nothing(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert {path.parent.name for path in site.glob("*/index.html")} == pages
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        fetched = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=[\"']?(https?:[^\"' >]+)", text)
        assert fetched == [], file
        assert not re.search(r"^\|", re.sub(r"<pre.*?</pre>", "", text, flags=re.DOTALL), re.MULTILINE), (
            "a table is raw"
        )
    assert not list(site.rglob("*.py"))


LOOKED_AT = pytest.mark.guards("docs/", "mkdocs.yml", "README.md", "tests/test_site.py", "tests/workflows/package")
HOST = "http://site.test/"
PAGES = ("", "CUDA_COOKBOOK/", "comment/", "loop/", "404.html")
"""Prose, programs, wide tables, drawings, and the page for a wrong address."""


@pytest.fixture(scope="module")
def tab(site: Path) -> Iterator[Page]:
    if browser.executable() is None:
        pytest.fail(browser.MISSING)

    def answer(route: Route) -> None:
        path = site / route.request.url.removeprefix(HOST).partition("?")[0]
        route.fulfill(path=path / "index.html" if path.is_dir() else path)

    with browser.opened() as page:
        page.route(f"{HOST}**", answer)
        yield page


@LOOKED_AT
@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (390, "light"), (1280, "dark"), (1280, "light")])
def test_every_reader_can_use_the_pages(tab: Page, width: int, scheme: str) -> None:
    tab.set_viewport_size({"width": width, "height": 800})
    tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for page in PAGES:
        tab.goto(HOST + page)
        tab.wait_for_timeout(100)
        shown = tab.get_attribute("body", "data-md-color-scheme")
        assert shown == {"light": "default", "dark": "slate"}[scheme], "the site follows the system"
        assert (page, browser.serious(tab)) == (page, [])


@LOOKED_AT
@pytest.mark.slow
def test_a_page_that_some_cannot_use_is_found(tab: Page) -> None:
    for fault, rule in (
        ("document.querySelector('.md-content p').style.color = '#999'", "color-contrast"),
        ("document.querySelector('.md-content p a').style.textDecoration = 'none'", "link-in-text-block"),
        ("document.querySelectorAll('.scroll').forEach(one => one.removeAttribute('tabindex'))", "scrollable-region"),
    ):
        tab.set_viewport_size({"width": 390, "height": 800})
        tab.emulate_media(color_scheme="light")
        tab.goto(f"{HOST}performance/")
        tab.evaluate(fault)
        assert any(found.startswith(rule) for found in browser.serious(tab)), rule


@pytest.mark.slow
def test_a_link_that_leads_nowhere_fails(tmp_path: Path) -> None:
    for name in ("mkdocs.yml", "README.md"):
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "docs").mkdir()
    for path in (ROOT / "docs").iterdir():
        if path.name != "cards.md":
            (tmp_path / "docs" / path.name).symlink_to(path)
    text = (ROOT / "docs" / "cards.md").read_text(encoding="utf-8")
    (tmp_path / "docs" / "cards.md").write_text(f"{text}\n[x](gone.md) [y](timing.md#gone)\n", encoding="utf-8")
    done = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert done.returncode != 0
    assert "'gone.md', but the target is not found" in done.stderr
    assert "does not contain an anchor '#gone'" in done.stderr
