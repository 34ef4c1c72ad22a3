"""The first two lines: what was found, and whether it blocks; how sure that is. What to do: now.py. Comment, check run,
annotation and terminal all take the first from here, by one `Decision`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Link, Mark, Piece
from kernelgate.ci.judge import cards, sentences
from kernelgate.ci.judge.case import CaseVerdict, MeanVerdict, Outcome, RecordVerdict, Status, severity
from kernelgate.ci.judge.correctness import BASE_WRONG, new_sanitizer_findings
from kernelgate.ci.judge.gate import BlockCode, Blocker, Decision, Fault
from kernelgate.ci.judge.stats import INTERVAL_LEVEL
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import correctness, links
from kernelgate.ci.report.gpu import Failure, GpuReport, JudgedCase
from kernelgate.ci.report.links import Links, docs

MAX_CAUSES = 3
"""Of what blocks, as much is named in the first line."""
OWN_CARD = "By this pull request's own card, which decides nothing: "


@dataclass(frozen=True)
class Words:
    """What one GPU's part says by itself: its mark, and "4.9% slower in 1 of 9 cases on the L4"."""

    mark: Mark
    text: Line
    about: JudgedCase | MeanVerdict | None = None
    """The case, or the mean of all, that the text is about; None where it is about all alike."""


def headline(gpus: Sequence[GpuReport], decision: Decision, gates: Gates, merge: bool = True) -> Line:
    """Mark, consequence, the worst, the best, what is missing. `merge`: else nothing here is about merging."""
    worst = deciding_gpu(gpus, decision)
    words = of_gpu(worst, gates, len(gpus) > 1)
    if not merge:
        other = ", ".join(one.name for one in worst.verdict.apart) if worst.verdict else ""
        than: Line = (f" Other {other} than the baseline's: ", *uncapped(words.text))
        return (words.mark, *(than if other else (" ", *words.text)))
    mark, said = _agreeing(words, decision)
    # Of which nothing is known, and for which the change is not to blame.
    lost = [one for one in gpus if one is not worst and one.failure and one.failure.fault in (Fault.RUNNER, Fault.OURS)]
    if lost and not decision.blocks and all(one.cause == "machine" for one in decision.held):
        # What is known of the others is all that is known.
        mark, said = Mark.RUNNER, words.text
    best = best_elsewhere(gpus, worst, words)
    won: Line = (f", {_upto(_faster(best.cases), len(best.cases))} on ", Code(best.label)) if best else ()
    text = (*uncapped(said), *won)
    if decision.blockers and not _says_itself(decision.blockers[0], worst, words):
        # Whatever else blocks, this is how fast it is: "; speed: 12.8% faster on the L4".
        beside = "; " if words.mark in (Mark.RUNNER, Mark.WRONG, Mark.BUILD) else "; speed: "
        mark, text = Mark.BLOCKED, (*_causes(gpus, decision, worst.label), beside, *uncapped(words.text))
    elif is_incomplete(worst, decision):
        mark, text = Mark.UNKNOWN, ("incomplete, since ", *decision.open[0], "; so far ", *uncapped(words.text))
    elif decision.accepted and not decision.blocks and not worst.is_wrong and worst.outcome is Outcome.REGRESSED:
        mark, text = Mark.SLIGHT, ("accepted: ", *uncapped(words.text))
    missing = [piece for gpu in lost for piece in (", ", Code(gpu.label))][1:]
    return with_consequence(mark, (*text, *(("; ", *missing, " missing") if missing else ())), decision)


def best_elsewhere(gpus: Sequence[GpuReport], worst: GpuReport, words: Words) -> GpuReport | None:
    """Where most is won, where nothing is faster on the GPU that the first line is about."""
    if words.mark.tone not in ("bad", "warn") or _faster(worst.cases):
        return None
    won = [gpu for gpu in gpus if _faster(gpu.cases)]
    return min(won, key=lambda one: _faster(one.cases)[0].case.change_pct or 0.0, default=None)


def _faster(cases: Iterable[JudgedCase]) -> list[JudgedCase]:
    gains = (one for one in cases if one.status.is_news and not one.status.is_slower)
    return sorted(gains, key=lambda one: one.case.change_pct or 0.0)


def deciding_gpu(gpus: Sequence[GpuReport], decision: Decision) -> GpuReport:
    """Where the first blocker was found, or what holds the merge; else where the news is worst."""
    doubted = {one.gpu for one in decision.held if one.cause == "head"}
    deciding = {decision.blockers[0].gpu} if decision.blockers else doubted
    return min([gpu for gpu in gpus if gpu.label in deciding] or gpus, key=_rank)


