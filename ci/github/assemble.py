"""From a folder of `kernelgate step fetch` to everything that is to be posted: evidence of each GPU, decision, report.

Nothing here talks to GitHub; publish.py does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, unexpected
from kernelgate.bench.record import Card, CaseKey, Expected, RunRecord, expected_hash
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Mark, Report
from kernelgate.ci.github import claims, untrusted_artifact
from kernelgate.ci.github.artifacts import BUILD
from kernelgate.ci.github.description import Description, describe
from kernelgate.ci.github.fetch import Job, RunInfo
from kernelgate.ci.github.plan import DRAFT, JUDGE_PATHS, NO_CARD, skipped
from kernelgate.ci.github.untrusted_artifact import FailureNote
from kernelgate.ci.judge import cards, completeness, correctness, gate
from kernelgate.ci.judge.case import Outcome, RecordVerdict, Status
from kernelgate.ci.judge.gate import INCOMPLETE, NOT_MEASURED, UNTRUSTED, BlockCode, Blocker, Decision, Doubt, Fault
from kernelgate.ci.judge.prior import History, Past, no_past
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import baseline as baselines
from kernelgate.ci.report import gpu as parts
from kernelgate.ci.report.build import BuiltReport, build
from kernelgate.ci.report.gpu import Baseline, Failure, GpuReport, NightsByCase, no_nights
from kernelgate.ci.report.headline import with_consequence
from kernelgate.ci.report.links import Links, docs
from kernelgate.ci.report.now import NOW, reading

Task = Literal["bench", "profile", "fuzz"]
"""What a run was started for. Only `bench` is about the merge; the others have comments of their own."""


@dataclass(frozen=True)
class Trusted:
    """What the default branch says of the measurement, which no record and no pull request can change."""

    expected: Mapping[str, Expected] = field(default_factory=dict)
    """What the plan asks of each GPU, by its label in the policy."""
    past: Past = no_past
    page: str | None = None
    nights: Callable[[RunRecord], NightsByCase] = no_nights


NOTHING_TRUSTED = Trusted()
RUNNER_STEPS = ("doctor", "set up", "check out", "download", "upload", "initialize", "complete job")
"""Steps in which only the runner can fail."""
AUTHOR_STEPS = {"build": Fault.BUILD, "fuzz": Fault.OUTPUT}
"""Steps are named after their verb; where a failure note is missing, the step tells whose fault it was."""
BASE_JOB = " / base"
"""What compiles the base has nothing of the author's."""
ATTEMPTS = 3
"""Of what is held: the first, and twice by itself."""
_LATER: Line = (
    Mark.SLIGHT,
    " This changes kernelgate itself: that takes effect after the merge, and not on this page.",
)
_UNREAD: Line = (Mark.SLIGHT, " Registers and spills were not read, so new spills or lost occupancy would not be seen.")


@dataclass(frozen=True)
class Posting(BuiltReport):
    task: Task = "bench"
    quiet: bool = False
    """Nothing was to be measured: a check run says so, and no comment is made of it."""
    missed: bool = False
    """The pull request was to be measured and never was, such as one whose description alone was edited."""

    @property
    def judged(self) -> bool:
        """Whether anything was found out about the change itself."""
        verdicts = [gpu.verdict for gpu in self.gpus if gpu.verdict and gpu.verdict.refused is None]
        # The times of a head without a base say nothing of the change.
        told = any(not one.cases or any(case.status is not Status.ALONE for case in one.cases) for one in verdicts)
        return told or self.decision.conclusion in ("success", "failure")

    @property
    def title(self) -> str:
        return render.plain_line(self.report.headline)


