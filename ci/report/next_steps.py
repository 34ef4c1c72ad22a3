"""What to do now, in one line, whatever was found: nobody should have to look for the next command."""

from __future__ import annotations

from collections.abc import Sequence

from kernelgate.ci.document.escape import shell
from kernelgate.ci.document.model import Code, Line, Piece, Strong
from kernelgate.ci.judge.case import Outcome, Status
from kernelgate.ci.judge.gate import BlockCode, Decision, Fault
from kernelgate.ci.report import correctness, headline, links
from kernelgate.ci.report.gpu import GpuReport, JudgedCase
from kernelgate.ci.report.links import Links, docs

NOW = Strong("Now:")
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
        machine: Line = (
            (" Lost again? ", docs("Check the runner", "runner.md#5-check-the-machine"), ".") if _lost(worst) else ()
        )
        return (NOW, " nothing in your change to fix; ", *_again(worst, (), places), " measures it again.", *machine)
    if decision.open:
        return (NOW, " ", *_again(worst, (), places), " measures what is missing.")
    return _of_verdict(worst, places, far_below)


def _lost(gpu: GpuReport) -> bool:
    return gpu.failure is not None and gpu.failure.fault is Fault.RUNNER


def _unblock(gpu: GpuReport, decision: Decision, places: Links) -> Line:
    """How to get rid of the first blocker."""
    first = decision.blockers[0]
    match first.code:
        case BlockCode.WRONG_OUTPUT:
            return _repeat(gpu, places)
        case BlockCode.DOES_NOT_COMPILE:
            return (NOW, " fix that error; ", Code("kernelgate build"), " compiles without a GPU.")
        case BlockCode.SANITIZER:
            told = docs("what it watches", "fuzzing.md#compute-sanitizer")
            return (NOW, " fix what it names; ", Code("kernelgate sanitize"), " looks again on your GPU (", told, ").")
        case BlockCode.SLOWER:
            return _regression(gpu, places)
        case BlockCode.LESS_ACCURATE:
            told = docs("how it is measured", "statistics.md#accuracy")
            return (NOW, " see where precision went; ", Code("kernelgate accuracy"), " measures it again (", told, ").")
        case BlockCode.BELOW_REFERENCE:
            return _profile()
        case BlockCode.MEMORY:
            told = docs("what is counted", "comment.md#memory")
            return (NOW, " free or reuse the workspace of a call; see ", told, ".")
        case BlockCode.NEW_SPILLS:
            told = docs("what helps", "CUDA_COOKBOOK.md#register-spills")
            return (
                NOW,
                " use fewer registers: ",
                told,
                "; ",
                Code("kernelgate resources"),
                " shows them without a GPU.",
            )
        case BlockCode.OCCUPANCY_LOSS:
            told = docs("what helps", "CUDA_COOKBOOK.md#occupancy")
            return (NOW, " win occupancy back: ", told, "; ", Code("kernelgate resources"), " shows it without a GPU.")
        case BlockCode.CONTRADICTED_CLAIM:
            subject = Code(first.subject, most=80)
            text: Line = (Strong("To unblock:"), " correct the claim ", subject, " in ", *links.description(places))
            return (*text, ". Needs no new measurement.")
        case BlockCode.DESCRIPTION:
            return _describe(decision, places)
        case BlockCode.SHARED_COMMIT:
            return (NOW, " close all pull requests of this commit but one.")


def _repeat(gpu: GpuReport, places: Links) -> Line:
    repeated = correctness.command(gpu.record) if gpu.record else None
    look = links.diff(gpu.run, places, "the diff")
    looked: Line = (" and look at ", *look) if look else ()
    if repeated is None:
        return (
            NOW,
            " ",
            Code("kernelgate fuzz"),
            " compares every output with the oracle on your machine",
            *looked,
            ".",
        )
    return (NOW, " repeat it with ", Code(repeated, most=correctness.MAX_COMMAND), *looked, ".")


def _regression(gpu: GpuReport, places: Links) -> Line:
    line: list[Piece] = [NOW, " "]
    if look := links.diff(gpu.run, places, "the diff"):
        line += ["look for the cause in ", *look, "; "]
    line += [Code(_locally(gpu)), " measures a fix on your machine. "]
    line.append(docs("Intended?", "comment.md#accept"))
    case = next((one for one in gpu.cases if one.status is Status.REGRESSED), None)
    if case is not None and places.on_github:
        line += [" ", Code(f"/kernelgate accept {_argument(gpu, case)} because …")]
    return tuple(line)


def _locally(gpu: GpuReport) -> str:
    base = gpu.run.base_sha
    return shell("kernelgate", "pr", *(("--base", base[:7]) if base else ()))


def _describe(decision: Decision, places: Links) -> Line:
    lacking = [one.subject for one in decision.blockers if one.code is BlockCode.DESCRIPTION]
    named = [piece for number, one in enumerate(lacking) for piece in (" and " if number else "", Code(one, most=80))]
    return (Strong("To unblock:"), " add ", *named, " to ", *links.description(places), ". Needs no new measurement.")


def _profile() -> Line:
    told = docs("how to read it", "CUDA_COOKBOOK.md")
    return (NOW, " ", Code("kernelgate profile"), " says what takes the time (", told, ").")


def _of_verdict(gpu: GpuReport, places: Links, far_below: bool) -> Line:
    """Where nothing blocks and nothing is missing."""
    if gpu.record is not None and gpu.is_wrong:
        return _repeat(gpu, places)
    if gpu.verdict is None or gpu.verdict.refused is not None:
        return (NOW, " ", *_again(gpu, (), places), " measures it again.")
    undecided = [one for one in gpu.cases if one.status in (Status.UNDECIDED, Status.UNCONFIRMED)]
    if far_below and not undecided:
        return _profile()
    if gpu.cases and headline.is_alone(gpu.cases):
        return (NOW, " nothing to do: once this is merged, the next change has a base.")
    if undecided:
        again = _again(gpu, [_argument(gpu, one) for one in undecided], places)
        return (
            NOW,
            " ",
            *again,
            f" tries again.{_TWICE if any(one.case.speeds for one in undecided) else ''}",
            *_guide(undecided),
        )
    if gpu.verdict.verdict is Outcome.SLOWER:
        look = links.diff(gpu.run, places, "the diff")
        return (NOW, " nothing has to be done", *((", but the cause is in ", *look) if look else ()), ".")
    if gpu.cases or gpu.verdict.verdict is Outcome.EQUIVALENT:
        return (NOW, " nothing to do.")
    return (NOW, " ", *_again(gpu, (), places), " measures it again.")


_TWICE = " Two speeds again? Look at what varies by call: atomics, L2, the order of tiles: "


def _guide(undecided: Sequence[JudgedCase]) -> Line:
    if any(one.case.speeds for one in undecided):
        return (docs("guide", "statistics.md#two-modes"), ".")
    blamed = {finding.code for one in undecided for finding in one.case.disqualifying}
    if blamed & {"throttled", "clock_change", "drift"}:
        return (" Again? ", docs("Lock the clocks", "runner.md#4-clocks"), ".")
    return ()


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
