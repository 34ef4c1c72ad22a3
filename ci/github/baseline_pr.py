"""Offers a new baseline: a pull request with the file, and the record's own report as its evidence.

Nothing reaches the default branch by itself. The file is a run record that holds the head's samples alone, with its
numbers in short, so that people can read the difference.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from statistics import median

import numpy as np
from github import UnknownObjectException

from kernelgate.bench import rates, record
from kernelgate.bench.errors import KernelgateError, UsageError
from kernelgate.bench.record import (
    COMPARED,
    BaselineDay,
    BaselineSummary,
    CaseKey,
    Microseconds,
    Run,
    RunRecord,
    Summary,
    TimedCase,
    Timing,
    timed_cases,
)
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.github import accepted_merges, untrusted_artifact
from kernelgate.ci.github.accepted_merges import AcceptedMerge
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, patiently, until_done
from kernelgate.ci.github.plan import SHA
from kernelgate.ci.github.stamp import Posted
from kernelgate.ci.github.untrusted_artifact import RefusedError
from kernelgate.ci.judge import days
from kernelgate.ci.judge.bootstrap import bootstrap
from kernelgate.ci.judge.policy import Policy
from kernelgate.ci.judge.pull_request_rules import RunnerGpu
from kernelgate.ci.judge.verdict import Outcome, RecordVerdict, judge
from kernelgate.ci.report.accepted import as_accepted
from kernelgate.ci.report.build import report

SUMMARY_LEVEL = 0.95
BODY_LIMIT = 60_000
"""Characters of the pull request's body; GitHub takes 65,536."""


@dataclass(frozen=True)
class Offer:
    """A baseline file and the pull request that brings it."""

    branch: str
    path: str
    content: bytes
    title: str
    body: str
    commit: str
    """The commit of the default branch that was measured: the branch starts there."""


@dataclass(frozen=True)
class Before:
    """What a new baseline follows on."""

    stored: RunRecord | None = None
    """The one that it replaces, whose days it keeps."""
    accepted: tuple[AcceptedMerge, ...] = ()
    """What became slower since, and was accepted."""


NOTHING_BEFORE = Before()


def refresh(bot: Bot, measured: Path, label: str, rules: Policy, force: bool) -> int | None:
    """Opens or refreshes the pull request where the record improves on the stored baseline; its number, or None.

    Also where what is slower was accepted in the pull request that made it so. `force`: also where it does not, or
    cannot be compared. Raises UsageError for a label that the policy does not have, RefusedError for a record that is
    not of this run's commit, and KernelgateError where the measurement did not come to its end.
    """
    gpu = _gpu(label, rules)
    new = _taken_in(bot.step, measured, label)
    stored = record.read(Path(gpu.baseline)) if gpu.baseline and Path(gpu.baseline).exists() else None
    _must_be_whole(measured, new, None if force else stored)
    verdict = judge(new, rules, stored, label, against=str(gpu.baseline)) if stored else None
    taken = accepted_merges.since(bot, stored, new.run.head_sha or "", verdict) if stored and verdict else ()
    if not (force or verdict is None or verdict.verdict is Outcome.IMPROVED or taken):
        bot.step.log(f"the baseline of {label} is unchanged: {verdict.reason}")
        bot.step.output(pull_request="")
        return None
    number = put(bot, offer(new, gpu, verdict, rules, bot.step.run_url, Before(stored, taken)))
    bot.step.output(pull_request=str(number))
    return number


def _taken_in(step: Step, path: Path, label: str) -> RunRecord:
    """The record through the door of every record: kernels ran where it was written. What it is of says the run."""
    head, run = step.environment.get("GITHUB_SHA", ""), step.environment.get("GITHUB_RUN_ID", "")
    if not SHA.fullmatch(head):
        raise UsageError("GITHUB_SHA is not set: the baseline's commit is the one of the run that measured it")
    number = int(run) if re.fullmatch(r"[0-9]{1,18}", run, re.ASCII) else None
    known = Run(head_sha=head, repository=step.repository, run_id=number, gpu=label)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: the record cannot be read: {error.strerror}") from None
    if len(data) > untrusted_artifact.MAX_MEMBER[untrusted_artifact.RECORD]:
        raise RefusedError(f"{path} is refused: it has {len(data)} bytes")
    try:
        checked = untrusted_artifact.checked_record(data, known, str(path))
    except RefusedError as error:
        raise RefusedError(step.harmless(str(error))) from None
    if checked.run.base_sha is not None:
        raise RefusedError(f"{path} is refused: a baseline is of the default branch alone, and this one has a base")
    return checked.model_copy(update={"run": checked.run.model_copy(update={"head_sha": head})})


