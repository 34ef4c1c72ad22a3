"""The drawings of the guides are current, say what they show to those who cannot see them, and are all shown."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.sessions import folder
from tests.pages import drawings, visual_guide, walkthrough

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


def test_another_policy_is_another_drawing() -> None:
    longer = Policy.model_validate({"session": {"change_minutes": 95.0}})
    assert "95 min; each is tried" in visual_guide.pictures(longer)["guide_session"]


def test_another_log_is_another_drawing() -> None:
    events = folder.read(drawings.ROOT / folder.FOLDER / "rmsnorm-memory-speed").events
    drawn = walkthrough.pictures(events, Policy())
    assert "6.09×" in drawn["walk_speed"]
    undone = [one.model_copy(update={"kept": False}) if one.event == "decided" else one for one in events]
    assert "try 1, reverted" in walkthrough.pictures(undone, Policy())["walk_speed"]
