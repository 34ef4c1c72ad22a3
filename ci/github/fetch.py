"""Reads a finished workflow run: which pull request it belongs to, what it left behind, and what failed in it.

The pull request comes from the run's head commit through the API and never from a file. What is written to the folder
either comes from GitHub's API (`run-info.json`) or was checked by untrusted_artifact.py and is written anew.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from github.File import File
from github.PullRequest import PullRequest
from github.WorkflowRun import WorkflowRun
from pydantic import Field

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Model, Run, RunRecord
from kernelgate.ci.github import artifacts, check_run, client
from kernelgate.ci.github.actions import read_written
from kernelgate.ci.github.check_run import KeptAcceptance
from kernelgate.ci.github.client import Bot, patiently
from kernelgate.ci.github.plan import GROUP, queued_labels, queued_pull
from kernelgate.ci.github.upsert import shown_stamp
from kernelgate.ci.history.facts import ComparedPair
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.gate import Acceptance, Label

FILE = "run-info.json"
JUDGES = (".github/workflows/", ".github/actions/")
"""Whoever changes these could upload any record."""
_GROUP_TITLE = re.compile(r"Merge group ([0-9a-f]{40})\.\.([0-9a-f]{40})")
"""The `run-name` of the workflow that measures: nothing else of GitHub's API tells a group's base."""
MEASURES = re.compile(r"measure \(([a-z0-9][a-z0-9.-]{0,30})\)(?: / .*)?")
"""How GitHub names the job that measures on the GPU with this label, behind the names of its callers."""
_ENDED_WELL = ("success", "skipped", "neutral", "none")
"""The last is ours: a job that is still going, such as the one that reports."""


class Job(Model):
    """A job of the run, how it ended, and the step where it stopped."""

    name: str
    conclusion: str
    step: str | None = None

    @property
    def gpu(self) -> str | None:
        """The label of the GPU that it measured."""
        return found[1] if (found := MEASURES.search(self.name)) else None

    @property
    def builds_or_measures(self) -> bool:
        return (self.is_of("build") or self.is_of("measure")) and self.conclusion != "skipped"

    def is_of(self, called: str) -> bool:
        """Its name is a path of calls of workflows, "performance / measure (l4) / measure"."""
        return any(part.startswith(called) for part in self.name.split(" / "))


class SeenPull(Model):
    """What the API says of the pull request."""

    body: str | None = None
    by_bot: bool
    draft: bool = False
    labels: tuple[str, ...]
    names: tuple[str, ...] | None = None
    """Every path that it touches; None where GitHub does not list them all."""
    patches: tuple[tuple[str, str], ...]
    """Path and patch of each file that GitHub lists."""

    def touches(self, paths: Iterable[str]) -> bool:
        return client.touches(self.names, paths)


class RunInfo(Model, validate_by_name=True, validate_by_alias=True):
    """Which run this is, and what became of its jobs; everything here comes from the API."""

    schema_: Annotated[Literal["kernelgate.run-info/1"], Field(alias="schema")] = "kernelgate.run-info/1"
    run: Run
    """The identity that every record of it must have, with the commit that the head is compared with, if any."""
    run_url: str
    told: tuple[int, int] | None = None
    """Id and attempt of the run that began or ended. Where it was to measure nothing, `run` is the one before."""
    pull: SeenPull | None = None
    conclusion: str | None = None
    no_pull_request: str | None = None
    """Why there is none, where there should be."""
    shared_head: bool = False
    """Several pull requests have this head commit; a check run belongs to the commit, and so to all of them."""
    changes_judges: bool = False
    """The pull request changes what measures it, so that its records prove nothing."""
    refused: tuple[str, ...] = ()
    """Artifacts that were refused, and why."""
    failed: tuple[Job, ...] = ()
    gpus: tuple[str, ...] = ()
    """The labels that jobs measured, as the plan of the run has them; a job that was skipped did not."""
    measured: bool = True
    """A job that builds or measures was started."""
    planned: bool = True
    """The run decided what is to be measured: without a decision, missing records prove nothing."""
    under_way: bool = False
    """The measurement goes on, in this run or a newer one, or waits to be approved; its end is reported by itself."""
    begun: bool = False
    """It was requested, or waits to be approved, and nothing more is known of it yet."""
    fork: bool = False
    """Of a fork: somebody has to approve its measurement."""
    accepted: tuple[KeptAcceptance, ...] = ()
    """What was accepted of the commit, the oldest first."""

    @property
    def head_sha(self) -> str:
        return self.run.head_sha or ""

    @property
    def acceptances(self) -> tuple[Acceptance, ...]:
        """For the gate; of several of one case the newest."""
        newest = {(case, kept.base_sha): kept for kept in self.accepted for case in kept.cases}
        return tuple(
            Acceptance(case, kept.by, kept.reason, self.head_sha, base) for (case, base), kept in newest.items()
        )

    @property
    def attempts(self) -> float:
        """How often the run was made that measured. A fork's, which needs an approval each time, and one that somebody
        asked for are not made again by themselves: infinity."""
        return (self.run.run_attempt or 1) if self.run.event == "pull_request" and not self.fork else math.inf

    @property
    def by_pull(self) -> bool:
        """Whether a pull request started the run, or a merge queue, not a command or a person."""
        return (self.run.event or "").startswith("pull_request") or self.of_group

    @property
    def of_group(self) -> bool:
        """Whether a merge queue asked: its check stands on the commit that it would merge, and nobody is told else."""
        return self.run.event == GROUP


def write_run_info(info: RunInfo, folder: Path) -> None:
    files.write(folder / FILE, info.model_dump_json(by_alias=True, indent=2, exclude_none=True) + "\n")


def read_run_info(folder: Path) -> RunInfo:
    """What `fetch` wrote. Raises UsageError where it did not."""
    return read_written(folder / FILE, RunInfo, "step fetch")


def fetch(
    bot: Bot,
    run_id: int,
    into: Path,
    asked: Run | None = None,
    acceptances: bool = True,
    pairs: Sequence[ComparedPair] = (),
) -> RunInfo:
    """Fills the folder `into` with `run-info.json`, `<label>.run.json` and `<label>.failure.json`. `asked`: commits and
    pull request of a run that no pull request started, from whoever authorised it; `pairs`: the commits where it
    compared several. `acceptances`: look up those that stand, which takes a token that sees checks."""
    run = patiently("run", lambda: read_run(bot, run_id), bot)
    of_group = asked is None and run.event == GROUP
    pull, why_none, shared = None, None, False
    if asked is None and not of_group:
        pull, why_none, shared = patiently("pull request", lambda: find_pull(bot, run), bot)
    into.mkdir(parents=True, exist_ok=True)
    fork = run.head_repository is None or run.head_repository.full_name != bot.repository.full_name
    told: dict[str, Any] = {
        "fork": fork,
        "told": (run.id, run.run_attempt),
        "no_pull_request": why_none,
        "shared_head": shared,
    }
    if asked is None and _is_under_way(run):
        # It was only requested, or waits to be approved.
        known = _identity(bot, run, Run(head_sha=run.head_sha, pull_request=pull.number if pull else None))
        info = RunInfo(run=known, run_url=run.html_url, conclusion=run.conclusion, under_way=True, begun=True, **told)
        write_run_info(info, into)
        return info
    run, jobs = _jobs(bot, run)
    wanted = asked or Run(head_sha=run.head_sha)
    number, seen, changes_judges = wanted.pull_request, None, False
    if of_group:
        wanted, seen, changes_judges = _of_group(bot, run)
    untitled = (_NO_TITLE,) if of_group and wanted.base_sha is None else ()
    if pull is not None:
        base, changed = client.compared(bot, pull.base.sha, run.head_sha)
        seen, number = _seen(pull, changed) if changed is not None else None, pull.number
        wanted = Run(head_sha=run.head_sha, base_sha=base, pull_request=number)
        if not _says_something(jobs) and (other := _with_records(bot, run, pull)) is not None:
            run, jobs = _jobs(bot, other)
    if number is not None and seen is None:
        seen = patiently("changes", lambda: _seen(bot.repository.get_pull(number)), bot)
    # A run that a command started is the default branch's, whatever the pull request changes.
    by_pull = pull is not None and run.event.startswith("pull_request")
    changes_judges |= by_pull and (seen is None or seen.touches(JUDGES))
    known = _identity(bot, run, wanted, event=run.event)
    gpus = tuple(sorted({job.gpu for job in jobs if job.gpu is not None and job.conclusion != "skipped"}))
    refused = artifacts.take_in(bot, run, gpus, known, into, pairs)
    under_way = asked is None and _is_under_way(run)
    if asked is None and run.conclusion == "cancelled":
        # A newer run of the same commit may have ended it, such as for another base.
        under_way |= any(_speaking(bot, {number for number in _siblings(bot, run) if number > run.id}))
    accepted: tuple[KeptAcceptance, ...] = ()
    # Only a label says that there may be something: a report has few calls to spare.
    if acceptances and seen is not None and Label.ACCEPTED in seen.labels:
        if of_group:
            accepted = _accepted_before(bot, run, wanted.base_sha or "", into)
        elif wanted.pull_request is not None:
            accepted = check_run.standing(bot, wanted.pull_request, wanted.head_sha or "")
    info = RunInfo(
        run=known,
        run_url=run.html_url,
        pull=seen,
        conclusion=run.conclusion,
        changes_judges=changes_judges,
        refused=(*untitled, *refused),
        failed=tuple(job for job in jobs if job.conclusion not in _ENDED_WELL),
        gpus=gpus,
        measured=any(job.builds_or_measures for job in jobs),
        planned=any(job.is_of("plan") and job.conclusion == "success" for job in jobs),
        under_way=under_way,
        accepted=accepted,
        **told,
    )
    write_run_info(info, into)
    return info


def _identity(bot: Bot, run: WorkflowRun, known: Run, **more: str) -> Run:
    ours = {"run_id": run.id, "run_attempt": run.run_attempt, "repository": bot.repository.full_name}
    return known.model_copy(update=ours | more)


def find_pull(bot: Bot, run: WorkflowRun) -> tuple[PullRequest | None, str | None, bool]:
    """The pull request of the run's head commit; else why there is none, and whether that is because there are several.
    GitHub names none for a fork's run, so it is looked up by branch: an open one whose head is the run's commit, else
    one whose head moved on or that was closed."""
    if not run.event.startswith("pull_request"):
        return None, f"the run was started by {run.event}, not by a pull request", False
    if run.head_repository is None or not run.head_branch:
        return None, "the repository that the change came from is gone", False
    source = run.head_repository
    pulls = [
        pull
        for pull in bot.repository.get_pulls(state="all", head=f"{source.owner.login}:{run.head_branch}")
        # An owner may have several repositories with a branch of that name.
        if pull.head.repo is not None and pull.head.repo.full_name == source.full_name
    ]
    alike = [pull for pull in pulls if pull.head.sha == run.head_sha]
    current = [pull for pull in alike if pull.state == "open"]
    if len(current) > 1:
        numbers = ", ".join(str(pull.number) for pull in current)
        return None, f"pull requests {numbers} have the same head, so which one was measured is not known", True
    late = current or alike or [pull for pull in pulls if pull.state == "open"]
    return (late[0], None, False) if late else (None, "no pull request has the commit of this run", False)


_NO_TITLE = (
    "the run's title does not name the merge group's commits: give performance.yml the `run-name` that kernelgate's "
    "own copy has"
)


def _of_group(bot: Bot, run: WorkflowRun) -> tuple[Run, SeenPull, bool]:
    """What a merge queue's group is and changes, and whether it changes what measures it: then its run could have any
    title. So workflows are compared with the default branch's, and whatever is queued before it counts, too."""
    title = _GROUP_TITLE.fullmatch(run.display_title)
    base = title[1] if title and title[2] == run.head_sha and title[1] != run.head_sha else None
    since, changed = client.compared(bot, base or run.head_sha, run.head_sha)
    seen = SeenPull(
        by_bot=True,
        labels=queued_labels(bot, run.head_branch or ""),
        names=client.names_of(changed),
        patches=tuple((file.filename, file.patch or "") for file in changed or ()),
    )
    unmerged = client.names_of(client.compared(bot, client.default_branch(bot), run.head_sha)[1])
    wanted = Run(head_sha=run.head_sha, base_sha=base if since == base else None)
    return wanted, seen, client.touches(unmerged, JUDGES)


