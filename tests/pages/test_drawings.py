"""The drawings of the guides hold their numbers to log and code, say what they show, and are all shown."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from kernelgate.ci.document import drawing
from kernelgate.ci.lab import drawings, folder, session_entries, state
from kernelgate.ci.lab.log import Opened
from kernelgate.ci.policy import policy
from tests.ci.report import browser
from tests.test_architecture import MAY_IMPORT

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
COLUMN = 358.0
"""What a page has for a drawing in a window of 390 pixels, in pixels: on the site, and much the same on GitHub."""
CUT_OR_MET = """
() => {
  const ground = document.querySelector('.ground').getBoundingClientRect()
  const words = [...document.querySelectorAll('text')].map(one => [one.textContent, one.getBoundingClientRect()])
  const outside = b => b.left < ground.left || b.right > ground.right || b.top < ground.top || b.bottom > ground.bottom
  const cut = words.filter(([, b]) => outside(b))
  const across = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width
  const meet = (a, b) => across(a, b) && a.y + 3 < b.y + b.height && b.y + 3 < a.y + a.height
  const met = words.filter(([, a], i) => words.some(([, b], j) => i !== j && meet(a, b)))
  return [...cut, ...met].map(([said]) => said)
}
"""
"""Words that end outside of the drawing, or stand on others; lines may touch by what their letters do not use."""
DRAWN = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(IMAGES.glob("*.svg"))
    if path.stem.startswith(("architecture", "guide_", "nsight_", "walk_", "sessions"))
}


def test_each_drawing_is_shown_described_and_readable_on_a_phone() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("*.md")))
    assert len(DRAWN) == 6
    for name, text in DRAWN.items():
        shown = re.search(rf"!\[([^\]]+)\]\(images/{name}\.svg\)", pages)
        assert shown is not None, name
        root = ElementTree.fromstring(text)  # noqa: S314 (ours)
        assert min(len(shown[1]), len(root.attrib["aria-label"])) > 30, f"{name} is described"
        width, height = map(float, root.attrib["viewBox"].split()[2:])
        for one in root.iter():
            x, y = float(one.attrib.get("x", 0)), float(one.attrib.get("y", 0))
            assert 0 <= x + float(one.attrib.get("width", 0) if one is not root else 0) <= width, name
            assert 0 <= y <= height, name
        sizes = [float(found) for found in re.findall(r"font(?:-size)?:\s*([\d.]+)px", text)]
        assert min(sizes) * min(COLUMN / width, 1) >= 11, name


@pytest.mark.slow
def test_no_words_are_cut_or_meet_others() -> None:
    if browser.executable() is None:
        pytest.fail(browser.MISSING)
    with browser.opened() as tab:
        for name in DRAWN:
            tab.goto((IMAGES / f"{name}.svg").as_uri())
            assert (name, tab.evaluate(CUT_OR_MET)) == (name, [])


def words(name: str) -> str:
    return " ".join(re.findall(r"<text[^>]*>([^<]*)", DRAWN[name]))


def test_the_drawing_of_a_session_has_the_times_of_its_gates() -> None:
    for gate in state.gate_states((Opened(name="", objective=""),)):
        assert gate.name == "document" or f"{gate.name} at most {gate.limit_minutes:g} min" in words("guide_session")
    for minutes, what in (
        (state.CHANGE_MINUTES, "; each is tried"),
        (state.AGAIN_MINUTES, ", against the reference"),
        (state.DOCUMENT_MINUTES, ", the report"),
        (state.OPTIMISE_MINUTES, ", the money"),
        (state.WITHOUT_GATE_MINUTES, " without"),
    ):
        assert f"{minutes:g} min{what}" in words("guide_session")


def current(name: str, made: str) -> bool:
    """Whether the drawing is what it would be now; `make drawings` draws it anew."""
    if os.environ.get("KERNELGATE_GOLDEN") == "write":
        (IMAGES / f"{name}.svg").write_text(made, encoding="utf-8")
        return True
    return DRAWN[name] == made


def test_the_drawing_of_the_packages_is_current() -> None:
    """Each stands above what it may import (tests/test_architecture.py)."""
    known = {one: names for one, names in MAY_IMPORT.items() if "." in one and one != "ci.commands"}
    height: dict[str, int] = {}
    while len(height) < len(known):
        ready = [one for one, names in known.items() if one not in height and all(name in height for name in names)]
        height |= {one: 1 + max((height[name] for name in known[one]), default=0) for one in ready}
    levels = [[one for one in known if height[one] == at] for at in range(max(height.values()), 0, -1)]
    rows = [("ci.commands",), *(level[at : at + 3] for level in levels for at in range(0, len(level), 3))]
    drawn = [drawing.text(0, 14, "Each package imports from rows below it alone")]
    for at, row in enumerate(rows):
        for place, one in enumerate(row):
            x, y, wide = place * (drawing.WIDTH / len(row)), 26.0 + 30 * at, drawing.WIDTH / len(row) - 8
            drawn.append(drawing.rect((x, y), wide, 22, "other"))
            drawn.append(drawing.text(x + wide / 2, y + 15, one.replace(".", "/"), anchor="middle"))
    spoken = f"The packages, in {len(rows)} rows: {'; '.join(', '.join(row) for row in rows)}."
    made = drawings.SessionDrawing(spoken, 26.0 + 30 * len(rows), tuple(drawn))
    assert current("architecture", drawings.file([made]))


def test_the_drawing_of_all_sessions_is_current() -> None:
    """`kernelgate session metrics -o` draws them."""
    rules = policy.load(ROOT / policy.POLICY_FILE)
    every = folder.every(ROOT)
    rows = [state.summary(one.events, rules, session_entries.until(one.events)) for one in every]
    made = drawings.file(drawings.beside(rows))
    assert current("sessions", made)


def test_the_drawing_of_the_walkthrough_has_what_its_log_says() -> None:
    events = folder.read(ROOT / folder.FOLDER / "rmsnorm-memory-speed").events
    shown = state.state_of(events, policy.load(ROOT / policy.POLICY_FILE), events[-1].at or "")
    first, second = shown.tries
    assert first.gain_pct is not None
    before = shown.figures.speedup_before or 0.0
    assert f"{before:.3g}× beginning {before / (1 - first.gain_pct / 100):.3g}×" in words("walk_speed")
    assert f"try 1 {first.decision}" in words("walk_speed")
    assert f"try 2 {second.decision}" in words("walk_speed")