def assemble(
    folder: Path, info: RunInfo, policy: Policy, task: Task = "bench", trusted: Trusted = NOTHING_TRUSTED
) -> Posting:
    """Judges every record in the folder. A record is held against what is `trusted` to be expected, and against its own
    word only where that says nothing."""
    if info.changes_judges:
        return _untrusted(info.pull is None or info.pull.touches(policy.template.kernel_paths), info.of_group)
    if info.planned and not (info.measured or info.failed or info.refused or _labels(folder)):
        return _not_measured(info, policy)
    pull = info.pull if task == "bench" and not info.of_group else None
    described = describe(pull.body, policy.template, pull.names, by_bot=pull.by_bot) if pull else Description()
    asked = _Asked(info, policy, described, task, trusted)
    results = _results(folder, asked)
    described = _with_measured(described, results, info)
    asked = replace(asked, description=described)
    hold = policy.gates.doubt == "hold" and task == "bench"
    evidence, refused = [one.evidence for one in results], [(why,) for why in info.refused]
    again = info.attempts < ATTEMPTS
    decision = gate.decide(evidence, described.blocking, refused, info.acceptances, hold, again)
    try:
        return _posting(results, decision, asked)
    except Exception as error:
        # Each can be rendered by itself, so what blocks is known; nothing passes that cannot be explained.
        broken = _broken("", error, info)
        if not decision.blocks:
            decision = gate.decide([broken.evidence], hold=hold)
        return _posting([broken], decision, asked)


@dataclass(frozen=True)
class _Asked:
    """What every record of the run is judged with."""

    info: RunInfo
    policy: Policy
    description: Description
    task: Task
    trusted: Trusted

    @property
    def plan(self) -> Mapping[str, Expected]:
        """Of a measurement alone."""
        return self.trusted.expected if self.task == "bench" else {}


def places(info: RunInfo, page: str | None = None) -> Links:
    repository = info.run_url.partition("/actions/runs/")[0] or None
    pull = f"{repository}/pull/{info.run.pull_request}" if repository and info.run.pull_request else None
    return Links(repository, pull, page, info.run_url)


def _posting(results: Sequence[GpuReport], decision: Decision, asked: _Asked) -> Posting:
    pull = asked.info.pull
    gpus = tuple(replace(one, changed=pull.names if pull else None) for one in results)
    report = build(gpus, decision, asked.policy, asked.task == "bench", places(asked.info, asked.trusted.page))
    later = (_LATER,) if pull and pull.touches(JUDGE_PATHS) else ()
    checks = (*report.checks, *_description_lines(asked.description))
    report = reading(replace(report, remarks=(*report.remarks, *later), checks=checks))
    render.comment(report)
    return Posting(report, decision, gpus, asked.task)


def _labels(folder: Path) -> list[str]:
    files = [*folder.glob("*.run.json"), *folder.glob("*.failure.json")]
    return sorted({path.name.removesuffix(".json").rsplit(".", 1)[0] for path in files})


def _results(folder: Path, asked: _Asked) -> list[GpuReport]:
    info = asked.info
    # The first of each GPU: without its shards, the job that merges them fails, too.
    stopped = {job.gpu: job for job in reversed(info.failed) if job.gpu}
    found = [_safely(label, folder, asked) for label in _labels(folder)]
    if all(one.failure and one.label == BUILD for one in found):
        ended = f"the run ended ({info.conclusion or 'without a result'}) and left no record"
        # The head could have written what is refused.
        left = (Fault.DISPUTED, "no record could be used") if info.refused else (Fault.OURS, ended)
        return found or [_failed(BUILD, info, *(blame(info.failed[0]) if info.failed and not info.refused else left))]
    # The note of a build that other records came out of is about another target.
    found = [one for one in found if one.label != BUILD] or found
    results = []
    for one in found:
        job = stopped.get(one.label)
        if job is not None and one.failure is None and one.evidence.fault is not Fault.OUTPUT:
            # A record whose job did not come to its end may lack cases.
            evidence, whose = one.evidence, blame(job)[0]
            how = f" stopped at {job.step}" if job.step else f" ended: {job.conclusion}"
            lacks: Line = ("not everything was measured, since the job ", Code(job.name, most=120), how)
            fault = Fault.DISPUTED if whose is Fault.OUTPUT else evidence.fault
            doubt = Doubt(INCOMPLETE, one.label, cause="machine" if whose is Fault.RUNNER else "head")
            missing, doubts = (lacks, *evidence.missing), (*evidence.doubts, doubt)
            one = replace(one, evidence=replace(evidence, missing=missing, fault=fault, doubts=doubts))
        results.append(one)
    for label in sorted({*stopped, *info.gpus, *asked.plan} - {one.label for one in found}):
        fault = Fault.DISPUTED if info.refused else Fault.OURS
        left = fault, f"the GPU {label} was to be measured, and left no record that can be used"
        results.append(_failed(label, info, *(blame(stopped[label]) if label in stopped else left)))
    return results


