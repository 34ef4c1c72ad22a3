"""From a folder of `kernelgate step fetch` to everything that is to be posted: evidence of each GPU, decision, report.

Nothing here talks to GitHub; publish.py does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, unexpected
from kernelgate.bench.record import Card, CaseKey, Expected, RunRecord, expected_hash
from kernelgate.ci.document import render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Mark, Report
from kernelgate.ci.github import claims, run_info, untrusted_artifact
from kernelgate.ci.github.description import Description
from kernelgate.ci.github.plan import JUDGE_PATHS
from kernelgate.ci.github.run_info import RunInfo
from kernelgate.ci.judge import cards, completeness, correctness, gate
from kernelgate.ci.judge.case import Outcome, Status
from kernelgate.ci.judge.gate import NOT_MEASURED, UNTRUSTED, Decision, Fault, GpuEvidence
from kernelgate.ci.judge.prior import History, Past, no_past
from kernelgate.ci.judge.verdict import RecordVerdict, judge
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import baseline as baselines
from kernelgate.ci.report import gpu as parts
from kernelgate.ci.report.build import build
from kernelgate.ci.report.gpu import Baseline, Failure, GpuReport, NightsByCase, Yardstick, no_nights
from kernelgate.ci.report.headline import with_consequence
from kernelgate.ci.report.links import Links
from kernelgate.ci.report.summary import NOW

Task = Literal["bench", "profile", "fuzz"]
"""What a run was started for. Only `bench` is about the merge; the others have comments of their own."""

ExpectedByLabel = Mapping[str, Expected]
"""What the plan asks of each GPU, by its label in the policy."""
NO_PLAN: ExpectedByLabel = MappingProxyType({})


@dataclass(frozen=True)
class Trusted:
    """What the default branch says of the measurement, which no record and no pull request can change."""

    expected: ExpectedByLabel = field(default_factory=lambda: NO_PLAN)
    """What the plan asks of each GPU."""
    past: Past = no_past
    """What earlier measurements show of a record's cases."""
    page: str | None = None
    """Where the HTML page of this report is."""
    nights: Callable[[RunRecord], NightsByCase] = no_nights
    """How its cases' times moved on the default branch."""


NOTHING_TRUSTED = Trusted()
NO_VERDICT = RecordVerdict("", Outcome.INCONCLUSIVE, "", ())
BUILD = "build"
"""The label of the build job's failure note."""
_LATER: Line = (
    Mark.SLIGHT,
    " This changes kernelgate itself: that takes effect after the merge, and not on this page.",
)
_UNREAD: Line = (Mark.SLIGHT, " Registers and spills were not read, so new spills would not have been seen.")


@dataclass(frozen=True)
class PullRequestChange:
    """What the API says of the pull request."""

    description: Description
    names: tuple[str, ...] | None
    """Every path that it touches; None where GitHub does not list them all."""
    skipped: str | None = None
    """Why it is not to be measured."""

    def touches(self, paths: Sequence[str]) -> bool:
        """Whether it changes one of these; what is not known counts as changed."""
        return self.names is None or any(name.startswith(tuple(paths)) for name in self.names)


@dataclass(frozen=True)
class GpuResult:
    """One GPU, for the gate and for the report."""

    evidence: GpuEvidence
    report: GpuReport


@dataclass(frozen=True)
class Posting:
    """Everything that is to be posted, decided before anything is."""

    report: Report
    decision: Decision
    gpus: tuple[GpuReport, ...] = ()
    task: Task = "bench"
    quiet: bool = False
    """Nothing was to be measured: a check run says so, and no comment is made of it."""

    @property
    def judged(self) -> bool:
        """Whether anything was found out about the change itself."""
        verdicts = [gpu.verdict for gpu in self.gpus if gpu.verdict and gpu.verdict.refused is None]
        # The times of a head without a base say nothing of the change.
        judged = any(case.status is not Status.ALONE for verdict in verdicts for case in verdict.cases)
        return judged or any(not verdict.cases for verdict in verdicts) or self.decision.conclusion != "neutral"

    @property
    def topic(self) -> str:
        """Which of the bot's comments this is: a profile never takes the verdict's place."""
        return "verdict" if self.task == "bench" else self.task

    @property
    def title(self) -> str:
        return render.plain_line(self.report.headline)


