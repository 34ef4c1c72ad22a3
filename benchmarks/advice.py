"""Writes what advice is worth into docs/advice.md, with the reliability plot: `python -m benchmarks.advice`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelgate.ci.lab import calibration, outcomes
from kernelgate.ci.lab.calibration import Calibration, ReliabilityBin
from kernelgate.ci.lab.folder import FOLDER
from kernelgate.ci.lab.outcomes import TryResult
from kernelgate.ci.policy import policy

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "advice.md"
PLOT = ROOT / "docs" / "images" / "advice_reliability.svg"
BEGIN, END = "<!-- benchmark-advice: begin -->", "<!-- benchmark-advice: end -->"
SIZE, EDGE = 320, 48
"""Of the plot's square, and of the room for its words, in pixels."""


def main() -> None:
    known = outcomes.read(ROOT / FOLDER)
    found = calibration.calibrate(known, policy.load(ROOT / policy.POLICY_FILE))
    PLOT.write_text(plot(found.bins), encoding="utf-8")
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{text(found, known)}\n{END}{after}", encoding="utf-8")


def text(found: Calibration, known: Sequence[TryResult]) -> str:
    return "\n\n".join(_parts(found, known))


def _parts(found: Calibration, known: Sequence[TryResult]) -> Iterator[str]:
    gpus = ", ".join(sorted({one.session.gpu or "an unnamed device" for one in known}))
    yield f"**{found.outcomes} outcomes of {found.sessions} sessions** on {gpus or 'nothing'}; {found.helped} helped."
    if found.skill is None or found.skill_interval is None or found.brier is None or found.base_brier is None:
        yield "Too few sessions to predict one from the others."
        return
    low, high = found.skill_interval
    verdict = (
        "The interval lies above zero: `recommend` follows the chances."
        if found.earned
        else "The interval includes zero: `recommend` lists the figures as weak, and keeps the cookbook's order."
    )
    yield (
        f"Brier score {found.brier:.3f}, that of the base rate {found.base_brier:.3f}: "
        f"**skill {found.skill:.2f}** (95%: {low:.2f} to {high:.2f}). {verdict}"
    )
    yield _table(
        ["chance", "tries", "mean chance", "helped", "95%"],
        [
            [f"{row.low:.0%} to {row.high:.0%}", str(row.n), f"{row.predicted:.0%}", f"{row.helped:.0%}",
             f"{row.interval[0]:.0%} to {row.interval[1]:.0%}"]
            for row in found.bins
        ],
    )  # fmt: skip
    yield f"![Reliability: share that helped against the chance that was given](images/{PLOT.name})"
    if found.covered is not None:
        yield f"Of the gains, {found.covered:.0%} lay in their 95% intervals."
    if found.nvidia is not None:
        one = found.nvidia
        rank = "" if one.rank_correlation is None else f"; Spearman's rank correlation is {one.rank_correlation:.2f}"
        yield (
            f"**NVIDIA's estimates.** Of {one.n} timed tries a rule of Nsight Compute had estimated the gain of what "
            f"the action is against: {one.estimated_pct:.1f}% in the median, where {one.realised_pct:.1f}% was "
            f"realised{rank}. {one.helped} of them helped."
        )
    yield "By action and bottleneck, all sessions:"
    yield _table(["action", "bottleneck", "tries", "helped", "failed", "gains"], _by_cell(known))


def _by_cell(known: Sequence[TryResult]) -> list[list[str]]:
    cells = sorted({(one.features.action, one.features.bottleneck) for one in known})
    return [
        _cell(cell, [one for one in known if (one.features.action, one.features.bottleneck) == cell]) for cell in cells
    ]


def _cell(cell: tuple[str, str], inside: Sequence[TryResult]) -> list[str]:
    gains = [outcomes.gain_pct(one.log_gain) for one in inside if one.log_gain is not None]
    between = f"{min(gains):.1f}" + (f" to {max(gains):.1f}%" if len(gains) > 1 else "%") if gains else "–"
    failed = sum(one.tried.failed is not None for one in inside)
    action, bottleneck = cell
    return [action, bottleneck, str(len(inside)), str(sum(one.helped for one in inside)), str(failed), between]


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *body))


def plot(bins: Sequence[ReliabilityBin]) -> str:
    """The share that helped against the mean chance, with 95% intervals; the diagonal is a perfect forecast."""
    whole = SIZE + 2 * EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {whole}" width="{whole}" height="{whole}" '
        'font-family="sans-serif" font-size="13" role="img" aria-label="Reliability plot">',
        "<title>Share that helped against the chance that was given</title>",
        f'<rect width="{whole}" height="{whole}" fill="#fff"/>',
        f'<path d="M{_x(0)} {_y(0)}H{_x(1)}M{_x(0)} {_y(0)}V{_y(1)}" stroke="#444" fill="none"/>',
        f'<path d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}" stroke="#999" stroke-dasharray="4 4" fill="none"/>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        lines.append(f'<text x="{_x(share)}" y="{_y(0) + 18}" text-anchor="middle">{share:.0%}</text>')
        lines.append(f'<text x="{_x(0) - 6}" y="{_y(share) + 4}" text-anchor="end">{share:.0%}</text>')
    lines.append(f'<text x="{_x(0.5)}" y="{_y(0) + 36}" text-anchor="middle">chance that was given</text>')
    lines.append(f'<text x="{_x(0)}" y="{_y(1) - 16}">share that helped, with 95% interval and number of tries</text>')
    for row in bins:
        x, (low, high) = _x(row.predicted), row.interval
        lines.append(f'<path d="M{x} {_y(low)}V{_y(high)}" stroke="#0b6e4f" stroke-width="2"/>')
        lines.append(f'<circle cx="{x}" cy="{_y(row.helped)}" r="5" fill="#0b6e4f"/>')
        lines.append(f'<text x="{x + 8}" y="{_y(row.helped) + 4}">{row.n}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _x(share: float) -> float:
    return round(EDGE + SIZE * share, 1)


def _y(share: float) -> float:
    return round(EDGE + SIZE * (1 - share), 1)


if __name__ == "__main__":
    main()