def is_incomplete(worst: GpuReport, decision: Decision) -> bool:
    return bool(decision.open) and not decision.blocks and worst.failure is None


def named(label: str, line: Line) -> Line:
    if not label:
        return line
    if line and isinstance(line[0], Mark):
        return (line[0], " ", Code(label), ":", *line[1:])
    return (Code(label), ": ", *line)


# What is decided ------------------------------------------------------------------------------------------------------


def with_consequence(mark: Mark, text: Line, decision: Decision) -> Line:
    words = {"failure": "Blocks", "action_required": "Held"}.get(decision.conclusion, "Does not block")
    return (mark, f" {words}: ", *uncapped(text))


def _agreeing(words: Words, decision: Decision) -> tuple[Mark, Line]:
    """The words with the mark that the decision allows: the pull request's own card decides nothing."""
    bad, good = words.mark.tone == "bad", words.mark.tone in ("good", "same")
    if decision.conclusion == "failure":
        return (words.mark if bad else Mark.BLOCKED), words.text
    if decision.conclusion == "action_required":
        return (Mark.UNKNOWN if good or bad else words.mark), words.text
    passes = decision.conclusion == "success"
    if good if passes else not good and not bad:
        return words.mark, words.text
    return (Mark.PASSED if passes else Mark.NONE if good else Mark.SLIGHT), (OWN_CARD, *uncapped(words.text))


def _says_itself(blocker: Blocker, gpu: GpuReport, words: Words) -> bool:
    """Whether what blocks is itself the verdict, which the GPU's own words name."""
    of_verdict = blocker.code in (BlockCode.WRONG_OUTPUT, BlockCode.DOES_NOT_COMPILE, BlockCode.SLOWER)
    return of_verdict and words.mark.tone == "bad" and gpu.is_wrong == (blocker.code is BlockCode.WRONG_OUTPUT)


def _causes(gpus: Sequence[GpuReport], decision: Decision, beside: str | None = None) -> Line:
    """`beside`: the GPU whose speed is said behind them, with the case that is slower."""
    blockers = (
        replace(one, subject="") if one.code is BlockCode.SLOWER and (one.gpu or "") == beside else one
        for one in decision.blockers
    )
    causes = list(dict.fromkeys(cause(blocker, len(gpus) > 1, gpus) for blocker in blockers))
    more = f" and {len(causes) - MAX_CAUSES} more" if len(causes) > MAX_CAUSES else ""
    return (*formatting.separated(causes[:MAX_CAUSES]), more)


_CAUSES = {
    BlockCode.WRONG_OUTPUT: ("a wrong result", None),
    BlockCode.DOES_NOT_COMPILE: ("a compiler error", None),
    BlockCode.SANITIZER: ("what compute-sanitizer found", "in"),
    BlockCode.SLOWER: ("a regression", "of"),
    BlockCode.LESS_ACCURATE: ("a loss of accuracy", "in"),
    BlockCode.NEW_SPILLS: ("new register spills", "in"),
    BlockCode.OCCUPANCY_LOSS: ("a lower occupancy", "of"),
    BlockCode.BELOW_REFERENCE: ("less than the reference's least speed", "in"),
    BlockCode.MEMORY: ("more memory than the policy allows", "in"),
    BlockCode.CONTRADICTED_CLAIM: ("a claim that the measurement contradicts", None),
    BlockCode.DESCRIPTION: ("the description", None),
    BlockCode.SHARED_COMMIT: ("another pull request that has the same commit", None),
}
"""What blocks, as people call it, and the word between that and its case or kernel; None: the line names neither."""


def cause(blocker: Blocker, named_: bool, gpus: Sequence[GpuReport] = ()) -> Line:
    """`gpus`: whose records name what compute-sanitizer found."""
    where: Line = (" on ", Code(blocker.gpu)) if named_ and blocker.gpu else ()
    records = (gpu.record for gpu in gpus if gpu.label == (blocker.gpu or ""))
    findings = (one for record in records for one in new_sanitizer_findings(record))
    found = next((one for one in findings if (one.kernel or "") == blocker.subject), None)
    if blocker.code is BlockCode.SANITIZER and found is not None:
        # The line of the source is enough where it is known: the kernel is named below.
        bounded = {"text": visible(found.text, 60), "tool": found.tool and visible(found.tool, 20)}
        at_line = {"kernel": None} if found.file and found.line else {}
        said = correctness.finding(found.model_copy(update=bounded | at_line))
        return (*(replace(one, most=24) if isinstance(one, Code) else one for one in said), *where)
    words, before = _CAUSES[blocker.code]
    subject: Line = (f" {before} ", Code(blocker.subject, most=60)) if before and blocker.subject else ()
    return (words, *subject, *where)


