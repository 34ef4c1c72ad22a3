"""The drawings of the guides are current, say what they show to those who cannot see them, and are all shown."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from kernelgate.ci.lab import folder, state
from kernelgate.ci.policy.policy import Policy
from tests.ci.report import browser
from tests.pages import drawings, visual_guide, walkthrough

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
DRAWN = drawings.every()
SHOWN = "".join(page.read_text(encoding="utf-8") for page in sorted((drawings.ROOT / "docs").glob("*.md")))


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawing_is_current_and_shown(name: str) -> None:
    assert (drawings.IMAGES / f"{name}.svg").read_text(encoding="utf-8") == DRAWN[name], (
        "python -m tests.pages.drawings"
    )
    shown = re.search(rf"!\[([^\]]+)\]\(images/{name}\.svg\)", SHOWN)
    assert shown is not None
    assert len(shown[1]) > 30, "it is described"


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawing_is_described_and_keeps_within_its_ground(name: str) -> None:
    root = ElementTree.fromstring(DRAWN[name])  # noqa: S314 (ours)
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    assert len(root.attrib["aria-label"]) > 30
    for one in root.iter():
        x, y = float(one.attrib.get("x", 0)), float(one.attrib.get("y", 0))
        assert 0 <= x + float(one.attrib.get("width", 0) if one is not root else 0) <= width
        assert 0 <= y <= height


@pytest.mark.parametrize("name", DRAWN)
def test_its_words_are_large_enough_on_a_phone(name: str) -> None:
    width = float(ElementTree.fromstring(DRAWN[name]).attrib["viewBox"].split()[2])  # noqa: S314 (ours)
    sizes = [float(found) for found in re.findall(r"font(?:-size)?:\s*([\d.]+)px", DRAWN[name])]
    assert sizes
    assert min(sizes) * min(COLUMN / width, 1) >= 11


@pytest.mark.slow
def test_no_words_are_cut_or_meet_others() -> None:
    if browser.executable() is None:
        pytest.fail(browser.MISSING)
    with browser.opened() as tab:
        for name in DRAWN:
            tab.goto((drawings.IMAGES / f"{name}.svg").as_uri())
            assert (name, tab.evaluate(CUT_OR_MET)) == (name, [])


def test_other_time_boxes_are_another_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "CHANGE_MINUTES", 95.0)
    assert "95 min; each is tried" in visual_guide.pictures()["guide_session"]


def test_another_log_is_another_drawing() -> None:
    events = folder.read(drawings.ROOT / folder.FOLDER / "rmsnorm-memory-speed").events
    drawn = walkthrough.pictures(events, Policy())
    assert "6.09×" in drawn["walk_speed"]
    undone = [one.model_copy(update={"kept": False}) if one.event == "decided" else one for one in events]
    assert "try 1, reverted" in walkthrough.pictures(undone, Policy())["walk_speed"]