def _must_be_whole(path: Path, new: RunRecord, stored: RunRecord | None) -> None:
    """A baseline that lacks a case would no longer watch it, without notice; by `force` a suite may shrink."""
    if path.with_name(untrusted_artifact.FAILURE).exists():
        raise KernelgateError(f"{path}: the measurement failed before its end, so it is no baseline; measure again")
    # A stored baseline of run/1 names no card: there the id alone tells whether a case was measured.
    measured = {key for case in new.cases for key in (case.key, CaseKey("", case.id))}
    before = formatting.ids(case.key for case in stored.cases) if stored else {}
    missing = sorted(before.keys() - measured)
    if missing:
        names = ", ".join(visible(before[key].text, 80) for key in missing[:5])
        raise KernelgateError(
            f"{path}: not measured, though the stored baseline has it: {names}; use --force to propose it anyway"
        )


def offer(
    new: RunRecord,
    gpu: RunnerGpu,
    verdict: RecordVerdict | None,
    rules: Policy,
    run_url: str | None,
    before: Before = NOTHING_BEFORE,
) -> Offer:
    """What is proposed. Raises UsageError where it cannot be one."""
    commit = new.run.head_sha
    if commit is None:
        raise UsageError("a baseline must name the commit that was measured; this record names none")
    path = gpu.baseline or f".ci/baseline_{gpu.label}.json"
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise UsageError(f"{visible(path)}: a baseline lies inside the repository")
    comparison = f"against the stored one: {verdict.reason}" if verdict else "there was none before"
    evidence = report(new, verdict, rules.gates) if verdict else None
    if evidence and verdict and verdict.verdict is Outcome.REGRESSED and before.accepted:
        evidence = replace(evidence, headline=as_accepted(evidence.headline))
    lines = [
        f"The default branch at {commit} was measured on `{gpu.label}`"
        + (f" by [this run]({run_url})." if run_url else "."),
        "",
        render.markdown_line((comparison + ".",)),
        "",
        *(f"- {render.markdown_line(one.line)}" for one in before.accepted),
        "",
        "" if rules.measure.pinned else render.markdown_line(_pin(commit)),
        "",
        render.comment(evidence, BODY_LIMIT) if evidence else "",
    ]
    return Offer(
        branch=f"kernelgate/baseline-{gpu.label}",
        path=path,
        content=record.to_json(as_baseline(new, rules, before.stored)).encode(),
        title=f"Refresh the baseline of {gpu.label}",
        body="\n".join(lines).rstrip() + "\n",
        commit=commit,
    )


def _pin(commit: str) -> Line:
    """What makes the nights of the history compare."""
    pin = Code(f'pinned = "{commit}"')
    return (
        "Nights are not timed beside a pinned commit yet: ",
        pin,
        " under ",
        Code("[measure]"),
        " makes it this one.",
    )


def as_baseline(new: RunRecord, rules: Policy, stored: RunRecord | None = None) -> RunRecord:
    """The record with the head's samples alone, and a summary that keeps the `stored` baseline's days.

    Raises UsageError where the record has no samples of a head.
    """
    processes = tuple(
        process.model_copy(update={"role": "block", "loaded": ("head",), "timings": tuple(map(_head_only, timings))})
        for process in new.processes
        if process.role in COMPARED and (timings := [one for one in process.timings if "head" in one.samples_us])
    )
    held = {timing.key for process in processes for timing in process.timings}
    cases = tuple(case for case in new.cases if case.key in held)
    if not cases:
        raise UsageError("the record holds no samples of a head, so it cannot be a baseline")
    when = new.run.created_at or datetime.min.isoformat()
    kept = RunRecord(
        run=new.run,
        environments=new.environments,
        cards=new.cards,
        cases=cases,
        processes=processes,
        notes=new.notes,
    )
    short = formatting.ids(case.key for case in kept.cases)
    summary = Summary(
        source=f"commit {new.run.head_sha}, measured {when[:10]}",
        cases={
            short[case.key].text: _with_days(_summary(case, rules), case.key, new, stored) for case in timed_cases(kept)
        },
    )
    return kept.model_copy(update={"summary": summary})


def _head_only(timing: Timing) -> Timing:
    return Timing(
        card=timing.card,
        case=timing.case,
        samples_us={"head": timing.samples_us["head"]},
        inner_repeats=timing.inner_repeats,
        telemetry=timing.telemetry,
    )


