"""The first line of everything that is said: what was found, and whether it blocks.

Comment, check run, annotation and terminal all take it from here. Its mark, the words on blocking and the check's
conclusion come from one `Decision` and cannot contradict each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Mark, Strong
from kernelgate.ci.judge import cards, sentences
from kernelgate.ci.judge.case import Direction, MeanVerdict, Outcome, RecordVerdict, Speeds, Status, severity
from kernelgate.ci.judge.gate import BlockCode, Blocker, Decision, Fault
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report import correctness, remarks
from kernelgate.ci.report.gpu import Failure, GpuReport, JudgedCase
from kernelgate.ci.report.links import docs

OWN_WORDS = (BlockCode.WRONG_OUTPUT, BlockCode.DOES_NOT_COMPILE, BlockCode.SLOWER)
"""What blocks and is itself the verdict: the words of the GPU where it was found say it."""
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
    """`merge`: else nothing here is about merging, such as of a profile or a comparison with a baseline."""
    worst = deciding_gpu(gpus, decision)
    words = of_gpu(worst, gates, len(gpus) > 1)
    if not merge:
        return (words.mark, " ", *words.text)
    if decision.blockers and not _says_itself(decision.blockers[0], worst, words):
        return (Mark.BLOCKED, " Blocked by ", *_causes(decision, len(gpus) > 1), *_beside(words))
    if is_incomplete(worst, decision):
        text: Line = ("Incomplete: ", *decision.open[0], "; so far: ", *uncapped(words.text))
        return with_consequence(Mark.UNKNOWN, text, decision)
    mark, said = _agreeing(words, decision)
    if remarks.is_accepted(worst, decision):
        mark, said = Mark.SLIGHT, ("Slower, and accepted: ", *uncapped(words.text))
    return with_consequence(mark, said, decision)


def deciding_gpu(gpus: Sequence[GpuReport], decision: Decision) -> GpuReport:
    """The one that the first line is about: where the first blocker was found, or what cannot be verified; else where
    the news is worst."""
    if decision.blockers:
        chosen = [gpu for gpu in gpus if gpu.label == decision.blockers[0].gpu]
    else:
        disputed = decision.conclusion == "action_required"
        chosen = [gpu for gpu in gpus if disputed and gpu.failure and gpu.failure.fault is Fault.DISPUTED]
    return min(chosen or gpus, key=_rank)


def is_incomplete(worst: GpuReport, decision: Decision) -> bool:
    """Whether what is missing is the first thing to say: nothing blocks, and no GPU's own failure says more."""
    return bool(decision.open) and not decision.blocks and worst.failure is None


def consequence(decision: Decision) -> str:
    """What follows for the merge, from the check's conclusion alone."""
    if decision.conclusion == "failure":
        return "blocks merge"
    if decision.conclusion == "action_required":
        return "blocks merge until it is measured again"
    return "does not block"


def named(label: str, line: Line) -> Line:
    """The line with its GPU named, behind the mark where it has one."""
    if not label:
        return line
    if line and isinstance(line[0], Mark):
        return (line[0], " ", Code(label), ":", *line[1:])
    return (Code(label), ": ", *line)


# What is decided ------------------------------------------------------------------------------------------------------


def with_consequence(mark: Mark, text: Line, decision: Decision) -> Line:
    """The first line of this text, also where no GPU is behind it."""
    colon = any(isinstance(piece, str) and ": " in piece for piece in text)
    return (mark, " ", *text, "; " if colon else ": ", consequence(decision))


def _agreeing(words: Words, decision: Decision) -> tuple[Mark, Line]:
    """The words with the mark that the decision allows. They differ where a card that decides nothing was judged, too:
    one that the pull request itself brought."""
    bad, good = words.mark.tone == "bad", words.mark.tone in ("good", "same")
    if decision.conclusion == "failure":
        return (words.mark if bad else Mark.BLOCKED), words.text
    if decision.conclusion == "action_required":
        return Mark.UNKNOWN, words.text
    if decision.conclusion == "success":
        return (words.mark, words.text) if good else (Mark.PASSED, (OWN_CARD, *uncapped(words.text)))
    if good or bad:
        return (Mark.NONE if good else Mark.SLIGHT), (OWN_CARD, *uncapped(words.text))
    return words.mark, words.text


def _says_itself(blocker: Blocker, gpu: GpuReport, words: Words) -> bool:
    """Whether the GPU's own words name what blocks."""
    if blocker.code not in OWN_WORDS or words.mark.tone != "bad":
        return False
    return gpu.is_wrong == (blocker.code is BlockCode.WRONG_OUTPUT)


