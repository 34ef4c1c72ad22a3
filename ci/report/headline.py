"""The first screen's sentences: where each case stands, the verdict in words, the counts and what follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from kernelgate.bench.record import Device, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Mark, Piece
from kernelgate.ci.judge.policy import Gates
from kernelgate.ci.judge.verdict import CaseVerdict, Direction, Finding, Outcome, RecordVerdict


class Standing(IntEnum):
    """What a case means to its author; the order is the order of the table, the worst first."""

    REGRESSED = 0
    SLOWER = 1
    """Certainly slower, but not past the gate."""
    UNDECIDED = 2
    IMPROVED = 3
    FASTER = 4
    """Certainly faster, but not past the gate."""
    UNCHANGED = 5


_COUNTED = {
    Standing.REGRESSED: "regressed",
    Standing.SLOWER: "slower but not past the gate",
    Standing.UNDECIDED: "undecided",
    Standing.IMPROVED: "improved",
    Standing.FASTER: "faster but not past the gate",
    Standing.UNCHANGED: "unchanged",
}


@dataclass(frozen=True)
class Judged:
    """A case's verdict with its name and standing."""

    case: CaseVerdict
    name: Piece
    standing: Standing


def standing(case: CaseVerdict) -> Standing:
    decided = {
        Outcome.REGRESSED: Standing.REGRESSED,
        Outcome.IMPROVED: Standing.IMPROVED,
        Outcome.EQUIVALENT: Standing.UNCHANGED,
    }
    if case.verdict in decided:
        return decided[case.verdict]
    if disqualifying(case):
        return Standing.UNDECIDED
    return {Direction.SLOWER: Standing.SLOWER, Direction.FASTER: Standing.FASTER}.get(
        case.direction, Standing.UNDECIDED
    )


def disqualifying(case: CaseVerdict) -> tuple[Finding, ...]:
    return tuple(finding for finding in case.findings if finding.disqualifies)


def judged(record: RunRecord, verdict: RecordVerdict) -> tuple[Judged, ...]:
    """Every case of the verdict, the worst first."""
    names = formatting.names(record.cases)
    found = [Judged(case, names.get(case.id, Code(case.id)), standing(case)) for case in verdict.cases]
    return tuple(sorted(found, key=_rank))


def _rank(one: Judged) -> tuple[int, float]:
    change = one.case.change_pct or 0.0
    gains = one.standing in (Standing.IMPROVED, Standing.FASTER)
    return one.standing, change if gains else -change


@dataclass(frozen=True)
class Opening:
    """The verdict in words, in three parts: "❌", "Slower", "S=512 … by 4.9% (4.8 to 5.0%) on the L4"."""

    mark: Mark
    verdict: str
    rest: Line


def opening(verdict: RecordVerdict, cases: Sequence[Judged], where: Line, gates: Gates) -> Opening:
    """What the first line says of a judged record; `where` is the machine, such as " on the L4"."""
    if verdict.refused is not None:
        return Opening(Mark.UNKNOWN, "Cannot be judged", (formatting.sentence(verdict.refused),))
    if not cases:
        return Opening(Mark.UNKNOWN, "Cannot tell", ("no case was timed",))
    if verdict.verdict is Outcome.REGRESSED:
        return _slower(cases, where)
    if verdict.verdict is Outcome.IMPROVED:
        return _faster(cases, where)
    if verdict.verdict is Outcome.EQUIVALENT:
        reference = "base" if verdict.against == "base" else "baseline"
        return Opening(Mark.SAME, "No change", (*_all(cases), f" within {_margin(gates)} of the {reference}", *where))
    return _undecided(cases, where, gates)


def place(device: Device) -> Line:
    """Such as " on the L4" or " on AMD EPYC, CPU kernel"."""
    return (*formatting.device(device), ", CPU kernel") if formatting.on_cpu(device) else formatting.device(device)


def _slower(cases: Sequence[Judged], where: Line) -> Opening:
    group = _group(cases, Standing.REGRESSED)
    return Opening(Mark.SLOWER, "Slower", (*_extreme(group, len(cases), "worst"), *where, _also_faster(cases)))


def _faster(cases: Sequence[Judged], where: Line) -> Opening:
    group = _group(cases, Standing.IMPROVED)
    unchanged = len(_group(cases, Standing.UNCHANGED))
    tail = "; nothing else changed" if 0 < unchanged == len(cases) - len(group) else ""
    return Opening(Mark.FASTER, "Faster", (*_extreme(group, len(cases), "most"), *where, tail))


def _undecided(cases: Sequence[Judged], where: Line, gates: Gates) -> Opening:
    """No case blocks, and not all are decided or past a gate: what is worst of that comes first."""
    if undecided := _group(cases, Standing.UNDECIDED):
        partly = f" for {len(undecided)} of {len(cases)} cases" if len(undecided) < len(cases) else ""
        return Opening(Mark.UNKNOWN, f"Cannot tell{partly}", (why(undecided), _also_faster(cases)))
    if slower := _group(cases, Standing.SLOWER):
        rest = (*_extreme(slower, len(cases), "worst"), *where, ", ", short_of(slower[0].case, gates))
        return Opening(Mark.SLIGHT, "A little slower", (*rest, _also_faster(cases)))
    if _group(cases, Standing.IMPROVED):
        return _faster(cases, where)
    faster = _group(cases, Standing.FASTER)
    rest = (*_extreme(faster, len(cases), "most"), *where, ", ", short_of(faster[0].case, gates))
    return Opening(Mark.FASTER, "A little faster", rest)


