"""What is to be said of everything that a run left behind: judged, with its label, its conclusion and its remarks.

Nothing here talks to GitHub; publish.py does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.record import RunRecord, Subject
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.model import Code, Line, Link, Mark, Report
from kernelgate.ci.github import artifact, claims
from kernelgate.ci.github.claims import Assessed
from kernelgate.ci.github.description import Claim, Description
from kernelgate.ci.github.run_info import Job, Target
from kernelgate.ci.github.shown import Conclusion, Label
from kernelgate.ci.judge import static
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.verdict import Outcome, RecordVerdict, judge
from kernelgate.ci.report import correctness, headline, profile_plot, sections, why
from kernelgate.ci.report.build import Failure, Fault, failure_report, report
from kernelgate.ci.report.multi_gpu import side_by_side

Task = Literal["bench", "profile", "fuzz"]
"""What a run was started for. Only `bench` speaks of the merge; the others have comments of their own."""

JUDGE_PATHS = ("bench/", "ci/", "kernelgate/", ".ci/", ".github/workflows/", ".github/actions/")
"""A change to these takes effect after the merge: what measures and judges is the default branch's."""
RUNNER_STEPS = ("doctor", "set up", "check out", "download", "upload", "Set up job", "Initialize", "Complete job")
MEASURES = re.compile(r"measure \(([a-z0-9][a-z0-9.-]{0,30})\)(?: / .*)?")
"""How GitHub names the job that measures on the GPU with this label, behind the names of its callers."""
_LATER: Line = (
    Mark.SLIGHT,
    " This changes kernelgate itself: that takes effect after the merge, and not on this page.",
)
_UNREAD: Line = (Mark.SLIGHT, " Registers and spills were not read, so new spills would not have been seen.")
AUTHOR_STEPS = {"build": Fault.BUILD, "fuzz": Fault.OUTPUT}
"""Steps are named after their verb; where a failure note is missing, the step tells whose fault it was."""


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
class Measured:
    """One GPU's record with its verdict, or why there is none."""

    label: str
    report: Report
    record: RunRecord | None = None
    verdict: RecordVerdict | None = None
    failure: Failure | None = None
    assessed: tuple[Assessed, ...] = ()
    stopped: Job | None = None
    """The job that made the record, where it did not come to its end: cases may be missing."""

    @property
    def wrong(self) -> bool:
        if self.record is not None:
            return correctness.is_wrong(self.record)
        return self.failure is not None and self.failure.fault is Fault.OUTPUT


@dataclass(frozen=True)
class Posting:
    """Everything that is to be posted, decided before anything is."""

    report: Report
    label: Label | None
    conclusion: Conclusion
    measured: tuple[Measured, ...]
    task: Task = "bench"
    quiet: bool = False
    """Nothing was to be measured: a check run says so, and no comment is made of it."""

    @property
    def judged(self) -> bool:
        """Whether anything was found out about the change itself."""
        return any(one.verdict and not one.verdict.refused for one in self.measured) or self.conclusion != "neutral"

    @property
    def topic(self) -> str:
        """Which of the bot's comments this is: a profile never takes the verdict's place."""
        return "verdict" if self.task == "bench" else self.task

    @property
    def title(self) -> str:
        return render.plain_line(self.report.headline)


# What is said --------------------------------------------------------------------------------------------------------


def say(folder: Path, target: Target, rules: Policy, change: PullRequestChange | None, task: Task = "bench") -> Posting:
    """Judges every record in the folder. `change`: None where there is no pull request, or nothing is known of it."""
    if target.changes_judges:
        return _untrusted(change is None or change.touches(rules.template.kernel_paths))
    if target.planned and not (target.measured or target.failed or target.refused or _labels(folder)):
        return _not_measured(change.skipped if change else None)
    description = change.description if change else None
    claimed = description.claims if description else ()
    found = [_measured(label, folder, target, rules, claimed) for label in _labels(folder)]
    if not any(one.record or one.label != "build" for one in found):
        found = [one for one in found if one.failure] or [_nothing(target)]
    else:
        # The note of a build that other records came out of is about another target.
        found = [one for one in found if one.label != "build"] or found
        found = _with_stopped(found, target)
    columns = [(one.label, one.report, one.verdict, one.record) for one in found]
    said = found[0].report if len(found) == 1 else side_by_side(columns)
    checks = said.checks
    if task == "bench":
        checks = (*checks, *_claim_lines(found), *_description_lines(description))
    halts = [one.stopped for one in found if one.stopped and not one.wrong]
    remarks = (
        *said.remarks,
        *map(_halt, halts),
        *((Mark.SLIGHT, " ", why) for why in target.refused),
        *((_LATER,) if change and change.touches(JUDGE_PATHS) else ()),
    )
    whole = not halts and not target.refused
    return Posting(
        replace(said, checks=checks, remarks=remarks),
        _label(found, whole),
        _conclusion(found, description, rules, whole),
        tuple(found),
        task,
    )


