"""The gate: what blocks the merge, what the check concludes, which label is set. Decided here alone.

Plain data in, a `Decision` out. The rules, in order:

1. What is certain and bad blocks: a head that does not compile, a wrong output, a finding of compute-sanitizer that the
   base does not have, a regression, a static finding or a loss of accuracy that the policy fails, a contradicted claim
   or an incomplete description where the policy says so. The check fails.
2. Anything that was to be measured and is not known keeps the decision open. Then nothing passes: the check is neutral,
   and no label says improved or unchanged.
3. The check succeeds only where every GPU was measured as planned, every verdict is certain, and none is slower. What
   is certainly slower within the gates neither blocks nor passes: the check is neutral. A card with one library on both
   sides is certain without times: no kernel changed.
4. Where GitHub and what a job left contradict each other on whose fault it is, nobody is blamed and nothing passes: the
   check waits for somebody who has it measured again.

What a card that the head itself brought says decides nothing: it neither blocks nor passes, since its author wrote it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from kernelgate.bench.record import CheckFinding, RunRecord
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.judge import accuracy, cards, completeness, outputs, sanitizer, static
from kernelgate.ci.judge.case import Outcome, RecordVerdict, Status, overall, worst_first
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.static import StaticFinding

Conclusion = Literal["success", "failure", "neutral", "action_required"]
"""Of the check run. A required check passes with success and with neutral."""


class Label(StrEnum):
    IMPROVED = "performance: improved"
    REGRESSED = "performance: regressed"
    UNCHANGED = "performance: unchanged"


class Fault(StrEnum):
    """Whose fault it is that there is no record to judge."""

    BUILD = "build"
    """The author's: the head does not compile."""
    OUTPUT = "output"
    """The author's: the head computes something else than it should."""
    RUNNER = "runner"
    OURS = "ours"
    DISPUTED = "disputed"
    """GitHub says that a step failed which tries the author's code; what the job left says otherwise."""


class BlockCode(StrEnum):
    """Why a merge is blocked; the first one that applies is the headline."""

    WRONG_OUTPUT = "wrong_output"
    DOES_NOT_COMPILE = "does_not_compile"
    SANITIZER = "sanitizer"
    SLOWER = "slower"
    LESS_ACCURATE = "less_accurate"
    NEW_SPILLS = "new_spills"
    OCCUPANCY_LOSS = "occupancy_loss"
    CONTRADICTED_CLAIM = "contradicted_claim"
    DESCRIPTION = "description"
    SHARED_COMMIT = "shared_commit"
    """Several pull requests have the commit, to which the check run belongs."""


@dataclass(frozen=True)
class Blocker:
    code: BlockCode
    gpu: str | None = None
    """The label; None where it is no GPU's, such as the description."""
    subject: str = ""
    """The case, kernel, claim or section that it is about; untrusted text."""


@dataclass(frozen=True)
class GpuEvidence:
    """What is known of one GPU."""

    label: str
    verdict: RecordVerdict | None = None
    """Of the cards that decide."""
    wrong: bool = False
    less_accurate: tuple[str, ...] = ()
    """The cases whose outputs are, where the policy lets that block."""
    static: tuple[StaticFinding, ...] = ()
    sanitizer: tuple[CheckFinding, ...] = ()
    """What compute-sanitizer found that blocks."""
    contradicted: tuple[str, ...] = ()
    """Claims that this GPU's measurement contradicts."""
    fault: Fault | None = None
    """Where there is no record: whose fault that is. Also of a record that the job's end contradicts: `DISPUTED`."""
    missing: tuple[Line, ...] = ()
    """What was to be measured and was not, a sentence each."""

    @property
    def judged(self) -> bool:
        return self.verdict is not None and self.verdict.refused is None


@dataclass(frozen=True)
class Decision:
    conclusion: Conclusion
    label: Label | None = None
    blockers: tuple[Blocker, ...] = ()
    """The one that decides first."""
    open: tuple[Line, ...] = ()
    """What was to be known and is not, a sentence each."""

    @property
    def blocks(self) -> bool:
        return bool(self.blockers)


NOT_MEASURED = Decision("neutral")
"""Nothing was to be measured."""
SHARED_COMMIT = Decision("failure", blockers=(Blocker(BlockCode.SHARED_COMMIT),))
"""What is slower than one base may be faster than another: the check passes for none of the pull requests."""
UNTRUSTED = Decision("action_required")
"""The records prove nothing, and a kernel is touched: somebody has to have it measured by trusted workflows."""


