"""The page: the report's words first, then every case on one axis, each with its drawings behind it.

One HTML file with everything that was measured, which needs nothing but itself.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from kernelgate.bench.record import CaseKey, Run, RunRecord, TimedCase, timed_cases
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.drawing import Scale
from kernelgate.ci.document.model import Code, Line, Link, Strong
from kernelgate.ci.explain.budget import Budget
from kernelgate.ci.judge import correctness, sentences
from kernelgate.ci.judge.case import Status, severity
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report import links, machine, page_cases, page_profile, page_sizes, page_times, speed
from kernelgate.ci.report.build import BuiltReport
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.links import NO_LINKS, Links
from kernelgate.ci.report.page_profile import Sampled
from kernelgate.ci.report.why import Both, both_sides, budget_of


@dataclass(frozen=True)
class CaseRow:
    """One case on one GPU, with what there is to draw of it."""

    gpu: str
    """Its label where there are several, else empty."""
    one: JudgedCase
    timed: TimedCase | None
    profile: Both | None
    budget: Budget | None
    """What the change is made of, where a certain one was profiled on both sides."""
    samples: Sampled | None
    """Of its profile, where there is one."""

    @property
    def title(self) -> Line:
        return (Code(self.gpu), " ", self.one.name) if self.gpu else (self.one.name,)


@dataclass(frozen=True)
class ShownCase:
    """A row of the list and what it opens to, ready for the template; of a case without times only the drawings."""

    title: Line
    drawings: tuple[Markup, ...]
    samples: Markup | None
    number: int = 0
    mark: Line = ()
    tone: str = ""
    status: str = ""
    change: Line = ()
    times: str = ""
    lane: Markup = Markup("")  # noqa: RUF009 (it cannot change)
    sentence: str = ""
    findings: tuple[str, ...] = ()


def write(reported: BuiltReport, gates: Gates, places: Links = NO_LINKS) -> str:
    """One HTML file that needs nothing else and fetches nothing."""
    gpus = reported.gpus
    rows = sorted(
        (row for gpu in gpus for row in _rows(gpu, _label(gpu, gpus))), key=lambda row: severity(row.one.case)
    )
    axis = page_cases.scale([row.one.case for row in rows], gates)
    templates = render.html("kernelgate.ci.report")
    style, script = (Markup(templates.get_template(name).render()) for name in ("page.css", "page.js"))  # noqa: S704
    hashes = {
        name: base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        for name, content in (("style", style), ("script", script))
    }
    return templates.get_template("page.html.jinja").render(
        report=reported.report,
        title=render.first_line(reported.report).partition(" ")[2],
        style=style,
        script=script,
        hashes=hashes,
        top=_top(gpus, places),
        cases=[_shown(row, number, axis, gates) for number, row in enumerate(rows, 1)],
        statuses=list(dict.fromkeys(sentences.STATUS[row.one.status][1] for row in rows)),
        definitions=page_cases.definitions(gates, axis),
        axis=page_cases.axis_above(gates, axis),
        picture=page_cases.picture([row.one for row in rows], axis) if len(rows) > page_cases.MANY else None,
        margin=formatting.threshold(gates.margin_pct),
        profiles=[one for gpu in gpus for one in _untimed(gpu, _label(gpu, gpus))],
        sizes=[drawing for gpu in gpus for drawing in _sizes(gpu, _label(gpu, gpus))],
        errors=[drawing for gpu in gpus for drawing in _errors(gpu, _label(gpu, gpus))],
        data=_embedded(rows),
    )


def _label(gpu: GpuReport, gpus: Sequence[GpuReport]) -> str:
    """Its name, where there are several."""
    return gpu.label if len(gpus) > 1 else ""


def _top(gpus: Sequence[GpuReport], places: Links) -> Line:
    """Which pull request, which commits, and the ways to them."""
    run = next((gpu.run for gpu in gpus if gpu.run.head_sha or gpu.run.base_sha), Run())
    parts: list[Line] = []
    if run.repository:
        parts.append((Link(run.repository, places.repository) if places.repository else Code(run.repository),))
    if run.pull_request is not None:
        number = f"#{run.pull_request}"
        parts.append((Link(number, places.pull) if places.pull else number,))
    if run.head_sha or run.base_sha:
        base, head = links.commit(run.base_sha, "none", places), links.commit(run.head_sha, "the working tree", places)
        parts.append(("base ", *base, " → head ", *head))
    parts.append(links.diff(run, places))
    if places.run:
        parts.append((Link("run and records", f"{places.run}#artifacts"),))
    return tuple(piece for part in parts if part for piece in (" · ", *part))[1:]


# The cases ------------------------------------------------------------------------------------------------------------


def _rows(gpu: GpuReport, label: str) -> Iterator[CaseRow]:
    """Every judged case of a GPU."""
    record = gpu.record
    if record is None:
        return
    timed = {case.key: case for case in timed_cases(record)}
    profiles = {profiled.key: profiled for profiled in both_sides(record)}
    for one in gpu.cases:
        profiled = profiles.get(one.case.key)
        explained = profiled and profiled.base and one.status.is_news and one.case.change_pct
        yield CaseRow(
            label,
            one,
            timed.get(one.case.key),
            profiled,
            budget_of(record, profiled, one) if profiled and explained else None,
            _sampled(record, one.case.key) if profiled else None,
        )


def _untimed(gpu: GpuReport, label: str) -> Iterator[ShownCase]:
    """Every profiled case that no row has, such as of a run that only profiles."""
    if gpu.record is None:
        return
    ids = formatting.ids((one.key for one in gpu.record.profile), gpu.record.cards)
    judged = {one.case.key for one in gpu.cases}
    for profiled in both_sides(gpu.record):
        if profiled.key not in judged:
            title: Line = (Code(label), " ", ids[profiled.key]) if label else (ids[profiled.key],)
            samples = page_profile.samples(_sampled(gpu.record, profiled.key))
            yield ShownCase(title, tuple(page_profile.drawings(profiled)), samples)


def _sampled(record: RunRecord, key: CaseKey) -> Sampled:
    spots = {one.side: one.hot_spots for one in record.profile if one.key == key}
    return Sampled(spots, machine.profile_command(record, key, "--set", "full"))


def _shown(row: CaseRow, number: int, axis: Scale, gates: Gates) -> ShownCase:
    case, status = row.one.case, row.one.status
    mark = sentences.mark(status)
    drawn = [page_cases.processes(case, gates)]
    if row.timed is not None:
        drawn += [page_times.distribution(row.timed), page_times.in_order(row.timed)]
    if row.budget is not None:
        drawn.append(page_profile.waterfall(row.budget))
    if row.profile is not None:
        drawn += page_profile.drawings(row.profile)
    both = formatting.durations(*(us for us in (case.base_us, case.head_us) if us is not None))
    return ShownCase(
        title=row.title,
        drawings=tuple(one for one in drawn if one is not None),
        samples=page_profile.samples(row.samples) if row.samples else None,
        number=number,
        mark=(mark,),
        tone=mark.tone,
        status=sentences.STATUS[status][1],
        change=_change(row.one),
        times=" → ".join(both) if case.head_us is not None else "",
        lane=page_cases.lane(row.one, axis),
        sentence=case.sentence[:1].upper() + case.sentence[1:],
        findings=tuple(finding.message for finding in case.findings),
    )


def _change(one: JudgedCase) -> Line:
    if one.status is Status.ALONE:
        return ("no base",)
    if one.case.disqualifying:
        return ("cannot tell",)
    change, interval = formatting.signed(one.case.change_pct, one.case.interval_pct)
    return (Strong(change) if one.status.is_news else change, f" {interval}" if interval else "")


# Of the whole record --------------------------------------------------------------------------------------------------


def _sizes(gpu: GpuReport, label: str) -> tuple[Markup, ...]:
    """The ladder of a GPU that has one."""
    if (ladder := speed.ladder_of(gpu)) is None:
        return ()
    title = f"{label}: {speed.ladder_title(gpu, ladder)}" if label else speed.ladder_title(gpu, ladder)
    return page_sizes.ladder(ladder, speed.ladder_reference(gpu, ladder), title)


def _errors(gpu: GpuReport, label: str) -> Iterator[Markup]:
    """The fuzzed outputs' errors, a drawing for each card."""
    if gpu.record is None:
        return
    titles = formatting.titles_of((case.card for case in gpu.record.cases), gpu.record.cards)
    for check in correctness.checks(gpu.record, "fuzz"):
        where = ", ".join(filter(None, [label, titles.get(check.card, "")]))
        title = f"{where}: error of each fuzzed configuration" if where else "Error of each fuzzed configuration"
        if (drawn := page_sizes.errors(check, title)) is not None:
            yield drawn


def _embedded(rows: Sequence[CaseRow]) -> Markup:
    """The figures of every case as JSON inside the page: what its script sorts by, and what people may take away."""
    cases: list[dict[str, Any]] = []
    for row in rows:
        case = row.one.case
        cases.append(
            {
                "gpu": row.gpu,
                "card": case.card,
                "id": case.id,
                "name": render.plain_line(row.title),
                "status": row.one.status.name.lower(),
                "change_pct": _finite(case.change_pct),
                "interval_pct": [_finite(bound) for bound in case.interval_pct] if case.interval_pct else None,
                "base_us": case.base_us,
                "head_us": case.head_us,
                "processes": case.processes,
                "rounds": case.rounds,
            }
        )
    text = json.dumps({"cases": cases}, separators=(",", ":"), allow_nan=False)
    # What could end the element; JSON's own escapes mean the same. What is not ASCII is written as one, too.
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 (no character is left that HTML gives a meaning)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
