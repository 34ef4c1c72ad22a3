"""Offers a new baseline: a pull request with the file, and the record's own report as its evidence.

Nothing reaches the default branch by itself; which cases move, `ci/judge/ratchet.py` says. The file is a run record
with the head's samples alone and its numbers in short.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePosixPath

import numpy as np
from github import UnknownObjectException
from github.PullRequest import PullRequest

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.record import CaseKey, Run, RunRecord, TimedCase, Timing, rates, timed_cases
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Link, Mark
from kernelgate.ci.github import check_run, untrusted_artifact
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, GitHubError, default_branch, merge_base, patiently, until_done
from kernelgate.ci.github.plan import SHA, gpus
from kernelgate.ci.github.untrusted_artifact import RefusedError
from kernelgate.ci.judge import baseline_age, prior, ratchet
from kernelgate.ci.judge.case import CaseVerdict, Outcome, RecordVerdict, Status
from kernelgate.ci.judge.gate import Label
from kernelgate.ci.judge.prior import Past, no_past
from kernelgate.ci.judge.stats import bootstrap
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy, RunnerGpu
from kernelgate.ci.report import remarks
from kernelgate.ci.report.build import of_verdict

SUMMARY_LEVEL = 0.95
BODY_LIMIT = 60_000
"""Characters of the pull request's body; GitHub takes 65,536."""
MAX_PULLS = 100
"""Closed pull requests that are looked through: those that changed last."""
_NOT_SLOWER = (Status.UNCHANGED, Status.FASTER, Status.IMPROVED)


AcceptedMerge = tuple[tuple[CaseKey, ...], Line]
"""The cases that were accepted to be slower, and a line on who did it, where and why."""


@dataclass(frozen=True)
class Before:
    stored: RunRecord | None = None
    verdict: RecordVerdict | None = None
    """Of what was measured, against that."""
    accepted: tuple[AcceptedMerge, ...] = ()
    best: RunRecord | None = None
    """The best ever, where this measurement confirms a new one."""
    force: bool = True
    """All of it is replaced, whatever the verdict."""


def refresh(bot: Bot, measured: Path, label: str, rules: Policy, force: bool, past: Past = no_past) -> int | None:
    """Opens or refreshes the pull request where the record moves the stored baseline, or what is held beside it; its
    number, or None.

    The baseline improves case by case, and worsens where what is slower was accepted. `force`: all of it is replaced.
    Of a tag, the release alone is. Raises UsageError for a label that the policy does not have, RefusedError for a
    record of another commit than this run's, and KernelgateError where the measurement did not come to its end.
    """
    gpu = gpus(rules.measure, label)[0]
    new = _taken_in(bot.step, measured, label)
    tag = bot.step.environment.get("GITHUB_REF_NAME") if bot.step.environment.get("GITHUB_REF_TYPE") == "tag" else None
    path = baseline_path(gpu)
    stored = record.read(Path(path)) if Path(path).exists() else None
    _must_be_whole(measured, new, None if force or tag else stored)
    before = Before(force=force)
    if stored and not tag:
        known = past(new)
        verdict = judge(new, rules, stored, label, path, known)
        taken = accepted_since(bot, stored, new.run.head_sha or "", verdict)
        beside = Path(ratchet.beside(path, "best"))
        held = record.read(beside) if beside.exists() else None
        best = ratchet.best(held, stored, as_baseline(new, stored), rules, known)
        before = Before(stored, verdict, taken, best, force)
    run_url = bot.step.run_url
    made = release(new, gpu, run_url, tag) if tag else offer(new, gpu, rules, run_url, before)
    number = put(bot, made) if made is not None else None
    bot.step.output(pull_request=str(number or ""))
    if stored and before.verdict and number is None:
        other = baseline_age.changed(new.environment, stored.environment)
        moved = f"it is of another machine ({baseline_age.named(other)})"
        renew = "so that no change is the code's alone; --force renews it"
        why = f"{moved}, {renew}" if other else before.verdict.reason
        bot.step.log(f"the baseline of {label} is unchanged: {why}")
    return number


def baseline_path(gpu: RunnerGpu) -> str:
    return gpu.baseline or f".ci/baseline_{gpu.label}.json"


