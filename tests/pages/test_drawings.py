"""The drawings of the guides are made of what is there: log, gates, patterns, packages, folders, all sessions."""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import wrap

from markupsafe import Markup

from kernelgate.ci.document import drawing
from kernelgate.ci.lab import drawings, folder, patterns, session_entries, state
from kernelgate.ci.lab.log import Opened, tries
from kernelgate.ci.policy import policy
from tests.test_architecture import MAY_IMPORT

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
IN_A_SESSION = ("doctor", "resources", "build", "bisect", "fuzz", "bench", "profile", "analyze", "pr", "compare")
"""The commands of patterns, in the order in which a session comes to them."""
LETTERS = 52
"""Of a line of a box."""


def current(name: str, made: str) -> bool:
    """Whether the drawing is what it would be now; `make drawings` draws it anew."""
    path = IMAGES / f"{name}.svg"
    if os.environ.get("KERNELGATE_GOLDEN") == "write":
        path.write_text(made, encoding="utf-8")
    return path.read_text(encoding="utf-8") == made


Row = tuple[str, str]


def boxes(title: str, rows: Sequence[Row], apart: Sequence[Row] = ()) -> str:
    """One below the other, each with its name and what is said of it; arrows lead from row to row, none to `apart`."""
    drawn: list[Markup] = [drawing.text(0, 14, title)]
    y, spoken, middles = 26.0, [], []
    for name, said in (*rows, *apart):
        lines = wrap(said, LETTERS)
        high = 24.0 + 15 * len(lines)
        drawn.append(drawing.rect((0, y), drawing.WIDTH, high, "other"))
        drawn.append(drawing.text(8, y + 16, name))
        drawn += [drawing.text(8, y + 31 + 15 * at, line, "tick") for at, line in enumerate(lines)]
        middles.append((y, y + high))
        spoken.append(f"{name}: {said}")
        y += high + 14
    for (_, end), (start, _) in pairwise(middles[: len(rows)]):
        drawn.append(drawing.line((180, end), (180, start), "zero"))
        drawn.append(drawing.path([(176, start - 5), (180, start), (184, start - 5)], "other"))
    return drawings.file([drawings.SessionDrawing(f"{title}. {'; '.join(spoken)}.", y, tuple(drawn))])


def test_the_drawing_of_a_session_is_current() -> None:
    gates = [
        (one.name, f"at most {one.limit_minutes:g} min: {one.passes}")
        for one in state.gate_states((Opened(name="", objective=""),))
        if one.name != "document"
    ]
    rest = [
        ("changes, one after the other", f"{state.CHANGE_MINUTES:g} min; each is tried, then kept or reverted"),
        ("measure again", "20 min, against the reference"),
        ("close", f"{state.DOCUMENT_MINUTES:g} min, the report"),
    ]
    stop = f"after {state.OPTIMISE_MINUTES:g} min, the money, or {state.WITHOUT_GATE_MINUTES:g} min without a gate"
    at_any_time = [("if a gate fails", "do what it says, and pass it again"), ("stop", stop)]
    assert current("guide_session", boxes("Gates in this order, then changes", [*gates, *rest], at_any_time))


def test_the_drawing_of_the_patterns_is_current() -> None:
    """Each where its command stands in a session."""
    names = defaultdict(list)
    for one in patterns.read_all(ROOT / "docs" / "patterns.md"):
        names[one.command.split()[1]].append(one.name)
    assert names.keys() <= set(IN_A_SESSION)
    rows = [(f"kernelgate {verb}", ", ".join(names[verb])) for verb in IN_A_SESSION if verb in names]
    last = ("kernelgate session review", "what cost time becomes a section here, which the next session is told")
    assert current("guide_patterns", boxes("Patterns, by what is run in a session", [*rows, last]))


def test_the_drawing_of_the_folders_is_current() -> None:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    inside: dict[str, set[str]] = defaultdict(set)
    for top, *below in (Path(name).parts[:-1] for name in done.stdout.split("\0") if "/" in name):
        inside[top].update(below[:1])
    rows = [(f"{top}/", ", ".join(sorted(inside[top]))) for top in sorted(inside)]
    assert current("folders", boxes("Folders, and what lies in them", (), rows))


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


def test_the_drawing_of_the_walkthrough_is_current() -> None:
    """That of the session's own report."""
    made = drawings.gains(tries(folder.read(ROOT / folder.FOLDER / "rmsnorm-memory-speed").events))
    assert made is not None
    assert current("walk_speed", drawings.file([made]))
    assert made.spoken.endswith("try 1: 62.9% faster; try 2: 0.0351% slower"), "read aloud, a sign would deny the word"


def test_sessions_are_drawn_with_their_speed_and_what_they_taught_and_few_are_only_said() -> None:
    rows = [state.summary(one.events, policy.Policy(), session_entries.until(one.events)) for one in folder.every(ROOT)]
    spoken = {one.spoken.split(" by session")[0]: one.spoken for one in drawings.beside(rows)}
    assert (
        "recorded-n-plus-4 (recorded) 0.0344x; rmsnorm-memory-speed 6.09x" in spoken["Times as fast as the reference"]
    )
    assert "recorded-n-plus-3 (recorded) environment-validated;" in spoken["Patterns learnt"]
    few = drawings.beside([one for one in rows if one.counted][:4])
    assert len(few) == 4
    assert all("not drawn, of fewer than 5 sessions" in one.spoken for one in few)
    assert not any("rect" in part for one in few for part in one.content)
