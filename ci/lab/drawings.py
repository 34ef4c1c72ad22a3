"""What is drawn of sessions, each an SVG: gains over the tries, and sessions beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from markupsafe import Markup

from kernelgate.ci.document import drawing
from kernelgate.ci.document.drawing import END, MIDDLE, WIDTH, Scale
from kernelgate.ci.document.escape import visible
from kernelgate.ci.lab.log import TriedChange
from kernelgate.ci.lab.state import SessionSummary

LEFT, TOP, PLOT = 40.0, 24.0, 150.0
MOST_LABELS = 8
"""Of tries below the plot; of more, each second or third has one."""
SHOWN = 30
"""Sessions, the last ones; the text has all of them."""
NAMES, RIGHT = 150.0, WIDTH - 52
"""Where names end, and the longest bar."""
NAME = 20
"""Characters of a session's name."""
NAMES_TOP, ROW = 24.0, 20.0
KEY = "filled: measured; hollow: recorded by people, counted nowhere"
GAP = 26.0
FEWEST = 5
"""Sessions, before anything over them is drawn."""
STYLE = """
.ground{fill:#fff}text{font:12px system-ui,sans-serif;fill:#1f2328}.tick{fill:#59636e}
.grid{stroke:#d1d9e0}.zero{stroke:#59636e}
.kept{stroke:#1a7f37;fill:#1a7f37}.other,.recorded{stroke:#59636e;fill:none}
.measured{stroke:#0969da;fill:#0969da}
@media (prefers-color-scheme:dark){.ground{fill:#0d1117}text{fill:#f0f6fc}.tick{fill:#9198a1}.grid{stroke:#3d444d}
.zero,.other,.recorded{stroke:#9198a1}.kept{stroke:#3fb950;fill:#3fb950}
.measured{stroke:#4493f8;fill:#4493f8}}
"""


@dataclass(frozen=True)
class SessionDrawing:
    """What is drawn, how high that is, and the same as text."""

    spoken: str
    height: float
    content: tuple[Markup, ...]


def file(drawn: Sequence[SessionDrawing]) -> str:
    """An SVG file that needs no page around it, of drawings one below the other."""
    content, height = Markup(""), 8.0
    for one in drawn:
        content += drawing.tag("g", *one.content, transform=f"translate(8 {drawing.number(height)})")
        height += one.height + GAP
    wide = WIDTH + 16
    made = drawing.tag(
        "svg",
        drawing.tag("style", Markup(STYLE)),  # noqa: S704 (ours)
        drawing.rect((0.0, 0.0), wide, height, "ground"),
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {drawing.number(wide)} {drawing.number(height)}",
        width="560",
        role="img",
        aria_label=visible(" ".join(one.spoken for one in drawn), 4000),
    )
    return f"{made}\n"


def inline(made: SessionDrawing) -> Markup:
    """For a page whose style sheet knows the classes."""
    box = f"0 0 {drawing.number(WIDTH)} {drawing.number(made.height)}"
    return drawing.tag("svg", *made.content, viewBox=box, role="img", aria_label=visible(made.spoken, 4000))


def minutes_words(minutes: float) -> str:
    """Whole minutes, and a part of one where it took no more."""
    return f"{minutes:.0f}" if minutes >= 1 or not minutes else f"{minutes:.1g}"


# ---- one session -----------------------------------------------------------------------------------------------------


