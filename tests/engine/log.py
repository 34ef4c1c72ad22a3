"""act's log, read line by line: which jobs run, with which permissions, and how their steps end."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from tests.engine.prepared import WAITS
from tests.fakes.github_server import FakeGitHub
from tests.workflows.documents import ROOT, Workflow, workflows
from tests.workflows.runner import Call, JobResult, StepResult, WorkflowRun, least

ALL = dict.fromkeys(("actions", "checks", "contents", "issues", "pull-requests"), "write")


@dataclass(frozen=True)
class Scope:
    """A workflow's file, and what its caller lets its jobs do."""

    workflow: Workflow
    ceiling: dict[str, str]


@dataclass
class Running:
    name: str
    permissions: dict[str, str]
    steps: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    """Of its steps, as STEP.outputs.NAME."""
    tolerated: set[str] = field(default_factory=set)
    """Steps that failed, and that nothing fails for."""
    said: dict[str, list[str]] = field(default_factory=dict)


class Log:
    def __init__(self, run: WorkflowRun, server: FakeGitHub, call: Call) -> None:
        self.run, self.server = run, server
        self.top = call.workflow.content["name"]
        self.scopes = {"": Scope(call.workflow, call.ceiling)}
        """By the name of the job that calls it; act tells no more of those who called that one."""
        self.running: dict[str, Running] = {}

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
                self.run.jobs[full] = JobResult(full, "waiting")
            return
        scope = self.scopes[place]
        job = scope.workflow.jobs[said["jobID"]]
        permissions = least(job.get("permissions", scope.workflow.content.get("permissions", {})), scope.ceiling)
        if "uses" in job:
            called = workflows(ROOT)[job["uses"].rsplit("/", 1)[1].split(".yml")[0]]
            self.scopes.setdefault(shown, Scope(called, permissions))
            return
        if full not in self.running and full not in self.run.jobs:
            self.running[full] = Running(full, permissions)
            self._permit()
        if full in self.running:
            self._step(self.running[full], said)

    def _place(self, job: str) -> tuple[str, str]:
        """Which job calls the workflow that this one is in, and its own name."""
        if job.startswith(f"{self.top}/") and job.count("/") == 1:
            return "", _plain(job.removeprefix(f"{self.top}/"))
        caller, _, shown = job.split("/", 2)
        return _plain(caller), _plain(shown)

    def _step(self, job: Running, said: dict[str, Any]) -> None:
        if "jobResult" in said:
            # act has one result for all jobs of a matrix.
            other = said["matrix"] and "failure" not in job.steps.values()
            self._end(job, "success" if other else said["jobResult"])
            return
        name = said.get("step", "")
        if said.get("command") == "set-output" and len(said["stepID"]) == 1:
            job.outputs[f"{said['stepID'][0]}.outputs.{said['name']}"] = said["arg"]
        if said.get("command") == "summary":
            self.run.summary += said["content"]
        if said.get("raw_output"):
            job.said.setdefault(name, []).append(said["msg"])
        if said["msg"] == "Failed but continue next step":
            job.tolerated.add(name)
        if said.get("stage") == "Main" and len(said.get("stepID", ())) == 1 and "stepResult" in said:
            job.steps[name] = "success" if name in job.tolerated else said["stepResult"]

    def _end(self, job: Running, result: str) -> None:
        del self.running[job.name]
        self._permit()
        steps = tuple(StepResult(name, end, "".join(job.said.get(name, ()))) for name, end in job.steps.items())
        self.run.jobs[job.name] = JobResult(job.name, result, steps, job.outputs, job.permissions)
        shown = ((step.name, step.conclusion) for step in steps)
        self.server.add_job(self.server.runs[self.run.id], job.name, result, *shown)

    def _permit(self) -> None:
        """The token may do what the jobs that run now may; where two do, what either may."""
        granted: dict[str, str] = {}
        for job in self.running.values():
            for name, level in job.permissions.items():
                granted[name] = "write" if "write" in (level, granted.get(name)) else level
        self.server.permissions = granted


def _plain(name: str) -> str:
    """Without the number that act gives each combination of a matrix."""
    return re.sub(r"-\d+$", "", name.strip())
