"""The first screen's sentences: what the gate decided, the verdict in words, the counts and what follows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelgate.bench.record import Device, Run, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Mark, Piece
from kernelgate.ci.judge import cards, sentences
from kernelgate.ci.judge.case import Direction, MeanVerdict, Outcome, RecordVerdict, Status, severity
from kernelgate.ci.judge.gate import BlockCode, Blocker, Decision, Fault
from kernelgate.ci.judge.policy import Gates
from kernelgate.ci.report import accepted, correctness, tables
from kernelgate.ci.report.gpu import Failure, GpuReport, JudgedCase

# The first line -------------------------------------------------------------------------------------------------------

OWN_WORDS = (BlockCode.WRONG_OUTPUT, BlockCode.DOES_NOT_COMPILE, BlockCode.SLOWER)
"""What blocks and is itself the verdict: the worst GPU's own line says it."""

MAX_CAUSES = 5
"""Of what blocks, as much is listed; the remarks and the sections have it all."""


def headline(gpus: Sequence[GpuReport], decision: Decision, gates: Gates, merge: bool = True) -> Line:
    """What decided, then what was measured. `merge`: else nothing here is about merging, such as of a profile."""
    worst = worst_gpu(gpus)
    where: Line = (Code(worst.label), ": ") if len(gpus) > 1 else ()
    blocker = decision.blockers[0] if decision.blockers and merge else None
    if blocker is not None and blocker.code not in OWN_WORDS:
        return (Mark.SLOWER, " Blocked by ", *cause(blocker, len(gpus) > 1), "; ", *where, *_in_passing(worst, gates))
    if is_incomplete(worst, decision):
        return (Mark.UNKNOWN, " Incomplete: ", *decision.open[0], "; so far ", *where, *_in_passing(worst, gates))
    line = accepted.opened(own_line(worst, gates), worst, decision) if merge else own_line(worst, gates)
    return of_gpu(worst.label, line) if where else line


def of_gpu(label: str, line: Line) -> Line:
    """The line with its GPU named, behind the mark where it has one."""
    if line and isinstance(line[0], Mark):
        return (line[0], " ", Code(label), ":", *line[1:])
    return (Code(label), ": ", *line)


def worst_gpu(gpus: Sequence[GpuReport]) -> GpuReport:
    """The one with the worst news: its line opens the report."""
    return min(gpus, key=_rank)


def is_incomplete(worst: GpuReport, decision: Decision) -> bool:
    """Whether what is missing is the first thing to say: nothing blocks, and no GPU's own failure says more."""
    return bool(decision.open) and not decision.blocks and worst.failure is None


def own_line(gpu: GpuReport, gates: Gates) -> Line:
    """What a GPU's part says by itself."""
    if gpu.failure is not None:
        return _failed(gpu.failure)
    if gpu.record is not None and gpu.is_wrong:
        return correctness.headline(gpu.record)
    if gpu.verdict is None or gpu.record is None:
        return _untimed(gpu)
    if unrun := cards.notes(gpu.record, cards.NO_CASES):
        return (Mark.NONE, " Not measured: ", formatting.sentence(unrun[0].text))
    words = opening(gpu.verdict, gpu.cases, place(gpu.record.environment.device), gates)
    return (words.mark, f" {words.verdict}: ", *words.rest)


def _in_passing(gpu: GpuReport, gates: Gates) -> Line:
    """The same as a part of a sentence: "faster, S=512 … by 12.8% (12.6 to 13.0%) on the L4"."""
    if gpu.failure is not None and gpu.failure.fault in (Fault.RUNNER, Fault.OURS):
        return ("not measured, which is not your fault: ", formatting.sentence(gpu.failure.message))
    if gpu.record is None or gpu.verdict is None or gpu.is_wrong:
        return ("speed was not judged",)
    words = opening(gpu.verdict, gpu.cases, place(gpu.record.environment.device), gates)
    return (f"{formatting.sentence(words.verdict)}, ", *words.rest)


