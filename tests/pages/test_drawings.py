"""The drawings of the guides hold their numbers to log and code, say what they show, and are all shown."""

from __future__ import annotations

import os
import re
from pathlib import Path

from kernelgate.ci.document import drawing
from kernelgate.ci.lab import drawings, folder, session_entries, state
from kernelgate.ci.lab.log import Opened
from kernelgate.ci.policy import policy
from tests.test_architecture import MAY_IMPORT

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
DRAWN = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(IMAGES.glob("*.svg"))
    if path.stem.startswith(("architecture", "guide_", "nsight_", "walk_", "sessions"))
}


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
