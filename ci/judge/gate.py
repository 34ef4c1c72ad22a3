"""The gate: what blocks the merge, what the check concludes, which label is set. Decided here alone, in this order:

1. What is certain and bad blocks (`BlockCode`): the check fails.
2. A doubt that the head may have caused holds the merge, unless the policy lets it pass, and so does a GPU of which
   nothing is known: the check asks for action until it is measured. What the machine alone made unclear is said; the
   check is neutral, and no label says improved or unchanged.
3. The check succeeds only where every GPU was measured as planned, every verdict is certain, and none is slower. What
   is certainly slower within the gates is neutral. A card with one library on both sides is certain without times.
4. Where a step that runs the head failed, and only what the head could have written says why, nobody is blamed and
   nothing passes, whatever the policy: the check waits for somebody who has it measured again.
5. A regression that somebody with write access accepted, of this very head against this very base, no longer blocks:
   the check is neutral, never a success.

What a card that the head itself brought says decides nothing, since its author wrote it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal

import numpy as np
import scipy

from kernelgate.bench.record import CaseKey, RunRecord, TimedCase, timed_cases
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.judge import accuracy, cards, completeness, correctness, reference, static
from kernelgate.ci.judge.case import CERTAIN, CaseVerdict, Outcome, RecordVerdict, Status, overall, worst_first
from kernelgate.ci.judge.validity import DRIFT, Finding
from kernelgate.ci.judge.witness import CONTRADICTS, UNCONFIRMED, VERIFIED_IN_PROCESS, WITNESS
from kernelgate.ci.policy.policy import Gates, Policy

Conclusion = Literal["success", "failure", "neutral", "action_required"]
"""Of the check run. A required check passes with success and with neutral."""


class Label(StrEnum):
    IMPROVED = "performance: improved"
    REGRESSED = "performance: regressed"
    UNCHANGED = "performance: unchanged"
    ACCEPTED = "performance: accepted"
    """Beside `REGRESSED`: some of it was accepted."""


class BlockCode(StrEnum):
    """Why a merge is blocked, the headline's reason first."""

    WRONG_OUTPUT = "wrong_output"
    DOES_NOT_COMPILE = "does_not_compile"
    SANITIZER = "sanitizer"
    SLOWER = "slower"
    LESS_ACCURATE = "less_accurate"
    NEW_SPILLS = "new_spills"
    OCCUPANCY_LOSS = "occupancy_loss"
    BELOW_REFERENCE = "below_reference"
    MEMORY = "memory"
    CONTRADICTED_CLAIM = "contradicted_claim"
    DESCRIPTION = "description"
    SHARED_COMMIT = "shared_commit"
    """Several pull requests have the commit, to which the check run belongs."""


class Fault(StrEnum):
    """Whose fault it is that there is no record to judge, or none whose speed counts."""

    BUILD = "build"
    OUTPUT = "output"
    RUNNER = "runner"
    OURS = "ours"
    DISPUTED = "disputed"
    """A step that runs the author's code failed, or left what cannot be read, and nothing that is trusted says why."""

    @property
    def blocks(self) -> BlockCode | None:
        return {Fault.BUILD: BlockCode.DOES_NOT_COMPILE, Fault.OUTPUT: BlockCode.WRONG_OUTPUT}.get(self)


@dataclass(frozen=True)
class Blocker:
    code: BlockCode
    gpu: str | None = None
    """The label; None where it is no GPU's, such as the description."""
    subject: str = ""
    """The case, kernel, claim or section that it is about; untrusted text."""


@dataclass(frozen=True)
class Acceptance:
    """Somebody with write access takes a regression as it is, on every GPU, for one head against one base."""

    case: CaseKey
    """Without an id: all cases of the card together, where their mean regressed."""
    by: str
    reason: str
    head_sha: str
    base_sha: str


@dataclass(frozen=True)
class Regression:
    """What blocks by its speed alone, unless it is accepted."""

    gpu: str
    case: CaseKey
    """Without an id: the mean of the card."""
    accepted: bool = False