def cause(blocker: Blocker, named: bool) -> Line:
    """What blocks, as the object of "blocked by"."""
    where: Line = (" on ", Code(blocker.gpu)) if named and blocker.gpu else ()
    subject = Code(blocker.subject, most=120)
    match blocker.code:
        case BlockCode.WRONG_OUTPUT:
            return ("a wrong result", *where)
        case BlockCode.DOES_NOT_COMPILE:
            return ("a compiler error", *where)
        case BlockCode.SANITIZER:
            return ("what compute-sanitizer found in ", subject if blocker.subject else "the kernel", *where)
        case BlockCode.SLOWER:
            return ("a regression", *where)
        case BlockCode.LESS_ACCURATE:
            return ("a loss of accuracy in ", subject, *where)
        case BlockCode.NEW_SPILLS:
            return ("new register spills in ", subject, *where)
        case BlockCode.OCCUPANCY_LOSS:
            return ("a lower occupancy of ", subject, *where)
        case BlockCode.CONTRADICTED_CLAIM:
            return ("a claim that the measurement contradicts, ", subject, *where)
        case BlockCode.DESCRIPTION:
            return ("the description, which lacks ", subject)
        case BlockCode.SHARED_COMMIT:
            return ("another pull request that has the same commit",)


_AGAIN = Code("/kernelgate bench")
_PLACES = {Status.UNCONFIRMED: 3, Status.SLOWER: 3, Status.UNDECIDED: 5, Status.ALONE: 5}
_RANKS = {Fault.OUTPUT: 0, Fault.BUILD: 1, Fault.DISPUTED: 3, Fault.RUNNER: 4, Fault.OURS: 4}


def _rank(gpu: GpuReport) -> tuple[float, Status, float]:
    """Wrong results, then what does not compile, what is slower, what could not be measured, what is undecided."""
    if gpu.is_wrong:
        return (0, Status.UNDECIDED, 0.0)
    if gpu.failure is not None:
        return (_RANKS[gpu.failure.fault], Status.UNDECIDED, 0.0)
    if not gpu.cases:
        same = gpu.verdict is not None and gpu.verdict.verdict is Outcome.EQUIVALENT
        return (6, Status.UNCHANGED, 0.0) if same else (5, Status.UNDECIDED, 0.0)
    status, change = severity(gpu.cases[0].case)
    if gpu.verdict is not None and gpu.verdict.verdict is Outcome.REGRESSED:
        return (2, status, change)
    return (_PLACES.get(status, 6), status, change)


def _failed(failure: Failure) -> Line:
    message = formatting.sentence(failure.message)
    if failure.fault is Fault.BUILD:
        target: Line = (" for ", Code(failure.target)) if failure.target else ()
        return (Mark.BUILD, " Does not compile", *target, ": ", Code(failure.message, most=300))
    if failure.fault is Fault.OUTPUT:
        return (Mark.WRONG, " Wrong result: ", message)
    if failure.fault is Fault.DISPUTED:
        return (Mark.UNKNOWN, " Not verified: ", message)
    if failure.fault is Fault.RUNNER:
        return (Mark.RUNNER, " Not your fault: ", message)
    return (Mark.RUNNER, " Not your fault: kernelgate itself failed: ", message)


def _untimed(gpu: GpuReport) -> Line:
    """Of a record that was made to be profiled or fuzzed."""
    if gpu.record is None:
        return (Mark.UNKNOWN, " Not measured")
    profiled = list(dict.fromkeys(entry.key for entry in gpu.record.profile))
    if not profiled:
        return correctness.line(gpu.record.fuzz)
    what = Code(profiled[0].id) if len(profiled) == 1 else f"{len(profiled)} cases"
    return (Mark.PASSED, " Profiled: ", what, *place(gpu.record.environment.device))


def place(device: Device) -> Line:
    """Such as " on the L4" or " on AMD EPYC, CPU kernel"."""
    return (*formatting.device(device), ", CPU kernel") if formatting.on_cpu(device) else formatting.device(device)