def _safely(label: str, folder: Path, asked: _Asked) -> GpuReport:
    """What the folder says of a GPU; where that makes us stumble, that its record cannot be used."""
    try:
        found = _of_folder(label, folder, asked)
        render.comment(build([found], gate.decide([found.evidence]), asked.policy))
        return found
    except Exception as error:
        return _broken(label, error, asked.info)


def _broken(label: str, error: Exception, info: RunInfo) -> GpuReport:
    why = str(error) if isinstance(error, KernelgateError) else unexpected(error)
    return _failed(label, info, Fault.DISPUTED, f"what the run left cannot be judged: {visible(why)}")


def _failed(label: str, info: RunInfo, fault: Fault, message: str, note: FailureNote | None = None) -> GpuReport:
    target, log = (note.target, note.log) if note else (None, ())
    return parts.of_failure(label, Failure(fault, message, target, log), info.run)


def _of_folder(label: str, folder: Path, asked: _Asked) -> GpuReport:
    info, policy, planned = asked.info, asked.policy, asked.trusted.expected
    note, path = folder / f"{label}.failure.json", folder / f"{label}.run.json"
    if planned and label not in planned and label != BUILD:
        return _failed(label, info, Fault.OURS, f"the policy has no GPU with the label {label}")
    if path.exists():
        measured = record.read(path)
        if label in planned and (why := completeness.too_large(measured, planned[label], policy.processes)):
            return _failed(label, info, Fault.DISPUTED, f"the record cannot be used: {render.plain_line(why)}")
        measured = held_to(asked.plan[label], measured, info) if label in asked.plan else measured
        # Where nothing differs, there is a verdict without times.
        untimed = not measured.cases and not (asked.task == "bench" and cards.nothing_differs(measured))
        if untimed and not correctness.is_wrong(measured) and (measured.profile or measured.fuzz):
            return parts.of_record(label, measured, None, policy)
        if measured.cases or measured.fuzz or not note.exists():
            return _judged(label, measured, asked)
    failure = untrusted_artifact.checked_failure(note.read_bytes(), note.name)
    blamed = (blame(job) for job in info.failed if (job.gpu or BUILD) == label)
    claimed, (found, where) = Fault(failure.fault), next(blamed, (None, ""))
    if found is None or not found.blocks or claimed.blocks:
        return _failed(label, info, claimed, failure.message, failure)
    # A file cannot excuse what GitHub says failed: a step that tries the author's code.
    only = "and only a file that it left says that the change is not to blame"
    return _failed(label, info, Fault.DISPUTED, f"{where}, {only}: {failure.message}", failure)


def held_to(plan: Expected, measured: RunRecord, info: RunInfo) -> RunRecord:
    """The record with what the plan of the default branch asked for, and what that says of cases and cards, in place
    of what the record says itself."""
    plan = plan.model_copy(update={"hash": plan.hash or expected_hash(plan)})
    known = {key: case for case in plan.cases for key in (CaseKey("", case.id), case.key)}
    cases = tuple(known.get(case.key, case).model_copy(update={"card": case.card}) for case in measured.cases)
    measured = measured.model_copy(update={"cases": cases})
    if not info.by_pull:
        # A command or a person asked, who may ask for fewer cases or others.
        planned = {case.key for case in plan.cases}
        others = (case for case in cases if case.key not in planned)
        plan = plan.model_copy(update={"cases": (*plan.cases, *others)})
    return measured.model_copy(update={"cards": _with_own_cards(measured, plan), "expected": plan})