def uncapped(text: Line) -> Line:
    if not text or not isinstance(text[0], str):
        return text
    return (formatting.sentence(text[0]) + (" " if text[0].endswith(" ") else ""), *text[1:])


_RANKS = {Fault.OUTPUT: 0, Fault.BUILD: 1, Fault.DISPUTED: 3, Fault.RUNNER: 7, Fault.OURS: 7}
_PLACES = {Status.LIKELY_SLOWER: 3, Status.SLOWER: 3, Status.UNDECIDED: 5, Status.ALONE: 5}


def _rank(gpu: GpuReport) -> tuple[float, Status, float]:
    """Wrong results, then what does not compile, what is slower, what is undecided, what was not measured at all."""
    if gpu.is_wrong:
        return (0, Status.UNDECIDED, 0.0)
    if gpu.failure is not None:
        return (_RANKS[gpu.failure.fault], Status.UNDECIDED, 0.0)
    if not gpu.cases:
        return (6, Status.UNCHANGED, 0.0) if gpu.outcome is Outcome.EQUIVALENT else (5, Status.UNDECIDED, 0.0)
    status, change = severity(gpu.cases[0].case)
    return (2 if gpu.outcome is Outcome.REGRESSED else _PLACES.get(status, 6), status, change)


# What one GPU says ----------------------------------------------------------------------------------------------------


def of_gpu(gpu: GpuReport, gates: Gates, several: bool = False) -> Words:
    """`several`: of several GPUs, each is named by its label."""
    label: Line = (" on ", Code(gpu.label)) if several else ()
    if gpu.failure is not None:
        return _failed(gpu.failure, label)
    if gpu.is_wrong:
        return Words(Mark.WRONG, correctness.headline(gpu.record, label))
    # Such as " on the L4" or " on AMD EPYC, CPU kernel".
    device = gpu.record.environment.device
    where = label or (*formatting.device(device), *((", CPU kernel",) if formatting.on_cpu(device) else ()))
    if gpu.outcome is Outcome.INCONCLUSIVE:
        where = (*where, *(f" ({note.text})" for note in gpu.record.notes if note.code == "load"))
    if gpu.verdict is None:  # made to be profiled or fuzzed
        if profiled := list(dict.fromkeys(entry.key for entry in gpu.record.profile)):
            what = Code(profiled[0].id) if len(profiled) == 1 else f"{len(profiled)} cases"
            return Words(Mark.PASSED, ("Profiled: ", what, *where))
        mark, *text = correctness.line(gpu.record, gpu.record.fuzz)
        assert isinstance(mark, Mark)  # noqa: S101 (every line on correctness begins with its mark)
        return Words(mark, (str(text[0]).lstrip(), *text[1:]))
    if unrun := cards.notes(gpu.record, cards.NO_CASES):
        return Words(Mark.NONE, ("Not measured: ", formatting.sentence(unrun[0].text)))
    # Without cases nothing was measured, so that no machine is worth a word, unless it tells one GPU from another.
    return of_verdict(gpu.verdict, gpu.cases, where if several or gpu.cases else (), gates)


_FAILED = {
    Fault.BUILD: (Mark.BUILD, "Does not compile"),
    Fault.OUTPUT: (Mark.WRONG, "Wrong result"),
    Fault.DISPUTED: (Mark.UNKNOWN, "Not verified"),
    Fault.RUNNER: (Mark.RUNNER, "Not judged, not your fault"),
    Fault.OURS: (Mark.RUNNER, "Not judged, not your fault"),
}


def _failed(failure: Failure, where: Line) -> Words:
    mark, words = _FAILED[failure.fault]
    if failure.fault is Fault.BUILD:
        target: Line = (" for ", Code(failure.target)) if failure.target else ()
        return Words(mark, ("Unusable card", *where) if failure.of_card else (words, *target, *where))
    why = "kernelgate itself failed" if failure.fault is Fault.OURS else formatting.sentence(failure.message)
    return Words(mark, (words, *where, *(() if failure.fault is Fault.OUTPUT else (f": {why}",))))