@dataclass(frozen=True)
class GpuEvidence:
    label: str
    verdict: RecordVerdict | None = None
    fault: Fault | None = None
    """Where there is no record or a wrong one: whose fault that is. Where the job's end contradicts it: `DISPUTED`."""
    blockers: tuple[Blocker, ...] = ()
    """What blocks beside the fault and a regression, where the policy lets it."""
    missing: tuple[Line, ...] = ()
    """What was to be measured and was not, a sentence each."""
    doubts: tuple[Doubt, ...] = ()
    head_sha: str | None = None
    base_sha: str | None = None


@dataclass(frozen=True)
class Decision:
    conclusion: Conclusion
    label: Label | None = None
    blockers: tuple[Blocker, ...] = ()
    open: tuple[Line, ...] = ()
    """What was to be known and is not, a sentence each."""
    regressions: tuple[Regression, ...] = ()
    """Everything that is too slow, the worst of each GPU first, accepted or not."""
    accepted: tuple[Acceptance, ...] = ()
    """Those that hold for one of the regressions."""
    held: tuple[Doubt, ...] = ()
    """What asks for action, though nothing blocks; none where the policy lets doubts pass."""
    again: bool = False
    """It is measured again by itself, and held until then, whoever caused the doubt."""
    settled: bool = False
    """But for what is accepted nothing is in doubt: as a success, this takes an earlier failure of the commit back."""

    @property
    def blocks(self) -> bool:
        return bool(self.blockers)


NOT_MEASURED = Decision("neutral")
SHARED_COMMIT = Decision("failure", blockers=(Blocker(BlockCode.SHARED_COMMIT),))
"""What is slower than one base may be faster than another: the check passes for none of the pull requests."""
UNTRUSTED = Decision("action_required")
"""The records prove nothing, and a kernel is touched: somebody has to have it measured by trusted workflows."""


def evidence(label: str, record: RunRecord, verdict: RecordVerdict | None, policy: Policy) -> GpuEvidence:
    """What a record alone says of its GPU. One of something else than was planned proves nothing."""
    held = completeness.against_plan(record, label)
    if held.contrary:
        return GpuEvidence(label, fault=Fault.DISPUTED, doubts=(Doubt(UNMEASURED, label),))
    gates = policy.gates
    proven, decides = cards.without(record, cards.of_head(record)), _of_proven(record, verdict)
    wrong = correctness.is_wrong(proven)
    compiled = static.judge(proven.builds, policy.static)
    found = [(BlockCode(one.code), one.kernel) for one in compiled if one.severity == "fail"]
    missing = [*held.missing]
    if gates.sanitizer == "fail":
        findings = correctness.new_sanitizer_findings(proven)
        found += dict.fromkeys((BlockCode.SANITIZER, finding.kernel or "") for finding in findings)
    below = [case.key for case, _ in reference.far_below(decides, gates)]
    above = [one.key for one in reference.above_memory_max(proven, gates)]
    of_cases: tuple[tuple[str, BlockCode, Sequence[CaseKey], Iterable[Line]], ...] = (
        (policy.accuracy.action, BlockCode.LESS_ACCURATE, accuracy.less_accurate(proven), accuracy.unmeasured(proven)),
        (gates.below_reference_min, BlockCode.BELOW_REFERENCE, below, ()),
        (gates.above_memory_max, BlockCode.MEMORY, above, reference.memory_unmeasured(proven)),
    )
    for action, code, cases, unmeasured in of_cases:
        if action == "fail":
            # The worst case. Of a wrong result nothing else is said: not how inaccurate, slow or large it is.
            if cases and not wrong:
                found.append((code, cards.called(proven, cases[0])))
            missing += unmeasured
    by_machine = held.by_machine and missing == [*held.missing]
    lacking = [Doubt(INCOMPLETE, label, cause="machine" if by_machine else "head")] if missing else []
    if unseen := static.unseen(proven.builds, policy.static):
        lacking.append(Doubt(OCCUPANCY_UNKNOWN, label))
    return GpuEvidence(
        label=label,
        verdict=decides,
        doubts=() if wrong else (*doubts_of(label, record, decides, gates), *lacking),
        fault=Fault.OUTPUT if wrong else None,
        blockers=tuple(Blocker(code, label, subject) for code, subject in found),
        missing=(*missing, *unseen),
        head_sha=record.run.head_sha,
        base_sha=record.run.base_sha,
    )