def _causes(decision: Decision, named_: bool) -> Line:
    causes = list(dict.fromkeys(cause(blocker, named_) for blocker in decision.blockers))
    more = f" and {len(causes) - MAX_CAUSES} more" if len(causes) > MAX_CAUSES else ""
    return (*formatting.separated(causes[:MAX_CAUSES]), more)


def also_blocked(gpus: Sequence[GpuReport], decision: Decision, gates: Gates) -> Line:
    """ "Also blocked by the description. ", of whatever blocks and the first line does not name."""
    worst = deciding_gpu(gpus, decision)
    if not decision.blockers or not _says_itself(decision.blockers[0], worst, of_gpu(worst, gates)):
        return ()
    first = decision.blockers[0]
    rest = tuple(one for one in decision.blockers if one.code is not first.code or one.gpu != first.gpu)
    return ("Also blocked by ", *_causes(replace(decision, blockers=rest), len(gpus) > 1), ". ") if rest else ()


CAUSES: Mapping[BlockCode, str] = {
    BlockCode.WRONG_OUTPUT: "a wrong result",
    BlockCode.DOES_NOT_COMPILE: "a compiler error",
    BlockCode.SANITIZER: "what compute-sanitizer found in ",
    BlockCode.SLOWER: "a regression",
    BlockCode.LESS_ACCURATE: "a loss of accuracy in ",
    BlockCode.BELOW_REFERENCE: "less than the reference's least speed in ",
    BlockCode.MEMORY: "more memory than the policy allows in ",
    BlockCode.NEW_SPILLS: "new register spills in ",
    BlockCode.OCCUPANCY_LOSS: "a lower occupancy of ",
    BlockCode.CONTRADICTED_CLAIM: "a claim that the measurement contradicts",
    BlockCode.DESCRIPTION: "the description",
    BlockCode.SHARED_COMMIT: "another pull request that has the same commit",
}
"""What blocks, as the object of "blocked by"; after a space comes the case or kernel."""


def cause(blocker: Blocker, named_: bool) -> Line:
    where: Line = (" on ", Code(blocker.gpu)) if named_ and blocker.gpu else ()
    words = CAUSES[blocker.code]
    if blocker.code is BlockCode.SLOWER and blocker.subject:
        words += " of "
    subject = Code(blocker.subject, most=60) if blocker.subject else "the kernel"
    return (words, *((subject,) if words.endswith(" ") else ()), *where)


NOW = Strong("Now:")
PROFILE: Line = (
    *(NOW, " ", Code("kernelgate profile"), " says what takes the time ("),
    *(docs("how to read it", "CUDA_COOKBOOK.md"), ")."),
)
UNBLOCK: Mapping[BlockCode, Line] = {
    BlockCode.DOES_NOT_COMPILE: (NOW, " fix that error; ", Code("kernelgate build"), " compiles without a GPU."),
    BlockCode.SANITIZER: (
        *(NOW, " fix what it names; ", Code("kernelgate sanitize"), " looks again on your GPU ("),
        *(docs("what it watches", "fuzzing.md#compute-sanitizer"), ")."),
    ),
    BlockCode.LESS_ACCURATE: (
        *(NOW, " see where precision went; ", Code("kernelgate accuracy"), " measures it again ("),
        *(docs("how it is measured", "statistics.md#accuracy"), ")."),
    ),
    BlockCode.BELOW_REFERENCE: PROFILE,
    BlockCode.MEMORY: (
        *(NOW, " free or reuse the workspace of a call; see ", docs("what is counted", "comment.md#memory"), "."),
    ),
    BlockCode.NEW_SPILLS: (
        *(NOW, " use fewer registers: ", docs("what helps", "CUDA_COOKBOOK.md#register-spills"), "; "),
        *(Code("kernelgate resources"), " shows them without a GPU."),
    ),
    BlockCode.OCCUPANCY_LOSS: (
        *(NOW, " win occupancy back: ", docs("what helps", "CUDA_COOKBOOK.md#occupancy"), "; "),
        *(Code("kernelgate resources"), " shows it without a GPU."),
    ),
    BlockCode.SHARED_COMMIT: (NOW, " close all pull requests of this commit but one."),
}
"""How to get rid of what blocks, where it is the same for all; the others depend on what was found."""