def release(new: RunRecord, gpu: RunnerGpu, run_url: str | None, tag: str) -> Offer:
    """What a tag's measurement becomes: the release that all later ones are held against."""
    name, run = visible(tag, 60), f" by [this run]({run_url})." if run_url else "."
    file = _file(ratchet.beside(baseline_path(gpu), "release"), as_baseline(new, release=tag))
    body = f"Release {render.markdown_line((name,))} was measured on `{gpu.label}`{run}\n"
    title = f"Hold {gpu.label} against release {name}"
    return Offer(f"kernelgate/release-{gpu.label}", (file,), title, body, new.run.head_sha or "")


def _taken_in(step: Step, path: Path, label: str) -> RunRecord:
    """The record through the door of every record: kernels ran where it was written. What it is of says the run."""
    head = step.environment.get("GITHUB_SHA", "")
    if not SHA.fullmatch(head):
        raise UsageError("GITHUB_SHA is not set: the baseline's commit is the one of the run that measured it")
    known = Run(head_sha=head, repository=step.repository, run_id=step.run_id or None, gpu=label)
    data = untrusted_artifact.read_file(path, untrusted_artifact.MAX_MEMBER[untrusted_artifact.RECORD])
    if data is None:
        raise UsageError(f"{path}: the record cannot be read: there is none")
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
    # A stored baseline may name no card: there the id alone tells whether a case was measured.
    measured = {key for case in new.cases for key in (case.key, CaseKey("", case.id))}
    before = formatting.ids(case.key for case in stored.cases) if stored else {}
    missing = sorted(before.keys() - measured)
    if missing:
        names = ", ".join(visible(before[key].text, 80) for key in missing[:5])
        raise KernelgateError(
            f"{path}: not measured, though the stored baseline has it: {names}; use --force to propose it anyway"
        )


def offer(new: RunRecord, gpu: RunnerGpu, rules: Policy, run_url: str | None, before: Before) -> Offer | None:
    """What is proposed; None where nothing moves. Raises UsageError where it cannot be one."""
    stored, verdict = before.stored, before.verdict
    path, whole, commit = baseline_path(gpu), as_baseline(new, stored), new.run.head_sha or ""
    files: list[tuple[str, bytes]] = []
    if before.force or verdict is None or stored is None:
        files += [_file(path, whole)]
    elif not baseline_age.changed(new.environment, stored.environment):  # so that the code alone has changed
        keys = ratchet.faster(verdict, rules.processes) | {key for cases, _ in before.accepted for key in cases}
        known = {key for case in stored.cases for key in (case.key, CaseKey("", case.id))}
        fresh = {case.key for case in new.cases if case.key not in known and CaseKey("", case.id) not in known}
        files += [_file(path, ratchet.moved(stored, whole, frozenset(keys | fresh)))] if keys else []
    if before.best is not None:
        files += [_file(ratchet.beside(path, "best"), before.best)]
    if not files:
        return None
    comparison = f"against the stored one: {verdict.reason}" if verdict else "there was none before"
    evidence = of_verdict(new, verdict, rules).report if verdict else None
    if evidence and verdict and verdict.verdict is Outcome.REGRESSED and before.accepted:
        evidence = replace(evidence, headline=(Mark.SLIGHT, " Slower, and accepted: ", *evidence.headline[2:]))
    # What makes the nights of the history compare.
    pin = Code(f'pinned = "{commit}"')
    unpinned: Line = ("Nights are not timed beside a pinned commit yet: ", pin, " under ", Code("[measure]"))
    measured = f"The default branch at {commit} was measured on `{gpu.label}`"
    lines = [
        f"{measured} by [this run]({run_url}).\n" if run_url else f"{measured}.\n",
        render.markdown_line((comparison + ".",)) + "\n",
        *(f"- {render.markdown_line(line)}" for _, line in before.accepted),
        "",
        "" if rules.measure.pinned else render.markdown_line((*unpinned, " makes it this one.")),
        "",
        render.comment(evidence, BODY_LIMIT) if evidence else "",
    ]
    body = "\n".join(lines).rstrip() + "\n"
    title = f"Refresh the baseline of {gpu.label}"
    return Offer(f"kernelgate/baseline-{gpu.label}", tuple(files), title, body, commit)


