"""The sketches of docs/nsight.md: where Nsight Compute's screens show what, with the numbers that the page explains.

Drawn by us, and schematic: no figure in them was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from markupsafe import Markup

from kernelgate.ci.document import drawing
from kernelgate.ci.document.drawing import END, MIDDLE
from tests.pages.sketch import WIDE, arrow, box, picture

BAR, FULL = 188.0, 126.0
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
    disc = drawing.tag("circle", cx=x, cy=y - 4, r=8.0, class_="mark")
    return disc + drawing.text(x, y, str(number), "count", MIDDLE)


def _screen(title: str, height: float, *content: Markup) -> str:
    frame = drawing.rect((6, 6), WIDE - 12, height - 12, "ground grid")
    head = drawing.rect((6, 6), WIDE - 12, 26, "box") + drawing.text(14, 24, title, "head")
    return picture(f"A sketch of Nsight Compute's {title}", height, frame, head, *content)


def _bars(rows: Sequence[tuple[str, float, int]], top: float) -> Iterator[Markup]:
    """Each row's name, its share of a full bar, and its number; 0 has none."""
    for at, (name, share, number) in enumerate(rows):
        y = top + 28 * at
        yield drawing.text(14, y + 13, name, "small")
        yield drawing.rect((BAR, y), FULL, 18, "rest") + drawing.rect((BAR, y), FULL * share, 18, "bar")
        if number:
            yield _mark(number, BAR + FULL + 22, y + 13)


def _summary() -> str:
    columns = ["Function Name", "Estimated Speedup", "Duration", "Compute", "Memory", "# Registers", "Grid, Block"]
    places = [14, 76, 140, 182, 222, 262, 306]
    drawn = []
    for at, (x, name) in enumerate(zip(places, columns, strict=True)):
        y, last = 50 + 18 * (at % 3), at == len(places) - 1
        drawn.append(drawing.text(WIDE - 14 if last else x, y, name, "small", END if last else None))
        drawn.append(drawing.line((x, y + 4), (x, 98), "grid"))
    for at in range(3):
        y = 114 + 24 * at
        drawn.append(drawing.text(14, y, f"kernel {'abc'[at]}", "head" if at == 0 else ""))
        drawn += [drawing.rect((x, y - 9), 26 - 6 * at, 9, "rest") for x in places[1:]]
    drawn += [_mark(at + 1, x + 12, 186) for at, x in enumerate(places[1:])]
    rule = ["a rule's advice", "what is wrong, and by how much mending", "it might help at most"]
    return _screen("Summary page", 278, *drawn, box((14, 200), 302, rule, "now"), _mark(7, 334, 236))


def _speed_of_light() -> str:
    rows = [("Compute (SM) Throughput", 0.35, 1), ("Memory Throughput", 0.8, 2)]
    breakdown = [("L1/TEX Cache Throughput", 0.3, 3), ("L2 Cache Throughput", 0.45, 4), ("DRAM Throughput", 0.8, 5)]
    below = drawing.text(14, 118, "breakdown: the same by unit", "head")
    return _screen("GPU Speed Of Light section", 222, *_bars(rows, 44), below, *_bars(breakdown, 128))


def _memory() -> str:
    return _screen(
        "Memory chart",
        252,
        box((12, 114), 58, ["Kernel"]),
        box((86, 54), 62, ["Global"]), box((86, 114), 62, ["Local"]), box((86, 190), 62, ["Shared"]),
        arrow((70, 128), (78, 128), (78, 68), (86, 68)), arrow((70, 128), (86, 128)),
        arrow((70, 128), (78, 128), (78, 204), (86, 204)),
        box((174, 84), 62, ["L1/TEX"]), box((254, 84), 28, ["L2"], "now"), box((300, 84), 50, ["DRAM"]),
        arrow((148, 68), (161, 68), (161, 92), (174, 92)), arrow((148, 128), (161, 128), (161, 104), (174, 104)),
        box((174, 190), 136, ["Shared Memory"]), arrow((148, 204), (174, 204)),
        arrow((236, 98), (254, 98)), arrow((282, 98), (300, 98)),
        _mark(1, 160, 62), _mark(2, 160, 148), _mark(3, 161, 194), _mark(4, 205, 132), _mark(5, 268, 132),
        _mark(6, 291, 80),
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
    title = drawing.text(14, 54, "cycles that a warp waits", "head")
    title += drawing.text(14, 70, "for each instruction that is issued", "small")
    return _screen("Warp State Statistics section", 266, title, *_bars(rows, 84))


def _source() -> str:
    left = ["for (int k = 0; k < n; ++k)", "  tile[t] = in[k * n + t];", "  __syncthreads();", "  sum += tile[32 * t];"]
    right = ["ISETP", "LDG.E", "BAR.SYNC", "LDS"]
    shares = [0.05, 0.6, 0.15, 0.9]
    drawn = [drawing.text(14, 70, "Source", "head"), drawing.text(178, 70, "SASS", "head")]
    drawn += [drawing.text(246, 54, "Warp Stall", "head"), drawing.text(246, 70, "Sampling", "head")]
    for at, (code, sass, share) in enumerate(zip(left, right, shares, strict=True)):
        y = 94 + 24 * at
        drawn += [drawing.text(14, y, code, "small"), drawing.text(178, y, sass, "small")]
        drawn += [drawing.rect((246, y - 11), 100, 14, "rest"), drawing.rect((246, y - 11), 100 * share, 14, "bar")]
    return _screen("Source page", 188, *drawn, _mark(1, 82, 70), _mark(2, 230, 70), _mark(3, 336, 66))