def _seen(pull: PullRequest, changed: Sequence[File] | None = None) -> SeenPull:
    """The pull request with these files, else with all that GitHub lists."""
    listed = list(pull.get_files()) if changed is None else changed
    return SeenPull(
        body=pull.body,
        by_bot=pull.user.type == "Bot",
        draft=pull.draft,
        labels=tuple(label.name for label in pull.labels),
        names=client.changed_names(pull, listed) if changed is None else client.names_of(listed),
        patches=tuple((file.filename, file.patch or "") for file in listed),
    )


def _accepted_before(bot: Bot, run: WorkflowRun, base: str, folder: Path) -> tuple[KeptAcceptance, ...]:
    """What was accepted of the queued pull request counts for its group where all that is judged is its own record."""
    number = queued_pull(run.head_branch or "")
    records = [record.read(file) for file in sorted(folder.glob("*.run.json"))]
    if number is None or not all(cards.notes(one, cards.MEASURED_BEFORE) for one in records):
        return ()
    kept = check_run.standing(bot, number, client.read_pull(bot, number).head.sha)
    return tuple(one.model_copy(update={"base_sha": base}) for one in kept)


def _with_records(bot: Bot, run: WorkflowRun, pull: PullRequest) -> WorkflowRun | None:
    """The run whose records are judged where `run` was to measure nothing: the latest of the same commit before it,
    which may be under way. A command's is named by the bot's comment."""
    shown = patiently("comment", lambda: shown_stamp(bot, pull.number), bot)
    known = {shown.run_id} if shown and shown.head_sha == run.head_sha else set()
    return next(_speaking(bot, known | {number for number in _siblings(bot, run) if number < run.id}), None)


