"""What GitHub itself says of a workflow run: `step fetch` writes it, `report --from` goes by it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.record import Model, Run
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.github.acceptances import KeptAcceptance
from kernelgate.ci.judge.gate import Acceptance, Fault

FILE = "run-info.json"


class Job(Model):
    """A job of the run, how it ended, and the step where it stopped."""

    name: str
    conclusion: str
    step: str | None = None


class SeenPull(Model):
    """What the API says of the pull request."""

    body: str | None = None
    by_bot: bool
    labels: tuple[str, ...]
    names: tuple[str, ...] | None = None
    """Every path that it touches, a renamed file's old one too; None where GitHub does not list them all."""
    patches: tuple[tuple[str, str], ...]
    """Path and patch of each file that GitHub lists."""


class RunInfo(Model):
    """Which run this is, and what became of its jobs; everything here comes from the API."""

    schema_: Annotated[Literal["kernelgate.run-info/1"], Field(alias="schema")] = "kernelgate.run-info/1"
    run: Run
    """The identity that every record of the run must have. `base_sha` is what the head is compared with, of a pull
    request its merge base; none where the head was measured alone."""
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
    """The labels that jobs measured, as the plan of the run has them."""
    measured: bool = True
    """Whether a job that builds or measures was started at all."""
    planned: bool = True
    """Whether the run decided what is to be measured: without a decision, missing records prove nothing."""
    under_way: bool = False
    """The measurement goes on, in this run or a newer one, or waits to be approved; its end is reported by itself."""
    begun: bool = False
    """The run itself was requested, or waits to be approved, and nothing is known of it yet."""
    accepted: tuple[KeptAcceptance, ...] = ()
    """What was accepted of the commit, the oldest first."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)

    @property
    def head_sha(self) -> str:
        return self.run.head_sha or ""

    @property
    def acceptances(self) -> tuple[Acceptance, ...]:
        """For the gate; of several of one case the newest."""
        every = [one for kept in self.accepted for one in kept.of(self.head_sha)]
        return tuple({(one.case, one.base_sha): one for one in every}.values())

    @property
    def pull_request(self) -> int | None:
        return self.run.pull_request


def write_run_info(info: RunInfo, folder: Path) -> None:
    """Puts it beside the records."""
    text = info.model_dump_json(by_alias=True, indent=2, exclude_none=True)
    files.write(folder / FILE, text + "\n")


def read_run_info(folder: Path) -> RunInfo:
    """What `fetch` wrote. Raises UsageError where it did not."""
    path = folder / FILE
    try:
        return RunInfo.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise UsageError(f"{path} is not what `kernelgate step fetch` writes: {type(error).__name__}") from None


RUNNER_STEPS = ("doctor", "set up", "check out", "download", "upload", "initialize", "complete job")
"""Steps in which only the runner can fail."""
AUTHOR_STEPS = {"build": Fault.BUILD, "fuzz": Fault.OUTPUT}
"""Steps are named after their verb; where a failure note is missing, the step tells whose fault it was."""
MEASURES = re.compile(r"measure \(([a-z0-9][a-z0-9.-]{0,30})\)(?: / .*)?")
"""How GitHub names the job that measures on the GPU with this label, behind the names of its callers."""


def gpu_of(name: str) -> str | None:
    """The label of the GPU that a job measured."""
    found = MEASURES.search(name)
    return found[1] if found else None


def gpus_of(jobs: Iterable[Job]) -> tuple[str, ...]:
    """The labels of all GPUs that were to be measured; a job that was skipped was not."""
    labels = {gpu_of(job.name) for job in jobs if job.conclusion != "skipped"}
    return tuple(sorted(label for label in labels if label is not None))


def stopped(job: Job) -> Line:
    """What is missing of a record whose job did not come to its end."""
    how = f" stopped at {job.step}" if job.step else f" ended: {job.conclusion}"
    return ("not everything was measured, since the job ", Code(job.name, most=120), how)


def blame(job: Job) -> tuple[Fault, str]:
    """Whose fault a failed job is, and a sentence on it."""
    where = f"the job {job.name}" + (f" stopped at {job.step}" if job.step else "")
    if job.conclusion == "cancelled":
        return Fault.RUNNER, f"{where} and was cancelled by a user, or its runner disconnected"
    if job.conclusion == "timed_out":
        return Fault.RUNNER, f"{where} and ran into its time limit"
    step = (job.step or "").casefold()
    if not step or step.startswith(RUNNER_STEPS):
        return Fault.RUNNER, where
    fault = next((fault for word, fault in AUTHOR_STEPS.items() if step.startswith(word)), Fault.OURS)
    return fault, where


def settled(claimed: Fault, said: str, job: Job | None) -> tuple[Fault, str]:
    """Whose fault it is by a failure note that says `said`, and a sentence. A file cannot excuse what GitHub says
    failed: a step that tries the author's code."""
    found, where = blame(job) if job is not None else (claimed, "")
    if found not in AUTHOR_STEPS.values() or claimed in AUTHOR_STEPS.values():
        return claimed, said
    return Fault.DISPUTED, f"{where}, and only a file that it left says that the change is not to blame: {said}"


def blame_run(info: RunInfo) -> tuple[Fault, str]:
    """The same of a run that left neither record nor note: the jobs are all that is known."""
    if info.refused:
        return Fault.OURS, "no record could be used"
    if not info.failed:
        return Fault.OURS, f"the run ended ({info.conclusion or 'without a result'}) and left no record"
    return blame(info.failed[0])
