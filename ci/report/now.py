"""The next step: the one thing to do now, whatever was found, and a command for it that can be copied whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Code, Line, Link, Mark, Report, Strong
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.case import CERTAIN, Outcome, Status
from kernelgate.ci.judge.correctness import BASE_WRONG, wrong_outputs
from kernelgate.ci.judge.gate import OCCUPANCY_UNKNOWN, BlockCode, Decision, Fault
from kernelgate.ci.report import correctness, headline, links
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.links import MAX_COMMAND, Links, as_here, base_option, docs, on_cases, whole_again

NOW = Strong("Now:")


def _do(what: str, verb: str, does: str, more: str, place: str) -> Line:
    return (NOW, f" {what}; ", Code(f"kernelgate {verb}"), f" {does}; see ", docs(more, place), ".")


NO_GPU, COOKBOOK = "shows it without a GPU", "CUDA_COOKBOOK.md"
PROFILE = _do("find what takes the time", "profile", "measures it", "how to read it", COOKBOOK)
UNBLOCK: Mapping[BlockCode, Line] = {
    BlockCode.SANITIZER: _do(
        "fix it", "sanitize", "looks again on your GPU", "what it watches", "fuzzing.md#compute-sanitizer"
    ),
    BlockCode.DOES_NOT_COMPILE: (NOW, " fix that error; ", Code("kernelgate build"), " shows the error without a GPU."),
    BlockCode.LESS_ACCURATE: _do(
        "see where precision went", "accuracy", "measures it again", "how it is measured", "statistics.md#accuracy"
    ),
    BlockCode.NEW_SPILLS: _do("use fewer registers", "resources", NO_GPU, "what helps", f"{COOKBOOK}#register-spills"),
    BlockCode.OCCUPANCY_LOSS: _do("win occupancy back", "resources", NO_GPU, "what helps", f"{COOKBOOK}#occupancy"),
    BlockCode.BELOW_REFERENCE: PROFILE,
    BlockCode.MEMORY: _do(
        "free or reuse the workspace of a call", "bench", "measures it again", "what is counted", "comment.md#memory"
    ),
    BlockCode.SHARED_COMMIT: (NOW, " close all pull requests of this commit but one."),
}
"""What to do about what blocks, where that is the same in every report."""

MAX_CASES = 2
"""Cases that a command names; of more it names none, which means all."""


def step(
    gpus: Sequence[GpuReport], decision: Decision, places: Links = links.NO_LINKS, far_below: bool = False
) -> Line:
    """The one thing to do next. `far_below`: a case is so far below its reference that the reason for that comes
    first."""
    worst = headline.deciding_gpu(gpus, decision)
    return as_here(_step(gpus, worst, decision, places, far_below), worst.run)


def _step(gpus: Sequence[GpuReport], worst: GpuReport, decision: Decision, places: Links, far_below: bool) -> Line:
    if decision.blockers:
        return _unblock(worst, decision, places)
    if decision.again:
        return (NOW, " it is measured again by itself, twice at most; ", *_again(worst, (), places), " does it now.")
    disputed = worst.failure is not None and worst.failure.fault is Fault.DISPUTED
    if decision.conclusion == "action_required" and (disputed or not decision.held):
        return (NOW, " somebody with write access has it measured again: ", *_again(worst, (), places))
    if (lost := next((gpu for gpu in (worst, *gpus) if gpu.failure is not None), None)) is not None:
        check = docs("Check the runner", "runner.md#5-check-the-machine")
        machine: Line = (" Lost again? ", check, ".") if lost.failure and lost.failure.fault is Fault.RUNNER else ()
        return (NOW, " nothing in your change to fix; ", *_again(lost, (), places), " measures it again.", *machine)
    if any(one.code == OCCUPANCY_UNKNOWN for one in decision.held):
        what = "keep the kernel's name, and let the library say its launch"
        return _do(what, "resources", NO_GPU, "how it is known", f"{COOKBOOK}#occupancy")
    if decision.open:
        return (NOW, " ", *_whole(worst, places), " measures what is missing.")
    return _of_verdict(worst, decision, places, far_below)


def together(gpu: GpuReport) -> Line:
    """What would show what a comparison with a baseline leaves open."""
    verdict = gpu.verdict
    if verdict is None or verdict.against == "base" or (verdict.verdict in CERTAIN and not verdict.apart):
        return ()
    base = ("--base", verdict.against_sha[:7]) if verdict.against_sha else ()
    command = on_cases("bench", gpu.run, (), "-o", "run.json", base=base)
    return (NOW, " ", Code(command), " measures head and base side by side: no day lies between them.")


NOTHING: Line = (NOW, " nothing to do.")


def reading(report: Report) -> Report:
    """The report, which sends its readers to what they should know where there is nothing to do."""
    noted = any(line[:1] == (Mark.SLIGHT,) for line in (*report.remarks, *report.checks))
    read: Line = (NOW, " nothing has to be done; read what is marked ", Mark.SLIGHT, " below.")
    return replace(report, now=read) if noted and report.now == NOTHING else report


def _unblock(gpu: GpuReport, decision: Decision, places: Links) -> Line:
    first = decision.blockers[0]
    rest: Line = (" Needs no new measurement.",)
    match first.code:
        case BlockCode.WRONG_OUTPUT:
            return _repeat(gpu, places)
        case BlockCode.SLOWER:
            return _regression(gpu, decision, places)
        case BlockCode.DOES_NOT_COMPILE if gpu.failure is not None and gpu.failure.of_card:
            return (NOW, " mend the card there; ", Code("kernelgate cards"), " names all that it lacks.")
        case BlockCode.CONTRADICTED_CLAIM:
            what: Line = (" correct the claim ", Code(first.subject, most=80), " in ")
        case BlockCode.DESCRIPTION:
            lacking = [one.subject for one in decision.blockers if one.code is BlockCode.DESCRIPTION]
            what = (" add ", *formatting.separated(((Code(one, most=80),) for one in lacking), " and "), " to ")
            if gpu.failure is not None or decision.open:
                rest = (" ", *_again(gpu, (), places), " fills in what it measures.")
        case _:
            return UNBLOCK[first.code]
    described = Link("the description", places.pull) if places.pull else "the description"
    return (Strong("To unblock:"), *what, described, ".", *rest)


def _repeat(gpu: GpuReport, places: Links) -> Line:
    record, repeated = gpu.record, correctness.command(gpu.record)
    looked: Line = (" and look at ", *look) if (look := links.diff(gpu.run, places, "the diff")) else ()
    if repeated is not None:
        return (NOW, " repeat it with ", Code(repeated, most=MAX_COMMAND), *looked, ".")
    if not (wrong := wrong_outputs(record)):
        compares = " compares every output with the oracle on your machine"
        return (NOW, " ", Code("kernelgate fuzz"), compares, *looked, ".")
    # What fuzzing does not see: it calls a few times, and timing many times.
    hint: Line = ("; look at ", *looked[1:]) if looked else ()
    if wrong.keys() <= wrong_outputs(record, "base").keys():  # the change is not the cause
        hint = ("; the base is wrong, too, so look at the card's tolerance and at the kernel for such inputs",)
    timed = _again(gpu, [*wrong], links.NO_LINKS)
    return (NOW, " repeat it with ", *timed, ", which compares timed calls", *hint, ".")


def _regression(gpu: GpuReport, decision: Decision, places: Links) -> Line:
    look = links.diff(gpu.run, places, "the diff")
    looked: Line = ("look for the cause in ", *look, "; ") if look else ()
    fixed: Line = (*_whole(gpu, links.NO_LINKS, fixed=True), " measures a fix on your machine. ")
    line: Line = (NOW, " ", *looked, *fixed, docs("Intended?", "comment.md#accept"))
    if not places.on_github:
        return line
    first = next((one.case for one in decision.regressions if one.gpu == gpu.label and not one.accepted), None)
    which = cards.called(gpu.record, first) if first and first.id else "all"
    return (*line, " ", Code(f"/kernelgate accept {which} because it is intended"))


def _whole(gpu: GpuReport, places: Links, fixed: bool = False) -> Line:
    """The command that does everything again: on the pull request, else on this machine; `fixed`: of a mended head."""
    if places.on_github:
        return _again(gpu, (), places)
    return (Code(whole_again(gpu.run, fixed, digits=7), most=MAX_COMMAND),)


def _of_verdict(gpu: GpuReport, decision: Decision, places: Links, far_below: bool) -> Line:
    if gpu.is_wrong:
        return _repeat(gpu, places)
    undecided = [one for one in gpu.cases if one.status is Status.UNDECIDED or one.status.is_likely]
    if not places.on_github and cards.notes(gpu.record, cards.NO_CASES):
        fitting = "with" if formatting.on_cpu(gpu.record.environment.device) else "without"
        how = docs("cards", "cards.md#members")
        return (NOW, f" run it on a machine {fitting} a GPU, or give the card cases for this one: ", how, ".")
    once_more: Line = (NOW, " ", *_again(gpu, (), places), " measures it again.")
    if gpu.verdict is None or gpu.verdict.refused is not None:
        return once_more
    if far_below and not undecided:
        return PROFILE
    if gpu.cases and headline.is_alone(gpu.cases):
        return (NOW, " nothing to do: once this is merged, the next change has a base.")
    findings = [finding.code for one in undecided for finding in one.case.disqualifying]
    if findings and IMPOSSIBLE.issuperset(findings):
        figures = (Code("flops"), " and ", Code("bytes"))
        work = (" check that the kernel does all of the work, and ", *figures, " of the card; ")
        return (NOW, *work, *_whole(gpu, links.NO_LINKS, fixed=True), " measures a fix.")
    look = links.diff(gpu.run, places, "the diff")
    if spoilt := [one for one in undecided if headline.base_wrong(one)]:
        base = headline.base_is(spoilt)
        if any(one.code == BASE_WRONG for one in decision.held):
            shared = f" {base}, which the head may cause where they share a process: look there, or repair the base; "
            return (NOW, shared, *_again(gpu, [one.case.key for one in undecided], places), " measures it again.")
        repair = (
            f" {base}, your change is not: if it is the repair, merge it, and the next change is compared with it. "
        )
        right = Code(whole_again(gpu.run, base=("--base", "COMMIT")), most=MAX_COMMAND)
        return (NOW, repair, right, " compares it with a commit that is right.")
    if undecided:
        again = _again(gpu, [one.case.key for one in undecided], places)
        if any(one.status is Status.LIKELY_SLOWER for one in undecided):
            return (NOW, " ", *again, " measures it again", *(("; or find the cause in ", *look) if look else ()), ".")
        return (NOW, " ", *again, *_tries_again(undecided, gpu.record))
    if gpu.verdict.verdict is Outcome.SLOWER:
        return (NOW, " nothing has to be done", *((", but the cause is in ", *look) if look else ()), ".")
    return NOTHING if gpu.cases or gpu.verdict.verdict is Outcome.EQUIVALENT else once_more


IMPOSSIBLE = frozenset({"below_floor", "beyond_reference"})


def _tries_again(undecided: Sequence[JudgedCase], record: RunRecord) -> Line:
    """With what to look at where the same comes of it."""
    if any(one.case.speeds for one in undecided):
        twice = " tries again. Two speeds again? Look at what varies by call: atomics, L2, the order of tiles: "
        return (twice, docs("guide", "statistics.md#two-modes"), ".")
    blamed = {finding.code for one in undecided for finding in one.case.disqualifying}
    if "few_values" in blamed:
        return (" tries again, best with larger cases: this one is as short as a step of the clock.",)
    if blamed & {"throttled", "clock_change", "drift"}:
        return (" tries again. Again? ", docs("Lock the clocks", "runner.md#4-clocks"), ".")
    return (f" tries again{', best while nothing else runs there' * formatting.on_cpu(record.environment.device)}.",)


def _again(gpu: GpuReport, cases: Sequence[CaseKey], places: Links) -> Line:
    """The command that measures these cases, or all of them, again: on the pull request, else on this machine."""
    named = [cards.called(gpu.record, key) for key in cases] if len(cases) <= MAX_CASES else []
    if places.on_github:
        return (Code(" ".join(("/kernelgate bench", *named))),)
    if len(gpu.run.pythons) > 1:
        return (Code(whole_again(gpu.run), most=MAX_COMMAND),)
    base = base_option(gpu.run, 7)
    return (Code(on_cases("bench", gpu.run, named, "-o", "run.json", base=base), most=MAX_COMMAND),)