def _beside(words: Words) -> Line:
    """ ", not by speed (12.8% faster on the L4)": whatever else blocks, this is how fast it is."""
    if words.mark is Mark.RUNNER:
        return _bracketed("; speed was not judged", uncapped(words.text))
    if words.mark.tone in ("good", "same", "warn"):
        return _bracketed(", not by speed", uncapped(words.text))
    return ("; ", *uncapped(words.text))


def _bracketed(before: str, text: Line) -> Line:
    """In brackets, which have to be part of words; a name at either end stands behind a colon instead."""
    text = tuple(piece for piece in text if piece != "")
    if not (isinstance(text[0], str) and isinstance(text[-1], str)):
        return (f"{before}: ", *text)
    *opened, last = (f"{before} ({text[0]}", *text[1:])
    return (*opened, f"{last})")


def uncapped(text: Line) -> Line:
    """The words as the middle of a sentence."""
    first, *rest = text or ("",)
    if not isinstance(first, str):
        return text
    return (formatting.sentence(first) + (" " if first.endswith(" ") else ""), *rest)


_RANKS = {Fault.OUTPUT: 0, Fault.BUILD: 1, Fault.DISPUTED: 3, Fault.RUNNER: 4, Fault.OURS: 4}
_PLACES = {Status.UNCONFIRMED: 3, Status.SLOWER: 3, Status.UNDECIDED: 5, Status.ALONE: 5}


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


# What one GPU says ----------------------------------------------------------------------------------------------------


def of_gpu(gpu: GpuReport, gates: Gates, several: bool = False) -> Words:
    """`several`: of several GPUs, each is named by its label."""
    label: Line = (" on ", Code(gpu.label)) if several else ()
    if gpu.failure is not None:
        return _failed(gpu.failure, label)
    if gpu.record is not None and gpu.is_wrong:
        return Words(Mark.WRONG, (*correctness.headline(gpu.record), *label))
    if gpu.record is None:
        return Words(Mark.UNKNOWN, ("Not measured",))
    # Such as " on the L4" or " on AMD EPYC, CPU kernel".
    device = gpu.record.environment.device
    where = label or (*formatting.device(device), *((", CPU kernel",) if formatting.on_cpu(device) else ()))
    if gpu.verdict is None:
        return _untimed(gpu.record, where)
    if unrun := cards.notes(gpu.record, cards.NO_CASES):
        return Words(Mark.NONE, ("Not measured: ", formatting.sentence(unrun[0].text)))
    # Without cases nothing was measured, so that no machine is worth a word, unless it tells one GPU from another.
    return of_verdict(gpu.verdict, gpu.cases, where if several or gpu.cases else (), gates)


def _failed(failure: Failure, where: Line) -> Words:
    message = formatting.sentence(failure.message)
    match failure.fault:
        case Fault.BUILD:
            target: Line = (" for ", Code(failure.target)) if failure.target else ()
            return Words(Mark.BUILD, ("Does not compile", *target, *where))
        case Fault.OUTPUT:
            return Words(Mark.WRONG, ("Wrong result", *where))
        case Fault.DISPUTED:
            return Words(Mark.UNKNOWN, ("Not verified", *where, ": ", message))
        case Fault.RUNNER:
            return Words(Mark.RUNNER, ("Not your fault", *where, ": ", message))
    return Words(Mark.RUNNER, ("Not your fault", *where, ": kernelgate itself failed"))


def _untimed(record: RunRecord, where: Line) -> Words:
    """Of a record that was made to be profiled or fuzzed."""
    profiled = list(dict.fromkeys(entry.key for entry in record.profile))
    if not profiled:
        mark, *text = correctness.line(record, record.fuzz)
        assert isinstance(mark, Mark)  # noqa: S101 (every line on correctness begins with its mark)
        return Words(mark, (str(text[0]).lstrip(), *text[1:]))
    what = Code(profiled[0].id) if len(profiled) == 1 else f"{len(profiled)} cases"
    return Words(Mark.PASSED, ("Profiled: ", what, *where))


# A judged record's verdict --------------------------------------------------------------------------------------------


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
    if verdict.verdict is Outcome.REGRESSED:
        return _changed(Mark.SLOWER, verdict, cases, Status.REGRESSED, where)
    if verdict.verdict is Outcome.IMPROVED:
        return _changed(Mark.FASTER, verdict, cases, Status.IMPROVED, where)
    if verdict.verdict is Outcome.EQUIVALENT:
        than = "" if verdict.against == "base" else " of the baseline"
        every = cases[0].name if len(cases) == 1 else "both cases" if len(cases) == 2 else f"all {len(cases)} cases"
        return Words(Mark.SAME, ("No change: ", every, f" within {sentences.margin(gates)}{than}", *where))
    return _without_gate(verdict, cases, where, gates)