# A judged record's verdict --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opening:
    """The verdict in words, in three parts: "❌", "Slower", "S=512 … by 4.9% (4.8 to 5.0%) on the L4"."""

    mark: Mark
    verdict: str
    rest: Line


def opening(verdict: RecordVerdict, cases: Sequence[JudgedCase], where: Line, gates: Gates) -> Opening:
    """What the first line says of a judged record; `where` is the machine, such as " on the L4"."""
    if verdict.refused is not None:
        return Opening(Mark.UNKNOWN, "Cannot be judged", (formatting.sentence(verdict.refused),))
    if not cases:
        if verdict.verdict is Outcome.EQUIVALENT:
            return Opening(Mark.NONE, "Nothing to compare", ("base and head compile to the same library",))
        return Opening(Mark.UNKNOWN, "Cannot tell", ("no case was timed",))
    if is_alone(cases):
        count = formatting.counted(len(cases), "case")
        return Opening(Mark.NONE, "Not compared", ("the head was measured alone, ", count, *where))
    words = _judged(verdict, cases, where, gates)
    return replace(words, rest=(*words.rest, *_together(verdict)))


def _judged(verdict: RecordVerdict, cases: Sequence[JudgedCase], where: Line, gates: Gates) -> Opening:
    """What is said of the single cases."""
    if verdict.verdict is Outcome.REGRESSED:
        if group := _group(cases, Status.REGRESSED):
            return Opening(Mark.SLOWER, "Slower", (*_extreme(group, len(cases), "worst"), *where, _also_faster(cases)))
        return Opening(Mark.SLOWER, "Slower", ("all cases together", *where, _also_faster(cases)))
    if verdict.verdict is Outcome.IMPROVED:
        return _faster(cases, where)
    if verdict.verdict is Outcome.EQUIVALENT:
        reference = "base" if verdict.against == "base" else "baseline"
        within = f" within {sentences.margin(gates)} of the {reference}"
        return Opening(Mark.SAME, "No change", (*_all(cases), within, *where))
    return _unblocked(verdict, cases, where, gates)


def _together(verdict: RecordVerdict) -> Line:
    """ "; 1.20% slower over 27 cases [1.15, 1.25]" of each card whose mean has a direction."""
    line: list[Piece] = []
    for mean in verdict.means:
        if mean.direction is not Direction.NONE:
            card: Line = (Code(mean.card), ": ") if len(verdict.means) > 1 else ()
            line += ["; ", *card, _sentence_of(mean)]
    return tuple(line)


def _sentence_of(mean: MeanVerdict) -> str:
    """In full where a gate of the mean acts, or would."""
    decides = mean.status in (Status.REGRESSED, Status.UNCONFIRMED, Status.IMPROVED)
    return mean.sentence if decides else sentences.size_of_mean(mean)


def _faster(cases: Sequence[JudgedCase], where: Line) -> Opening:
    group = _group(cases, Status.IMPROVED)
    if not group:
        return Opening(Mark.FASTER, "Faster", ("all cases together", *where))
    unchanged = len(_group(cases, Status.UNCHANGED))
    tail = "; nothing else changed" if 0 < unchanged == len(cases) - len(group) else ""
    return Opening(Mark.FASTER, "Faster", (*_extreme(group, len(cases), "most"), *where, tail))