# A judged record's verdict --------------------------------------------------------------------------------------------


def base_wrong(one: JudgedCase) -> bool:
    return any(finding.code == BASE_WRONG for finding in one.case.findings)


def base_is(spoilt: Sequence[JudgedCase]) -> str:
    kind = correctness.only(one.kind for case in spoilt for one in case.case.findings if one.code == BASE_WRONG)
    return f"the base {'crashes' if kind == 'crashed' else 'hangs' if kind == 'hung' else 'is wrong'}"


def of_verdict(verdict: RecordVerdict, cases: Sequence[JudgedCase], where: Line, gates: Gates) -> Words:
    """What is said of a judged record; `where` is the machine, such as " on the L4"."""
    if verdict.refused is not None:
        return Words(Mark.UNKNOWN, ("Cannot be judged: ", formatting.sentence(verdict.refused)))
    if not cases:
        if verdict.verdict is Outcome.EQUIVALENT:
            return Words(Mark.SAME, ("No change: base and head compile to the same library", *where))
        return Words(Mark.UNKNOWN, ("Cannot tell: no case was timed",))
    if is_alone(cases):
        count = formatting.counted(len(cases), "case")
        return Words(Mark.NONE, ("Nothing to compare with: the head was measured alone, ", count, *where))
    if verdict.verdict in (Outcome.REGRESSED, Outcome.IMPROVED):
        return _changed(verdict, cases, Status[verdict.verdict.name], where)
    if verdict.verdict is Outcome.EQUIVALENT:
        than = "" if verdict.against == "base" else " of the baseline"
        every = cases[0].name if len(cases) == 1 else "both cases" if len(cases) == 2 else f"all {len(cases)} cases"
        return Words(Mark.SAME, ("No change: ", every, f" within {sentences.margin(gates)}{than}", *where))
    return _without_gate(verdict, cases, where, gates)


def _without_gate(verdict: RecordVerdict, cases: Sequence[JudgedCase], where: Line, gates: Gates) -> Words:
    """No gate acts, and not all cases are the same: what is worst of that comes first."""
    if _group(cases, Status.LIKELY_SLOWER) or any(mean.status is Status.LIKELY_SLOWER for mean in verdict.means):
        return _changed(verdict, cases, Status.LIKELY_SLOWER, where)
    undecided = _group(cases, Status.UNDECIDED)
    if undecided and not _group(cases, Status.LIKELY_FASTER):
        partly = f" for {len(undecided)} of {len(cases)} cases" if len(undecided) < len(cases) else ""
        reason = why_undecided(undecided, verdict.against != "base")
        text = (f"Cannot tell{partly}", *where, f": {reason}", _beside_them(cases, undecided))
        return Words(Mark.UNKNOWN, text, undecided[0])
    for status in (Status.SLOWER, Status.LIKELY_FASTER, Status.IMPROVED, Status.FASTER):
        if _group(cases, status):
            return _changed(verdict, cases, status, where)
    unchanged = len(_group(cases, Status.UNCHANGED))
    rest = f"{unchanged} of {len(cases)} cases within {sentences.margin(gates)}"
    others = "the other has" if len(cases) - unchanged == 1 else "the others have"
    return Words(Mark.SAME, (f"No change: {rest}", *where, f", {others} no base"))


def _changed(verdict: RecordVerdict, cases: Sequence[JudgedCase], status: Status, where: Line) -> Words:
    """The cases with this status, or the mean where none has; then what stands beside them."""
    group, mark = _group(cases, status), sentences.mark(status)
    if group:
        size = _upto(group, len(cases))
        return Words(mark, (f"{size[0].upper()}{size[1:]}", *where, _beside_them(cases, group)), group[0])
    mean = next((mean for mean in verdict.means if mean.status is status), None)
    if mean is None:
        return Words(mark, ("All cases together", *where))
    size = f"{formatting.percent(abs(mean.change_pct), 2)} {'faster' if mean.change_pct < 0 else 'slower'}"
    of = f"{mean.cases} of {mean.of}" if mean.cases < mean.of else str(mean.cases)
    card: Line = (" of ", Code(mean.card)) if len(verdict.means) > 1 else ()
    text = f"{'Very likely ' if status.is_likely else ''}{size} over {of} cases together"
    alike = [one for one in cases if (one.case.change_pct or 0.0) * mean.change_pct > 0]
    return Words(mark, (text, *card, *where, _beside_them(cases, alike)), mean)