def _with_own_cards(measured: RunRecord, plan: Expected) -> tuple[Card, ...]:
    """The cards, of which every one that the default branch does not have is the head's own, whatever it says."""
    planned = {card.name for card in plan.cards}
    if not planned and plan.cases:
        return measured.cards
    # A record may name no card, and its cases are known by their ids.
    own = cards.known(measured) - planned - ({""} if planned else set())
    listed = {name: Card(name=name) for name in sorted(own)} | {card.name: card for card in measured.cards}
    return tuple(card.model_copy(update={"source": "head"}) if name in own else card for name, card in listed.items())


def _judged(label: str, measured: RunRecord, asked: _Asked) -> GpuReport:
    policy, known = asked.policy, asked.trusted.past(measured)
    verdict = judge(measured, policy, name=label, history=known)
    part = parts.of_record(label, measured, verdict, policy, *_against_stored(label, measured, policy, known))
    if part.failure:
        return part
    decided = part.evidence.verdict or RecordVerdict("", Outcome.INCONCLUSIVE, "", ())
    written = asked.description.claims
    shown, deciding = (claims.assess(written, measured, one, policy.gates) for one in (verdict, decided))
    contradicted = [one.claim.text for one in deciding if one.finding is claims.Support.CONTRADICTED]
    against = contradicted if policy.template.claims == "block" else ()
    blockers = [Blocker(BlockCode.CONTRADICTED_CLAIM, label, claim) for claim in against]
    # Of a CPU kernel nothing spills that the compiler tells.
    read = any(build.kernels for build in measured.builds) or formatting.on_cpu(measured.environment.device)
    gated = "fail" in (policy.static.new_spills, policy.static.occupancy_loss)
    unread = not read and gated and not correctness.is_wrong(measured)
    return replace(
        part,
        evidence=replace(part.evidence, blockers=(*part.evidence.blockers, *blockers)),
        claims=tuple(one.line for one in shown),
        remarks=(_UNREAD,) if unread else (),
        nights=asked.trusted.nights(measured),
    )


def _against_stored(
    label: str, measured: RunRecord, policy: Policy, known: History
) -> tuple[Baseline | None, tuple[Baseline, ...]]:
    """The record against the stored baseline of its GPU, where that has one of this kernel, and what lies beside it."""
    path = next((Path(gpu.baseline) for gpu in policy.measure.gpus if gpu.label == label and gpu.baseline), None)
    if path is None:
        return None, ()
    since = baselines.yardsticks_beside(measured, path, policy, known)
    stored = record.read(path) if path.exists() else None
    if stored is None or not baselines.is_of(stored, measured):
        return None, since
    return baselines.against(measured, stored, path.name, policy, known, label), since


def blame(job: Job) -> tuple[Fault, str]:
    """Whose fault a failed job is, and a sentence on it."""
    where = f"the job {job.name}" + (f" stopped at {job.step}" if job.step else "")
    if job.conclusion == "cancelled":
        return Fault.RUNNER, f"{where} and was cancelled by a user, or its runner disconnected"
    late = job.conclusion == "timed_out"
    where += " and ran into its time limit" if late else ""
    step = (job.step or "").casefold()
    if not step or step.startswith(RUNNER_STEPS) or job.name.endswith(BASE_JOB):
        return Fault.RUNNER, where
    # A head can hang or kill what measures it; none can be blamed for that.
    known = () if late else AUTHOR_STEPS.items()
    return next((fault for word, fault in known if step.startswith(word)), Fault.DISPUTED), where


