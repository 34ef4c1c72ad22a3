"""Where the profiler found each side's warps: source lines with what they gained, and the hottest instructions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from markupsafe import Markup

from kernelgate.bench.explain import metrics
from kernelgate.bench.record import HotInstruction, HotSpots
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.explain.moved_samples import MovedLine, SampleShare, moved_lines
from kernelgate.ci.report.page import html
from kernelgate.ci.report.page.drawing import tag

MAX_ROWS = 12
"""Lines that are shown: those that moved most, and of the rest the hottest."""
MAX_INSTRUCTIONS = 8
"""Of each side."""
SMALL_PCT = 0.5
"""Of the samples; what has less on both sides is not shown."""


@dataclass(frozen=True)
class Sampled:
    """One case's samples."""

    sides: Mapping[str, HotSpots | None]
    """Of each side that was profiled; None where no samples were taken of its lines."""
    command: str
    """Takes them."""


@dataclass(frozen=True)
class ShownShare:
    """One side of a line or an instruction."""

    bar: Markup
    share: str
    stall: str


@dataclass(frozen=True)
class ShownSource:
    text: Line
    where: str
    base: ShownShare | None
    head: ShownShare
    change: Line


@dataclass(frozen=True)
class ShownInstruction:
    share: ShownShare
    sass: Line
    where: str


def section(found: Sampled) -> Markup:
    """What both sides' samples show; of the head alone where the base has none; else how to take them."""
    sides = {side: spots for side in ("base", "head") if (spots := found.sides.get(side)) is not None}
    base, head = sides.get("base"), sides.get("head")
    template = html.environment().get_template("samples.html.jinja")
    return Markup(  # noqa: S704 (escaped by the template)
        template.render(
            lines=list(_lines(base, head)) if head else [],
            both=base is not None,
            counts=", ".join(f"{side} {spots.samples:,}" for side, spots in sides.items()),
            instructions={
                side: [_instruction(one, spots, side) for one in spots.instructions[:MAX_INSTRUCTIONS]]
                for side, spots in sides.items()
            },
            missing=[side for side, spots in found.sides.items() if spots is None],
            command=(Code(found.command, most=len(found.command)),),
        )
    )


# ---- lines -----------------------------------------------------------------------------------------------------------


def _lines(base: HotSpots | None, head: HotSpots) -> Iterator[ShownSource]:
    moved = [one for one in moved_lines(base or head, head) if max(one.base.high, one.head.high) >= SMALL_PCT]
    most = sorted(moved, key=lambda one: (-abs(one.gain_pct), -max(one.head.low, one.base.low)))[:MAX_ROWS]
    for one in moved:
        if one in most:
            yield ShownSource(
                text=(Code(one.text, most=120),) if one.text else (),
                where=f"{one.file}:{_numbers(one, base is not None)}",
                base=_share(one.base, one.base_stall, "base") if base else None,
                head=_share(one.head, one.head_stall, "head"),
                change=_change(one) if base else (),
            )


def _numbers(one: MovedLine, both: bool) -> str:
    """ "12", or "12 → 14" where it is another one on the base."""
    before, after = (", ".join(map(str, numbers)) for numbers in (one.base_lines, one.head_lines))
    return f"{before} → {after}" if both and before and after and before != after else after or before


def _change(one: MovedLine) -> Line:
    if not one.is_sure:
        return ("about the same",)
    least = "at least " if one.base.low < one.base.high or one.head.low < one.head.high else ""
    verb = "gained" if one.gain_pct > 0 else "lost"
    return (f"{verb} {least}{abs(one.gain_pct):.1f} points",)


def _share(share: SampleShare, stall: str | None, side: str) -> ShownShare:
    if share == SampleShare(0.0, 100.0):
        shown = formatting.MISSING
    elif share.low < share.high:
        shown = f"≤ {share.high:.1f}%" if share.low == 0 else f"{share.low:.1f} to {share.high:.1f}%"
    else:
        shown = formatting.percent(share.low, 1)
    return ShownShare(_bar(share.low, side), shown, _state(stall))


def _bar(share: float, side: str) -> Markup:
    rect = tag("rect", width=max(share, 0.0), height=8.0, class_=side)
    return tag("svg", rect, class_="share", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")


def _state(stall: str | None) -> str:
    """What most samples waited for, in the words of the profile where it knows them."""
    if stall is None:
        return ""
    return visible(metrics.STALLS.get(stall, stall.replace("_", " ")).partition(" (")[0], 40)


# ---- instructions ----------------------------------------------------------------------------------------------------


def _instruction(one: HotInstruction, spots: HotSpots, side: str) -> ShownInstruction:
    share = 100 * one.samples / spots.samples
    return ShownInstruction(
        share=_share(SampleShare(share, share), one.stall, side),
        sass=(Code(one.sass, most=60),),
        where=f"{PurePosixPath(one.file).name}:{one.line}" if one.file and one.line else "",
    )