def _without_gate(verdict: RecordVerdict, cases: Sequence[JudgedCase], where: Line, gates: Gates) -> Words:
    """No gate acts, and not all cases are the same: what is worst of that comes first."""
    waiting = any(mean.status is Status.UNCONFIRMED for mean in verdict.means)
    if waiting or _group(cases, Status.UNCONFIRMED):
        words = _changed(Mark.SLIGHT, verdict, cases, Status.UNCONFIRMED, where)
        return replace(words, text=(*words.text, ", not confirmed"))
    if undecided := _group(cases, Status.UNDECIDED):
        partly = f" for {len(undecided)} of {len(cases)} cases" if len(undecided) < len(cases) else ""
        return Words(Mark.UNKNOWN, (f"Cannot tell{partly}: ", why_undecided(undecided)), undecided[0])
    for status, mark in ((Status.SLOWER, Mark.SLIGHT), (Status.IMPROVED, Mark.FASTER), (Status.FASTER, Mark.FASTER)):
        if _group(cases, status):
            return _changed(mark, verdict, cases, status, where)
    unchanged = len(_group(cases, Status.UNCHANGED))
    rest = f"{unchanged} of {len(cases)} cases within {sentences.margin(gates)}"
    return Words(Mark.SAME, (f"No change: {rest}", *where, ", the others have no base"))


def _changed(mark: Mark, verdict: RecordVerdict, cases: Sequence[JudgedCase], status: Status, where: Line) -> Words:
    """ "Up to 7.25% slower in 2 of 7 cases on the L4": of the cases with this status, or of the mean where none has."""
    group = _group(cases, status)
    if not group:
        mean = next((mean for mean in verdict.means if mean.status is status), None)
        if mean is None:
            return Words(mark, ("All cases together", *where))
        percent = formatting.percent(abs(mean.change_pct), 2)
        of = f"{mean.cases} of {mean.of}" if mean.cases < mean.of else str(mean.cases)
        card: Line = (" of ", Code(mean.card)) if len(verdict.means) > 1 else ()
        return Words(mark, (f"{percent} {_direction(mean.change_pct)} over {of} cases together", *card, *where), mean)
    first = group[0].case
    size, _ = formatting.amount(first.change_pct, first.interval_pct)
    upto = "Up to " if len(group) > 1 else ""
    count = f" in {len(group)} of {len(cases)} cases" if len(cases) > 1 else ""
    unchanged, faster = len(_group(cases, Status.UNCHANGED)), sum(one.status.is_faster for one in cases)
    quiet = status.is_faster and 0 < unchanged == len(cases) - faster
    rest = ", nothing else changed" if quiet else ""
    return Words(mark, (f"{upto}{size} {_direction(first.change_pct)}{count}", *where, rest), group[0])


def _direction(change_pct: float | None) -> str:
    return (Direction.FASTER if (change_pct or 0.0) < 0 else Direction.SLOWER).value


def is_alone(cases: Sequence[JudgedCase]) -> bool:
    """Whether there is no base to any case."""
    return bool(cases) and all(one.status is Status.ALONE for one in cases)


def why_undecided(undecided: Sequence[JudgedCase]) -> str:
    """The reason that most of the undecided cases share; what could be seen is said where how sure it is stands."""
    if jumping := next((one.case.speeds for one in undecided if one.case.speeds), ()):
        return two_speeds(jumping)
    blamed = [(one, finding) for one in undecided for finding in one.case.disqualifying]
    if not blamed:
        return sentences.noise([one.case for one in undecided]).partition("; ")[0]
    code, _ = Counter(finding.code for _, finding in blamed).most_common(1)[0]
    shared = {one.case.key for one, finding in blamed if finding.code == code}
    message = formatting.sentence(next(finding.message for _, finding in blamed if finding.code == code))
    return message if len(shared) == 1 else f"{message} (one of {len(shared)} such cases)"


def two_speeds(speeds: Sequence[Speeds]) -> str:
    """ "head has two speeds, 152.8 and 165.1 µs"."""
    both = [one for one in speeds if len(one.us) > 1]
    words = []
    for one in sorted(both, key=lambda one: one.side != "head"):
        low, high = formatting.durations(*one.us)
        words.append(f"{one.side} has two speeds, {low.rpartition(' ')[0]} and {high}")
    return "; ".join(words)


def _group(cases: Sequence[JudgedCase], which: Status) -> list[JudgedCase]:
    return [one for one in cases if one.status is which]