def _speaking(bot: Bot, numbers: Collection[int]) -> Iterator[WorkflowRun]:
    """Of these runs, the newest first, those that are reported: the others decided that there is nothing to measure."""
    for number in sorted(numbers, reverse=True):
        run = patiently("run", partial(read_run, bot, number), bot)
        if _is_under_way(run) or _says_something(_jobs(bot, run)[1]):
            yield run


def _siblings(bot: Bot, run: WorkflowRun) -> set[int]:
    """The runs of the same workflow for the same commit of the same branch."""

    def branch(one: WorkflowRun) -> tuple[int, str | None, str]:
        return one.workflow_id, one.head_repository.full_name if one.head_repository else None, one.head_branch

    alike = bot.repository.get_workflow_runs(head_sha=run.head_sha, event=run.event)
    return {other.id for other in patiently("runs", lambda: list(alike), bot) if branch(other) == branch(run)}


def read_run(bot: Bot, number: int) -> WorkflowRun:
    """The run with its content read, so that nothing is asked of GitHub outside of a step that is retried."""
    run = bot.repository.get_workflow_run(number)
    run.update()
    return run


def _jobs(bot: Bot, run: WorkflowRun) -> tuple[WorkflowRun, tuple[Job, ...]]:
    """The run with its jobs; where it was started again in the meantime, both are the new attempt's."""
    listed = patiently("jobs", lambda: list(run.jobs("latest")), bot)
    if any(job.run_attempt > run.run_attempt for job in listed):
        run = patiently("run", partial(read_run, bot, run.id), bot)
    jobs = []
    for job in listed:
        stopped = next((step.name for step in job.steps if (step.conclusion or "none") not in _ENDED_WELL), None)
        jobs.append(Job(name=job.name, conclusion=job.conclusion or "none", step=stopped))
    return run, tuple(jobs)


