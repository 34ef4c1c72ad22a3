"""Reads a finished workflow run: which pull request it belongs to, what it left behind, and what failed in it.

The pull request comes from the run's head commit through the API and never from a file. What is written to the folder
either comes from GitHub's API (`run-info.json`) or was checked by untrusted_artifact.py and is written anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from github.File import File
from github.PullRequest import PullRequest
from github.WorkflowRun import WorkflowRun

from kernelgate.bench.record import Run
from kernelgate.ci.github import acceptances, artifacts
from kernelgate.ci.github.acceptances import KeptAcceptance
from kernelgate.ci.github.answers import ApiRun, lack
from kernelgate.ci.github.client import Bot, changed_names, names_of, patiently
from kernelgate.ci.github.run_info import Job, RunInfo, SeenPull, gpus_of, write_run_info
from kernelgate.ci.github.upsert import shown_stamp
from kernelgate.ci.judge.gate import Label

MAX_COMPARED = 300
"""Files that GitHub lists of a comparison; a larger change is read from the pull request's own list."""
JUDGES = (".github/workflows/", ".github/actions/")
"""Whoever changes these could upload any record."""


def fetch(bot: Bot, run_id: int, into: Path, asked: Run | None = None) -> RunInfo:
    """Fills the folder `into` with `run-info.json`, `<label>.run.json` and `<label>.failure.json`.

    `asked`: commits and pull request of a run that no pull request started, from whoever authorised it. Raises
    GitHubError where the API cannot be used.
    """
    run = _told(bot, run_id) or _run(bot, run_id)
    found = Found() if asked else patiently("pull request", lambda: find_pull(bot, run), bot)
    told = run.id, run.run_attempt
    into.mkdir(parents=True, exist_ok=True)
    if asked is None and _is_under_way(run):
        # It was only requested, or waits to be approved.
        number = found.pull.number if found.pull else None
        known = Run(head_sha=run.head_sha, pull_request=number, run_id=run.id, run_attempt=run.run_attempt)
        info = RunInfo(run=known, run_url=run.html_url, under_way=True, begun=True)
    else:
        info = _ended(bot, run, found, into, asked)
    info = info.model_copy(
        update={
            "run": info.run.model_copy(update={"repository": bot.repository.full_name}),
            "told": told,
            "no_pull_request": found.why_none,
            "shared_head": found.shared_head,
        }
    )
    write_run_info(info, into)
    return info


def _ended(bot: Bot, run: WorkflowRun, found: Found, into: Path, asked: Run | None) -> RunInfo:
    """What is known of a run that ended; what it left behind goes into the folder."""
    pull = found.pull
    seen: SeenPull | None
    run, jobs = _jobs(bot, run)
    if pull is not None:
        base, seen = patiently("changes", lambda: _compared(bot, pull, run.head_sha), bot)
        wanted = Run(head_sha=run.head_sha, base_sha=base, pull_request=pull.number)
    else:
        wanted = asked or Run(head_sha=run.head_sha)
        number = wanted.pull_request
        seen = None if number is None else patiently("changes", lambda: _whole(bot, number), bot)
    if pull is not None and not _says_something(jobs) and (other := _with_records(bot, run, pull)) is not None:
        run, jobs = _jobs(bot, other)
    accepted: tuple[KeptAcceptance, ...] = ()
    # Only a label says that there may be something: a report has few calls to spare.
    if seen is not None and wanted.pull_request is not None and Label.ACCEPTED in seen.labels:
        accepted = acceptances.standing(bot, wanted.pull_request, wanted.head_sha or "")
    # A run that a command started is the default branch's, whatever the pull request changes. A change that is too
    # large for GitHub to list may touch what measures it.
    by_pull = pull is not None and run.event.startswith("pull_request")
    names = seen.names if seen is not None else None
    known = wanted.model_copy(update={"event": run.event, "run_id": run.id, "run_attempt": run.run_attempt})
    known = known.model_copy(update={"repository": bot.repository.full_name})
    return RunInfo(
        run=known,
        run_url=run.html_url,
        pull=seen,
        conclusion=run.conclusion,
        changes_judges=by_pull and (names is None or any(name.startswith(JUDGES) for name in names)),
        refused=artifacts.take_in(bot, run, jobs, known, into),
        failed=tuple(job for job in jobs if job.conclusion not in _ENDED_WELL),
        gpus=gpus_of(jobs),
        measured=any(map(_builds_or_measures, jobs)),
        planned=any(_in(job, "plan") and job.conclusion == "success" for job in jobs),
        under_way=asked is None and (_is_under_way(run) or _is_replaced(bot, run)),
        accepted=accepted,
    )


# The pull request ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The pull request of a run, or why there is none."""

    pull: PullRequest | None = None
    why_none: str | None = None
    shared_head: bool = False
    """Several open ones have the run's branch and commit."""


def find_pull(bot: Bot, run: WorkflowRun) -> Found:
    """The pull request of the run's head commit.

    GitHub names none itself for a fork's run. So it is looked up by the branch that the run names, in the repository
    that the run names: an open one whose head is the run's commit, else one whose head moved on or that was closed.
    """
    if not run.event.startswith("pull_request"):
        return Found(why_none=f"the run was started by {run.event}, not by a pull request")
    if run.head_repository is None or not run.head_branch:
        return Found(why_none="the repository that the change came from is gone")
    source = run.head_repository
    head = f"{source.owner.login}:{run.head_branch}"
    pulls = [
        pull
        for pull in bot.repository.get_pulls(state="all", head=head)
        # An owner may have several repositories with a branch of that name.
        if pull.head.repo is not None and pull.head.repo.full_name == source.full_name
    ]
    current = [pull for pull in pulls if pull.state == "open" and pull.head.sha == run.head_sha]
    if len(current) == 1:
        return Found(current[0])
    if current:
        numbers = ", ".join(str(pull.number) for pull in current)
        why = f"pull requests {numbers} have the same head, so which one was measured is not known"
        return Found(why_none=why, shared_head=True)
    late = [pull for pull in pulls if pull.head.sha == run.head_sha] or [p for p in pulls if p.state == "open"]
    return Found(late[0]) if late else Found(why_none="no pull request has the commit of this run")


