"""What GitHub's jobs tell where a run left no record: which GPUs were measured, and whose fault a failed job is."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.github.run_info import Job, RunInfo
from kernelgate.ci.judge.gate import Fault

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