def _upto(group: Sequence[JudgedCase], of: int = 0) -> str:
    """ "2 of 7 cases up to 7.25% slower"; of what is not certain "very likely 382% slower (366 to 398%)"."""
    case = group[0].case
    size, between = formatting.amount(case.change_pct, case.interval_pct)
    number = f"{len(group)} of {of} cases " if len(group) < of else "both cases " if of == 2 else f"all {of} cases "
    count = number if of > 1 else "" if of else f"{len(group)} " if len(group) > 1 else "another "
    upto, likely = "up to " if len(group) > 1 else "", group[0].status.is_likely
    text = f"{upto}{size} {'faster' if (case.change_pct or 0.0) < 0 else 'slower'}"
    return f"{count}very likely {text} {between}" if likely else f"{count}{text}"


def _beside_them(cases: Sequence[JudgedCase], told: Sequence[JudgedCase]) -> str:
    """ ", 2 up to 15.0% faster, 1 unknown": the best beside the cases that are told, and the worst where these are not
    slower themselves; of the unchanged how many, where nothing else is left."""
    rest = [one for one in cases if one not in told]
    worse = [one for one in rest if one.status.is_slower and not any(told_.status.is_slower for told_ in told)]
    better = _faster(rest)
    unknown, same = (sum(one.status is which for one in rest) for which in (Status.UNDECIDED, Status.UNCHANGED))
    parts = [*(_upto(group) for group in (worse, better) if group), *([f"{unknown} unknown"] if unknown else [])]
    if 0 < same == len(rest) - len(worse) - len(better) - unknown:
        parts.append(f"{same} unchanged")
    return "".join(f", {part}" for part in parts)


def is_alone(cases: Sequence[JudgedCase]) -> bool:
    return bool(cases) and all(one.status is Status.ALONE for one in cases)


def why_undecided(undecided: Sequence[JudgedCase], stored: bool = False) -> str:
    if jumping := next((one.case.speeds for one in undecided if one.case.speeds), ()):
        # Such as "head has two speeds, 152.8 and 165.1 µs".
        two = [one for one in sorted(jumping, key=lambda one: one.side != "head") if len(one.us) > 1]
        us = [formatting.durations(*one.us) for one in two]
        words = (f"{low.rpartition(' ')[0]} and {high}" for low, high in us)
        return "; ".join(f"{one.side} has two speeds, {said}" for one, said in zip(two, words, strict=True))
    if all(map(base_wrong, undecided)):
        return f"{base_is(undecided)} there, and nothing can be compared with it"
    blamed = [(one, finding) for one in undecided for finding in one.case.disqualifying]
    if not blamed:
        noise = sentences.noise([one.case for one in undecided]).partition("; ")[0]
        return "times drift from day to day" if stored else noise
    code, _ = Counter(finding.code for _, finding in blamed).most_common(1)[0]
    shared = {one.case.key for one, finding in blamed if finding.code == code}
    message = formatting.sentence(next(finding.message for _, finding in blamed if finding.code == code))
    if len(shared) == 1:
        return message
    return f"{message}; the same goes for {formatting.counted(len(shared) - 1, 'other case')}"


def _group(cases: Sequence[JudgedCase], which: Status) -> list[JudgedCase]:
    return [one for one in cases if one.status is which]


# The second line ------------------------------------------------------------------------------------------------------


def summary(gpus: Sequence[GpuReport], decision: Decision, policy: Policy, places: Links) -> Line:
    """How sure that is, whatever else blocks, the other GPUs, and which commits were compared."""
    worst = deciding_gpu(gpus, decision)
    words = of_gpu(worst, policy.gates)
    best = best_elsewhere(gpus, worst, words)
    others: list[Piece] = []
    # Whatever blocks and the first line does not name.
    if decision.blockers and _says_itself(first := decision.blockers[0], worst, words):
        rest = tuple(one for one in decision.blockers if (one.code, one.gpu) != (first.code, first.gpu))
        others += ["Also blocks: ", *_causes(gpus, replace(decision, blockers=rest)), ". "] if rest else []
    for gpu in gpus:
        # The first line has all that is to be said of a GPU where nothing is slower or open.
        told = gpu is best and all(one.status is Status.UNCHANGED or one.status.is_faster for one in best.cases)
        if gpu is not worst and not told:
            said = (*of_gpu(gpu, policy.gates, several=True).text, ". ")
            others += [*said, *_behind(gpu, policy)] if gpu.failure else said
    plots: Line = (Link("plots", places.page),) if places.page and any(gpu.cases for gpu in gpus) else ()
    ways = filter(None, (_compared(worst, places), links.diff(worst.run, places), plots))
    return (*_behind(worst, policy), *others, *formatting.separated(ways, " · "))