def assemble(
    folder: Path,
    info: RunInfo,
    policy: Policy,
    change: PullRequestChange | None,
    task: Task = "bench",
    trusted: Trusted = NOTHING_TRUSTED,
) -> Posting:
    """Judges every record in the folder. `change`: None where there is no pull request, or nothing is known of it.

    A record is held against what is `trusted` to be expected, and against its own word only where that says nothing.
    """
    if info.changes_judges:
        return _untrusted(change is None or change.touches(policy.template.kernel_paths))
    if info.planned and not (info.measured or info.failed or info.refused or _labels(folder)):
        return _not_measured(change.skipped if change else None)
    asked = _Asked(info, policy, change, task, trusted)
    results = _results(folder, asked)
    decision = gate.decide(
        [result.evidence for result in results],
        asked.description.blocking if asked.description else (),
        [(why,) for why in info.refused],
        policy.template.block_contradicted_claim,
        info.acceptances,
    )
    try:
        return _posting(results, decision, asked)
    except Exception as error:
        # Each can be rendered by itself, so what blocks is known; nothing passes that cannot be explained.
        decision = decision if decision.blocks else replace(decision, conclusion="neutral", label=None)
        return _posting([_broken("", error, info)], decision, asked)


@dataclass(frozen=True)
class _Asked:
    """What the run was for, and all that its records are judged by."""

    info: RunInfo
    policy: Policy
    change: PullRequestChange | None
    task: Task
    trusted: Trusted

    @property
    def description(self) -> Description | None:
        return self.change.description if self.change and self.task == "bench" else None

    @property
    def plan(self) -> ExpectedByLabel:
        """What the records are held against: of what is not about the merge, anything may be asked."""
        return self.trusted.expected if self.task == "bench" else NO_PLAN


def places(info: RunInfo, page: str | None = None) -> Links:
    """Where the links of a report lead."""
    repository = info.run_url.partition("/actions/runs/")[0] or None
    pull = f"{repository}/pull/{info.pull_request}" if repository and info.pull_request else None
    return Links(repository, pull, page, info.run_url)


def _posting(results: Sequence[GpuResult], decision: Decision, asked: _Asked) -> Posting:
    """What is to be posted; it can be rendered."""
    change = asked.change
    names = change.names if change else None
    gpus = tuple(replace(result.report, changed=names) for result in results)
    report = build(gpus, decision, asked.policy, asked.task == "bench", places(asked.info, asked.trusted.page))
    later = (_LATER,) if change and change.touches(JUDGE_PATHS) else ()
    checks = (*report.checks, *_description_lines(asked.description))
    report = replace(report, remarks=(*report.remarks, *later), checks=checks)
    render.comment(report)
    return Posting(report, decision, gpus, asked.task)


# The GPUs -------------------------------------------------------------------------------------------------------------


def _labels(folder: Path) -> list[str]:
    files = [*folder.glob("*.run.json"), *folder.glob("*.failure.json")]
    return sorted({path.name.removesuffix(".json").rsplit(".", 1)[0] for path in files})


def _results(folder: Path, asked: _Asked) -> list[GpuResult]:
    """Every GPU of which a record, a failure note or a job tells."""
    info = asked.info
    stopped = {label: job for job in info.failed if (label := run_info.gpu_of(job.name))}
    found = [_safely(label, folder, asked) for label in _labels(folder)]
    if any(one.report.record or one.evidence.label != BUILD for one in found):
        # The note of a build that other records came out of is about another target.
        found = [one for one in found if one.evidence.label != BUILD] or found
    elif not found:
        return [_failed(BUILD, Failure(*run_info.blame_run(info), run=info.run))]
    else:
        return found
    results = []
    for one in found:
        job = stopped.get(one.evidence.label)
        if job is not None and one.report.record is not None and one.evidence.fault is not Fault.OUTPUT:
            # A record whose job did not come to its end may lack cases.
            disputed = run_info.blame(job)[0] is Fault.OUTPUT
            evidence = replace(one.evidence, missing=(run_info.stopped(job), *one.evidence.missing))
            one = replace(one, evidence=replace(evidence, fault=Fault.DISPUTED) if disputed else evidence)
        results.append(one)
    for label in sorted({*stopped, *info.gpus, *asked.plan} - {one.evidence.label for one in found}):
        # It was to be measured and left nothing which can be used.
        fault, message = Fault.OURS, f"the GPU {label} was to be measured, and left no record that can be used"
        if label in stopped:
            fault, message = run_info.blame(stopped[label])
        results.append(_failed(label, Failure(fault, message, run=info.run)))
    return results


