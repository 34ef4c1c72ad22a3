"""What the head is held against beside its base: the stored baseline, the last release and the best ever, and how its
cases moved on the default branch before. None of it blocks. No old commit can run beside today's head, so these are
times of two days, and how far times drift between days is in the interval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kernelgate.bench import record as records
from kernelgate.bench.core.errors import RecordError
from kernelgate.bench.record import CaseKey, Run, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Bullets, Code, Line, Link, Mark, Piece, Section, Strong
from kernelgate.ci.judge import baseline_age, ratchet
from kernelgate.ci.judge.case import CERTAIN, Direction, RecordVerdict
from kernelgate.ci.judge.prior import History
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import headline
from kernelgate.ci.report.gpu import Baseline, GpuReport, judged

MONTH_DAYS = 30.4
RENEW = "gh workflow run baseline --field force=true"


def against(
    measured: RunRecord, stored: RunRecord, named: str, policy: Policy, known: History, label: str = "record"
) -> Baseline:
    verdict = judge(measured, policy, stored, label, named, known)
    return Baseline(verdict, stored.run, stored.environment, baseline_age.age_days(stored, measured.run.created_at))


def is_of(stored: RunRecord, measured: RunRecord) -> bool:
    """Whether the stored baseline has a case of this record; else it is of another kernel, and not worth a word."""
    # A baseline may name no card.
    keys = {key for case in measured.cases for key in (case.key, CaseKey("", case.id))}
    return not keys.isdisjoint(case.key for case in stored.cases)


def shows(stored: Baseline) -> bool:
    return stored.verdict.refused is None and stored.verdict.verdict in CERTAIN and bool(stored.verdict.cases)


def line(record: RunRecord, stored: Baseline, gates: Gates) -> tuple[Line, ...]:
    """What it shows, with its age and with what else may explain a difference; nothing where it shows nothing."""
    if not shows(stored):
        return ()
    words = headline.of_verdict(stored.verdict, judged(record, stored.verdict), (), gates)
    mark = Mark.SLIGHT if words.mark is Mark.SLOWER else words.mark
    text = headline.uncapped(words.text)
    return ((mark, f" against the stored baseline, {_age_and_machine(record, stored)}: ", *text),)


def _age_and_machine(record: RunRecord, stored: Baseline) -> str:
    changed = [one.name for one in baseline_age.changed(record.environment, stored.environment)]
    return ", of another ".join(filter(None, [age_of(record.run, stored.run), " and ".join(changed)]))


def section(record: RunRecord, stored: Baseline, beside: Sequence[Baseline] = ()) -> Section:
    """Everything about it, folded; its title says whether it is worth opening."""
    verdict, differs = stored.verdict, baseline_age.changed(record.environment, stored.environment)
    stale = bool(differs) or (stored.age_days or 0) > baseline_age.STALE_DAYS
    facts: list[Line] = [
        (Code(verdict.against), ", ", age_of(record.run, stored.run), ", of ", _commit(stored)),
        *((f"{one.name}: ", Code(one.was), " then, ", Code(one.now), " now") for one in differs),
    ]
    if stale:
        facts.append(("it is stale: ", Code(RENEW), " offers a new one, with its evidence"))
    if verdict.refused is not None:
        facts.append((verdict.refused,))
    said = (one for one in judged(record, verdict) if one.case.sentence)
    facts += [(one.name, ": ", formatting.sentence(one.case.sentence)) for one in said]
    facts += [(one.since, ": ", _commit(one), ", ", one.verdict.reason) for one in beside]
    gist = "not comparable" if verdict.refused is not None else "what it shows" if shows(stored) else "shows nothing"
    return Section(f"Stored baseline{' (stale)' if stale else ''}: {gist}", (Bullets(tuple(facts)),), worth=35)


def _commit(stored: Baseline) -> Piece:
    return formatting.commit(stored.run.head_sha, "an unnamed commit")


def age_of(now: Run, then: Run) -> str:
    """ "13 months older", by the dates of both records."""
    taken, made = baseline_age.day(then.created_at), baseline_age.day(now.created_at)
    days = (made - taken).days if taken and made else 0
    if taken is None or days < -baseline_age.YEAR_DAYS:  # by a clock that was wrong
        return "of unknown age"
    if days < 2:
        return f"of {taken}"
    return f"{days} days old" if days < 2 * MONTH_DAYS else f"{round(days / MONTH_DAYS)} months old"


# The last release and the best ever -----------------------------------------------------------------------------------

NAME_WIDTH = 40
RESTS_ON = "; by times of two days, with their drift in the interval, not side by side"


def yardsticks_beside(measured: RunRecord, beside: Path, policy: Policy, known: History) -> tuple[Baseline, ...]:
    """The release and the best that lie beside this baseline file. One that cannot be read is none."""
    yardsticks = []
    for kind in ("release", "best"):
        path = Path(ratchet.beside(str(beside), kind))
        with suppress(RecordError):
            held = records.read(path) if path.exists() else None
            if held is not None and is_of(held, measured):
                of_file = against(measured, held, path.name, policy, known)
                tag = held.summary.release if held.summary else None
                release = f"since release {visible(tag, NAME_WIDTH)}" if tag else "since the last release"
                yardsticks.append(replace(of_file, since=release if kind == "release" else "since the best ever"))
    return tuple(yardsticks)


def yardstick_lines(measured: RunRecord, every: Sequence[Baseline]) -> Iterator[Line]:
    """What is certainly slower than each."""
    for one in every:
        if slower := _slower(measured, one.verdict):
            yield (Mark.SLIGHT, f" {one.since}, {_age_and_machine(measured, one)}: ", *slower, RESTS_ON)


def _slower(measured: RunRecord, verdict: RecordVerdict) -> Line:
    means = [mean for mean in verdict.means if mean.direction is Direction.SLOWER]
    if worst := max(means, key=lambda mean: mean.change_pct, default=None):
        cases = formatting.counted(worst.cases, "case")
        words = formatting.over(worst.change_pct, worst.interval_pct, worst.direction.value, cases)
        return (words,) if len(verdict.means) == 1 else (f"{visible(worst.card, NAME_WIDTH)} ", words)
    slower = [
        case
        for case in judged(measured, verdict)
        if case.case.direction is Direction.SLOWER and case.case.believed and not case.case.status.is_faster
    ]
    if not slower:
        return ()
    first = max(slower, key=lambda case: case.case.change_pct or 0.0)
    size, interval = formatting.amount(first.case.change_pct, first.case.interval_pct)
    more = f", and {len(slower) - 1} more" if len(slower) > 1 else ""
    return (f"{size} slower {interval} in ", first.name, more)


# How a case moved on the default branch before this pull request ------------------------------------------------------

BLOCKS = "▁▂▃▅▇"


def nights_lines(gpu: GpuReport, gates: Gates) -> tuple[Line, ...]:
    """ "▁▁▁▂▇ S=512 fp16 took 321.4 → 337.1 µs in the last 20 measurements …": of the worst case, if it is news."""
    worst = next((one for one in gpu.cases[:1] if one.status.is_news), None)
    known = gpu.nights.get(worst.case.key) if worst else None
    if worst is None or known is None or len(known.times_us) < 2:  # one time has not moved
        return ()
    days = f", {known.first_day} to {known.last_day}" if known.first_day and known.last_day else ""
    number = formatting.counted(len(known.times_us), "measurement")
    first, last = formatting.durations(known.times_us[0], known.times_us[-1])
    took = f" took {first} → {last} in the last {number} of the default branch{days}"
    within = f", all within {formatting.percent(100 * (max(known.times_us) / min(known.times_us) - 1))}"
    drawn = Code(sparkline(known.times_us, gates.margin_pct))
    page: Line = (Link("All of its past", known.page), ".") if known.page else ()
    return ((Strong("Before:"), " ", drawn, " ", worst.name, took, within, ". ", *page),)


def sparkline(times_us: Sequence[float], margin_pct: float) -> str:
    """Lower is faster; what stays within the margin does not look like a change."""
    low, high = min(times_us), max(times_us)
    room = max(high - low, low * 2 * margin_pct / 100)
    bottom = (low + high - room) / 2
    return "".join(BLOCKS[min(len(BLOCKS) - 1, int((one - bottom) / room * len(BLOCKS)))] for one in times_us)
