"""The page: one HTML file with the report's words, then every case on one axis, each with its drawings behind it."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup

from kernelgate.bench.record import Run, timed_cases
from kernelgate.ci.document import drawing, formatting, render
from kernelgate.ci.document.drawing import Scale, joined, tag
from kernelgate.ci.document.model import Code, Line, Link, Piece, Strong
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict, Status, severity
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report import machine, page_figures
from kernelgate.ci.report.build import BuiltReport
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.links import NO_LINKS, Links
from kernelgate.ci.report.why import both_sides


@dataclass(frozen=True)
class PageCase:
    """One case on one GPU with its drawings; `judged` is None where it was profiled and not timed."""

    gpu: str
    name: Piece
    judged: JudgedCase | None
    drawings: tuple[Markup, ...]
    samples: Markup | None

    @property
    def title(self) -> Line:
        return (Code(self.gpu), " ", self.name) if self.gpu else (self.name,)


def write(reported: BuiltReport, gates: Gates, places: Links = NO_LINKS) -> str:
    labelled = [(gpu, gpu.label if len(reported.gpus) > 1 else "") for gpu in reported.gpus]
    every = [case for gpu, label in labelled for case in _cases(gpu, label, gates)]
    rows = sorted(((case, case.judged) for case in every if case.judged), key=lambda row: severity(row[1].case))
    axis = scale([judged.case for _, judged in rows], gates)
    return render.page(
        "kernelgate.ci.report",
        report=reported.report,
        title=render.first_line(reported.report).partition(" ")[2],
        top=_top(reported.gpus, places),
        cases=[case for case, _ in rows],
        mark=sentences.mark,
        words={status: words for status, (_, words) in sentences.STATUS.items()},
        change=_change,
        times=_times,
        lane=lambda judged: tag("svg", tag("use", href="#ground"), _estimate(judged, axis), aria_hidden="true"),
        definitions=_definitions(gates, axis),
        axis=_axis_above(gates, axis),
        margin=formatting.threshold(gates.margin_pct),
        profiles=[case for case in every if case.judged is None],
        data=_embedded(rows),
    )


def _top(gpus: Sequence[GpuReport], places: Links) -> Line:
    run = next((gpu.run for gpu in gpus if gpu.run.head_sha or gpu.run.base_sha), Run())
    parts: list[Line] = []
    if run.repository:
        parts.append((Link(run.repository, places.repository) if places.repository else Code(run.repository),))
    if run.pull_request is not None:
        number = f"#{run.pull_request}"
        parts.append((Link(number, places.pull) if places.pull else number,))
    if places.run:
        parts.append((Link("run and records", f"{places.run}#artifacts"),))
    return formatting.separated(parts, " · ")


def _cases(gpu: GpuReport, label: str, gates: Gates) -> Iterator[PageCase]:
    """Every judged case of a GPU, and every profiled one beside those, such as of a run that only profiles."""
    record = gpu.record
    timed = {case.key: case for case in timed_cases(record)}
    profiles = {both.key: both for both in both_sides(record)}
    spots = {key: {one.side: one.hot_spots for one in record.profile if one.key == key} for key in profiles}
    samples = {
        key: page_figures.samples(spots[key], machine.profile_command(record, key, "--set", "full")) for key in profiles
    }
    for one in gpu.cases:
        key, drawn = one.case.key, [page_figures.processes(one.case, gates)]
        if key in timed:
            drawn += [page_figures.distribution(timed[key]), page_figures.in_order(timed[key])]
        if (both := profiles.get(key)) is not None:
            drawn.append(page_figures.roofline(both))
        yield PageCase(label, one.name, one, tuple(filter(None, drawn)), samples.get(key))
    ids = formatting.ids((one.key for one in record.profile), record.cards)
    judged = {one.case.key for one in gpu.cases}
    for key, both in profiles.items():
        if key not in judged:
            roof = page_figures.roofline(both)
            yield PageCase(label, ids[key], None, (roof,) if roof else (), samples[key])


def _change(one: JudgedCase) -> Line:
    if one.status is Status.ALONE:
        return ("no base",)
    if one.case.disqualifying:
        return ("cannot tell",)
    change, interval = formatting.signed(one.case.change_pct, one.case.interval_pct)
    return (Strong(change) if one.status.is_news else change, f" {interval}" if interval else "")


def _times(one: JudgedCase) -> str:
    known = (us for us in (one.case.base_us, one.case.head_us) if us is not None)
    return " → ".join(formatting.durations(*known)) if one.case.head_us is not None else ""


def _embedded(rows: Sequence[tuple[PageCase, JudgedCase]]) -> Markup:
    cases = [
        {
            "gpu": row.gpu,
            "card": one.case.card,
            "id": one.case.id,
            "name": render.plain_line(row.title),
            "base_us": one.case.base_us,
            "head_us": one.case.head_us,
        }
        for row, one in rows
    ]
    return htmlsafe_json_dumps({"cases": cases}, dumps=json.dumps, separators=(",", ":"), allow_nan=False)


# All changes on one axis of percent, a lane for each ------------------------------------------------------------------

MAX_TICKS = 5
FAR = 4.0
"""A change so many times the usual one would leave the others no room: its lane ends in an arrow."""
EDGES = 2.0, 98.0
"""Percent of a lane's width: marks at either end stay inside."""
MARKERS = {
    "bad": "M0-5.5L5.5 4.5H-5.5z",
    "warn": "M0-5.5L5.5 4.5H-5.5z",
    "good": "M0 5.5L5.5-4.5H-5.5z",
    "same": "M-3.5-3.5h7v7h-7z",
    "unknown": "M0-5L5 0L0 5L-5 0z",
}
"""By tone: slower points upwards, faster downwards, the same is a square, what is not known a diamond."""