def _safely(label: str, folder: Path, asked: _Asked) -> GpuResult:
    """What the folder says of a GPU; where that makes us stumble, that its record cannot be used."""
    try:
        found = _of_folder(label, folder, asked)
        render.comment(build([found.report], gate.decide([found.evidence]), asked.policy))
    except Exception as error:
        return _broken(label, error, asked.info)
    return found


def _broken(label: str, error: Exception, info: RunInfo) -> GpuResult:
    why = str(error) if isinstance(error, KernelgateError) else unexpected(error)
    return _failed(label, Failure(Fault.OURS, f"what the run left cannot be judged: {visible(why)}", run=info.run))


def _failed(label: str, failure: Failure) -> GpuResult:
    return GpuResult(GpuEvidence(label, fault=failure.fault), GpuReport(label, failure=failure))


def _of_folder(label: str, folder: Path, asked: _Asked) -> GpuResult:
    info, policy, planned = asked.info, asked.policy, asked.trusted.expected
    note = folder / f"{label}.failure.json"
    path = folder / f"{label}.run.json"
    if planned and label not in planned and label != BUILD:
        return _failed(label, Failure(Fault.OURS, f"the policy has no GPU with the label {label}", run=info.run))
    if path.exists():
        measured = record.read(path)
        if label in planned and (why := completeness.too_large(measured, planned[label], policy)):
            unusable = f"the record cannot be used: {render.plain_line(why)}"
            return _failed(label, Failure(Fault.OURS, unusable, run=info.run))
        measured = held_to(asked.plan[label], measured, info) if label in asked.plan else measured
        # Where nothing differs, there is a verdict without times.
        untimed = not measured.cases and not (asked.task == "bench" and cards.nothing_differs(measured))
        if untimed and not correctness.is_wrong(measured) and (measured.profile or measured.fuzz):
            return GpuResult(gate.evidence(label, measured, None, policy), parts.of_record(label, measured, None))
        if measured.cases or measured.fuzz or not note.exists():
            return _judged(label, measured, asked)
    failure = untrusted_artifact.checked_failure(note.read_bytes(), note.name)
    job = next((job for job in info.failed if (run_info.gpu_of(job.name) or BUILD) == label), None)
    fault, message = run_info.settled(Fault(failure.fault), failure.message, job)
    return _failed(label, Failure(fault, message, failure.target, failure.log, info.run))


def held_to(plan: Expected, measured: RunRecord, info: RunInfo) -> RunRecord:
    """The record with what the plan of the default branch asked for, and what that says of the cases, in place of what
    the record says itself."""
    plan = plan.model_copy(update={"hash": plan.hash or expected_hash(plan)})
    known = {key: case for case in plan.cases for key in (CaseKey("", case.id), case.key)}
    cases = tuple(
        known[case.key].model_copy(update={"card": case.card}) if case.key in known else case for case in measured.cases
    )
    measured = measured.model_copy(update={"cases": cases})
    if not (info.run.event or "").startswith("pull_request"):
        # A command or a person asked, who may ask for fewer cases or others.
        planned = {case.key for case in plan.cases}
        others = tuple(case for case in measured.cases if case.key not in planned)
        plan = plan.model_copy(update={"cases": (*plan.cases, *others)})
    return _with_own_cards(measured, plan).model_copy(update={"expected": plan})