def _of_proven(record: RunRecord, verdict: RecordVerdict | None) -> RecordVerdict | None:
    """The verdict on the cards of the default branch; None where the record has no other than the head's own."""
    own = cards.of_head(record)
    if verdict is None or not own or verdict.refused is not None:
        return verdict
    cases = tuple(case for case in verdict.cases if case.card not in own)
    if not cases and not cards.same_library(record) - own:
        return None
    means = tuple(mean for mean in verdict.means if mean.card not in own)
    return replace(verdict, cases=cases, means=means, verdict=overall(cases, means))


def decide(
    gpus: Sequence[GpuEvidence],
    description: Sequence[str] = (),
    refused: Sequence[Line] = (),
    accepted: Sequence[Acceptance] = (),
    hold: bool = True,
    again: bool = False,
) -> Decision:
    """`description`: the sections that are missing and block. `refused`: artifacts that could not be used. `accepted`:
    for whatever commits. `hold`: a doubt holds the merge. `again`: it may still be measured again by itself."""
    found = [Blocker(BlockCode.DESCRIPTION, None, section) for section in description]
    open_, regressions = [*refused], list[Regression]()
    doubts = [Doubt(REFUSED, None)] if refused else []
    for gpu in gpus:
        slower = [Regression(gpu.label, case, case in _accepted_cases(gpu, accepted)) for case in _regressed(gpu)]
        regressions += slower
        found += _blockers(gpu, slower)
        doubts += gpu.doubts
        if gpu.fault and not gpu.doubts and not gpu.fault.blocks:  # of a GPU without a record no record speaks
            doubts.append(Doubt(UNMEASURED, gpu.label, cause="head" if gpu.fault is Fault.DISPUTED else "machine"))
        where: Line = (Code(gpu.label), ": ") if len(gpus) > 1 else ()
        open_ += [(*where, *what) for what in gpu.missing]
    blockers = tuple(sorted(found, key=lambda one: list(BlockCode).index(one.code)))
    again = again and hold and not blockers and not all(one.lasts for one in doubts)
    held = tuple(one for one in doubts if hold and not blockers and (again or one.holds))
    waits = bool(held) or any(gpu.fault is Fault.DISPUTED for gpu in gpus)
    outcomes = [gpu.verdict.verdict if gpu.verdict else None for gpu in gpus]
    passes = bool(gpus) and not open_ and not waits and _PASSING.issuperset(outcomes)
    spoilt = any(one.code in (BlockCode.WRONG_OUTPUT, BlockCode.SANITIZER) for one in blockers)
    holding = tuple(one for one in accepted if any(one.case in _accepted_cases(gpu, [one]) for gpu in gpus))
    return Decision(
        conclusion="failure" if blockers else "action_required" if waits else "success" if passes else "neutral",
        label=None if spoilt else _label(outcomes, passes),
        blockers=blockers,
        open=tuple(open_),
        regressions=tuple(regressions),
        accepted=holding,
        held=held,
        again=again,
        settled=bool(holding) and not blockers and not open_ and all(_is_settled(gpu, holding) for gpu in gpus),
    )


def _blockers(gpu: GpuEvidence, regressions: Sequence[Regression]) -> Iterator[Blocker]:
    if gpu.fault and gpu.fault.blocks:
        yield Blocker(gpu.fault.blocks, gpu.label)
    if worst := next((one.case for one in regressions if not one.accepted), None):
        # CARD/ID where the verdict has several cards; nothing of a mean of all cases.
        several = gpu.verdict is not None and len({one.card for one in gpu.verdict.cases}) > 1
        yield Blocker(BlockCode.SLOWER, gpu.label, f"{worst.card}/{worst.id}" if several and worst.id else worst.id)
    yield from gpu.blockers