def _file(path: str, held: RunRecord) -> tuple[str, bytes]:
    if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
        raise UsageError(f"{visible(path)}: a baseline lies inside the repository")
    return path, record.to_lines(held).encode()


def as_baseline(new: RunRecord, stored: RunRecord | None = None, release: str | None = None) -> RunRecord:
    """The head's samples alone, and a summary that keeps the days of `stored`. Raises UsageError without samples."""
    processes = tuple(
        process.model_copy(update={"role": "block", "loaded": ("head",), "timings": timings})
        for process in new.processes
        if process.role in record.COMPARED and (timings := _head_only(process.timings))
    )
    held = {timing.key for process in processes for timing in process.timings}
    cases = tuple(case for case in new.cases if case.key in held)
    if not cases:
        raise UsageError("the record holds no samples of a head, so it cannot be a baseline")
    when = new.run.created_at or datetime.min.isoformat()
    kept = RunRecord(
        run=new.run, environments=new.environments, cards=new.cards, cases=cases, processes=processes, notes=new.notes
    )
    short = formatting.ids(case.key for case in kept.cases)
    each = {short[case.key].text: _summary(case, new, stored) for case in timed_cases(kept)}
    source = f"commit {new.run.head_sha}, measured {when[:10]}"
    return kept.model_copy(update={"summary": record.Summary(source=source, cases=each, release=release)})


def _head_only(timings: Iterable[Timing]) -> tuple[Timing, ...]:
    return tuple(
        Timing(
            card=timing.card,
            case=timing.case,
            samples_us={"head": timing.samples_us["head"]},
            inner_repeats=timing.inner_repeats,
            telemetry=timing.telemetry,
        )
        for timing in timings
        if "head" in timing.samples_us
    )


def _summary(case: TimedCase, new: RunRecord, stored: RunRecord | None) -> record.BaselineSummary:
    """With the day's median beside those of earlier days on the same kind of device."""
    processes = [np.array(process.samples_us["head"]) for process in case.processes]
    interval = bootstrap(processes, processes, False, SUMMARY_LEVEL).head
    middle = rates.typical_us(process.samples_us["head"] for process in case.processes) or 0.0
    median = round(middle, 4)
    alike = stored is not None and stored.environment.device.name == new.environment.device.name
    days = prior.stored_days(stored, case.key) if stored and alike else ()
    build = next((one for one in new.builds if one.side == "head" and one.card == case.key.card), None)
    code = (build and (build.key or build.library_sha256)) or new.run.head_sha
    day = new.run.created_at[:10] if new.run.created_at else None
    if day is not None and code is not None:
        days = prior.with_today(days, record.BaselineDay(measured=day, code=code, median_us=median))
    return record.BaselineSummary(
        median_us=median,
        interval_us=(round(interval[0], 4), round(interval[1], 4)),
        gflops=rates.gflops(case.case, middle),
        samples=sum(map(len, processes)),
        processes=len(processes),
        measured=day,
        commit=new.run.head_sha,
        days=days,
    )


def accepted_since(bot: Bot, stored: RunRecord, head: str, verdict: RecordVerdict) -> tuple[AcceptedMerge, ...]:
    """What was accepted between the stored baseline's commit and `head`, and may be slower than it, the newest first.
    Nothing where anything else is slower than the baseline: that must not pass into a new one unseen."""
    known = stored.run.head_sha
    slower = [case for case in verdict.cases if case.status not in _NOT_SLOWER]
    if known is None or verdict.refused is not None or not slower:
        return ()

    def closed() -> list[PullRequest]:
        every = bot.repository.get_pulls(state="closed", sort="updated", direction="desc")
        merged = [pull for pull in islice(every, MAX_PULLS) if pull.merged_at is not None and pull.merge_commit_sha]
        return [pull for pull in merged if Label.ACCEPTED in (label.name for label in pull.labels)]

    try:
        found: list[AcceptedMerge] = []
        for pull in patiently("closed pull requests", closed, bot):
            sha = pull.merge_commit_sha
            # The default branch got it after the one commit, and by the other.
            if merge_base(bot, sha, head) == sha and merge_base(bot, sha, known) != sha:
                found += _of(bot, pull, slower)
    except GitHubError as error:
        bot.step.warn(f"what was accepted since the baseline is not known, so it counts as not accepted: {error}")
        return ()
    taken = {case for cases, _ in found for case in cases}
    left = [case.key for case in slower if case.status.is_slower and case.key not in taken]
    # What was accepted makes the mean of its card slower, too.
    together = {mean.card for mean in verdict.means if mean.status.is_slower} - {case.card for case in taken}
    return () if left or together else tuple(found)


