"""Sessions beside each other, drawn: how long each took, and how fast its kernel was at the end."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from kernelgate.ci.document import drawing
from kernelgate.ci.document.drawing import END, MIDDLE, WIDTH, Logarithmic, Scale
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.lab.drawings import SessionDrawing
from kernelgate.ci.lab.metrics import SessionRow, minutes_words

SHOWN = 30
"""Sessions, the last ones; the text has all of them."""
NAMES, RIGHT = 150.0, WIDTH - 52
"""Where names end, and the longest bar."""
NAME = 20
"""Characters of a session's name."""
TOP, ROW = 24.0, 20.0
KEY = ("filled: measured; hollow: recorded by people,", "counted nowhere; thin: a search of a script")
LINE = 16.0
"""Of the key."""
GAP = 26.0
STYLE = """
.ground{fill:#fff}text{font:12px system-ui,sans-serif;fill:#1f2328}.tick{fill:#59636e}
.grid{stroke:#d1d9e0}.even{stroke:#59636e;stroke-dasharray:3 3}
.measured{stroke:#0969da;fill:#0969da}.recorded{stroke:#59636e;fill:none}
.search{fill:#8c959f}
@media (prefers-color-scheme:dark){.ground{fill:#0d1117}text{fill:#f0f6fc}.tick{fill:#9198a1}.grid{stroke:#3d444d}
.even{stroke:#9198a1}.measured{stroke:#4493f8;fill:#4493f8}.recorded{stroke:#9198a1}.search{fill:#656c76}}
"""


def file(rows: Sequence[SessionRow]) -> str | None:
    """Both drawings in an SVG file that needs no page around it; None without sessions."""
    made = [one for one in (minutes(rows), speeds(rows)) if one is not None]
    if not made:
        return None
    content, height = Markup(""), 8.0
    for one in made:
        content += drawing.tag("g", *one.content, transform=f"translate(8 {drawing.number(height)})")
        height += one.height + GAP
    wide = WIDTH + 16
    drawn = drawing.tag(
        "svg",
        drawing.tag("style", Markup(STYLE)),  # noqa: S704 (ours)
        drawing.rect((0.0, 0.0), wide, height, "ground"),
        content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {drawing.number(wide)} {drawing.number(height)}",
        width="560",
        role="img",
        aria_label=visible(" ".join(one.spoken for one in made), 4000),
    )
    return f"{drawn}\n"


def inline(made: SessionDrawing) -> Markup:
    """For a page whose style sheet knows the classes."""
    box = f"0 0 {drawing.number(WIDTH)} {drawing.number(made.height)}"
    return drawing.tag("svg", *made.content, viewBox=box, role="img", aria_label=visible(made.spoken, 4000))


def minutes(rows: Sequence[SessionRow]) -> SessionDrawing | None:
    """A bar for each session: filled where it was measured, hollow where people recorded it, thin of a script's search.
    None without sessions."""
    listed = rows[-SHOWN:]
    if not listed:
        return None
    across = Scale(0.0, max(one.minutes for one in listed) or 1.0, NAMES + 6, RIGHT)
    drawn = [_title("Minutes"), *(_name(at, one) for at, one in enumerate(listed))]
    bottom = TOP + len(listed) * ROW
    drawn += [drawing.text(0, bottom + LINE * at, words, "tick") for at, words in enumerate(KEY, 1)]
    for at, one in enumerate(listed):
        kind, high = _kind(one), 4.0 if _kind(one) == "search" else 10.0
        y, end = TOP + at * ROW + (ROW - high) / 2, across.at(one.minutes)
        drawn.append(drawing.rect((NAMES + 6, y), end - NAMES - 6, high, kind))
        drawn.append(drawing.text(end + 4, TOP + at * ROW + 14, f"{minutes_words(one)} min", "tick"))
    said = "; ".join(f"{one.name}{_aside(one)} {minutes_words(one)}" for one in listed)
    return SessionDrawing(f"Minutes by session{_last(rows)}: {said}.", bottom + LINE * len(KEY) + 4, tuple(drawn))


def speeds(rows: Sequence[SessionRow]) -> SessionDrawing | None:
    """Times as fast as the reference, with 95% intervals where the log has them; hollow where people recorded it. None
    where no session knows it."""
    known = [(one, one.speedup) for one in rows if one.speedup][-SHOWN:]
    if not known:
        return None
    ends = [end for one, speed in known for end in (one.speedup_interval or (speed,))]
    across = Logarithmic.over([*ends, 1.0], NAMES + 10, RIGHT)
    bottom = TOP + len(known) * ROW
    drawn = [_title("Times as fast as the reference, at the end")]
    for tick in across.ticks(5):
        drawn.append(drawing.line((across.at(tick), TOP), (across.at(tick), bottom), "even" if tick == 1 else "grid"))
        drawn.append(drawing.text(across.at(tick), bottom + 14, f"{tick:g}x", "tick", MIDDLE))
    for at, (one, speed) in enumerate(known):
        y = TOP + (at + 0.5) * ROW
        drawn.append(_name(at, one))
        if one.speedup_interval:
            low, high = map(across.at, one.speedup_interval)
            drawn.append(drawing.line((low, y), (high, y), _kind(one)))
        drawn.append(drawing.tag("circle", cx=across.at(speed), cy=y, r=4.0, class_=_kind(one)))
        drawn.append(drawing.text(RIGHT + 8, y + 4, f"{speed:.2g}x", "tick"))
    without = len(rows) - sum(one.speedup is not None for one in rows)
    left = f"{counted(without, 'session')} without one" if without else ""
    drawn += [drawing.text(0, bottom + 32, left, "tick")] if left else []
    said = "; ".join(f"{one.name}{_aside(one)} {speed:.3g}" for one, speed in known)
    spoken = f"Times as fast as the reference, by session{_last(rows)}: {said}{f'; {left}' if left else ''}."
    return SessionDrawing(spoken, bottom + (36 if left else 18), tuple(drawn))


def _title(words: str) -> Markup:
    return drawing.text(0, 14, words, "title")


def _name(at: int, one: SessionRow) -> Markup:
    return drawing.text(NAMES, TOP + at * ROW + 14, visible(one.name, NAME), anchor=END)


def _kind(one: SessionRow) -> str:
    return "search" if one.is_search else one.source


def _aside(one: SessionRow) -> str:
    return {"recorded": " (recorded)", "search": " (a search)"}.get(_kind(one), "")


def _last(rows: Sequence[SessionRow]) -> str:
    return f", the last {SHOWN} of {len(rows)}" if len(rows) > SHOWN else ""
