"""The sketches of docs/nsight.md: where Nsight Compute's screens show what, with the numbers that the page explains.

Drawn by us, and schematic: no figure in them was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from kernelgate.ci.page import drawing
from kernelgate.ci.page.drawing import MIDDLE
from tests.pages.sketch import arrow, box, picture

WIDE = 700.0
BAR, FULL = 190.0, 380.0
"""Where bars begin, and the length of a full one."""


def pictures() -> Mapping[str, str]:
    return {
        "nsight_summary": _summary(),
        "nsight_speed_of_light": _speed_of_light(),
        "nsight_memory": _memory(),
        "nsight_warps": _warps(),
        "nsight_source": _source(),
    }


def _mark(number: int, x: float, y: float) -> Markup:
    return drawing.tag("circle", cx=x, cy=y - 4, r=8.0, class_="mark") + drawing.tag(
        "text", Markup.escape(str(number)), x=x, y=y, text_anchor=MIDDLE, style="fill:#fff;font-size:11px"
    )


def _screen(title: str, height: float, *content: Markup) -> str:
    frame = drawing.rect((6, 6), WIDE - 12, height - 12, "ground grid")
    head = drawing.rect((6, 6), WIDE - 12, 26, "box") + drawing.text(18, 24, title, "head")
    return picture(f"A sketch of Nsight Compute's {title}", WIDE, height, frame, head, *content)


def _bars(rows: Sequence[tuple[str, float, int]], top: float) -> Iterator[Markup]:
    """Each row's name, its share of a full bar, and its number; 0 has none."""
    for at, (name, share, number) in enumerate(rows):
        y = top + 28 * at
        yield drawing.text(18, y + 13, name, "small")
        yield drawing.rect((BAR, y), FULL, 18, "rest") + drawing.rect((BAR, y), FULL * share, 18, "bar")
        if number:
            yield _mark(number, BAR + FULL + 20, y + 13)


def _summary() -> str:
    columns = ["Function Name", "Estimated Speedup", "Duration", "Compute", "Memory", "# Registers", "Grid, Block"]
    places = [18, 132, 258, 338, 418, 496, 594]
    drawn = [drawing.text(x, 54, name, "small") for x, name in zip(places, columns, strict=True)]
    for at in range(3):
        y = 76 + 24 * at
        drawn.append(drawing.text(18, y, f"kernel {'abc'[at]}", "head" if at == 0 else ""))
        drawn += [drawing.rect((x, y - 9), 40 - 9 * at, 9, "rest") for x in places[1:]]
    drawn += [_mark(at + 1, x + 58, 76) for at, x in enumerate(places[1:])]
    rule = ["a rule's advice", "what is wrong, and by how much mending it might help at most"]
    return _screen("Summary page", 216, *drawn, box((18, 148), 640, rule, "now"), _mark(7, 676, 172))


def _speed_of_light() -> str:
    rows = [("Compute (SM) Throughput", 0.35, 1), ("Memory Throughput", 0.8, 2)]
    breakdown = [("L1/TEX Cache Throughput", 0.3, 3), ("L2 Cache Throughput", 0.45, 4), ("DRAM Throughput", 0.8, 5)]
    below = drawing.text(18, 118, "breakdown: the same by unit", "head")
    return _screen("GPU Speed Of Light section", 222, *_bars(rows, 44), below, *_bars(breakdown, 128))


def _memory() -> str:
    return _screen(
        "Memory chart",
        236,
        box((18, 110), 80, ["Kernel"]),
        box((150, 50), 120, ["Global"]), box((150, 110), 120, ["Local"]), box((150, 180), 120, ["Shared"]),
        arrow((98, 124), (124, 124), (124, 64), (150, 64)), arrow((98, 124), (150, 124)),
        arrow((98, 124), (124, 124), (124, 194), (150, 194)),
        box((330, 80), 90, ["L1/TEX"]), box((470, 80), 80, ["L2"], "now"), box((600, 80), 84, ["Device"]),
        arrow((270, 64), (300, 64), (300, 88), (330, 88)), arrow((270, 124), (300, 124), (300, 100), (330, 100)),
        box((330, 180), 200, ["Shared Memory"]), arrow((270, 194), (330, 194)),
        arrow((420, 94), (470, 94)), arrow((550, 94), (600, 94)),
        _mark(1, 286, 56), _mark(2, 286, 142), _mark(3, 300, 186), _mark(4, 375, 126), _mark(5, 510, 126),
        _mark(6, 575, 84),
    )  # fmt: skip


def _warps() -> str:
    rows = [
        ("Stall Long Scoreboard", 0.9, 1),
        ("Stall Short Scoreboard, MIO", 0.45, 2),
        ("Stall Barrier", 0.3, 3),
        ("Stall Math Pipe Throttle", 0.2, 4),
        ("Stall Not Selected", 0.12, 5),
        ("Selected", 0.08, 6),
    ]
    title = drawing.text(18, 54, "cycles that a warp waits for each instruction that is issued", "head")
    return _screen("Warp State Statistics section", 250, title, *_bars(rows, 68))


def _source() -> str:
    left = ["for (int k = 0; k < n; ++k)", "  tile[t] = in[k * n + t];", "  __syncthreads();", "  sum += tile[32 * t];"]
    right = ["ISETP", "LDG.E", "BAR.SYNC", "LDS"]
    shares = [0.05, 0.6, 0.15, 0.9]
    drawn = [drawing.text(18, 54, "Source", "head"), drawing.text(330, 54, "SASS", "head")]
    drawn += [drawing.text(450, 54, "Warp Stall Sampling", "head")]
    for at, (code, sass, share) in enumerate(zip(left, right, shares, strict=True)):
        y = 78 + 24 * at
        drawn += [drawing.text(18, y, code), drawing.text(330, y, sass)]
        drawn += [drawing.rect((450, y - 11), 180, 14, "rest"), drawing.rect((450, y - 11), 180 * share, 14, "bar")]
    return _screen("Source page", 176, *drawn, _mark(1, 300, 54), _mark(2, 390, 54), _mark(3, 648, 150))
