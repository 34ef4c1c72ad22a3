"""How fast the history's dashboard is written, painted and panned, with 10,000 measurements in headless Chromium.

    python -m benchmarks.history_site

A page is loaded from a file, in a fresh browser each time. "Chart" is when the series has been drawn, in milliseconds
from the navigation's start. While panning, half of the measurements are in view; a frame's time is that between two of
the browser's animation frames, its work what this page's scripts took of it.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from kernelgate.ci.report import dashboard_write as write
from kernelgate.ci.report.dashboard import Dashboard, SiteSeries
from tests.ci.report import browser
from tests.ci.report import dashboard_examples as made

POINTS, LOADS, FRAMES = 10_000, 7, 300
MANY, EACH = 300, 1_000
"""Series, and measurements of each, of the site that is written."""
WATCH = """addEventListener("DOMContentLoaded", () => requestAnimationFrame(() => setTimeout(() => {
  window.drawn = document.querySelector("#chart canvas") ? performance.now() : null;
}))); """
PAN = """async (frames) => {
  moves.in();
  await new Promise(requestAnimationFrame);
  const [between, work] = [[], []];
  const draw = plot.setScale.bind(plot);
  plot.setScale = (...given) => {
    const start = performance.now();
    draw(...given);
    queueMicrotask(() => work.push(performance.now() - start)); // uPlot draws in a microtask
  };
  let last = await new Promise(requestAnimationFrame);
  for (let frame = 0; frame < frames; frame += 1) {
    const step = (frame < frames / 2 ? 1 : -1) * 30;
    show(window_[0] + step, window_[1] + step);
    const now = await new Promise(requestAnimationFrame);
    between.push(now - last);
    last = now;
  }
  return [between, work];
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        one = made.series(POINTS)
        write.write(Dashboard("", (one,)), write.chart_library(), Path(folder))
        page = Path(folder) / "series" / f"{one.id}.html"
        print(f"{POINTS:,} measurements, data file of {page.with_suffix('.js').stat().st_size / 1e3:,.0f} kB")
        painted, drawn = zip(*(_loaded(page) for _ in range(LOADS)), strict=True)
        print(f"first paint {_spread(painted)}, chart {_spread(drawn)} ({LOADS} loads)")
        between, work = _panned(page)
        print(f"pan, {FRAMES} frames: {_spread(between)} apart, of which work {_spread(work)}")
    with tempfile.TemporaryDirectory() as folder:
        shown = Dashboard("", tuple(_numbered(number) for number in range(MANY)))
        start = time.perf_counter()
        write.write(shown, write.chart_library(), Path(folder))
        took = time.perf_counter() - start
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
        print(f"{MANY} series of {EACH:,} measurements written in {took:.1f} s: {size / 1e6:.0f} MB")


def _numbered(number: int) -> SiteSeries:
    return replace(made.series(EACH, f"case {number}"), comparisons=())


def _loaded(page: Path) -> tuple[float, float]:
    with sync_playwright() as driver:
        tab = _tab(driver)
        tab.add_init_script(WATCH)
        tab.goto(page.as_uri())
        drawn = tab.wait_for_function("window.drawn").json_value()
        first = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        return first, drawn


def _panned(page: Path) -> tuple[list[float], list[float]]:
    with sync_playwright() as driver:
        tab = _tab(driver)
        tab.goto(page.as_uri())
        between, work = tab.evaluate(PAN, FRAMES)
        return between, work


def _tab(driver: Any) -> Page:
    tab: Page = driver.chromium.launch(executable_path=browser.executable()).new_context(offline=True).new_page()
    tab.set_viewport_size({"width": 1280, "height": 800})
    return tab


def _spread(milliseconds: Sequence[float]) -> str:
    """Median, 95% and longest."""
    ordered = sorted(milliseconds)
    late = ordered[int(0.95 * (len(ordered) - 1))]
    return f"{statistics.median(ordered):.1f} ms (95%: {late:.1f}, longest {ordered[-1]:.1f})"


if __name__ == "__main__":
    main()
