"""The drawings of sessions, each an SVG file: gains over the tries, time by phase, sessions beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kernelgate.ci.document import drawing
from kernelgate.ci.document.drawing import END, MIDDLE, WIDTH, Scale
from kernelgate.ci.document.escape import visible
from kernelgate.ci.lab import times
from kernelgate.ci.lab.state import SessionState, TryState

LEFT, TOP, ROW = 40.0, 12.0, 22.0
PLOT = 150.0
MOST_LABELS = 8
"""Of tries below the plot; of more, each second or third has one."""
NAME = 16
"""Characters of a try or phase that stand beside its row."""
STYLE = """
text{font:12px system-ui,sans-serif;fill:#1f2328}.tick{font-size:11.5px;fill:#59636e}
.grid{stroke:#d1d9e0}.zero{stroke:#59636e}.kept{stroke:#1a7f37;fill:#1a7f37}.other{stroke:#59636e;fill:none}
.bar{fill:#0969da}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.tick{fill:#9198a1}.grid{stroke:#3d444d}
.kept{stroke:#3fb950;fill:#3fb950}.other{stroke:#9198a1}.bar{fill:#4493f8}}
"""


@dataclass(frozen=True)
class SessionDrawing:
    """What is drawn, how high that is, and the same as text."""

    spoken: str
    height: float
    content: tuple[Markup, ...]


def gains(tries: Sequence[TryState]) -> SessionDrawing | None:
    """How much faster each try is than what stood before it, with its 95% interval; kept ones filled. None without any
    that was timed."""
    timed = [(one, one.gain_pct, one.interval_pct) for one in tries if one.gain_pct is not None and one.interval_pct]
    if not timed:
        return None
    values = [0.0, *(end for _, gain, interval in timed for end in (gain or 0.0, *interval))]
    up = Scale.over(values, TOP + PLOT, TOP)
    last = max(one.number for one in tries)
    across = Scale.over([1.0, float(last)], LEFT, WIDTH, room=0.1)
    step = -(-last // MOST_LABELS)
    drawn = [_level(up.at(tick), f"{tick:.3g}%", tick == 0) for tick in up.ticks(5)]
    for one, gain, (low, high) in timed:
        x = across.at(float(one.number))
        kind = "kept" if one.decision == "kept" else "other"
        drawn.append(drawing.line((x, up.at(low)), (x, up.at(high)), kind))
        drawn.append(drawing.tag("circle", cx=x, cy=up.at(gain or 0.0), r=3.5, class_=kind))
    labels = [
        _below(across.at(float(one.number)), f"try {one.number}", TOP + PLOT) for one in tries if one.number % step == 0
    ]
    spoken = "; ".join(f"try {one.number}: {gain:.3g}% faster" for one, gain, _ in timed)
    return SessionDrawing(f"Gain of each try over what stood before: {spoken}", TOP + PLOT + 24, (*drawn, *labels))


def phases(state: SessionState) -> SessionDrawing | None:
    """Time by gate, and that of all tries. None where nothing took any."""
    rows = [(gate.name, gate.minutes) for gate in state.gates if gate.minutes]
    trying = sum(one.seconds or 0.0 for one in state.tries) / 60
    return bars("Time by phase", [*rows, *([("tries", trying)] if trying else [])], "min")


def bars(title: str, rows: Sequence[tuple[str, float]], unit: str) -> SessionDrawing | None:
    """A bar for each row; None without rows."""
    if not rows:
        return None
    wide = Scale(0.0, max(value for _, value in rows) or 1.0, 110.0, WIDTH - 60)
    drawn = []
    for at, (name, value) in enumerate(rows):
        y = TOP + at * ROW
        drawn.append(drawing.text(104, y + 11, visible(name, NAME), anchor=END))
        drawn.append(drawing.rect((110, y), wide.at(value) - 110, ROW - 8, "bar"))
        drawn.append(drawing.text(wide.at(value) + 4, y + 11, _amount(value, unit), "tick"))
    spoken = "; ".join(f"{name}: {_amount(value, unit)}" for name, value in rows)
    return SessionDrawing(f"{title}: {spoken}", TOP + len(rows) * ROW, tuple(drawn))


def _amount(value: float, unit: str) -> str:
    return times.in_words(value) if unit == "min" else f"{value:.3g} {unit}"


def _level(y: float, label: str, is_zero: bool) -> Markup:
    line = drawing.line((LEFT, y), (WIDTH, y), "zero" if is_zero else "grid")
    return line + drawing.text(LEFT - 5, y + 4, label, "tick", END)


def _below(x: float, label: str, bottom: float) -> Markup:
    return drawing.text(x, bottom + 17, label, "tick", MIDDLE)


def file(made: SessionDrawing) -> str:
    """An SVG file that needs no page around it."""
    style = drawing.tag("style", Markup(STYLE))  # noqa: S704 (ours)
    box = f"0 0 {drawing.number(WIDTH)} {drawing.number(made.height)}"
    said = visible(made.spoken, 2000)
    drawn = drawing.tag(
        "svg",
        style,
        *made.content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=box,
        width="720",
        role="img",
        aria_label=said,
    )
    return f"{drawn}\n"