def _of(bot: Bot, pull: PullRequest, slower: Iterable[CaseVerdict]) -> list[AcceptedMerge]:
    by_words: dict[tuple[str, str], set[CaseKey]] = {}
    for kept in check_run.standing(bot, pull.number, pull.head.sha):
        by_words.setdefault((kept.by, kept.reason), set()).update(kept.cases)
    found: list[AcceptedMerge] = []
    for (by, reason), named in by_words.items():
        cards = {case.card for case in named if not case.id}
        cases = tuple(case.key for case in slower if case.key in named or case.card in cards)
        where: Line = (": accepted in ", Link(f"pull request {pull.number}", pull.html_url), " by ", Code(f"@{by}"))
        if cases:
            found.append((cases, (*remarks.listed(cases, {}), *where, ". Reason: ", visible(reason))))
    return found


@dataclass(frozen=True)
class Offer:
    branch: str
    files: tuple[tuple[str, bytes], ...]
    title: str
    body: str
    commit: str
    """The branch starts there; of a baseline it is the commit of the default branch that was measured."""
    base: str | None = ""
    """The branch that the pull request is against, the default one where it is empty; None: there is none."""


def open_pull(bot: Bot, branch: str, **where: str) -> PullRequest | None:
    owner = bot.repository.full_name.split("/")[0]
    listed = bot.repository.get_pulls(state="open", head=f"{owner}:{branch}", **where)
    return next((pull for pull in listed if pull.head.ref == branch), None)


def put(bot: Bot, new: Offer) -> int:
    """There is one open pull request for the branch, with these files, title and body; its number. The branch is the
    bot's own; where no pull request is open for it, it starts anew. Each step may be repeated."""
    base = new.base or default_branch(bot)
    begun = new.base is None

    def step() -> int | None:
        nonlocal begun
        try:
            ref = bot.repository.get_git_ref(f"heads/{new.branch}")
            # Read first: the address to change it at is only known from GitHub's answer.
            there = ref.object.sha
        except UnknownObjectException:
            bot.repository.create_git_ref(f"refs/heads/{new.branch}", new.commit)
            return None
        pull = open_pull(bot, new.branch, base=base)
        known = {path: _git_name(bot, path, new.branch) for path, _ in new.files}
        blobs = ((path, content, b"blob %d\0" % len(content) + content) for path, content in new.files)
        wrong = [
            (path, content)
            for path, content, blob in blobs
            if known[path] != hashlib.sha1(blob, usedforsecurity=False).hexdigest()  # Git's name for the content
        ]
        # A run that stopped before its pull request goes on where the branch has these very files.
        begun = begun or pull is not None or not wrong or there == new.commit
        if not begun:
            ref.edit(new.commit, force=True)
        elif wrong:
            (path, content), message = wrong[0], f"{new.title}\n\nOf commit {new.commit}."
            if (sha := known[path]) is None:
                bot.repository.create_file(path, message, content, branch=new.branch)
            else:
                bot.repository.update_file(path, message, content, sha, branch=new.branch)
        elif new.base is None:
            return 0
        elif pull is None:
            bot.repository.create_pull(base, new.branch, title=new.title, body=new.body)
        elif (pull.title, (pull.body or "").replace("\r\n", "\n").strip()) != (new.title, new.body.strip()):
            pull.edit(title=new.title, body=new.body)
        else:
            return int(pull.number)
        return None

    number = until_done("pull request", step, bot)
    bot.step.log(f"pull request: {number}")
    return number


def _git_name(bot: Bot, path: str, ref: str) -> str | None:
    """Of what a branch has there; None where it has no such file."""
    try:
        found = bot.repository.get_contents(path, ref=ref)
    except UnknownObjectException:
        return None
    return None if isinstance(found, list) else found.sha