def gains(tries: Sequence[TriedChange]) -> SessionDrawing | None:
    """How much faster each try is than what stood before it, with its 95% interval; kept ones filled. None without any
    that was timed."""
    timed = [(one, *one.gain) for one in tries if one.gain]
    if not timed:
        return None
    up = Scale.over([0.0, *(end for _, gain, interval in timed for end in (gain, *interval))], TOP + PLOT, TOP)
    last = max(one.number for one in tries)
    across = Scale.over([1.0, float(last)], LEFT, WIDTH, room=0.1)
    step = -(-last // MOST_LABELS)
    drawn = _with_levels("less time than what stood before", up)
    for one, gain, ends in timed:
        x, kind = across.at(float(one.number)), "kept" if one.decision == "kept" else "other"
        low, high = map(up.at, ends)
        drawn.append(drawing.line((x, low), (x, high), kind))
        drawn.append(drawing.tag("circle", cx=x, cy=up.at(gain), r=3.5, class_=kind))
        if one.number % step == 0:
            drawn.append(drawing.text(x, TOP + PLOT + 17, f"{one.number}", "tick", MIDDLE))
    drawn.append(drawing.text(WIDTH, TOP + PLOT + 33, "try", "title", END))
    spoken = "; ".join(
        f"try {one.number}: {abs(gain):.3g}% {'slower' if gain < 0 else 'faster'}" for one, gain, _ in timed
    )
    return SessionDrawing(f"Gain of each try over what stood before: {spoken}", TOP + PLOT + 38, tuple(drawn))


def _with_levels(title: str, up: Scale) -> list[Markup]:
    drawn = [drawing.text(0, 12, title, "title")]
    for tick in up.ticks(5):
        drawn.append(drawing.line((LEFT, up.at(tick)), (WIDTH, up.at(tick)), "zero" if tick == 0 else "grid"))
        drawn.append(drawing.text(LEFT - 5, up.at(tick) + 4, f"{tick:.3g}%", "tick", END))
    return drawn


# ---- sessions beside each other --------------------------------------------------------------------------------------


def beside(rows: Sequence[SessionSummary]) -> tuple[SessionDrawing, ...]:
    """Time, speed, patterns and success of all sessions; nothing without sessions. A script's search is none."""
    known = [one for one in rows if not one.is_search]
    times = [(one, one.minutes, f"{minutes_words(one.minutes)} min") for one in known]
    speeds = [(one, fast, f"{fast:.3g}x") for one in known if (fast := one.figures.speedup)]
    taught = [(one, 1.0, name) for one in known for name in one.figures.patterns["learnt"]]
    made = (_bars("Minutes", times), _bars("Times as fast as the reference", speeds))
    return (*made, _bars("Patterns learnt", taught, NAMES + 16), success(known)) if known else ()


def _bars(title: str, rows: Sequence[tuple[SessionSummary, float, str]], right: float = RIGHT) -> SessionDrawing:
    """A bar for each value of a session: filled where it was measured, hollow where people recorded it."""
    if len({one.opened.name for one, *_ in rows}) < FEWEST:
        return _few(title)
    listed = rows[-SHOWN:]
    across = Scale(0.0, max(value for _, value, _ in listed) or 1.0, NAMES + 6, right)
    bottom, drawn = NAMES_TOP + len(listed) * ROW, [drawing.text(0, 14, title, "title")]
    for at, (one, value, words) in enumerate(listed):
        y, end = NAMES_TOP + at * ROW, across.at(value)
        drawn.append(drawing.text(NAMES, y + 14, visible(one.opened.name, NAME), anchor=END))
        drawn.append(drawing.rect((NAMES + 6, y + 5), end - NAMES - 6, 10.0, one.opened.source))
        drawn.append(drawing.text(end + 4, y + 14, visible(words, 2 * NAME), "tick"))
    drawn.append(drawing.text(0, bottom + 16, KEY, "tick"))
    aside = {"recorded": " (recorded)", "measured": ""}
    said = "; ".join(f"{one.opened.name}{aside[one.opened.source]} {words}" for one, _, words in listed)
    last = f", the last {SHOWN} of {len(rows)}" if len(rows) > SHOWN else ""
    return SessionDrawing(f"{title} by session{last}: {said}.", bottom + 20, tuple(drawn))


def _few(title: str) -> SessionDrawing:
    few = f"not drawn, of fewer than {FEWEST} sessions"
    drawn = drawing.text(0, 14, title, "title"), drawing.text(0, 34, few, "tick")
    return SessionDrawing(f"{title}: {few}.", 38.0, drawn)


def success(rows: Sequence[SessionSummary]) -> SessionDrawing:
    """The share of tries that were kept, of all until each session: whether people learn."""
    known = [one for one in rows if one.counted and one.figures.tries]
    if len(known) < FEWEST:
        return _few("Share of tries that were kept")
    tried = list(accumulate(one.figures.tries for one in known))
    kept = list(accumulate(one.figures.kept for one in known))
    shares = [100 * good / every for good, every in zip(kept, tried, strict=True)]
    up, across = Scale(0.0, 100.0, TOP + PLOT, TOP), Scale.over([1.0, float(len(shares))], LEFT, WIDTH, room=0.1)
    points = [(across.at(at), up.at(share)) for at, share in enumerate(shares, 1)]
    drawn = _with_levels("Share of tries that were kept, of all so far", up)
    drawn += [drawing.line(start, end, "kept") for start, end in pairwise(points)]
    for at, (x, y) in enumerate(points, 1):
        drawn.append(drawing.tag("circle", cx=x, cy=y, r=3.5, class_="kept"))
        drawn.append(drawing.text(x, TOP + PLOT + 17, f"{at}", "tick", MIDDLE))
    drawn.append(drawing.text(WIDTH, TOP + PLOT + 33, "measured session", "title", END))
    spoken = f"{shares[0]:.0f}% after the first session, {shares[-1]:.0f}% after {len(shares)}"
    return SessionDrawing(f"Share of tries that were kept: {spoken}.", TOP + PLOT + 38, tuple(drawn))