def _behind(gpu: GpuReport, policy: Policy) -> Line:
    """What the first line rests on, in a sentence or two."""
    match gpu.failure:
        case Failure(Fault.RUNNER | Fault.DISPUTED):
            return (f"Nothing was judged{' there' if gpu.label else ''}. ",)
        case Failure(Fault.BUILD, message):
            return (Code(message, most=300), " ")
        case Failure(_, message):
            return (f"{message[:1].upper()}{message[1:].rstrip('.')}. Speed was not judged. ",)
    if gpu.is_wrong:
        return ("Speed was not judged. ", *correctness.first_failure(gpu.record))
    if gpu.verdict is None or not gpu.cases or is_alone(gpu.cases):
        return ()
    return (*_sure(of_verdict(gpu.verdict, gpu.cases, (), policy.gates).about, gpu.cases, policy), " ")


def _sure(about: JudgedCase | MeanVerdict | None, cases: Sequence[JudgedCase], policy: Policy) -> Line:
    """How sure the words of the first line are; of several cases, of the one that it names."""
    level = docs(f"{100 * INTERVAL_LEVEL:g}% interval", "statistics.md#the-model")
    if about is None:
        if would := sentences.shown([one.case for one in cases]):
            return (f"{would[:1].upper()}{would[1:]}.",)
        bounds = (abs(bound) for one in cases for bound in one.case.interval_pct or () if one.case.believed)
        return ("Every ", level, f" lies within ±{formatting.about(max(bounds, default=math.inf))}.")
    opening = "Likely: " if about.status.is_likely else "Sure: "
    if isinstance(about, MeanVerdict):
        low, high = sorted(abs(bound) for bound in about.interval_pct)
        return (opening, level, f" {low:.2f} to {high:.2f}%; {about.sentence.rpartition('], ')[2]}.")
    case = about.case
    if base_wrong(about):
        said = next(one.message for one in case.findings if one.code == BASE_WRONG)
        return (f"{said[:1].upper()}{said[1:]}.",)
    if about.status is Status.UNDECIDED:
        return _believed(case, level)
    if case.interval_pct is None:
        return ("How sure is not known: no interval was measured.",)
    gate = f"; {sentences.short_of_gate(case, policy.gates)}"
    if about.status in (Status.REGRESSED, Status.IMPROVED):
        gate = ""
    elif about.status.is_likely:
        gate = f"; {sentences.repeats(case, policy)} were made"
    # Whether each repeat agrees on the direction, by itself.
    signs = [(process.change_pct > 0) == ((case.change_pct or 0.0) > 0) for process in case.per_process]
    every = "both" if len(signs) == 2 else f"all {len(signs)}"
    agree = f", {every if all(signs) else f'{sum(signs)} of {len(signs)}'} repeats agree" if len(signs) > 1 else ""
    interval = formatting.amount(case.change_pct, case.interval_pct)[1].strip("()")
    return (opening, level, f" {interval}{agree}{gate}.")


def _believed(case: CaseVerdict, level: Link) -> Line:
    """Of an undecided case: where its change lies, if that much is known."""
    if case.speeds:
        return ("How often each side is in which was not the same, so its typical time says nothing.",)
    if case.interval_pct is None or not case.believed:
        return ("No interval is shown, since none can be believed.",)
    seen = sentences.noise([case]).partition("; ")[2]
    between = formatting.between(case.interval_pct, formatting.places(case.interval_pct))
    low, high = case.interval_pct
    side = " slower" if low > 0 else " faster" if high < 0 else ""
    return (level, f": {between}{side}{f'; {seen}' if seen else ''}.")


def _compared(gpu: GpuReport, places: Links) -> Line:
    untimed = gpu.failure is None and gpu.verdict is None and not gpu.is_wrong
    if (untimed and gpu.run.base_sha is None) or is_alone(gpu.cases):
        return ("Of ", *links.commit(gpu.run.head_sha, "the working tree", places), " alone")
    head = links.commit(gpu.run.head_sha, "The working tree", places)
    if gpu.verdict and not gpu.is_wrong and gpu.verdict.against != "base":
        return (*head, " vs the baseline ", Code(gpu.verdict.against))
    return (*head, " vs ", *links.commit(gpu.run.base_sha, "an unnamed base", places))