def _unblocked(verdict: RecordVerdict, cases: Sequence[JudgedCase], where: Line, gates: Gates) -> Opening:
    """No gate acts, and not all cases are the same: what is worst of that comes first."""
    if waiting := _group(cases, Status.UNCONFIRMED):
        short = sentences.short_of_gate(waiting[0].case, gates)
        rest = (*_extreme(waiting, len(cases), "worst"), *where, ", ", short, _also_faster(cases))
        return Opening(Mark.SLIGHT, "Slower, but not confirmed", rest)
    if any(mean.status is Status.UNCONFIRMED for mean in verdict.means):
        return Opening(Mark.SLIGHT, "Slower, but not confirmed", ("all cases together", *where, _also_faster(cases)))
    if undecided := _group(cases, Status.UNDECIDED):
        partly = f" for {len(undecided)} of {len(cases)} cases" if len(undecided) < len(cases) else ""
        return Opening(Mark.UNKNOWN, f"Cannot tell{partly}", (_why(undecided), _also_faster(cases)))
    if slower := _group(cases, Status.SLOWER):
        short = sentences.short_of_gate(slower[0].case, gates)
        rest = (*_extreme(slower, len(cases), "worst"), *where, ", ", short, _also_faster(cases))
        return Opening(Mark.SLIGHT, "A little slower", rest)
    if _has(cases, Status.IMPROVED):
        return _faster(cases, where)
    if faster := _group(cases, Status.FASTER):
        short = sentences.short_of_gate(faster[0].case, gates)
        return Opening(Mark.FASTER, "A little faster", (*_extreme(faster, len(cases), "most"), *where, ", ", short))
    unchanged = len(_group(cases, Status.UNCHANGED))
    verb = "is" if unchanged == 1 else "are"
    within = f"{unchanged} of {len(cases)} cases {verb} within {sentences.margin(gates)} of the base"
    return Opening(Mark.SAME, "No change", (within, *where, "; the others have no base"))


def is_alone(cases: Sequence[JudgedCase]) -> bool:
    """Whether there is no base to any case."""
    return bool(cases) and all(one.status is Status.ALONE for one in cases)


def _also_faster(cases: Sequence[JudgedCase]) -> str:
    faster = len(_group(cases, Status.IMPROVED))
    return f"; {formatting.counted(faster, 'other case')} {'is' if faster == 1 else 'are'} faster" if faster else ""


def _all(cases: Sequence[JudgedCase]) -> Line:
    if len(cases) == 1:
        return (cases[0].name, " is")
    return ("both cases are",) if len(cases) == 2 else (f"all {len(cases)} cases are",)


def _group(cases: Sequence[JudgedCase], which: Status) -> list[JudgedCase]:
    return [one for one in cases if one.status is which]


def _has(cases: Sequence[JudgedCase], which: Status) -> bool:
    return any(one.status is which for one in cases)


def _extreme(group: Sequence[JudgedCase], total: int, superlative: str) -> Line:
    """ "3 of 9 cases, worst S=512 … by 4.9% (4.8 to 5.0%)": `group` starts with its extreme."""
    first = group[0]
    size, interval = formatting.amount(first.case.change_pct, first.case.interval_pct)
    count = "" if len(group) == 1 else f"{len(group)} of {total} cases, {superlative} "
    return (count, first.name, " by ", size, f" {interval}")


def _why(undecided: Sequence[JudgedCase]) -> str:
    """The reason that most of the undecided cases share, with its numbers."""
    blamed = [(one, finding) for one in undecided for finding in one.case.disqualifying]
    if not blamed:
        return sentences.noise([one.case for one in undecided])
    code, _ = Counter(finding.code for _, finding in blamed).most_common(1)[0]
    shared = {one.case.key for one, finding in blamed if finding.code == code}
    message = formatting.sentence(next(finding.message for _, finding in blamed if finding.code == code))
    return message if len(shared) == 1 else f"{message} (one of {len(shared)} such cases)"


# The second line ------------------------------------------------------------------------------------------------------


def summary(gpus: Sequence[GpuReport], decision: Decision, gates: Gates, merge: bool = True) -> Line:
    """What each GPU found, what follows from it, what was compared, and how much was measured."""
    found = _found(gpus[0]) if len(gpus) == 1 else _found_on_each(gpus, gates)
    follows = consequence(gpus, decision) if merge else ()
    return (*found, *follows, *_compared(gpus), *_extent(gpus))


