"""The pictures of docs/walkthrough.md, from the log of the session that they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from markupsafe import Markup

from kernelgate.ci.document import drawing
from kernelgate.ci.document.drawing import END, MIDDLE, Scale
from kernelgate.ci.lab import coming
from kernelgate.ci.lab.log import Event, GateAttempt, TriedChange
from kernelgate.ci.policy.policy import Policy
from tests.pages.sketch import picture

LEFT, RIGHT = 106.0, 344.0


def pictures(events: Sequence[Event], rules: Policy) -> Mapping[str, str]:
    state = coming.of(events, rules, events[-1].at or "")
    return {
        "walk_time": _time(events),
        "walk_speed": _speed(state.figures.speedup_before or 1.0, state.tries),
        "walk_last": _close_up(state.tries[-1], rules.gates.margin_pct),
    }


def _time(events: Sequence[Event]) -> str:
    """When each gate and try ran, by its end and how long it took."""
    begun = _moment(events[0])
    rows = [
        (one.gate if isinstance(one, GateAttempt) else f"try {one.number}", _moment(one) - begun, one.seconds or 0.0)
        for one in events
        if isinstance(one, GateAttempt | TriedChange)
    ]
    whole = _moment(events[-1]) - begun
    across = Scale(0.0, whole, LEFT, RIGHT)
    bottom = 20.0 + 26 * len(rows)
    drawn = [
        drawing.line((across.at(60.0 * m), 10), (across.at(60.0 * m), bottom), "grid")
        for m in range(int(whole // 60) + 1)
    ]
    drawn += [
        drawing.text(across.at(60.0 * m), bottom + 16, f"{m} min", "small", MIDDLE) for m in range(int(whole // 60) + 1)
    ]
    for at, (name, end, seconds) in enumerate(rows):
        y, start = 16 + 26.0 * at, max(end - seconds, 0.0)
        drawn.append(drawing.text(LEFT - 8, y + 13, name, anchor=END))
        drawn.append(drawing.rect((across.at(start), y), max(across.at(end) - across.at(start), 2.0), 17, "bar"))
        late = across.at(end) > RIGHT - 60
        x = across.at(start) - 6 if late else across.at(end) + 6
        drawn.append(drawing.text(x, y + 13, f"{seconds:.0f} s", "small", END if late else None))
    said = "; ".join(f"{name} {seconds:.0f} s" for name, _, seconds in rows)
    return picture(f"When each gate and try ran: {said}", bottom + 24, *drawn)


def _moment(event: Event) -> float:
    return datetime.fromisoformat(event.at or "").timestamp()


def _speed(before: float, tries: Sequence[TriedChange]) -> str:
    """Times as fast as the reference, as measured first and multiplied by what each try gained."""
    points, standing = [("beginning", before, before, before, True)], before
    for one in tries:
        if one.gain_pct is None or one.interval_pct is None:
            continue
        here, low, high = (standing / (1 - gain / 100) for gain in (one.gain_pct, *one.interval_pct))
        kept = one.decision == "kept"
        points.append((f"try {one.number}, {one.decision}", here, low, high, kept))
        standing = here if kept else standing
    up = Scale(0.0, max(high for *_, high, _ in points) * 1.12, 220.0, 14.0)
    drawn = []
    for tick in up.ticks(6):
        drawn.append(drawing.line((LEFT, up.at(tick)), (RIGHT, up.at(tick)), "grid"))
        drawn.append(drawing.text(LEFT - 8, up.at(tick) + 4, f"{tick:g}×", "small", END))
    step = (RIGHT - LEFT) / len(points)
    for at, (name, here, low, high, kept) in enumerate(points):
        x, kind = LEFT + step * (at + 0.5), "kept" if kept else "other"
        drawn.append(drawing.line((x, up.at(low)), (x, up.at(high)), kind))
        drawn.append(drawing.tag("circle", cx=x, cy=up.at(here), r=5.0, class_=kind))
        drawn.append(drawing.text(x, up.at(here) + 24, f"{here:.3g}×", "head", MIDDLE))
        if low != high:
            drawn.append(drawing.text(x, up.at(here) + 40, f"{low:.3g} to {high:.3g}", "small", MIDDLE))
        for below, words in enumerate(name.split(", ")):
            drawn.append(drawing.text(x, 242 + 16.0 * below, words, "small" if below else "", MIDDLE))
    said = "; ".join(f"{name}: {here:.3g} times the reference" for name, here, *_ in points)
    return picture(f"Speed after each try: {said}", 268, *drawn)


def _close_up(one: TriedChange, margin: float) -> str:
    """The last try's gain, with its interval between the margins within which it counts as no change."""
    assert one.gain_pct is not None, "it was timed"
    assert one.interval_pct is not None, "it was timed"
    low, high = one.interval_pct
    across = Scale(min(-1.4 * margin, low), max(1.4 * margin, high), LEFT, RIGHT)
    drawn: list[Markup] = [drawing.rect((across.at(-margin), 14), across.at(margin) - across.at(-margin), 62, "good")]
    for tick in (-margin, 0.0, margin):
        drawn.append(drawing.line((across.at(tick), 14), (across.at(tick), 76), "grid"))
        drawn.append(drawing.text(across.at(tick), 94, f"{tick:+g}%" if tick else "0", "small", MIDDLE))
    drawn.append(drawing.line((across.at(low), 45), (across.at(high), 45), "kept"))
    drawn.append(drawing.tag("circle", cx=across.at(one.gain_pct), cy=45.0, r=5.0, class_="other"))
    drawn.append(drawing.text(LEFT - 8, 49, f"try {one.number}", anchor=END))
    drawn.append(drawing.text(across.at(-margin) + 8, 30, "no change", "small"))
    drawn.append(drawing.text(LEFT, 112, "slower", "small"))
    drawn.append(drawing.text(RIGHT, 112, "faster", "small", END))
    interval = f"95% interval {low:+.2f}% to {high:+.2f}%"
    said = f"Try {one.number}: {one.gain_pct:+.2f}% faster, {interval}; the margin is {margin:g}%"
    return picture(said, 122, *drawn)