def evidence(label: str, record: RunRecord, verdict: RecordVerdict | None, policy: Policy) -> GpuEvidence:
    """What a record alone says of its GPU. One of something else than was planned proves nothing."""
    held = completeness.against_plan(record, label)
    if held.contrary:
        return GpuEvidence(label, fault=Fault.OURS)
    proven = cards.without(record, cards.of_head(record))
    accuracy_blocks = policy.accuracy.action == "fail"
    return GpuEvidence(
        label=label,
        verdict=_of_proven(record, verdict),
        wrong=outputs.is_wrong(proven),
        less_accurate=accuracy.less_accurate(proven, policy.accuracy) if accuracy_blocks else (),
        static=static.judge(proven.builds, policy.static),
        sanitizer=sanitizer.new_findings(proven) if policy.gates.sanitizer == "fail" else (),
        missing=(*held.missing, *(accuracy.unmeasured(proven) if accuracy_blocks else ())),
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
    claims_block: bool = True,
) -> Decision:
    """What follows from everything that is known.

    `description`: the sections that are missing and block. `refused`: artifacts that could not be used, a sentence
    each. `claims_block`: whether the policy lets a contradicted claim block.
    """
    blockers = sorted(_blockers(gpus, description, claims_block), key=lambda one: list(BlockCode).index(one.code))
    open_ = (*refused, *(sentence for gpu in gpus for sentence in _open(gpu, named=len(gpus) > 1)))
    passes = bool(gpus) and not open_ and all(_passes(gpu) for gpu in gpus)
    label = _label(gpus, passes)
    conclusion: Conclusion = "failure" if blockers else "success" if passes else "neutral"
    if not blockers and any(gpu.fault is Fault.DISPUTED for gpu in gpus):
        conclusion = "action_required"
    return Decision(conclusion, label, tuple(blockers), open_)


def _blockers(gpus: Sequence[GpuEvidence], description: Sequence[str], claims_block: bool) -> Iterator[Blocker]:
    for gpu in gpus:
        yield from _of_gpu(gpu)
        if claims_block:
            yield from (Blocker(BlockCode.CONTRADICTED_CLAIM, gpu.label, claim) for claim in gpu.contradicted)
    yield from (Blocker(BlockCode.DESCRIPTION, None, section) for section in description)


def _of_gpu(gpu: GpuEvidence) -> Iterator[Blocker]:
    if gpu.fault is Fault.BUILD:
        yield Blocker(BlockCode.DOES_NOT_COMPILE, gpu.label)
    wrong = gpu.wrong or gpu.fault is Fault.OUTPUT
    if wrong:
        yield Blocker(BlockCode.WRONG_OUTPUT, gpu.label)
    for kernel in dict.fromkeys(finding.kernel or "" for finding in gpu.sanitizer):
        yield Blocker(BlockCode.SANITIZER, gpu.label, kernel)
    if not wrong and gpu.verdict is not None and gpu.verdict.verdict is Outcome.REGRESSED:
        cases = worst_first(gpu.verdict.cases)
        yield Blocker(BlockCode.SLOWER, gpu.label, cases[0].id if cases and cases[0].status is Status.REGRESSED else "")
    if gpu.less_accurate and not gpu.wrong:
        yield Blocker(BlockCode.LESS_ACCURATE, gpu.label, gpu.less_accurate[0])
    for finding in gpu.static:
        if finding.severity == "fail":
            yield Blocker(BlockCode(finding.code), gpu.label, finding.kernel)


def _open(gpu: GpuEvidence, named: bool) -> Iterator[Line]:
    """A GPU without a record is no sentence here: its own report says why."""
    where: Line = (Code(gpu.label), ": ") if named else ()
    yield from ((*where, *what) for what in gpu.missing)


def _passes(gpu: GpuEvidence) -> bool:
    if gpu.wrong or gpu.verdict is None or gpu.verdict.refused is not None:
        return False
    return gpu.verdict.verdict in (Outcome.IMPROVED, Outcome.FASTER, Outcome.EQUIVALENT)


def _label(gpus: Sequence[GpuEvidence], passes: bool) -> Label | None:
    """Regressed on any GPU; else improved on one; unchanged only where every GPU shows it."""
    outcomes = {gpu.verdict.verdict for gpu in gpus if gpu.verdict and gpu.judged}
    if any(gpu.wrong or gpu.sanitizer or gpu.fault is Fault.OUTPUT for gpu in gpus):
        return None
    if Outcome.REGRESSED in outcomes:
        return Label.REGRESSED
    if not passes:
        return None
    if Outcome.IMPROVED in outcomes:
        return Label.IMPROVED
    return None if Outcome.FASTER in outcomes else Label.UNCHANGED
