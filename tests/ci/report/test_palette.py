"""The page's colours: text at 4.5 to 1, and what carries meaning at 3 to 1, on every ground, in light and in dark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CI = Path(__file__).parents[3] / "ci"
PALETTE, PAGE, SITE, SESSION = (
    path.read_text(encoding="utf-8")
    for path in (
        CI / "document/templates/palette.css",
        CI / "report/templates/page.css",
        CI / "report/templates/site.css",
        next(CI.glob("lab/**/page.css")),
    )
)
TEXT = ("text", "quiet", "link", "bad", "warn", "good", "same", "unknown", "base", "head")
MARKS = (*TEXT, "dot")
ONLY_HELP = ("rule", "grid", "band")
"""Lines and grounds that help the eye; where the band ends, a line says."""
GROUNDS = ("page", "panel")


def palettes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", PALETTE, re.DOTALL)
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w{6});", block)) for block in blocks[:2])
    return {"light": light, "dark": dark}


def luminance(colour: str) -> float:
    """Relative, as WCAG 2.2 defines it."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_stands_out(scheme: str) -> None:
    palette = palettes()[scheme]
    assert palette.keys() == {*MARKS, *ONLY_HELP, *GROUNDS}
    faint = {(name, ground): round(contrast(palette[name], palette[ground]), 2) for name in TEXT for ground in GROUNDS}
    assert {pair: ratio for pair, ratio in faint.items() if ratio < 4.5} == {}
    on_band = {name: round(contrast(palette[name], palette["band"]), 2) for name in MARKS}
    assert {name: ratio for name, ratio in on_band.items() if ratio < 3} == {}


def test_both_schemes_have_every_colour_that_is_used() -> None:
    page, site, session = (
        set(re.findall(r"var\(--([\w-]+)\)", PALETTE + css)) - {"tone"} for css in (PAGE, SITE, SESSION)
    )
    assert page == palettes()["light"].keys() == palettes()["dark"].keys()
    assert site | session <= page