def _with_own_cards(measured: RunRecord, plan: Expected) -> RunRecord:
    """The record in which every card that the default branch does not have is the head's own, whatever it says."""
    planned = {card.name for card in plan.cards}
    if not planned and plan.cases:
        return measured
    # A record may name no card, and its cases are known by their ids.
    own = cards.known(measured) - planned - ({""} if planned else set())
    listed = {name: Card(name=name) for name in sorted(own)} | {card.name: card for card in measured.cards}
    known = tuple(card.model_copy(update={"source": "head"}) if name in own else card for name, card in listed.items())
    return measured.model_copy(update={"cards": known})


def _judged(label: str, measured: RunRecord, asked: _Asked) -> GpuResult:
    policy = asked.policy
    written = asked.description.claims if asked.description else ()
    known = asked.trusted.past(measured)
    verdict = judge(measured, policy, name=label, history=known)
    evidence = gate.evidence(label, measured, verdict, policy)
    stored, since = _against_stored(label, measured, policy, known)
    part = parts.of_record(label, measured, verdict, stored, since)
    if part.record is None:
        return GpuResult(evidence, part)
    assessed = claims.assess(written, measured, verdict, policy.gates)
    deciding = claims.assess(written, measured, evidence.verdict or NO_VERDICT, policy.gates)
    read = any(build.kernels for build in measured.builds)
    unread = not read and policy.static.new_spills == "fail" and not correctness.is_wrong(measured)
    contradicted = tuple(one.claim.text for one in deciding if one.finding is claims.Support.CONTRADICTED)
    return GpuResult(
        replace(evidence, contradicted=contradicted),
        replace(
            part,
            claims=tuple(one.line for one in assessed),
            remarks=(_UNREAD,) if unread else (),
            nights=asked.trusted.nights(measured),
        ),
    )


def _against_stored(
    label: str, measured: RunRecord, policy: Policy, known: History
) -> tuple[Baseline | None, tuple[Yardstick, ...]]:
    """The record against the stored baseline of its GPU, where that has one of this kernel, and what lies beside it."""
    path = next((Path(gpu.baseline) for gpu in policy.measure.gpus if gpu.label == label and gpu.baseline), None)
    if path is None:
        return None, ()
    since = baselines.yardsticks_beside(measured, path, policy, known)
    stored = record.read(path) if path.exists() else None
    if stored is None or not baselines.is_of(stored, measured):
        return None, since
    verdict = judge(measured, policy, stored, label, path.name, known)
    return baselines.of_record(verdict, stored, measured.run.created_at), since


# What is not judged ---------------------------------------------------------------------------------------------------


def _untrusted(touches_kernel: bool) -> Posting:
    """Where no kernel is touched, there is nothing to judge; else a merge waits for somebody to have it measured."""
    decision = UNTRUSTED if touches_kernel else NOT_MEASURED
    report = Report(
        headline=with_consequence(
            Mark.UNKNOWN, ("Not judged: this pull request changes the workflows that measure it",), decision
        ),
        summary=("Its records prove nothing, since its own workflow wrote them.",),
        now=(
            NOW,
            " somebody with write access can have it measured by the default branch's workflow: ",
            Code("/kernelgate bench"),
        ),
    )
    return Posting(report, decision, quiet=not touches_kernel)


def _not_measured(why: str | None) -> Posting:
    report = Report(
        headline=with_consequence(
            Mark.UNKNOWN, (f"Not measured: {why or 'nothing in this change asks for it'}",), NOT_MEASURED
        ),
        summary=("Somebody with write access can have it measured all the same: ", Code("/kernelgate bench")),
    )
    return Posting(report, NOT_MEASURED, quiet=True)


# The description ------------------------------------------------------------------------------------------------------


def _description_lines(description: Description | None) -> list[Line]:
    """What the description lacks, and what in it was not understood."""
    if description is None:
        return []
    blocking = [missing for missing in description.missing if missing.blocks]
    lines: list[Line] = [
        (Mark.SLOWER, " this blocks: in the description ", Code(one.part.heading), f" {one.why}; {one.part.how}")
        for one in blocking
    ]
    others = [missing.part.heading.lstrip("# ") for missing in description.missing if not missing.blocks]
    if others:
        lines.append((Mark.UNKNOWN, f" the description lacks: {', '.join(others)}"))
    return lines + [(Mark.UNKNOWN, " claim not understood: ", Code(line, most=120)) for line in description.unread[:3]]
