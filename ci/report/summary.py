"""The second line: how sure the first one is, whatever else blocks, the other GPUs, and which commits were compared."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Link, Piece
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict, MeanVerdict, Speeds, Status
from kernelgate.ci.judge.gate import Decision, Fault
from kernelgate.ci.judge.stats import INTERVAL_LEVEL
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import correctness, headline, links
from kernelgate.ci.report.gpu import Failure, GpuReport, JudgedCase
from kernelgate.ci.report.links import Links, docs


def line(
    gpus: Sequence[GpuReport], decision: Decision, policy: Policy, places: Links, on_page: str | None = None
) -> Line:
    """`on_page`: what of the page is worth a link here, such as "plots"."""
    worst = headline.deciding_gpu(gpus, decision)
    best = headline.best_elsewhere(gpus, worst, headline.of_gpu(worst, policy.gates))
    others: list[Piece] = []
    for gpu in gpus:
        # The first line has all that is to be said of a GPU where nothing is slower or open.
        told = gpu is best and all(one.status is Status.UNCHANGED or one.status.is_faster for one in best.cases)
        if gpu is not worst and not told:
            said = (*headline.of_gpu(gpu, policy.gates, several=True).text, ". ")
            others += [*said, *_behind(gpu, policy)] if gpu.failure else said
    plots: Line = (Link(on_page, places.page),) if places.page and on_page else ()
    ways = (_compared(worst, places), links.diff(worst.run, places), plots)
    blocked = headline.also_blocked(gpus, decision, policy.gates)
    return (*_behind(worst, policy), *blocked, *others, *formatting.separated(filter(None, ways), " · "))


def _behind(gpu: GpuReport, policy: Policy) -> Line:
    """What the first line rests on, in a sentence or two."""
    match gpu.failure:
        case Failure(Fault.RUNNER | Fault.DISPUTED):
            return (f"Nothing was judged{' there' if gpu.label else ''}. ",)
        case Failure(Fault.BUILD, message):
            return (Code(message, most=300), " ")
        case Failure(_, message):
            return (f"{message[:1].upper()}{message[1:].rstrip('.')}. Speed was not judged. ",)
    if gpu.record is not None and gpu.is_wrong:
        return ("Speed was not judged. ", *correctness.first_failure(gpu.record))
    if gpu.verdict is None or not gpu.cases or headline.is_alone(gpu.cases):
        return ()
    words = headline.of_verdict(gpu.verdict, gpu.cases, (), policy.gates)
    return (*_sure(words.about, gpu.cases, policy), " ")


def _sure(about: JudgedCase | MeanVerdict | None, cases: Sequence[JudgedCase], policy: Policy) -> Line:
    """How sure the words of the first line are; of several cases, of the one that it names."""
    level = docs(f"{100 * INTERVAL_LEVEL:g}% interval", "statistics.md#the-model")
    if about is None:
        return _nothing_changed([one.case for one in cases], level)
    opening = "Likely: " if about.status.is_likely else "Sure: "
    if isinstance(about, MeanVerdict):
        low, high = sorted(abs(bound) for bound in about.interval_pct)
        return (opening, level, f" {low:.2f} to {high:.2f}%; {about.sentence.rpartition('], ')[2]}.")
    case = about.case
    if about.status is Status.UNDECIDED:
        return (_both_speeds(case.speeds),) if case.speeds else _believed(case, level)
    if case.interval_pct is None:
        return ("How sure is not known: no interval was measured.",)
    acts = about.status in (Status.REGRESSED, Status.IMPROVED)
    gate = "" if acts else f"; {sentences.short_of_gate(case, policy.gates)}"
    gate = f"; {sentences.repeats(case, policy)} were made" if about.status.is_likely else gate
    interval = formatting.amount(case.change_pct, case.interval_pct)[1].strip("()")
    return (opening, level, f" {interval}{_repeats(case)}{gate}.")


def _nothing_changed(cases: Sequence[CaseVerdict], level: Link) -> Line:
    """That nothing changed, by what would have been seen, or else by where every interval lies."""
    would = sentences.shown(cases)
    if would:
        return (f"{would[:1].upper()}{would[1:]}.",)
    bounds = [abs(bound) for case in cases for bound in case.interval_pct or () if case.believed]
    if not bounds:
        return ("Every case is shown to be as fast as its base.",)
    return ("Every ", level, f" lies within ±{formatting.about(max(bounds))}.")


def _believed(case: CaseVerdict, level: Link) -> Line:
    """Of an undecided case: where its change lies, if that much is known."""
    if case.interval_pct is None or not case.believed:
        return ("No interval is shown, since none can be believed.",)
    seen = sentences.noise([case]).partition("; ")[2]
    between = formatting.between(case.interval_pct, formatting.places(case.interval_pct))
    low, high = case.interval_pct
    side = " slower" if low > 0 else " faster" if high < 0 else ""
    return (level, f": {between}{side}{f'; {seen}' if seen else ''}.")


def _repeats(case: CaseVerdict) -> str:
    """ ", all 5 repeats agree": each on the direction, by itself."""
    signs = [(process.change_pct > 0) == ((case.change_pct or 0.0) > 0) for process in case.per_process]
    if len(signs) < 2:
        return ""
    every = "both" if len(signs) == 2 else f"all {len(signs)}"
    return f", {every if all(signs) else f'{sum(signs)} of {len(signs)}'} repeats agree"


def _both_speeds(speeds: Sequence[Speeds]) -> str:
    """ "Base has one, 145.7 µs; both of head's are slower, by 5% and 13%."."""
    known = {one.side: one.us for one in speeds}
    base, head = known.get("base", ()), known.get("head", ())
    if len(base) != 1 or len(head) != 2:
        return "How often each side is in which was not the same, so its typical time says nothing."
    slower = [100 * (us / base[0] - 1) for us in head]
    alike = {change > 0 for change in slower} if min(map(abs, slower)) >= 0.5 else set()
    if len(alike) == 1:
        size = " and ".join(f"{abs(change):.0f}%" for change in slower)
        words = f"both of head's are {'slower' if alike == {True} else 'faster'}, by {size}"
    else:
        apart = " and ".join(formatting.percent(change, 0, sign=True) for change in slower)
        words = f"head's differ from it by {apart}"
    return f"Base has one, {formatting.durations(base[0])[0]}; {words}."


def _compared(gpu: GpuReport, places: Links) -> Line:
    untimed = gpu.record is not None and gpu.verdict is None and not gpu.is_wrong
    if (untimed and gpu.run.base_sha is None) or headline.is_alone(gpu.cases):
        return ("Of ", *links.commit(gpu.run.head_sha, "the working tree", places), " alone")
    head = links.commit(gpu.run.head_sha, "The working tree", places)
    if gpu.verdict and not gpu.is_wrong and gpu.verdict.against != "base":
        return (*head, " vs the baseline ", Code(gpu.verdict.against))
    return (*head, " vs ", *links.commit(gpu.run.base_sha, "an unnamed base", places))