_PASSING = frozenset({Outcome.IMPROVED, Outcome.FASTER, Outcome.EQUIVALENT})
_NOT_SLOWER = {Status.UNCHANGED, Status.FASTER, Status.IMPROVED, Status.ALONE}


def _regressed(gpu: GpuEvidence) -> tuple[CaseKey, ...]:
    """The cases past the gate, the worst first, then the means. Of a wrong result the speed says nothing."""
    if gpu.verdict is None or gpu.fault is Fault.OUTPUT:
        return ()
    cases = [case.key for case in worst_first(gpu.verdict.cases) if case.status is Status.REGRESSED]
    return (*cases, *(CaseKey(mean.card, "") for mean in gpu.verdict.means if mean.status is Status.REGRESSED))


def _accepted_cases(gpu: GpuEvidence, accepted: Sequence[Acceptance]) -> frozenset[CaseKey]:
    """What was accepted of this GPU's commits. With a case goes the mean that it alone carries past its gate: where
    each other case of the card is shown not to be slower than the margin."""
    if gpu.verdict is None:
        return frozenset()
    ours = {one.case for one in accepted if (one.head_sha, one.base_sha) == (gpu.head_sha, gpu.base_sha)}
    named = ours.intersection(_regressed(gpu))
    cards = {case.card for case in named if case.id}
    others = {case.card for case in gpu.verdict.cases if case.key not in named and case.status not in _NOT_SLOWER}
    return frozenset(named | {CaseKey(card, "") for card in cards - others})


def _is_settled(gpu: GpuEvidence, accepted: Sequence[Acceptance]) -> bool:
    if gpu.verdict is None or gpu.verdict.refused is not None or gpu.fault is not None:
        return False
    left_out = _accepted_cases(gpu, accepted)
    cases = [case for case in gpu.verdict.cases if case.key not in left_out]
    means = [mean for mean in gpu.verdict.means if CaseKey(mean.card, "") not in left_out]
    return overall(cases, means) in CERTAIN - {Outcome.REGRESSED}


def _label(outcomes: Sequence[Outcome | None], passes: bool) -> Label | None:
    if Outcome.REGRESSED in outcomes:
        return Label.REGRESSED
    if passes and Outcome.IMPROVED in outcomes:
        return Label.IMPROVED
    return Label.UNCHANGED if passes and Outcome.FASTER not in outcomes else None


# ---- Doubts ----------------------------------------------------------------------------------------------------------
# What is neither shown to be bad nor known to be good. What only the machine makes unclear passes and is said; what a
# head could do to escape a verdict does not.

LIKELY_SLOWER: Final = "likely_slower"
REFUSED: Final = "refused"
INCOMPLETE: Final = "incomplete"
UNMEASURED: Final = "not_measured"
OCCUPANCY_UNKNOWN: Final = "occupancy_unknown"
OF_MACHINE: Final = frozenset({"throttled", "clock_change", "few_values", "too_few", UNCONFIRMED, VERIFIED_IN_PROCESS})
"""Findings that no head causes, or that withhold no more than the name of an improvement."""
SCATTER: Final = frozenset({"processes_disagree", "lone_process"})
"""Findings of processes that are not alike."""
WIDER_P: Final = 1e-3
"""The head's processes scatter more than the base's, which ran beside them, where chance explains it less often (F)."""
LASTING: Final = {
    *(correctness.BASE_WRONG, CONTRADICTS, UNCONFIRMED, VERIFIED_IN_PROCESS),
    *("below_floor", "beyond_reference", "few_values", OCCUPANCY_UNKNOWN),
}
"""Findings that come again whenever it is measured."""


@dataclass(frozen=True)
class Doubt:
    code: str
    """A stable key: one of those above, or that of the finding that keeps a case open."""
    gpu: str | None
    subject: str = ""
    """The case, or the card whose cases it is about; untrusted text."""
    cause: Literal["head", "machine"] = "head"
    """`head` wherever the head may be the cause."""

    @property
    def holds(self) -> bool:
        """Nothing passes of which nothing is known, whoever caused that."""
        return self.cause == "head" or self.code == UNMEASURED

    @property
    def lasts(self) -> bool:
        """Measured again, it is the same."""
        return self.code in LASTING or (self.code == INCOMPLETE and self.cause == "machine")