def _with_records(bot: Bot, run: WorkflowRun, pull: PullRequest) -> WorkflowRun | None:
    """The run whose records are judged where `run` was to measure nothing: the latest of the same commit before it.

    So an edited description is held against what was measured. That run may have been a command's: then the bot's
    comment names it. It may also be under way.
    """
    shown = patiently("comment", lambda: shown_stamp(bot, pull.number), bot)
    known = {shown.run_id} if shown and shown.head_sha == run.head_sha else set()
    earlier = {number for number in _siblings(bot, run) if number < run.id}
    return next(_speaking(bot, known | earlier), None)


def _is_replaced(bot: Bot, run: WorkflowRun) -> bool:
    """Whether a newer run of the same commit ended this one, such as for another base."""
    later = {number for number in _siblings(bot, run) if number > run.id} if run.conclusion == "cancelled" else set()
    return any(_speaking(bot, later))


def _speaking(bot: Bot, numbers: Collection[int]) -> Iterator[WorkflowRun]:
    """Of these runs, the newest first, those that are reported: the others decided that there is nothing to measure."""
    for number in sorted(numbers, reverse=True):
        run = _run(bot, number)
        if _is_under_way(run) or _says_something(_jobs(bot, run)[1]):
            yield run


def _siblings(bot: Bot, run: WorkflowRun) -> set[int]:
    """The runs of the same workflow for the same commit of the same branch."""

    def step() -> set[int]:
        runs = bot.repository.get_workflow_runs(head_sha=run.head_sha, event=run.event)
        return {other.id for other in runs if _branch(other) == _branch(run)}

    return patiently("runs", step, bot)


def _branch(run: WorkflowRun) -> tuple[int, str | None, str]:
    return run.workflow_id, run.head_repository.full_name if run.head_repository else None, run.head_branch


def _run(bot: Bot, number: int) -> WorkflowRun:
    """The run with its content read, so that nothing is asked of GitHub outside of a step that is retried."""

    def step() -> WorkflowRun:
        run = bot.repository.get_workflow_run(number)
        run.update()
        return run

    return patiently("run", step, bot)


def _told(bot: Bot, number: int) -> WorkflowRun | None:
    """The run as GitHub's own event has it, where the event is its end: nothing needs to be asked then."""
    if not bot.step.environment.get("GITHUB_EVENT_PATH"):
        return None
    run = bot.step.event().workflow_run
    if not isinstance(run, dict) or lack(run, ApiRun) or run["id"] != number or run["status"] != "completed":
        return None
    return WorkflowRun(bot.repository.requester, {}, run)


def _compared(bot: Bot, pull: PullRequest, head: str) -> tuple[str, SeenPull]:
    """The merge base, and the pull request with everything that it changes since."""
    compared = bot.repository.compare(pull.base.sha, head)
    base, files = compared.merge_base_commit.sha, compared.files
    if len(files) >= MAX_COMPARED:
        return base, _whole(bot, pull.number)
    return base, _seen(pull, files, names_of(files))


def _whole(bot: Bot, number: int) -> SeenPull:
    """The pull request with all of its files that GitHub lists."""
    pull = bot.repository.get_pull(number)
    files = list(pull.get_files())
    return _seen(pull, files, changed_names(pull, files))


def _seen(pull: PullRequest, files: Sequence[File], names: Sequence[str] | None) -> SeenPull:
    return SeenPull(
        body=pull.body,
        by_bot=pull.user.type == "Bot",
        labels=tuple(label.name for label in pull.labels),
        names=None if names is None else tuple(names),
        patches=tuple((file.filename, file.patch or "") for file in files),
    )


# The jobs ------------------------------------------------------------------------------------------------------------


_ENDED_WELL = ("success", "skipped", "neutral", "none")
"""The last is ours: a job that is still going, such as the one that reports."""


def _jobs(bot: Bot, run: WorkflowRun) -> tuple[WorkflowRun, tuple[Job, ...]]:
    """The run with its jobs; where it was started again in the meantime, both are the new attempt's."""
    listed = patiently("jobs", lambda: list(run.jobs("latest")), bot)
    if any(job.run_attempt > run.run_attempt for job in listed):
        run = _run(bot, run.id)
    jobs = []
    for job in listed:
        stopped = next((step.name for step in job.steps if (step.conclusion or "none") not in _ENDED_WELL), None)
        jobs.append(Job(name=job.name, conclusion=job.conclusion or "none", step=stopped))
    return run, tuple(jobs)


def _says_something(jobs: Iterable[Job]) -> bool:
    """Whether there is more to report of these jobs than that nothing was to be measured."""
    return any(job.conclusion not in _ENDED_WELL or _builds_or_measures(job) for job in jobs)


def _builds_or_measures(job: Job) -> bool:
    return (_in(job, "build") or _in(job, "measure")) and job.conclusion != "skipped"


def _in(job: Job, called: str) -> bool:
    """Whether the job is of that workflow: its name is a path of calls, "performance / measure (l4) / measure"."""
    return any(part.startswith(called) for part in job.name.split(" / "))


def _is_under_way(run: WorkflowRun) -> bool:
    # GitHub calls a fork's run that nobody has approved yet completed.
    return run.status != "completed" or run.conclusion == "action_required"