def scale(cases: Sequence[CaseVerdict], gates: Gates) -> Scale:
    """The axis that all cases share: zero, the margin and the gate, and every change that is not far from the rest."""
    changes = [case.change_pct for case in cases if case.change_pct is not None]
    bounds = [bound for case in cases for bound in case.interval_pct or ()]
    usual = statistics.median(map(abs, changes)) if changes else 0.0
    most = min(max(FAR * usual, 2 * gates.regression_pct), formatting.LARGEST)
    shown = [min(max(value, -most), most) for value in (*changes, *bounds)]
    return Scale.over([*shown, -gates.margin_pct, gates.regression_pct], *EDGES)


def _share(value: float) -> str:
    return f"{value:.2f}%"


def _definitions(gates: Gates, axis: Scale) -> Markup:
    """What every lane refers to: its ground with margin and gates, and the markers."""
    left, right = axis.at(-gates.margin_pct), axis.at(gates.margin_pct)
    band = tag("rect", x=_share(left), width=_share(right - left), height="100%", class_="band")
    lines = [("edge", -gates.margin_pct), ("edge", gates.margin_pct), ("zero", 0.0)]
    lines += [("gate", gates.regression_pct), ("gain", -gates.improvement_pct)]
    held = [(kind, _share(axis.at(value))) for kind, value in lines if axis.holds(value)]
    limits = (tag("line", x1=x, x2=x, y1="0", y2="100%", class_=kind) for kind, x in held)
    markers = [tag("path", id=f"mark-{tone}", d=d) for tone, d in MARKERS.items()]
    ends = [
        tag("path", id="beyond-low", d="M6-5L0 0L6 5", class_="beyond"),
        tag("path", id="beyond-high", d="M-6-5L0 0L-6 5", class_="beyond"),
    ]
    inside = tag("defs", tag("g", band, *limits, id="ground"), *markers, *ends)
    return tag("svg", inside, class_="definitions", width="0", height="0", aria_hidden="true")


def _axis_above(gates: Gates, axis: Scale) -> Markup:
    """The numbers over the lanes, and the words of the limit that blocks: two would meet where the axis is short."""
    ticks = [
        tag("text", drawing.signed_tick(value), x=_share(axis.at(value)), y="26", class_="tick")
        for value in axis.ticks(MAX_TICKS)
    ]
    # Every axis holds it.
    x, words = axis.at(gates.regression_pct), f"blocks above +{formatting.threshold(gates.regression_pct)}"
    anchor = "start" if x < 30 else "end" if x > 70 else "middle"
    named = tag("text", words, x=_share(x), y="11", class_="limit gate", text_anchor=anchor)
    return tag("svg", named, *ticks, class_="axis", height="32", aria_hidden="true")


def _estimate(one: JudgedCase, axis: Scale) -> Markup:
    """A case's interval and its change, by the shape of what it means."""
    case, tone = one.case, sentences.mark(one.status).tone
    if case.disqualifying:
        # No interval where none is to be believed: what the processes say, each for itself.
        changes = (axis.at(process.change_pct) for process in case.per_process)
        return joined(tag("circle", cx=_share(x), cy="50%", r="2.5", class_="process") for x in changes)
    if case.change_pct is None:
        return Markup("")
    drawn, x = Markup(""), _share(axis.at(case.change_pct))
    if case.interval_pct is not None:
        low, high = (_share(axis.at(bound)) for bound in case.interval_pct)
        drawn += tag("line", x1=low, x2=high, y1="50%", y2="50%", class_=f"whole {tone}")
        drawn += joined(
            tag("use", href=f"#beyond-{side}", x=_share(axis.at(bound)), y="50%", class_=tone)
            for side, bound in zip(("low", "high"), case.interval_pct, strict=True)
            if not axis.holds(bound)
        )
    beyond = "beyond-low" if case.change_pct < axis.low else "beyond-high"
    mark = f"mark-{tone}" if axis.holds(case.change_pct) else beyond
    return drawn + tag("use", href=f"#{mark}", x=x, y="50%", class_=tone)