def doubts_of(label: str, record: RunRecord, verdict: RecordVerdict | None, gates: Gates) -> Iterator[Doubt]:
    if verdict is None:
        return
    if verdict.refused is not None and cards.known(record) - cards.of_head(record):
        untimed = verdict.too_short or cards.notes(record, cards.NO_CASES)
        yield Doubt(REFUSED, label, cause="machine" if untimed else "head")
    yield from (Doubt(LIKELY_SLOWER, label, one.card) for one in verdict.means if one.status is Status.LIKELY_SLOWER)
    timed = {case.key: case for case in timed_cases(record)}
    calls = ((case, one.timing.calls.get("base")) for case in timed_cases(record, WITNESS) for one in case.processes)
    alone = {case.key: of_base.failed == of_base.compared for case, of_base in calls if of_base and of_base.failed}
    for case in worst_first(verdict.cases):
        if case.status is Status.LIKELY_SLOWER:
            yield Doubt(LIKELY_SLOWER, label, case.id)
        elif case.status is Status.ALONE and not cards.notes(record, cards.HEAD_ALONE, case.card):
            yield Doubt(cards.HEAD_ALONE, label, case.id)
        elif case.status is Status.UNDECIDED:
            # A drift that the interval is wide enough for hides as much as one that forbids a verdict.
            hiding = case.disqualifying or tuple(one for one in case.findings if one.code == DRIFT)
            by_head = _may_be_the_heads(case, hiding, timed[case.key], alone, gates)
            if by_head or case.disqualifying:
                yield Doubt(hiding[0].code, label, case.id, "head" if by_head else "machine")


def _may_be_the_heads(
    case: CaseVerdict, hiding: Sequence[Finding], timed: TimedCase, wrong_alone: dict[CaseKey, bool], gates: Gates
) -> bool:
    """`hiding`: why nothing is known; `wrong_alone`: where the base is wrong without the head, and if in all calls."""
    changes = [process.change_pct for process in case.per_process]
    if hiding and changes and min(changes) > gates.regression_pct and not wrong_alone.get(case.key):
        # Whatever spoils it, each process is past the gate by itself; a base that is never right is no measure.
        return True
    # What the base shows, too, such as a time below what the card's work allows, is not the head's.
    machines = OF_MACHINE | {finding.code for finding in hiding if finding.side == "base"}
    if case.key in wrong_alone:
        machines |= {correctness.BASE_WRONG}
    levels, within = _slowest(timed)
    gate = math.log1p(gates.regression_pct / 100)
    if within <= gate:
        machines |= {DRIFT}
    if levels <= gate:
        machines |= {"carry_over", "clock_dependent", *SCATTER}
    elif not _scatters_more(timed):
        machines |= SCATTER
    return any(finding.code not in machines for finding in hiding)


def _slowest(timed: TimedCase) -> tuple[float, float]:
    """In log time, how much slower than the base the head is in its slowest process, and how much slower than its
    process in the slowest first or last third of one."""
    levels, within = [0.0], [0.0]
    for times in (one.samples_us for one in timed.processes):
        if {"base", "head"} <= times.keys() and len(times["head"]) >= 3:
            ratios = np.log(np.array(times["head"]) / np.array(times["base"]))
            third = len(ratios) // 3
            levels.append(float(np.median(ratios)))
            within += [float(np.median(part)) - levels[-1] for part in (ratios[:third], ratios[-third:])]
    return max(levels), max(within)


def _scatters_more(timed: TimedCase) -> bool:
    sides = ([one.samples_us.get(side) for one in timed.processes] for side in ("base", "head"))
    base, head = ([float(np.median(np.log(times))) for times in side if times] for side in sides)
    ratio = float(np.var(head)) / max(float(np.var(base)), 1e-12)
    return float(scipy.special.fdtrc(max(1, len(head) - 1), max(1, len(base) - 1), ratio)) < WIDER_P
