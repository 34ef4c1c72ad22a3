"""Puts the page together: the report's words first, then every case on one axis, each with its drawings behind it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kernelgate.bench.record import Run, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Link, Strong
from kernelgate.ci.document.render import first_line
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict, Status
from kernelgate.ci.judge.outputs import fuzz_checks
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report import links
from kernelgate.ci.report import sizes as ladders
from kernelgate.ci.report.build import BuiltReport
from kernelgate.ci.report.gpu import GpuReport
from kernelgate.ci.report.links import NO_LINKS, Links
from kernelgate.ci.report.page import data, errors, forest, html, processes, profile, samples, sizes, times, waterfall
from kernelgate.ci.report.page.rows import CaseRow, ProfiledCase, rows, untimed
from kernelgate.ci.report.page.scale import Scale


@dataclass(frozen=True)
class ShownCase:
    """A row of the list and what it opens to, ready for the template."""

    number: int
    tone: str
    mark: Line
    title: Line
    status: str
    change: Line
    times: str
    lane: Markup
    sentence: str
    findings: tuple[str, ...]
    drawings: tuple[Markup, ...]
    samples: Markup | None


@dataclass(frozen=True)
class ShownProfile:
    """A case that was profiled and not timed."""

    title: Line
    drawings: tuple[Markup, ...]
    samples: Markup


def write(reported: BuiltReport, gates: Gates, places: Links = NO_LINKS) -> str:
    """One HTML file that needs nothing else and fetches nothing."""
    found = rows(reported.gpus)
    axis = forest.scale([row.one.case for row in found], gates)
    environment = html.environment()
    style, script = (Markup(environment.get_template(name).render()) for name in ("page.css", "page.js"))  # noqa: S704
    return environment.get_template("page.html.jinja").render(
        report=reported.report,
        title=first_line(reported.report).partition(" ")[2],
        style=style,
        script=script,
        hashes={"style": _digest(style), "script": _digest(script)},
        top=_top(reported.gpus, places),
        cases=[_shown(row, number, axis, gates) for number, row in enumerate(found, 1)],
        statuses=list(dict.fromkeys(_word(row.one.status) for row in found)),
        definitions=forest.definitions(gates, axis),
        axis=forest.axis_above(gates, axis),
        picture=forest.picture([row.one for row in found], axis) if len(found) > forest.MANY else None,
        margin=formatting.threshold(gates.margin_pct),
        profiles=[_profiled(one) for one in untimed(reported.gpus)],
        sizes=_sizes(reported.gpus),
        errors=_errors(reported.gpus),
        data=data.embedded(found),
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


# ---- above the cases -------------------------------------------------------------------------------------------------


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


# ---- the cases -------------------------------------------------------------------------------------------------------


def _shown(row: CaseRow, number: int, axis: Scale, gates: Gates) -> ShownCase:
    case, mark = row.one.case, sentences.mark(row.one.status)
    return ShownCase(
        number=number,
        tone=mark.tone,
        mark=(mark,),
        title=row.title,
        status=_word(row.one.status),
        change=_change(case, row.one.status),
        times=_times(case),
        lane=forest.lane(row.one, axis),
        sentence=case.sentence[:1].upper() + case.sentence[1:],
        findings=tuple(finding.message for finding in case.findings),
        drawings=_drawings(row, gates),
        samples=samples.section(row.samples) if row.samples else None,
    )


def _word(status: Status) -> str:
    return sentences.STATUS[status][1]


def _change(case: CaseVerdict, status: Status) -> Line:
    if status is Status.ALONE:
        return ("no base",)
    if case.disqualifying:
        return ("cannot tell",)
    change, interval = formatting.signed(case.change_pct, case.interval_pct)
    return (Strong(change) if status.is_news else change, f" {interval}" if interval else "")


def _times(case: CaseVerdict) -> str:
    if case.head_us is None:
        return ""
    return " → ".join(formatting.durations(*(one for one in (case.base_us, case.head_us) if one is not None)))


def _drawings(row: CaseRow, gates: Gates) -> tuple[Markup, ...]:
    drawn = [processes.drawing(row.one.case, gates)]
    if row.timed is not None:
        drawn += [times.distribution(row.timed), times.in_order(row.timed)]
    if row.budget is not None:
        drawn.append(waterfall.drawing(row.budget))
    if row.profile is not None:
        drawn += profile.drawings(row.profile)
    return tuple(one for one in drawn if one is not None)


def _profiled(one: ProfiledCase) -> ShownProfile:
    return ShownProfile(one.title, tuple(profile.drawings(one.profile)), samples.section(one.samples))


# ---- sizes -----------------------------------------------------------------------------------------------------------


def _sizes(gpus: Sequence[GpuReport]) -> list[Markup]:
    """The ladder of each GPU that has one."""
    found: list[Markup] = []
    for gpu in gpus:
        if (ladder := ladders.of_gpu(gpu)) is not None:
            title = f"{gpu.label}: {ladders.title(gpu, ladder)}" if len(gpus) > 1 else ladders.title(gpu, ladder)
            found += sizes.drawings(ladder, ladders.beside(gpu, ladder), title)
    return found


# ---- correctness -----------------------------------------------------------------------------------------------------


def _errors(gpus: Sequence[GpuReport]) -> list[Markup]:
    """The fuzzed outputs' errors, a drawing for each card on each GPU."""
    found = [
        errors.drawing(check, _named(gpu.record, check.card, gpu.label if len(gpus) > 1 else ""))
        for gpu in gpus
        if gpu.record is not None
        for check in fuzz_checks(gpu.record)
    ]
    return [one for one in found if one is not None]


def _named(record: RunRecord, card: str, gpu: str) -> str:
    title = formatting.titles_of((case.card for case in record.cases), record.cards).get(card, "")
    where = ", ".join(filter(None, [gpu, title]))
    return f"{where}: error of each fuzzed configuration" if where else "Error of each fuzzed configuration"