def _with_measured(described: Description, results: Sequence[GpuReport], info: RunInfo) -> Description:
    """The description without what every GPU's measurement supplies, nor what a head that is to blame, a lost GPU or
    one without a profiler keeps its author from knowing."""
    if any(one.evidence.fault and one.evidence.fault.blocks for one in results):
        return replace(described.filled_by(completeness.SUPPLIES), filled=())
    stopped, supplied = {job.gpu for job in info.failed}, set(completeness.SUPPLIES)
    open_: dict[str, str] = {}
    for one in results:
        judged = one.verdict is not None and one.verdict.refused is None and one.label not in stopped
        whole = judged and one.evidence.fault is None
        held = completeness.supplied(one.record, info.by_pull) if whole else frozenset()
        supplied &= held
        if one.failure:
            open_ |= dict.fromkeys(completeness.SUPPLIES, _LOST)
        elif "benchmark" in held and not any(each.metrics for each in one.record.profile):
            open_ = {"evidence": _NO_PROFILE, **open_}
    rest = described.filled_by(supplied)
    whys = ((one, open_.get(one.part.key, "")) for one in rest.missing)
    missing = (replace(one, blocks=one.blocks and not why, unmeasured=why) for one, why in whys)
    return replace(rest, missing=tuple(missing))


_LOST = "nothing was measured, which is not its author's fault; measured again, it is filled in"
_NO_PROFILE = "no profile was made; ncu on the runner fills it in, or numbers from before and after"


def _unjudged(decision: Decision, said: str, summary: str, now: Line, quiet: bool = True) -> Posting:
    headline = with_consequence(Mark.UNKNOWN, (said,), decision)
    return Posting(Report(headline=headline, summary=(summary,), now=(NOW, *now)), decision, quiet=quiet)


def _untrusted(touches_kernel: bool, queued: bool) -> Posting:
    """Where no kernel is touched, there is nothing to judge; else a merge waits for somebody to have it measured."""
    what = "this merge group changes the workflows" if queued else "this pull request changes the workflows"
    why = f"not judged: {what} that measure it"
    how = " somebody with write access can have it measured by the default branch's workflow: "
    alone = " merge what changes workflows first, in a pull request of its own."
    proves = "Its records prove nothing, since its own workflow wrote them."
    decision = UNTRUSTED if touches_kernel else NOT_MEASURED
    by: Line = (alone,) if queued else (how, Code("/kernelgate bench"))
    return _unjudged(decision, why, proves, by, quiet=not touches_kernel)


def _not_measured(info: RunInfo, policy: Policy) -> Posting:
    pull = info.pull
    why = skipped(pull.names, pull.labels, policy.measure, pull.draft) if pull else None
    if why == DRAFT:
        # Nothing may pass: GitHub merges by itself what is marked ready before its measurement has begun.
        by: Line = (" mark it ready, or have somebody with write access measure it before: ", Code("/kernelgate bench"))
        ready = "It is measured once it is marked ready for review."
        return _unjudged(UNTRUSTED, "not measured yet: this is a draft", ready, by)
    said = f"Not measured: {why or 'nothing in this change asks for it'}"
    by = (" nothing to do; somebody with write access can have it measured: ", Code("/kernelgate bench"))
    if why == NO_CARD:
        by = (" describe the kernel in ", docs("a card", "cards.md"), "; ", Code("kernelgate cards"), " checks it.")
    posting = _unjudged(NOT_MEASURED, said, "Nothing of it was built or timed.", by)
    return replace(posting, missed=pull is not None and why is None)


def _description_lines(description: Description) -> Iterator[Line]:
    for one in description.missing:
        if one.blocks:
            unfilled = ", and was not measured in full" if one.part.key in completeness.SUPPLIES else ""
            said = f" {one.why}{unfilled}; {one.part.how}"
            yield (Mark.SLOWER, " this blocks: in the description ", Code(one.part.heading), said)
    for why in dict.fromkeys(one.unmeasured for one in description.missing if one.unmeasured):
        parts_ = ", ".join(one.part.heading.lstrip("# ") for one in description.missing if one.unmeasured == why)
        yield (Mark.SLIGHT, f" the description lacks: {parts_}: {why}")
    if others := [one.part.heading.lstrip("# ") for one in description.missing if not (one.blocks or one.unmeasured)]:
        yield (Mark.UNKNOWN, f" the description lacks: {', '.join(others)}")
    if description.filled:
        yield (Mark.PASSED, f" in the description, filled by the measurement: {', '.join(description.filled)}")
    for line in description.unread[:3]:
        yield (Mark.SLIGHT, " claim not understood: ", Code(line, most=120))