def _says_something(jobs: Iterable[Job]) -> bool:
    """Whether there is more to report of these jobs than that nothing was to be measured."""
    return any(job.conclusion not in _ENDED_WELL or job.builds_or_measures for job in jobs)


def _is_under_way(run: WorkflowRun) -> bool:
    # GitHub calls a fork's run that nobody has approved yet completed.
    return run.status != "completed" or run.conclusion == "action_required"


def record_of(bot: Bot, gpu: str, into: Path) -> tuple[int, RunRecord]:
    """The pull request of this run's group, and its record on this GPU, of the run that the bot's comment is about: as
    trustworthy as it was for the pull request's check. `into`: a folder to fetch it to. Raises KernelgateError."""
    group = bot.step.event().merge_group
    number = queued_pull(group.head_ref) if group else None
    if number is None:
        raise KernelgateError("no pull request is queued")
    stamp = patiently("comment", lambda: shown_stamp(bot, number), bot)
    pull = client.read_pull(bot, number)
    if stamp is None or stamp.head_sha != pull.head.sha:
        raise KernelgateError(f"#{number} has no verdict on its last commit")
    run = patiently("run", lambda: read_run(bot, stamp.run_id), bot)
    base = client.merge_base(bot, pull.base.sha, stamp.head_sha)
    commanded = Run(head_sha=stamp.head_sha, base_sha=base, pull_request=number)
    asked = None if run.event.startswith("pull_request") else commanded
    info = fetch(bot, run.id, into, asked, acceptances=False)
    file = into / f"{gpu}.run.json"
    if info.under_way or info.changes_judges or info.refused or info.failed or not file.exists():
        raise KernelgateError(f"the run of #{number} left no record that holds for it alone")
    return number, record.read(file)
