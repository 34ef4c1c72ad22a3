"""The page in a real browser, as its readers see it: on a desk and on a phone, in light and in dark.

One load of a page serves all that is looked at on it; tests/gallery looks at comments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize

from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.page import write
from tests.ci.report import browser
from tests.ci.report.browser import DESK, PHONE, PLACES, shown
from tests.ci.report.situations import NAMES, situation

HERE = Path(__file__).parent
GEOMETRY = (HERE / "geometry.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tab() -> Iterator[Page]:
    """One browser for all tests here. Where there is none they fail: nobody would see what they would have shown."""
    if browser.executable() is None:
        pytest.fail(browser.MISSING)
    with browser.opened() as page:
        yield page


def looked_at(tab: Page, *ways: tuple[tuple[int, int], str]) -> Iterator[str]:
    """Each window in its scheme, as the page then is."""
    for (width, height), scheme in ways:
        tab.set_viewport_size({"width": width, "height": height})
        tab.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        yield f"{width} {scheme}"


CLOSED = (DESK, "light"), (PHONE, "dark")
OPENED = (DESK, "dark"), (PHONE, "light")
"""Both widths and both schemes: what stands where depends on no colour, and no colour on the width."""
NOW_ENDS = """
() => Math.max(0, ...Array.from(document.querySelectorAll('p.why'))
  .filter(one => /^(Now|To unblock):/.test(one.textContent)).map(one => one.getBoundingClientRect().bottom))
"""
OPEN_ALL = "document.querySelectorAll('details').forEach(one => { one.open = true })"
CLOSE_ALL = "document.querySelectorAll('details').forEach(one => { one.open = false })"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_seen_whole_and_apart(tab: Page, tmp_path: Path, name: str) -> None:
    said = shown(tab, tmp_path, write(situation(name), Gates(), PLACES))
    for how in looked_at(tab, *CLOSED):
        assert (how, tab.evaluate(GEOMETRY)) == (how, [])
    heading = tab.locator("h1").bounding_box()
    assert heading["y"] + heading["height"] <= PHONE[1] / 2
    assert tab.evaluate(NOW_ENDS) <= PHONE[1]
    if name in ALSO:
        for look in ALSO[name]:
            look(tab)
    tab.evaluate(OPEN_ALL)
    for how in looked_at(tab, *OPENED):
        assert (f"{how}, opened", tab.evaluate(GEOMETRY)) == (f"{how}, opened", [])
    assert said == []


FOCUSED = """
() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const seen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
  return [one.id || one.closest('details')?.id || one.textContent.trim(), seen];
}
"""


def the_keyboard_reaches_everything_in_order_and_shows_where_it_is(tab: Page) -> None:
    reached = []
    for _ in range(60):
        tab.keyboard.press("Tab")
        where, seen = tab.evaluate(FOCUSED)
        assert seen, where
        reached.append(where)
        if where == "case-7":
            break
    assert reached[-11:] == ["find", "show", "sort", "open", *(f"case-{index}" for index in range(1, 8))]
    tab.keyboard.press("ArrowUp")
    assert tab.evaluate(FOCUSED)[0] == "case-6"
    assert not tab.evaluate("document.getElementById('case-6').open")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.getElementById('case-6').open")
    tab.evaluate(CLOSE_ALL)


NAMES_SHOWN = """
() => Array.from(document.querySelectorAll('.case:not([hidden]) summary .name')).map(one => one.innerText.trim())
"""


def cases_are_found_and_sorted(tab: Page) -> None:
    everything = tab.evaluate(NAMES_SHOWN)
    assert len(everything) == 7
    tab.focus("#find")
    tab.keyboard.type("s=640")
    assert [name.startswith("S=640") for name in tab.evaluate(NAMES_SHOWN)] == [True, True]
    assert tab.inner_text("#count") == "2 of 7 cases"
    tab.fill("#find", "")
    tab.select_option("#show", label="improved")
    assert len(tab.evaluate(NAMES_SHOWN)) == 1
    tab.select_option("#show", value="")
    tab.select_option("#sort", value="name")
    assert [name.split()[0] for name in tab.evaluate(NAMES_SHOWN)] == ["S=448"] * 2 + ["S=512"] * 3 + ["S=640"] * 2
    tab.select_option("#sort", value="worst")
    assert tab.evaluate(NAMES_SHOWN) == everything


PRINTED = """
() => Array.from(document.querySelectorAll('details')).map(one => one.lastElementChild.checkVisibility())
"""
PAPER: ViewportSize = {"width": 718, "height": 1000}
"""A4 without its margins, in pixels."""


def paper_has_every_part_and_no_tools(tab: Page) -> None:
    """Closed parts, too, which are closed again on the screen; none runs out of the paper."""
    tab.set_viewport_size(PAPER)
    before = tab.evaluate(PRINTED)
    assert len(before) > 10
    assert not all(before)
    tab.emulate_media(media="print", color_scheme="light")
    assert not tab.is_visible("#tools")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")  # for browsers whose style sheets cannot open a part
    assert tab.locator("details:not([open])").count() == 0
    assert all(tab.evaluate(PRINTED))
    assert tab.evaluate(GEOMETRY) == []
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    tab.emulate_media(media="screen")
    assert tab.evaluate(PRINTED) == before


def base_and_head_are_told_apart_without_colour(tab: Page) -> None:
    tab.evaluate(OPEN_ALL)
    curves = "Array.from(document.querySelectorAll(`.curve.${side}`))"
    dashes = f"side => {curves}.map(one => getComputedStyle(one).strokeDasharray)"
    assert set(tab.evaluate(dashes, "head")) == {"none"}
    assert "none" not in tab.evaluate(dashes, "base")
    squares = "Array.from(document.querySelectorAll('rect.base'))"
    ground = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(f"{squares}.every(one => getComputedStyle(one).fill === {ground})")
    assert tab.locator("rect.base").count() == tab.locator("circle.head").count() > 5


ALSO: dict[str, list[Callable[[Page], None]]] = {
    "mixed": [
        the_keyboard_reaches_everything_in_order_and_shows_where_it_is,
        cases_are_found_and_sorted,
        paper_has_every_part_and_no_tools,
    ],
    "samples by line": [paper_has_every_part_and_no_tools],
    "less occupancy": [base_and_head_are_told_apart_without_colour],
}
