"""Figures as SVG: the elements of a drawing and its axes, with every text of a record made visible and escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from kernelgate.ci.document.escape import visible

Point = tuple[float, float]
WIDTH = 360.0
"""Of every drawing in a case, in units of its view box; one is shown at about this many pixels."""
AXIS = 33.0
"""Room under a frame for the numbers of its axis and the axis' title."""
LABEL = 36.0
"""A side's name beside its dot takes as much."""
MIDDLE, END = "middle", "end"
ROOM = 0.06
"""Of an axis, left free beyond the first and the last value."""


@dataclass(frozen=True)
class Scale:
    """Maps values to drawing units; what lies beyond the axis stands at its end."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, room: float = ROOM) -> Scale:
        """An axis that shows all these values; of one value alone, something around it."""
        low, high = min(values), max(values)
        free = room * (high - low) or abs(high) * 0.01 or 1.0
        return cls(low - free, high + free, start, end)

    def at(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self, most: int) -> list[float]:
        """Round numbers, at most so many: steps of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
        return [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


# Elements -------------------------------------------------------------------------------------------------------------


def joined(parts: Iterable[Markup]) -> Markup:
    return Markup("").join(parts)


def number(value: float) -> str:
    """A tenth of a unit is less than a pixel."""
    return f"{value:.1f}".removesuffix(".0").replace("-0.0", "0") if value else "0"


def signed_tick(value: float) -> str:
    """Of an axis of percent."""
    return f"{value:+,.6g}%".replace("-", "−") if abs(value) > 1e-12 else "0%"


def tag(name: str, *content: str, **attributes: object) -> Markup:
    """One element. A trailing underscore of an attribute's name is dropped, others become hyphens."""
    # Not by Markup.format, which takes ten times as long: a page has ten thousand of these.
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(number(value) if isinstance(value, float) else str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = f">{''.join(map(escape, content))}</{name}>" if content else "/>"
    return Markup(f"<{name}{written}{inside}")  # noqa: S704 (names of ours; the rest is escaped)


def text(x: float, y: float, words: str, class_: str = "", anchor: str | None = None) -> Markup:
    return tag("text", visible(words), x=x, y=y, class_=class_ or None, text_anchor=anchor)


def line(start: Point, end: Point, class_: str) -> Markup:
    return tag("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], class_=class_)


def rect(corner: Point, width: float, height: float, class_: str) -> Markup:
    return tag("rect", x=corner[0], y=corner[1], width=max(width, 0.0), height=max(height, 0.0), class_=class_)


def path(points: Sequence[Point], class_: str, closed: bool = False) -> Markup:
    """A line through the points; written as steps from one to the next, which is a third shorter."""
    tenths = [(round(10 * x), round(10 * y)) for x, y in points]
    steps = [(x1 - x0, y1 - y0) for (x0, y0), (x1, y1) in pairwise(tenths)]
    d = "M" + _pairs(tenths[:1]) + ("l" + _pairs(steps) if steps else "") + ("z" if closed else "")
    return tag("path", d=d, class_=class_)


def _pairs(tenths: Iterable[tuple[int, int]]) -> str:
    """Numbers apart from each other by a space, or by the minus of the next."""
    return " ".join(
        number(one / 10).replace("0.", ".") if abs(one) < 10 else number(one / 10) for pair in tenths for one in pair
    ).replace(" -", "-")


def dot(x: float, y: float, side: str, radius: float = 3.5) -> Markup:
    """Base is an open square, head a filled circle: told apart without any colour."""
    if side == "head":
        return tag("circle", cx=x, cy=y, r=radius, class_="head")
    return tag("rect", x=x - radius, y=y - radius, width=2 * radius, height=2 * radius, class_="base")


def sides(places: Mapping[str, Point], left: float, right: float) -> Markup:
    """Each side's dot with its name: of the left one above to its left, of the other below to its right, inside."""
    drawn = Markup("")
    first = min(places, key=lambda side: places[side])
    for side, (x, y) in places.items():
        outward = -1 if side == first and len(places) > 1 else 1
        towards = outward if left < x + outward * LABEL < right else -outward
        below = y - 7 if outward < 0 else y + 15
        drawn += dot(x, y, side) + text(x + 7 * towards, below, side, f"side {side}", END if towards < 0 else None)
    return drawn


# Axes and frames ------------------------------------------------------------------------------------------------------


def levels(ticks: Iterable[tuple[float, str]], left: float, right: float) -> Markup:
    """Lines across the frame, each with its number to the left."""
    return joined(line((left, y), (right, y), "grid") + text(left - 6, y + 4, label, "name", END) for y, label in ticks)


def axis_below(ticks: Iterable[tuple[float, str]], top: float, bottom: float, title: str) -> Markup:
    """Lines through the frame with their numbers under it, and the axis' title with its unit under those."""
    drawn = [line((x, top), (x, bottom), "grid") + text(x, bottom + 15, label, "tick", MIDDLE) for x, label in ticks]
    return joined([*drawn, text(WIDTH, bottom + 28, title, "title", END)])


def figure(title: str, description: str, height: float, *content: Markup, note: str = "") -> Markup:
    """A drawing under its title. `description`: the same as text, for those who cannot see it."""
    box = f"0 0 {number(WIDTH)} {number(height)}"
    drawn = tag("svg", *content, viewBox=box, role="img", aria_label=visible(description, 2000))
    caption = tag("figcaption", tag("strong", title), f" {visible(note)}" if note else "")
    return tag("figure", caption, drawn)
