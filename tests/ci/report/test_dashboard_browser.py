"""The dashboard in a real browser, opened from a folder: drawn, moved by keyboard, sorted, compared, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from kernelgate.ci.report import dashboard_write as write
from tests.ci.report import browser
from tests.ci.report import dashboard_examples as made

pytestmark = [pytest.mark.slow, pytest.mark.guards("ci/report/", "ci/document/", "tests/ci/report/")]
WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
CUT = "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth).length"
INK = """() => {
  const canvas = document.querySelector("#chart canvas");
  const shades = new Set(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data);
  return shades.size;
}"""

WRITTEN = """
window.written = []; const fill = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (words, ...at) {
  window.written.push(words);
  fill.call(this, words, ...at);
};
"""
"""What is drawn as text, in their order."""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser.opened() as opened_page:
        yield opened_page


@pytest.fixture
def tab(page: Page) -> Page:
    """As wide as a desk's, whatever the test before this one asked for."""
    page.set_viewport_size({"width": 1280, "height": 800})
    return page


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    write.write(made.dashboard(), write.chart_library(), folder)
    return folder


SERIES = made.series(200, "S=512, B=32, fp16", us=40.0 * 1.9**2)
"""As the dashboard has it."""


def pages(folder: Path) -> list[Path]:
    return [*sorted(folder.glob("*.html")), *sorted((folder / "series").glob("*.html"))[:3]]


def opened(tab: Page, page: Path, fragment: str = "") -> list[str]:
    said = browser.visited(tab, page.as_uri() + fragment)
    tab.wait_for_timeout(50)
    return said


def test_every_page_fits_and_says_nothing_to_the_console(tab: Page, site: Path) -> None:
    """Each page is loaded once and looked at in both windows, each in a scheme of its own."""
    for page in pages(site):
        fragment = f"#{made.sha(65)}..{made.sha(199)}" if page.name == "compare.html" else ""
        said = opened(tab, page, fragment)
        for (width, height), scheme in ((browser.PHONE, "dark"), ((1280, 800), "light")):
            tab.set_viewport_size({"width": width, "height": height})
            tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            tab.wait_for_timeout(50)
            assert said == [], page.name
            assert tab.evaluate(WIDE) == 0, page.name
            assert tab.evaluate(CUT) == 0, f"{page.name}: a table goes on where nobody sees it"
            assert browser.serious(tab) == [], page.name
            if page.parent.name == "series":
                assert tab.evaluate(INK) > 8, "the chart is drawn"


def test_what_strangers_wrote_runs_nowhere(tab: Page, tmp_path: Path) -> None:
    write.write(made.hostile(), write.chart_library(), tmp_path)
    tab.on("dialog", lambda dialog: pytest.fail(dialog.message))
    for page in pages(tmp_path):
        assert opened(tab, page) == [], page.name
        assert tab.evaluate("document.images.length") == 0
        assert "onerror" in tab.inner_text("main") or page.name == "compare.html"
    opened(tab, tmp_path / "compare.html", f"#{made.sha(20)[:12]}..{made.sha(21)[:12]}")
    assert "onerror" in tab.inner_text("#compared")


def test_the_chart_is_moved_read_out_and_shown_over_the_pinned_commit(tab: Page, site: Path) -> None:
    """All on one load; each look begins with everything in view."""
    tab.add_init_script(WRITTEN)
    opened(tab, site / "series" / f"{SERIES.id}.html")
    assert {"time, µs", "commits, by day of measurement"} <= set(tab.evaluate("window.written")), "the axes have names"
    the_chart_is_moved_by_keyboard_and_reads_out_what_is_chosen(tab)
    tab.click("[data-move=all]")
    the_pinned_commit_hides_the_new_driver(tab)
    opened(tab, site / "series" / f"{SERIES.id}.html", f"#{made.sha(30)}")
    assert tab.inner_text("#readout").startswith(made.sha(30)[:7]), "a link to a commit chooses it"


def the_chart_is_moved_by_keyboard_and_reads_out_what_is_chosen(tab: Page) -> None:
    read = tab.locator("#readout")
    assert read.inner_text().startswith(made.sha(199)[:7])
    tab.focus("#chart")
    tab.keyboard.press("ArrowLeft")
    assert read.inner_text().startswith(made.sha(198)[:7])
    tab.keyboard.press("PageUp")
    assert "suspected change −0.6%" in read.inner_text()
    tab.keyboard.press("PageUp")
    tab.keyboard.press("PageUp")
    assert read.inner_text().startswith(made.sha(100)[:7])
    assert "confirmed change +1.2%" in read.inner_text()
    tab.keyboard.press("Home")
    assert "environment A" in read.inner_text()
    tab.keyboard.press("+")
    tab.keyboard.press("End")
    assert tab.evaluate("window_") == [99.5, 199.5]


def the_pinned_commit_hides_the_new_driver(tab: Page) -> None:
    rose = "shown.values[199] / shown.values[140]"
    assert tab.evaluate(rose) > 1.015
    tab.get_by_label("time over the pinned commit").check()
    assert tab.evaluate(rose) == pytest.approx(1.0, abs=0.006)
    assert "times the pinned commit's" in tab.inner_text("#readout")
    assert any(words.startswith("time over the pinned commit") for words in tab.evaluate("window.written"))


def test_cases_are_found_and_ordered(tab: Page, site: Path) -> None:
    opened(tab, site / "index.html")
    tab.fill("#find", "l4 bf16")
    assert tab.inner_text(".count") == "1 of 11 cases"
    assert tab.locator(".group:visible").count() == 1
    tab.fill("#find", "")
    tab.select_option("#order", "best")
    changes = tab.eval_on_selector_all(
        ".group:first-of-type [data-name='over its best']", "cells => cells.map(cell => Number(cell.dataset.sort))"
    )
    assert changes == sorted(changes, reverse=True)


def test_two_commits_compare_as_the_first_page_does(tab: Page, site: Path) -> None:
    """The rule stands in dashboard.py and in compare.js."""
    opened(tab, site / "index.html")
    row = tab.locator("tr", has=tab.get_by_text(SERIES.case, exact=True)).first
    since = row.locator("[data-name='since release']").inner_text()
    opened(tab, site / "compare.html", f"#{made.sha(65)}..{made.sha(199)}")
    compared = tab.locator("#compared tbody tr", has_text=f"{SERIES.case} on NVIDIA H200").inner_text()
    assert "≈ +1." in since
    assert since.strip() in compared
    assert "the pinned commit beefbee, in two environments" in compared
    opened(tab, site / "compare.html", f"#{made.sha(99)}..{made.sha(100)}")
    assert "+1.2% [+1.1, +1.3]\tthe same processes" in tab.inner_text("#compared")
    tab.click("#swap")
    assert "−1.2% [−1.3, −1.1]\tthe same processes" in tab.inner_text("#compared")