def _summary(case: TimedCase, rules: Policy) -> BaselineSummary:
    processes = [np.array(process.samples_us["head"]) for process in case.processes]
    boot = rules.bootstrap
    interval = bootstrap(processes, processes, False, SUMMARY_LEVEL, boot.resamples, boot.seed).head
    middle: Microseconds = median(sample for process in case.processes for sample in process.samples_us["head"])
    return BaselineSummary(
        median_us=round(middle, 4),
        interval_us=(round(interval[0], 4), round(interval[1], 4)),
        gflops=rates.gflops(case.case, middle),
        samples=sum(map(len, processes)),
        processes=len(processes),
    )


def _with_days(summary: BaselineSummary, key: CaseKey, new: RunRecord, stored: RunRecord | None) -> BaselineSummary:
    """With the day's median beside those of earlier days on the same kind of device."""
    alike = stored is not None and stored.environment.device.name == new.environment.device.name
    earlier = days.of_case(stored, key) if stored and alike else ()
    build = next((one for one in new.builds if one.side == "head" and one.card == key.card), None)
    code = (build and (build.key or build.library_sha256)) or new.run.head_sha
    if new.run.created_at is None or code is None:
        return summary.model_copy(update={"days": earlier})
    today = BaselineDay(measured=new.run.created_at[:10], code=code, median_us=summary.median_us)
    return summary.model_copy(update={"days": days.added(earlier, today)})


def _gpu(label: str, rules: Policy) -> RunnerGpu:
    found = next((gpu for gpu in rules.measure.gpus if gpu.label == label), None)
    if found is None:
        known = ", ".join(gpu.label for gpu in rules.measure.gpus)
        raise UsageError(f"the policy has no GPU {visible(label, 40)!r}; it has: {known}")
    return found


# The pull request ----------------------------------------------------------------------------------------------------


def put(bot: Bot, new: Offer) -> int:
    """There is one open pull request for the branch, with this file, title and body; its number."""
    default = patiently("repository", lambda: bot.repository.default_branch, bot)
    until_done("branch", lambda: _branch_step(bot, new, default), bot)
    bot.step.log(f"file: {until_done('file', lambda: _file_step(bot, new), bot).outcome}")
    number = until_done("pull request", lambda: _pull_step(bot, new, default), bot)
    bot.step.log(f"pull request: {number}")
    return number


def _open_pull(bot: Bot, new: Offer, default: str) -> int | None:
    owner = bot.repository.full_name.split("/")[0]
    pulls = bot.repository.get_pulls(state="open", head=f"{owner}:{new.branch}", base=default)
    return next((pull.number for pull in pulls if pull.head.ref == new.branch), None)


def _branch_step(bot: Bot, new: Offer, default: str) -> Posted | None:
    """The branch exists; where no pull request is open for it, it starts anew from the commit that was measured."""
    name = f"heads/{new.branch}"
    try:
        ref = bot.repository.get_git_ref(name)
        # Read first: the address to change it at is only known from GitHub's answer.
        there = ref.object.sha
    except UnknownObjectException:
        bot.repository.create_git_ref(f"refs/{name}", new.commit)
        return None
    if there == new.commit or _open_pull(bot, new, default) is not None or _holds(bot, new):
        return Posted("there")
    ref.edit(new.commit, force=True)
    return None


def _file_step(bot: Bot, new: Offer) -> Posted | None:
    message = f"{new.title}\n\nMeasured at {new.commit}."
    known = _file_sha(bot, new)
    if known == _blob_sha(new.content):
        return Posted("there")
    if known is None:
        bot.repository.create_file(new.path, message, new.content, branch=new.branch)
    else:
        bot.repository.update_file(new.path, message, new.content, known, branch=new.branch)
    return None


def _pull_step(bot: Bot, new: Offer, default: str) -> int | None:
    number = _open_pull(bot, new, default)
    if number is None:
        bot.repository.create_pull(default, new.branch, title=new.title, body=new.body)
        return None
    pull = bot.repository.get_pull(number)
    if (pull.title, (pull.body or "").replace("\r\n", "\n").strip()) == (new.title, new.body.strip()):
        return number
    pull.edit(title=new.title, body=new.body)
    return None


def _holds(bot: Bot, new: Offer) -> bool:
    """Whether the branch has this very file: a run that stopped before its pull request goes on there."""
    return _file_sha(bot, new) == _blob_sha(new.content)


def _file_sha(bot: Bot, new: Offer) -> str | None:
    try:
        found = bot.repository.get_contents(new.path, ref=new.branch)
    except UnknownObjectException:
        return None
    return None if isinstance(found, list) else found.sha


def _blob_sha(content: bytes) -> str:
    """Git's name for the content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