def with_addresses(said: Posting, page: str | None, run: str) -> Posting:
    """Says where the page is, and the files that the run left."""
    where: Line = (Link("The run", f"{run}#artifacts"), " has its record and the profiler's files.")
    if page:
        where = (Link("The page", page), " has all of this with plots. ", *where)
    return said if said.quiet else replace(said, report=replace(said.report, elsewhere=where))


def _labels(folder: Path) -> list[str]:
    files = [*folder.glob("*.run.json"), *folder.glob("*.failure.json")]
    return sorted({path.name.removesuffix(".json").rsplit(".", 1)[0] for path in files})


def _measured(label: str, folder: Path, target: Target, rules: Policy, claimed: Sequence[Claim]) -> Measured:
    note = folder / f"{label}.failure.json"
    path = folder / f"{label}.run.json"
    subject = Subject(base_sha=target.base_sha, head_sha=target.head_sha)
    if path.exists():
        measured = record.read(path)
        if not measured.cases and not correctness.is_wrong(measured) and (measured.profile or measured.fuzz):
            return Measured(label, _without_times(measured, rules), measured)
        if measured.cases or measured.fuzz or not note.exists():
            return _judged(label, measured, rules, claimed)
    said = artifact.checked_failure(note.read_bytes(), note.name)
    return _failed(label, Failure(Fault(said.fault), said.message, said.target, said.log, subject))


def _with_stopped(found: Sequence[Measured], target: Target) -> list[Measured]:
    """The same with every GPU whose job ended badly: its record may lack cases, or all of it is missing."""
    stopped = {name[1]: job for job in target.failed if (name := MEASURES.search(job.name))}
    subject = Subject(base_sha=target.base_sha, head_sha=target.head_sha)
    lost = sorted(stopped.keys() - {one.label for one in found})
    return [
        *(replace(one, stopped=stopped.get(one.label)) if one.record else one for one in found),
        *(_failed(label, Failure(*_blame_of(stopped[label]), subject=subject)) for label in lost),
    ]


def _judged(label: str, measured: RunRecord, rules: Policy, claimed: Sequence[Claim]) -> Measured:
    verdict = judge(measured, rules, name=label)
    stored = _against_baseline(label, measured, rules)
    said = report(measured, verdict, rules.gates, stored, rules.static)
    if not measured.resources and rules.static.new_spills == "fail" and not correctness.is_wrong(measured):
        said = replace(said, remarks=(*said.remarks, _UNREAD))
    assessed = claims.assess(claimed, measured, verdict, rules.gates, rules.template)
    return Measured(label, said, measured, verdict, assessed=assessed)


def _without_times(measured: RunRecord, rules: Policy) -> Report:
    """A record that was made to be profiled or fuzzed: there is no speed to judge."""
    profiled = list(dict.fromkeys(entry.case for entry in measured.profile))
    first: Line = (Mark.PASSED, " Profiled: ", Code(profiled[0]) if len(profiled) == 1 else f"{len(profiled)} cases")
    place = headline.place(measured.environment.device)
    return Report(
        headline=(*first, *place) if profiled else correctness.line(measured.fuzz),
        summary=(*(headline.compared(measured) if measured.subject.base_sha else _alone(measured)), "."),
        why=why.limits(measured),
        sections=sections.sections(measured, (), rules.static),
        pictures=profile_plot.pictures(measured),
    )


def _alone(measured: RunRecord) -> Line:
    return ("Of ", formatting.commit(measured.subject.head_sha, "the working tree"), " alone")


def _against_baseline(label: str, measured: RunRecord, rules: Policy) -> RecordVerdict | None:
    """The record against the stored baseline of its GPU, where that has one and it was measured on such a device."""
    path = next((Path(gpu.baseline) for gpu in rules.measure.gpus if gpu.label == label and gpu.baseline), None)
    if path is None or not path.exists():
        return None
    verdict = judge(measured, rules, record.read(path), label, against=path.name)
    return None if verdict.refused else verdict


def _failed(label: str, failure: Failure) -> Measured:
    return Measured(label, failure_report(failure), failure=failure)


def _nothing(target: Target) -> Measured:
    """Neither record nor note came: what GitHub says of the jobs is all that is known."""
    subject = Subject(base_sha=target.base_sha, head_sha=target.head_sha)
    job = target.failed[0] if target.failed else None
    fault, message = _blame(job, target)
    return _failed("build", Failure(fault, message, subject=subject))