def _also_faster(cases: Sequence[Judged]) -> str:
    faster = len(_group(cases, Standing.IMPROVED))
    return f"; {formatting.counted(faster, 'other case')} {'is' if faster == 1 else 'are'} faster" if faster else ""


def _all(cases: Sequence[Judged]) -> Line:
    if len(cases) == 1:
        return (cases[0].name, " is")
    return ("both cases are",) if len(cases) == 2 else (f"all {len(cases)} cases are",)


def _margin(gates: Gates) -> str:
    return f"±{formatting.threshold(gates.margin_pct)}"


def _group(cases: Sequence[Judged], which: Standing) -> list[Judged]:
    return [one for one in cases if one.standing is which]


def _extreme(group: Sequence[Judged], total: int, superlative: str) -> Line:
    """ "3 of 9 cases, worst S=512 … by 4.9% (4.8 to 5.0%)": `group` starts with its extreme."""
    first = group[0]
    size, interval = formatting.amount(first.case.change_pct, first.case.interval_pct)
    count = "" if len(group) == 1 else f"{len(group)} of {total} cases, {superlative} "
    return (count, first.name, " by ", size, f" {interval}")


def why(undecided: Sequence[Judged]) -> str:
    """The reason that most of the undecided cases share, with its numbers."""
    blamed = [(one, finding) for one in undecided for finding in disqualifying(one.case)]
    if not blamed:
        return noise([one.case for one in undecided], "; a change below {} could not be seen")
    code, _ = Counter(finding.code for _, finding in blamed).most_common(1)[0]
    shared = {one.case.id for one, finding in blamed if finding.code == code}
    message = formatting.sentence(next(finding.message for _, finding in blamed if finding.code == code))
    return message if len(shared) == 1 else f"{message} (one of {len(shared)} such cases)"


def noise(cases: Sequence[CaseVerdict], blind: str = ": below {} it could not be seen") -> str:
    """How blind the run was: "too noisy: below 2.4% it could not be seen"."""
    if any(case.change_pct is None for case in cases):
        return "too little was measured"
    seen = _blindness(cases)
    return "too noisy" if seen is None else f"too noisy{blind.format(seen)}"


def _blindness(cases: Sequence[CaseVerdict]) -> str | None:
    """The largest change that some case could have missed, such as "2.4%"; None where one does not know."""
    seen = [case.minimum_detectable_pct for case in cases if case.minimum_detectable_pct is not None]
    return formatting.about(max(seen)) if len(seen) == len(cases) > 0 else None


def short_of(case: CaseVerdict, gates: Gates) -> str:
    """How a certain difference relates to the gate that it does not pass."""
    change = case.change_pct or 0.0
    if case.direction is Direction.SLOWER:
        gate, consequence = gates.regression_pct, "that blocks"
    else:
        gate, consequence = gates.improvement_pct, "that counts as an improvement"
    relation = "below" if abs(change) < gate else "not confirmed as more than"
    return f"{relation} the {formatting.threshold(gate)} {consequence}"


def counts(cases: Sequence[Judged]) -> str:
    """ "1 of 9 cases regressed, 8 unchanged", exact for any mix."""
    found = Counter(one.standing for one in cases)
    parts = [(found[which], what) for which, what in _COUNTED.items() if found[which]]
    of_all = f"of {formatting.counted(len(cases), 'case')} "
    return ", ".join(f"{number} {of_all if first == 0 else ''}{what}" for first, (number, what) in enumerate(parts))


def summary(record: RunRecord, verdict: RecordVerdict, cases: Sequence[Judged]) -> Line:
    """Counts, what follows, what was compared, and how much was measured."""
    said = [f"{counts(cases)}."] if cases else []
    if cases and verdict.verdict is Outcome.EQUIVALENT:
        seen = _blindness([one.case for one in cases])
        said += [f"Shown, not assumed: a change of {seen} would have been seen."] if seen else []
    said += {
        Outcome.REGRESSED: ["This change blocks the merge."],
        Outcome.INCONCLUSIVE: ["Nothing is blocked."],
    }.get(verdict.verdict, [])
    return (" ".join([*said, ""]), *compared(record, verdict.against), *_extent(record, cases))


def compared(record: RunRecord, against: str = "base") -> Line:
    head = formatting.commit(record.subject.head_sha, "The working tree")
    if against != "base":
        return (head, " against the baseline ", Code(against))
    return (head, " against ", formatting.commit(record.subject.base_sha, "an unnamed base"))


def _extent(record: RunRecord, cases: Sequence[Judged]) -> Line:
    """ ", 5 launches × 100 rounds."."""
    if not cases:
        return (".",)
    ids = {one.case.id for one in cases}
    rounds = [
        len(next(iter(launch.samples_us.values()), ()))
        for case in record.cases
        if case.id in ids
        for launch in case.launches
    ]
    launches = formatting.spread(one.case.launches for one in cases)
    return (f", {launches} {'launch' if launches == '1' else 'launches'} × {formatting.spread(rounds)} rounds.",)
