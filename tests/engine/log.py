"""act's log, read line by line: which jobs run, with which permissions, and how their steps end."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.engine.prepared import WAITS
from tests.fakes.github_server import FakeGitHub, Json
from tests.workflows.documents import Workflow, workflows


@dataclass
class Job:
    permissions: dict[str, str] = field(default_factory=dict)
    conclusion: str = ""
    """success, failure, or waiting for an approval. A job that is skipped leaves nothing."""
    steps: dict[str, str] = field(default_factory=dict)
    """How each ended that was not skipped, by name."""
    logs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """Of its steps, as STEP.outputs.NAME."""
    tolerated: set[str] = field(default_factory=set)
    """Steps that failed, and that nothing fails for."""


@dataclass
class WorkflowRun:
    """A workflow of one commit that an event started, and what happened, by job name."""

    id: int
    workflow: Workflow
    event: str
    payload: Json
    sha: str
    ref: str
    ceiling: dict[str, str]
    """No job's token may do more."""
    only: tuple[str, ...] = ()
    """Jobs to run; empty for all. The others do nothing and succeed."""
    jobs: dict[str, Job] = field(default_factory=dict)
    summary: str = ""

    @property
    def conclusion(self) -> str:
        ended = {job.conclusion for job in self.jobs.values()}
        return next((each for each in ("failure", "waiting") if each in ended), "success")

    @property
    def log(self) -> str:
        return "\n".join(
            f"[{name}] {step}: {ended}\n{job.logs.get(step, '')}"
            for name, job in self.jobs.items()
            for step, ended in job.steps.items()
        )


class Log:
    def __init__(self, run: WorkflowRun, server: FakeGitHub) -> None:
        self.run, self.server = run, server
        self.scopes = {"": (run.workflow, run.ceiling)}
        """A workflow's file, and what its caller lets its jobs do, by the name of the job that calls it; act tells no
        more of those who called that one."""
        self.running: dict[str, Job] = {}

    def read(self, line: str) -> None:
        try:
            said: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            return
        if "job" not in said:
            return
        place, shown = self._place(said["job"])
        full = f"{place} / {shown}" if place else shown
        if said["jobID"].startswith(WAITS):
            if said.get("jobResult") == "failure":
                self.run.jobs[full] = Job(conclusion="waiting")
            return
        workflow, ceiling = self.scopes[place]
        job = workflow.jobs[said["jobID"]]
        permissions = least(job.get("permissions", workflow.content.get("permissions", {})), ceiling)
        if "uses" in job:
            called = workflows()[job["uses"].rsplit("/", 1)[1].split(".yml")[0]]
            self.scopes.setdefault(shown, (called, permissions))
            return
        if full not in self.running and full not in self.run.jobs:
            self.running[full] = Job(permissions)
            self._permit()
        if full in self.running:
            self._step(full, said)

    def _place(self, job: str) -> tuple[str, str]:
        """Which job calls the workflow that this one is in, and its own name; neither with a matrix' number."""
        top = f"{self.run.workflow.content['name']}/"
        if job.startswith(top) and job.count("/") == 1:
            return "", _plain(job.removeprefix(top))
        caller, _, shown = job.split("/", 2)
        return _plain(caller), _plain(shown)

    def _step(self, full: str, said: dict[str, Any]) -> None:
        job, name, id_ = self.running[full], said.get("step", ""), said.get("stepID", ())
        if "jobResult" in said:
            # act has one result for all jobs of a matrix.
            other = said["matrix"] and "failure" not in job.steps.values()
            self._end(full, "success" if other else said["jobResult"])
            return
        if said.get("command") == "set-output" and len(id_) == 1:
            job.outputs[f"{id_[0]}.outputs.{said['name']}"] = said["arg"]
        if said.get("command") == "summary":
            self.run.summary += said["content"]
        if said.get("raw_output"):
            job.logs[name] = job.logs.get(name, "") + said["msg"]
        if said["msg"] == "Failed but continue next step":
            job.tolerated.add(name)
        if said.get("stage") == "Main" and len(id_) == 1 and "stepResult" in said:
            job.steps[name] = "success" if name in job.tolerated else said["stepResult"]

    def _end(self, full: str, result: str) -> None:
        job = self.run.jobs[full] = self.running.pop(full)
        job.conclusion = result
        self._permit()
        self.server.add_job(self.server.runs[self.run.id], full, result, *job.steps.items())

    def _permit(self) -> None:
        """The token may do what the jobs that run now may; where two do, what either may."""
        granted: dict[str, str] = {}
        for job in self.running.values():
            for name, level in job.permissions.items():
                granted[name] = "write" if "write" in (level, granted.get(name)) else level
        self.server.permissions = granted


def least(asked: dict[str, str], ceiling: dict[str, str]) -> dict[str, str]:
    """What a job is granted: what it asks for, as far as its caller may."""
    levels = ["read", "write"]
    return {name: min(level, ceiling[name], key=levels.index) for name, level in asked.items() if name in ceiling}


def _plain(name: str) -> str:
    """Without the number that act gives each combination of a matrix."""
    return re.sub(r"-\d+$", "", name.strip())