def _blame(job: Job | None, target: Target) -> tuple[Fault, str]:
    if target.refused:
        return Fault.OURS, f"no record could be used: {target.refused[0]}"
    if job is None:
        return Fault.OURS, f"the run ended ({target.conclusion or 'without a result'}) and left no record"
    return _blame_of(job)


def _halt(job: Job) -> Line:
    how = f" stopped at {job.step}" if job.step else f" ended: {job.conclusion}"
    return (Mark.SLIGHT, " not everything was measured: the job ", Code(job.name, most=120), how)


def _blame_of(job: Job) -> tuple[Fault, str]:
    where = f"the job {job.name}" + (f" stopped at {job.step}" if job.step else "")
    if job.conclusion == "cancelled":
        return Fault.RUNNER, f"{where} and was cancelled, by somebody or because its runner went away"
    if job.conclusion == "timed_out":
        return Fault.RUNNER, f"{where} and ran into its time limit"
    step = (job.step or "").casefold()
    if not step or step.startswith(tuple(word.casefold() for word in RUNNER_STEPS)):
        return Fault.RUNNER, where
    fault = next((fault for word, fault in AUTHOR_STEPS.items() if step.startswith(word)), Fault.OURS)
    return fault, where


def _untrusted(touches_kernel: bool) -> Posting:
    """Where no kernel is touched, there is nothing to judge; else a merge waits for somebody to have it measured."""
    said = Report(
        headline=(Mark.UNKNOWN, " Not judged: this pull request changes the workflows that measure it"),
        summary=(
            "Its records prove nothing, since its own workflow wrote them. Somebody with write access can have it "
            "measured by the default branch's workflow: ",
            Code("/kernelgate bench"),
        ),
    )
    return Posting(said, None, "action_required" if touches_kernel else "neutral", (), quiet=not touches_kernel)


def _not_measured(why: str | None) -> Posting:
    said = Report(
        headline=(Mark.UNKNOWN, f" Not measured: {why or 'nothing in this change asks for it'}"),
        summary=("Somebody with write access can have it measured all the same: ", Code("/kernelgate bench")),
    )
    return Posting(said, None, "neutral", (), quiet=True)


def _label(found: Sequence[Measured], whole: bool) -> Label | None:
    """Regressed on any GPU; else improved on one; unchanged only where every GPU shows it.

    `whole`: else something that was to be measured is missing, and only what is bad is certain.
    """
    outcomes = [one.verdict.verdict if one.verdict and not one.verdict.refused else None for one in found]
    if any(one.wrong for one in found):
        return None
    if Outcome.REGRESSED in outcomes:
        return Label.REGRESSED
    if not whole or None in outcomes or Outcome.INCONCLUSIVE in outcomes:
        return None
    return Label.IMPROVED if Outcome.IMPROVED in outcomes else Label.UNCHANGED


def _conclusion(found: Sequence[Measured], description: Description | None, rules: Policy, whole: bool) -> Conclusion:
    """Failure for what blocks; success only where every GPU was measured and the verdict is certain."""
    at_fault = any(one.failure and one.failure.fault in (Fault.BUILD, Fault.OUTPUT) for one in found)
    regressed = any(one.verdict and one.verdict.verdict is Outcome.REGRESSED for one in found)
    if at_fault or regressed or any(one.wrong for one in found):
        return "failure"
    if description and description.blocks:
        return "failure"
    if any(one.record and static.exit_code(static.judge(one.record.resources, rules.static)) for one in found):
        return "failure"
    if rules.template.block_contradicted_claim and _contradicted(found):
        return "failure"
    return "neutral" if _label(found, whole) is None else "success"


def _contradicted(found: Sequence[Measured]) -> bool:
    return any(one.finding is claims.Support.CONTRADICTED for each in found for one in each.assessed)


def _claim_lines(found: Sequence[Measured]) -> list[Line]:
    """Each claim beside the measurement of each GPU that judged it."""
    judged = [one for one in found if one.verdict]
    if len(judged) == 1:
        return [assessed.line for assessed in judged[0].assessed]
    return [
        (*assessed.line[:1], " ", Code(one.label), ":", *assessed.line[1:])
        for one in judged
        for assessed in one.assessed
    ]


def _description_lines(description: Description | None) -> list[Line]:
    """What the description lacks, and what in it was not understood."""
    if description is None:
        return []
    blocking = [missing for missing in description.missing if missing.blocks]
    lines: list[Line] = [
        (Mark.SLIGHT, " this blocks: in the description ", Code(one.part.heading), f" {one.why}; {one.part.how}")
        for one in blocking
    ]
    others = [missing.part.heading.lstrip("# ") for missing in description.missing if not missing.blocks]
    if others:
        lines.append((Mark.UNKNOWN, f" the description lacks: {', '.join(others)}"))
    return lines + [(Mark.UNKNOWN, " claim not understood: ", Code(line, most=120)) for line in description.unread[:3]]
