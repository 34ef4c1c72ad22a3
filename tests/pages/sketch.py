"""Boxes, arrows and words of the guides' drawings: one file each, readable on light and dark, with its own ground.

All are as narrow as a phone's column: a page shows them no smaller there, on GitHub and on the site.
"""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from kernelgate.ci.document import drawing
from kernelgate.ci.document.drawing import MIDDLE, Point

STYLE = """
text{font:13px system-ui,sans-serif;fill:#1f2328}.small{font-size:12px;fill:#59636e}.head{font-weight:600}
.ground{fill:#fff}.box{fill:#f6f8fa;stroke:#59636e}.now{fill:#ddf4ff;stroke:#0969da}.good{fill:#dafbe1;stroke:#1a7f37}
.bad{fill:#ffebe9;stroke:#cf222e}.arrow{stroke:#59636e;fill:none}.tip{fill:#59636e}.bar{fill:#0969da}.rest{fill:#d1d9e0}
.grid{stroke:#d1d9e0}.kept{stroke:#1a7f37;fill:#1a7f37}.other{stroke:#59636e;fill:#fff}.mark{fill:#9a6700}
.count{font-size:12px;fill:#fff}
@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.small{fill:#9198a1}.ground{fill:#0d1117}
.box{fill:#151b23;stroke:#9198a1}.now{fill:#0c2d6b;stroke:#4493f8}.good{fill:#04260f;stroke:#3fb950}
.bad{fill:#3c0614;stroke:#f85149}.arrow{stroke:#9198a1}.tip{fill:#9198a1}.bar{fill:#4493f8}.rest{fill:#3d444d}
.grid{stroke:#3d444d}.kept{stroke:#3fb950;fill:#3fb950}.other{stroke:#9198a1;fill:#0d1117}.mark{fill:#d29922}
.count{fill:#0d1117}}
"""
WIDE = 360.0
LINE = 17.0


def picture(said: str, height: float, *content: Markup) -> str:
    """A whole file. `said`: what it shows, for those who cannot see it."""
    drawn = drawing.tag(
        "svg",
        drawing.tag("style", Markup(STYLE)),  # noqa: S704 (ours)
        drawing.rect((0.0, 0.0), WIDE, height, "ground"),
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {drawing.number(WIDE)} {drawing.number(height)}",
        width=drawing.number(WIDE),
        role="img",
        aria_label=said,
    )
    return f"{drawn}\n"


def box(corner: Point, width: float, lines: Sequence[str], kind: str = "box") -> Markup:
    """A box as high as its lines, the first of which is its title."""
    x, y = corner
    drawn = drawing.rect(corner, width, height_of(lines), kind)
    for at, words in enumerate(lines):
        class_ = "small" if at else "head"
        drawn += drawing.text(x + width / 2, y + 19 + at * LINE, words, class_, MIDDLE)
    return drawn


def height_of(lines: Sequence[str]) -> float:
    return 12 + LINE * len(lines)


def arrow(*points: Point) -> Markup:
    """Through the points; its tip points the way of the last step, which is along an axis."""
    (x0, y0), (x, y) = points[-2:]
    across, down = _sign(x - x0), _sign(y - y0)
    tip = [(x, y), (x - 7 * across - 4 * down, y - 7 * down - 4 * across)]
    tip.append((x - 7 * across + 4 * down, y - 7 * down + 4 * across))
    return drawing.path(points, "arrow") + drawing.path(tip, "tip", closed=True)


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