def consequence(gpus: Sequence[GpuReport], decision: Decision) -> Line:
    """Whether the change may be merged, in one sentence, with every reason where there are several."""
    if decision.conclusion == "action_required":
        return ("Nothing passes until somebody with write access has it measured again: ", _AGAIN, ". ")
    if not decision.blocks:
        judged = any(gpu.verdict is not None for gpu in gpus)
        return ("Nothing is blocked. ",) if decision.conclusion == "neutral" and judged else ()
    causes = list(dict.fromkeys(cause(blocker, len(gpus) > 1) for blocker in decision.blockers))
    if len(causes) == 1:
        return ("This change blocks the merge. ",)
    listed = [piece for number, line in enumerate(causes[:MAX_CAUSES]) for piece in (("; " if number else ""), *line)]
    more = f"; and {len(causes) - MAX_CAUSES} more" if len(causes) > MAX_CAUSES else ""
    return ("This change blocks the merge. It is blocked by ", *listed, f"{more}. ")


def _found(gpu: GpuReport) -> Line:
    if gpu.failure is not None:
        return ("Speed was not judged. ",)
    if gpu.record is not None and gpu.is_wrong:
        return correctness.first_failure(gpu.record)
    if not gpu.cases:
        return ()
    would = sentences.shown([one.case for one in gpu.cases])
    equivalent = gpu.verdict is not None and gpu.verdict.verdict is Outcome.EQUIVALENT
    shown = f"Shown, not assumed: {would}. " if equivalent and would else ""
    return (f"{tables.counts(gpu.cases)}. {shown}",)


def _found_on_each(gpus: Sequence[GpuReport], gates: Gates) -> Line:
    """ "`l4` no change: 9 of 9 cases unchanged; `h100` slower: 1 of 9 cases regressed, 8 unchanged. "."""
    line: list[str | Code] = []
    for number, gpu in enumerate(gpus):
        line += ["; " if number else "", Code(gpu.label), f" {_briefly(gpu, gates)}"]
    return (*line, ". ")


def _briefly(gpu: GpuReport, gates: Gates) -> str:
    if gpu.failure is not None:
        failed = {Fault.BUILD: "does not compile", Fault.OUTPUT: "wrong result"}
        return failed.get(gpu.failure.fault, "not measured")
    if gpu.is_wrong:
        return "wrong result"
    if gpu.verdict is None:
        return "no times"
    words = opening(gpu.verdict, gpu.cases, (), gates)
    return formatting.sentence(words.verdict) + (f": {tables.counts(gpu.cases)}" if gpu.cases else "")


def compared(run: Run, against: str = "base") -> Line:
    head = formatting.commit(run.head_sha, "The working tree")
    if against != "base":
        return (head, " against the baseline ", Code(against))
    return (head, " against ", formatting.commit(run.base_sha, "an unnamed base"))


def _compared(gpus: Sequence[GpuReport]) -> Line:
    first = next((gpu for gpu in gpus if gpu.record is not None), gpus[0])
    untimed = first.record is not None and first.verdict is None and not first.is_wrong
    if (untimed and first.run.base_sha is None) or is_alone(first.cases):
        return ("Of ", formatting.commit(first.run.head_sha, "the working tree"), " alone")
    return compared(first.run, first.verdict.against if first.verdict and not first.is_wrong else "base")


def _extent(gpus: Sequence[GpuReport]) -> Line:
    """ ", 5 processes × 100 rounds."."""
    keys = {(gpu.label, one.case.key) for gpu in gpus for one in gpu.cases}
    if not keys:
        return (".",)
    rounds = [
        len(next(iter(process.samples_us.values()), ()))
        for gpu in gpus
        if gpu.record is not None
        for case in timed_cases(gpu.record)
        if (gpu.label, case.key) in keys
        for process in case.processes
    ]
    processes = formatting.spread(one.case.processes for gpu in gpus for one in gpu.cases)
    return (f", {processes} {'process' if processes == '1' else 'processes'} × {formatting.spread(rounds)} rounds.",)
