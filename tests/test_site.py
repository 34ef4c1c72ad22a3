"""The documentation's site: every page is in it, every link leads somewhere, nothing comes from elsewhere, and readers
with a keyboard, a screen reader or weak eyes can use it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route

from tests.ci.report import browser

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def rewritten() -> Callable[[str, str], str]:
    spec = importlib.util.spec_from_file_location("site_of_docs", ROOT / "docs" / "site.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[[str, str], str] = module.rewritten
    return function


SOURCES = "https://github.com/kernelgate/kernelgate/blob/HEAD"


def test_links_out_of_docs_lead_to_the_sources(rewritten: Callable[[str, str], str]) -> None:
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
PAGES = ("", "CUDA_COOKBOOK/", "cards/", "bisect/", "404.html")
"""Prose, wide tables, programs in two languages, code that is a link, and the page for a wrong address."""


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


def visit(tab: Page, page: str, width: int, scheme: str) -> None:
    tab.set_viewport_size({"width": width, "height": 800})
    tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    tab.goto(HOST + page)
    tab.wait_for_timeout(100)


@LOOKED_AT
@pytest.mark.slow
def test_every_reader_can_use_the_pages(tab: Page) -> None:
    for page in PAGES:
        for width in (390, 1280):
            for scheme, shown in (("light", "default"), ("dark", "slate")):
                visit(tab, page, width, scheme)
                assert tab.get_attribute("body", "data-md-color-scheme") == shown, "the site follows the system"
                assert (page, width, scheme, browser.serious(tab)) == (page, width, scheme, [])


@LOOKED_AT
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("document.querySelector('.md-content p').style.color = '#999'", "color-contrast"),
        ("document.querySelector('.md-content p a').style.textDecoration = 'none'", "link-in-text-block"),
        ("document.querySelectorAll('.scroll').forEach(one => one.removeAttribute('tabindex'))", "scrollable-region"),
    ],
)
def test_a_page_that_some_cannot_use_is_found(tab: Page, fault: str, rule: str) -> None:
    visit(tab, "bisect/", 390, "light")
    tab.evaluate(fault)
    assert any(found.startswith(rule) for found in browser.serious(tab))


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
