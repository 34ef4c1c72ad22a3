"""The lines below the first: how sure it is or what is behind it, which commits were compared, and what to do now.

Nobody should have to look for the next command, whatever was found.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import shell
from kernelgate.ci.document.model import Code, Line, Link, Piece, Strong
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict, MeanVerdict, Outcome, Speeds, Status
from kernelgate.ci.judge.gate import BlockCode, Decision, Fault
from kernelgate.ci.judge.stats import INTERVAL_LEVEL
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import correctness, headline, links
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.headline import NOW, PROFILE, UNBLOCK
from kernelgate.ci.report.links import Links, docs


def summary(
    gpus: Sequence[GpuReport], decision: Decision, policy: Policy, places: Links, on_page: str | None = None
) -> Line:
    """`on_page`: what of the page is worth a link here, such as "plots"."""
    worst = headline.deciding_gpu(gpus, decision)
    where: Line = (" · ", Link(on_page, places.page)) if places.page and on_page else ()
    others = [
        piece
        for gpu in gpus
        if gpu is not worst
        for piece in (*headline.of_gpu(gpu, policy.gates, several=True).text, ". ")
        if not isinstance(piece, Link)
    ]
    difference = links.diff(worst.run, places)
    return (
        *behind(worst, policy),
        *headline.also_blocked(gpus, decision, policy.gates),
        *others,
        *_compared(worst, places),
        *((" · ", *difference) if difference else ()),
        *where,
    )


def behind(gpu: GpuReport, policy: Policy) -> Line:
    """What the first line rests on, in a sentence or two."""
    if (failure := gpu.failure) is not None:
        if failure.fault in (Fault.RUNNER, Fault.DISPUTED):
            return ("The change was not judged. ",)
        if failure.fault is Fault.BUILD:
            return (Code(failure.message, most=300), " ")
        message = failure.message[:1].upper() + failure.message[1:].rstrip(".")
        return (f"{message}. Speed was not judged. ",)
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
        return _shown([one.case for one in cases], level)
    opening = "Sure: " if about.status is not Status.UNCONFIRMED else "Not sure enough to block: "
    if isinstance(about, MeanVerdict):
        low, high = sorted(abs(bound) for bound in about.interval_pct)
        return (opening, level, f" {low:.2f} to {high:.2f}%; {about.sentence.rpartition('], ')[2]}.")
    case = about.case
    if about.status is Status.UNDECIDED:
        return (_beside(case.speeds),) if case.speeds else _believed(case, level)
    if case.interval_pct is None:
        return ("How sure is not known: no interval was measured.",)
    acts = about.status in (Status.REGRESSED, Status.IMPROVED)
    gate = "" if acts else f"; {sentences.short_of_gate(case, policy.gates)}"
    interval = formatting.amount(case.change_pct, case.interval_pct)[1].strip("()")
    return (opening, level, f" {interval}{_agreeing(case)}{gate}.")


def _shown(cases: Sequence[CaseVerdict], level: Link) -> Line:
    """That nothing changed, by what would have been seen, or else by where every interval lies."""
    would = sentences.shown(cases)
    if would:
        return (f"Shown, not assumed: {would}.",)
    bounds = [abs(bound) for case in cases for bound in case.interval_pct or () if case.believed]
    if not bounds:
        return ("Shown, not assumed.",)
    return ("Shown, not assumed: every ", level, f" lies within ±{formatting.about(max(bounds))}.")


def _believed(case: CaseVerdict, level: Link) -> Line:
    """Of an undecided case: where its change lies, if that much is known."""
    if case.interval_pct is None or not case.believed:
        return ("No interval is shown, since none can be believed.",)
    seen = sentences.noise([case]).partition("; ")[2]
    between = formatting.between(case.interval_pct, formatting.places(case.interval_pct))
    low, high = case.interval_pct
    likely = " slower, likely" if low > 0 else " faster, likely" if high < 0 else ""
    return (level, f": {between}{likely}{f'; {seen}' if seen else ''}.")


def _agreeing(case: CaseVerdict) -> str:
    """ ", all 5 repeats agree": each on the direction, by itself."""
    signs = [(process.change_pct > 0) == ((case.change_pct or 0.0) > 0) for process in case.per_process]
    if len(signs) < 2:
        return ""
    if all(signs):
        return ", both repeats agree" if len(signs) == 2 else f", all {len(signs)} repeats agree"
    return f", {sum(signs)} of {len(signs)} repeats agree"


def _beside(speeds: Sequence[Speeds]) -> str:
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
        words = (
            f"head's differ from it by {' and '.join(formatting.percent(change, 0, sign=True) for change in slower)}"
        )
    return f"Base has one, {formatting.durations(base[0])[0]}; {words}."


def _compared(gpu: GpuReport, places: Links) -> Line:
    untimed = gpu.record is not None and gpu.verdict is None and not gpu.is_wrong
    if (untimed and gpu.run.base_sha is None) or headline.is_alone(gpu.cases):
        return ("Of ", *links.commit(gpu.run.head_sha, "the working tree", places), " alone")
    head = links.commit(gpu.run.head_sha, "The working tree", places)
    if gpu.verdict and not gpu.is_wrong and gpu.verdict.against != "base":
        return (*head, " vs the baseline ", Code(gpu.verdict.against))
    return (*head, " vs ", *links.commit(gpu.run.base_sha, "an unnamed base", places))


# What to do now -------------------------------------------------------------------------------------------------------

MAX_CASES = 2
"""Cases that a command names; of more it names none, which means all."""


def now(gpus: Sequence[GpuReport], decision: Decision, places: Links = links.NO_LINKS, far_below: bool = False) -> Line:
    """The one thing to do next. What blocks comes first, in the order in which it blocks.

    `far_below`: a case is so far below its reference that looking for the reason comes before anything else.
    """
    worst = headline.deciding_gpu(gpus, decision)
    if decision.blockers:
        return _unblock(worst, decision, places)
    if decision.conclusion == "action_required":
        return (NOW, " somebody with write access has it measured again: ", *_again(worst, (), places))
    if worst.failure is not None:
        check = docs("Check the runner", "runner.md#5-check-the-machine")
        machine: Line = (" Lost again? ", check, ".") if worst.failure.fault is Fault.RUNNER else ()
        return (
            NOW,
            " nothing in your change to fix; ",
            *_again(worst, (), places),
            " measures it again.",
            *machine,
        )
    if decision.open:
        return (NOW, " ", *_again(worst, (), places), " measures what is missing.")
    return _of_verdict(worst, places, far_below)


def _unblock(gpu: GpuReport, decision: Decision, places: Links) -> Line:
    """How to get rid of the first blocker."""
    first = decision.blockers[0]
    match first.code:
        case BlockCode.WRONG_OUTPUT:
            return _repeat(gpu, places)
        case BlockCode.SLOWER:
            return _regression(gpu, places)
        case BlockCode.CONTRADICTED_CLAIM:
            what: Line = (" correct the claim ", Code(first.subject, most=80), " in ")
        case BlockCode.DESCRIPTION:
            lacking = [one.subject for one in decision.blockers if one.code is BlockCode.DESCRIPTION]
            named = [piece for one in lacking for piece in (" and ", Code(one, most=80))][1:]
            what = (" add ", *named, " to ")
        case _:
            return UNBLOCK[first.code]
    described = Link("the description", places.pull) if places.pull else "the description"
    return (Strong("To unblock:"), *what, described, ". Needs no new measurement.")


def _repeat(gpu: GpuReport, places: Links) -> Line:
    repeated = correctness.command(gpu.record) if gpu.record else None
    look = links.diff(gpu.run, places, "the diff")
    looked: Line = (" and look at ", *look) if look else ()
    if repeated is None:
        compares = " compares every output with the oracle on your machine"
        return (NOW, " ", Code("kernelgate fuzz"), compares, *looked, ".")
    return (NOW, " repeat it with ", Code(repeated, most=correctness.MAX_COMMAND), *looked, ".")


def _regression(gpu: GpuReport, places: Links) -> Line:
    line: list[Piece] = [NOW, " "]
    if look := links.diff(gpu.run, places, "the diff"):
        line += ["look for the cause in ", *look, "; "]
    base = gpu.run.base_sha
    line.append(Code(shell("kernelgate", "pr", *(("--base", base[:7]) if base else ()))))
    line += [" measures a fix on your machine. ", docs("Intended?", "comment.md#accept")]
    case = next((one for one in gpu.cases if one.status is Status.REGRESSED), None)
    if case is not None and places.on_github:
        line += [" ", Code(f"/kernelgate accept {_argument(gpu, case)} because …")]
    return tuple(line)


def _of_verdict(gpu: GpuReport, places: Links, far_below: bool) -> Line:
    """Where nothing blocks and nothing is missing."""
    if gpu.record is not None and gpu.is_wrong:
        return _repeat(gpu, places)
    undecided = [one for one in gpu.cases if one.status in (Status.UNDECIDED, Status.UNCONFIRMED)]
    if gpu.verdict is None or gpu.verdict.refused is not None:
        return (NOW, " ", *_again(gpu, (), places), " measures it again.")
    if far_below and not undecided:
        return PROFILE
    if gpu.cases and headline.is_alone(gpu.cases):
        return (NOW, " nothing to do: once this is merged, the next change has a base.")
    if undecided:
        again = _again(gpu, [_argument(gpu, one) for one in undecided], places)
        return (NOW, " ", *again, *_tries_again(undecided))
    if gpu.verdict.verdict is Outcome.SLOWER:
        look = links.diff(gpu.run, places, "the diff")
        return (NOW, " nothing has to be done", *((", but the cause is in ", *look) if look else ()), ".")
    if gpu.cases or gpu.verdict.verdict is Outcome.EQUIVALENT:
        return (NOW, " nothing to do.")
    return (NOW, " ", *_again(gpu, (), places), " measures it again.")


def _tries_again(undecided: Sequence[JudgedCase]) -> Line:
    """With what to look at where the same comes of it."""
    if any(one.case.speeds for one in undecided):
        twice = " Two speeds again? Look at what varies by call: atomics, L2, the order of tiles: "
        return (f" tries again.{twice}", docs("guide", "statistics.md#two-modes"), ".")
    blamed = {finding.code for one in undecided for finding in one.case.disqualifying}
    if blamed & {"throttled", "clock_change", "drift"}:
        return (" tries again.", " Again? ", docs("Lock the clocks", "runner.md#4-clocks"), ".")
    return (" tries again.",)


def _argument(gpu: GpuReport, one: JudgedCase | None) -> str:
    return correctness.argument(gpu.record, one.case.card, one.case.id) if gpu.record and one else ""


def _again(gpu: GpuReport, cases: Sequence[str], places: Links) -> Line:
    """The command that measures these cases, or all of them, again: on the pull request, else on this machine."""
    named = tuple(cases) if 0 < len(cases) <= MAX_CASES and all(cases) else ()
    if places.on_github:
        return (Code(" ".join(("/kernelgate bench", *named))),)
    base = gpu.run.base_sha
    words = [*(("--base", base[:7]) if base else ()), *(word for case in named for word in ("--case", case))]
    return (Code(shell("kernelgate", "bench", *words, "-o", "run.json"), most=correctness.MAX_COMMAND),)
