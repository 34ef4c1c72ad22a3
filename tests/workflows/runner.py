"""Executes workflows as GitHub would: jobs in order, `if`s and expressions by GitHub's evaluator, `run`s for real.

What stands in: the actions of GitHub itself, each reduced to what these workflows ask of it (actions.py), the API
(tests/fakes), which is told the token's permissions job by job, and the environment that `make env` would install.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import yaml

from tests.fakes.github_server import FakeGitHub, Json
from tests.workflows.actions import (
    HOSTED_TOOLS,
    TOOLS,
    Done,
    Machine,
    Place,
    checkout,
    collected,
    downloaded,
    uploaded,
    wanted,
)
from tests.workflows.documents import Workflow
from tests.workflows.language import Language

HOME_REPOSITORY = "kernelgate/kernelgate"
GUARDED = "kernelgate/kernelgate/.github/workflows/measure.yml@main"
"""What the GPU runners' group admits: its `selected_workflows`."""
DEFAULT_TYPES = {"pull_request": ("opened", "synchronize", "reopened")}
"""Which kinds of an event start a workflow that names none; all, where it does not stand here."""
READ_ALL = {"actions": "read", "checks": "read", "contents": "read", "issues": "read", "pull-requests": "read"}

Contexts = dict[str, Any]


@dataclass(frozen=True)
class StepResult:
    name: str
    conclusion: str
    log: str = ""


@dataclass(frozen=True)
class JobResult:
    name: str
    conclusion: str
    """success, failure, skipped, or waiting (for an approval, or for a runner that never comes)."""
    steps: tuple[StepResult, ...] = ()
    outputs: dict[str, str] = field(default_factory=dict)
    permissions: dict[str, str] = field(default_factory=dict)
    environment: str | None = None


@dataclass
class WorkflowRun:
    """What happened, by job name."""

    id: int
    path: str
    event: str
    head_sha: str
    jobs: dict[str, JobResult] = field(default_factory=dict)
    summary: str = ""

    @property
    def conclusion(self) -> str:
        return _together(self.jobs.values())

    @property
    def log(self) -> str:
        return "\n".join(
            f"[{job.name}] {step.name}: {step.conclusion}\n{step.log}"
            for job in self.jobs.values()
            for step in job.steps
        )


@dataclass(frozen=True)
class Call:
    """A workflow being run: its file, where the file comes from, and what the caller hands it."""

    workflow: Workflow
    repository: str
    sha: str
    ref: str
    inputs: dict[str, Any]
    ceiling: dict[str, str]
    """No job's token may do more."""
    prefix: str = ""
    uses: str = ""
    """As the caller wrote it; empty for the workflow that the event started."""
    only: Collection[str] | None = None
    """Jobs to run; the others count as having succeeded."""


class Platform:
    """GitHub with hosted runners and one GPU runner, for the repository of `server`.

    `origins`: the bare repositories by name; kernelgate's own must be among them.
    """

    def __init__(self, origins: dict[str, Path], server: FakeGitHub, language: Language, folder: Path) -> None:
        self.origins, self.server, self.language, self.folder = origins, server, language, folder
        self.approved: set[str] = set()
        """Environments whose jobs a maintainer approves."""
        self.protected: set[str] = {"kernelgate-forks"}
        self.gpu_verbs: Path | None = None
        """A program that answers the verbs which need a GPU, on the GPU runner …"""
        self.stood_in: set[str] = {"doctor", "canary", "fuzz", "bench", "sanitize", "profile"}
        """… and which verbs it answers; the others are real."""
        self.machine: dict[str, str] = {}
        """Variables of every runner."""
        self.variables: dict[str, str] = {}
        """Of the repository's settings."""
        self._artifacts: dict[int, dict[str, Path]] = {}

    # Runs ---------------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        event: str,
        payload: Json,
        *,
        sha: str,
        ref: str,
        head_sha: str = "",
        fork: bool = False,
        only: Collection[str] | None = None,
    ) -> WorkflowRun:
        """Runs the workflow file `name` of commit `sha` for an event.

        `fork`: the token can only read. `only`: these jobs alone; the others count as having succeeded.
        """
        path = f".github/workflows/{name}"
        shown = self._new_run(event, head_sha or sha, path, ref)
        run = WorkflowRun(shown["id"], path, event, head_sha or sha)
        workflow = self._workflow(self.server.repository, path, sha)
        assert starts(workflow, event, payload), f"{path} is not started by {event} {payload.get('action', '')}"
        inputs: dict[str, Any] = {}
        if event == "workflow_dispatch":
            declared = workflow.triggers["workflow_dispatch"]["inputs"]
            given = payload.get("inputs") or {}
            # GitHub sends all inputs that the workflow declares, as texts; the context has real booleans.
            texts = {name: _text(given.get(name, each.get("default"))) for name, each in declared.items()}
            payload = {**payload, "inputs": texts}
            inputs = {
                name: text == "true" if declared[name]["type"] == "boolean" else text for name, text in texts.items()
            }
        ceiling = READ_ALL if fork else dict.fromkeys(READ_ALL, "write")
        call = Call(workflow, self.server.repository, sha, ref, inputs, ceiling, only=only)
        github = self._github_context(run, event, payload, sha, ref)
        named = str(self.language.expanded(workflow.content.get("run-name", ""), {"github": github, "inputs": inputs}))
        shown["display_title"] = named.strip() or shown["display_title"]
        self.run_jobs(run, call, github)
        shown["conclusion"] = "success" if run.conclusion == "success" else "failure"
        return run

    def _new_run(self, event: str, head_sha: str, path: str, ref: str) -> Json:
        facts = {"event": event, "head_sha": head_sha, "path": path}
        pull = next((pull for pull in self.server.pulls.values() if pull.head_sha == head_sha), None)
        if event != "pull_request":
            pull, facts["head_branch"] = None, ref.removeprefix("refs/heads/")
        shown = self.server.add_run(pull, **facts)
        self._artifacts[shown["id"]] = {}
        return shown

    def _github_context(self, run: WorkflowRun, event: str, payload: dict[str, Any], sha: str, ref: str) -> Contexts:
        return {
            "event_name": event,
            "event": payload,
            "repository": self.server.repository,
            "repository_owner": self.server.repository.split("/")[0],
            "sha": sha,
            "ref": ref,
            "ref_name": ref.split("/", 2)[2],
            "run_id": str(run.id),
            "run_attempt": "1",
            "actor": "octocat",
            "api_url": self.server.url,
            "server_url": "https://github.com",
            "token": self.server.token,
        }

    def _workflow(self, repository: str, path: str, sha: str) -> Workflow:
        return Workflow(path, self.git(repository, "show", f"{sha}:{path}"))

    def git(self, repository: str, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", self.origins[repository], *words], capture_output=True, text=True, check=True
        )
        return done.stdout

    # Jobs ---------------------------------------------------------------------------------------

    def run_jobs(self, run: WorkflowRun, call: Call, github: Contexts) -> dict[str, JobResult]:
        """Runs a workflow's jobs in the order of their needs; returns them by id."""
        results: dict[str, JobResult] = {}
        jobs = dict(call.workflow.jobs)
        while jobs:
            ready = [name for name, job in jobs.items() if all(need in results for need in _needs(job))]
            assert ready, f"{call.workflow.path}: jobs need each other: {sorted(jobs)}"
            for name in ready:
                results[name] = self._job(run, call, github, name, jobs.pop(name), results)
        return results

    def _job(
        self, run: WorkflowRun, call: Call, github: Contexts, name: str, job: Json, results: dict[str, JobResult]
    ) -> JobResult:
        if call.only is not None and name not in call.only:
            return JobResult(name, "success")
        direct = {need: results[need] for need in _needs(job)}
        contexts: Contexts = {
            "github": github,
            "inputs": call.inputs,
            "needs": {need: {"result": each.conclusion, "outputs": each.outputs} for need, each in direct.items()},
            "matrix": {},
            "strategy": {},
            "vars": self.variables,
            "env": {},
        }
        ended = {results[need].conclusion for need in _ancestors(call.workflow.jobs, name)}
        status = {"success": ended <= {"success"}, "failure": "failure" in ended, "cancelled": False}
        if "waiting" in ended or not self.language.holds(job.get("if"), contexts, status):
            result = JobResult(name, "waiting" if "waiting" in ended else "skipped")
            run.jobs[call.prefix + name] = result
            return result
        axes = self.language.expanded(job.get("strategy", {}).get("matrix", {}), contexts)
        matrices = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
        together = [self._one_job(run, call, {**contexts, "matrix": matrix}, name, job) for matrix in matrices]
        outputs = {key: value for each in together for key, value in each.outputs.items() if value}
        return JobResult(name, _together(together), outputs=outputs)

    def _one_job(self, run: WorkflowRun, call: Call, contexts: Contexts, name: str, job: dict[str, Any]) -> JobResult:
        shown = call.prefix + str(self.language.expanded(job.get("name", name), contexts))
        permissions = least(job.get("permissions", call.workflow.content.get("permissions", {})), call.ceiling)
        if "uses" in job:
            return self._called_job(run, contexts, shown, job, permissions)
        environment = job.get("environment", {})
        gate = self.language.expanded(environment.get("name", ""), contexts) or None
        labels = self.language.expanded(job["runs-on"], contexts)
        refused = "self-hosted" in labels and (call.uses or call.workflow.path) != GUARDED
        if refused or (gate in self.protected and gate not in self.approved):
            result = JobResult(shown, "waiting", permissions=permissions, environment=gate)
        else:
            self.server.permissions = permissions
            result = replace(
                WorkflowJob(self, run, call, contexts, shown, job).execute(), permissions=permissions, environment=gate
            )
        run.jobs[shown] = result
        self.server.add_job(
            self.server.runs[run.id],
            shown,
            result.conclusion if result.conclusion != "waiting" else "skipped",
            *((step.name, step.conclusion) for step in result.steps),
        )
        return result

    def _called_job(
        self, run: WorkflowRun, contexts: Contexts, shown: str, job: dict[str, Any], permissions: dict[str, str]
    ) -> JobResult:
        """A reusable workflow: its file is read at the ref that `uses:` names."""
        repository, path, ref = re.fullmatch(r"([^/]+/[^/]+)/(.+)@(.+)", job["uses"]).groups()  # type: ignore[union-attr]
        assert repository == HOME_REPOSITORY, job["uses"]
        sha = self.git(repository, "rev-parse", ref).strip()
        workflow = self._workflow(repository, path, sha)
        interface = workflow.triggers["workflow_call"] or {}
        declared = interface.get("inputs", {})
        given = self.language.expanded(job.get("with", {}), contexts)
        assert set(given) <= set(declared), f"{path} has no input {set(given) - set(declared)}"
        inputs = {key: given.get(key, each.get("default", "")) for key, each in declared.items()}
        inner = Call(workflow, repository, sha, f"refs/heads/{ref}", inputs, permissions, f"{shown} / ", job["uses"])
        jobs = self.run_jobs(run, inner, contexts["github"])
        known = {"jobs": {name: {"outputs": each.outputs, "result": each.conclusion} for name, each in jobs.items()}}
        promised = interface.get("outputs", {})
        outputs = {name: _text(self.language.expanded(each["value"], known)) for name, each in promised.items()}
        return JobResult(shown, _together(jobs.values()), outputs=outputs)

    # Artifacts ----------------------------------------------------------------------------------

    def artifacts(self, run_id: int) -> dict[str, Path]:
        """The artifacts of a run, the newest of each name: name to folder."""
        return self._artifacts[run_id]

    def keep(self, run: WorkflowRun, name: str, files: dict[str, bytes], archive: bool = True) -> Json | None:
        """A new artifact, as the server has it, a zip file or one file; None where the run has one of that name."""
        if name in self._artifacts[run.id]:
            return None
        folder = self.folder / "artifacts" / str(run.id) / name
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        self._artifacts[run.id][name] = folder
        whole = files if archive else next(iter(files.values()))
        return self.server.add_artifact(self.server.runs[run.id], name, whole)


class WorkflowJob:
    """One job on a fresh runner."""

    def __init__(
        self, platform: Platform, run: WorkflowRun, call: Call, contexts: Contexts, shown: str, job: dict[str, Any]
    ) -> None:
        self.platform, self.run, self.call, self.job, self.shown = platform, run, call, job, shown
        self.hosted = job["runs-on"] == "ubuntu-24.04"
        place = platform.folder / "runners" / str(run.id) / re.sub(r"\W+", "-", shown)
        self.workspace, self.temp = place / "workspace", place / "temp"
        self.workspace.mkdir(parents=True)
        self.temp.mkdir()
        event = self.temp / "event.json"
        event.write_text(json.dumps(contexts["github"]["event"]), "utf-8")
        self.path: list[str] = []
        self.failed = False
        self.contexts: Contexts = {
            **contexts,
            "github": {**contexts["github"], "workspace": str(self.workspace), "event_path": str(event)},
            "job": {
                "status": "success",
                "workflow_repository": call.repository,
                "workflow_sha": call.sha,
                "workflow_ref": call.ref,
            },
            "runner": {
                "environment": "github-hosted" if self.hosted else "self-hosted",
                "temp": str(self.temp),
                "os": "Linux",
            },
            "steps": {},
        }
        self.contexts["env"] = self._expanded(job.get("env", {}))

    def execute(self) -> JobResult:
        steps = [result for step in self.job["steps"] for result in self._step(step)]
        outputs = {key: _text(self._expanded(value)) for key, value in self.job.get("outputs", {}).items()}
        return JobResult(self.shown, "failure" if self.failed else "success", tuple(steps), outputs)

    @property
    def status(self) -> dict[str, bool]:
        return {"success": not self.failed, "failure": self.failed, "cancelled": False}

    def _expanded(self, value: Any) -> Any:
        return self.platform.language.expanded(value, self.contexts, self.status)

    def _step(self, step: dict[str, Any]) -> Iterator[StepResult]:
        name = str(self._expanded(step.get("name", step.get("uses", "run"))))
        if not self.platform.language.holds(step.get("if"), self.contexts, self.status):
            self._remember(step, "skipped", "skipped", {})
            yield StepResult(name, "skipped")
            return
        done = self._done(step)
        passed = done.passed or self._expanded(step.get("continue-on-error", False)) is True
        self.failed = self.failed or not passed
        self._remember(step, _ended(done.passed), _ended(passed), done.outputs)
        yield StepResult(name, _ended(passed), done.log)

    def _done(self, step: dict[str, Any]) -> Done:
        if "run" in step:
            return self._run(step)
        given = self._expanded(step.get("with", {}))
        action = step["uses"].split("@")[0]
        return ACTIONS[action](self, given) if action in ACTIONS else self._composite(step["uses"], given)

    def _remember(self, step: dict[str, Any], outcome: str, conclusion: str, outputs: dict[str, str]) -> None:
        if "id" in step:
            known = {"outcome": outcome, "conclusion": conclusion, "outputs": outputs}
            self.contexts["steps"][step["id"]] = known

    def _composite(self, uses: str, given: dict[str, Any]) -> Done:
        """A composite action. Its steps see its own inputs and steps; what they put into the environment stays."""
        action = yaml.safe_load(self._action_file(uses))
        declared = action.get("inputs", {})
        assert set(given) <= set(declared), f"{uses} has no input {set(given) - set(declared)}"
        outside, failed_before = self.contexts, self.failed
        seen = {name: outside[name] for name in ("github", "job", "runner", "env")}
        defaults = {
            name: self.platform.language.expanded(each.get("default", ""), seen) for name, each in declared.items()
        }
        inputs = {name: _text(value) for name, value in {**defaults, **given}.items()}
        self.contexts = {**seen, "inputs": inputs, "steps": {}}
        results = [result for inner in action["runs"]["steps"] for result in self._step(inner)]
        outputs = {name: _text(self._expanded(each["value"])) for name, each in action.get("outputs", {}).items()}
        self.contexts, self.failed = outside, failed_before
        passed = all(each.conclusion != "failure" for each in results)
        return Done(passed, "\n".join(each.log for each in results), outputs)

    def _action_file(self, uses: str) -> str:
        """`./path` in the workspace, `$/path` at the running workflow's commit, `owner/name/path@ref` anywhere."""
        if uses.startswith("./"):
            return (self.workspace / uses / "action.yml").read_text("utf-8")
        if uses.startswith("$/"):
            repository, path, ref = self.call.repository, uses.removeprefix("$/"), self.call.sha
        else:
            repository, path, ref = re.fullmatch(r"([^/]+/[^/]+)/(.+)@(.+)", uses).groups()  # type: ignore[union-attr]
        return self.platform.git(repository, "show", f"{ref}:{path}/action.yml")

    def _run(self, step: dict[str, Any]) -> Done:
        """A `run` under bash, as the runner starts it, with its command files."""
        files = {
            name: self.temp / name.lower()
            for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
        }
        for file in files.values():
            file.write_text("", "utf-8")
        script = self.temp / "step.sh"
        tools = [str(HOSTED_TOOLS)] if self.hosted else []
        script.write_text(self._expanded(step["run"]), "utf-8")
        folder = self.workspace / str(self._expanded(step.get("working-directory", "")))
        variables = {**self.contexts["env"], **self._expanded(step.get("env", {}))}
        done = subprocess.run(
            [*SHELLS[step.get("shell")], script],
            cwd=folder,
            env={
                **self._machine(),
                "PATH": os.pathsep.join([*self.path, *tools, *TOOLS]),
                **{name: str(file) for name, file in files.items()},
                **{key: _text(value) for key, value in variables.items()},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        self.contexts["env"].update(_pairs(files["GITHUB_ENV"].read_text("utf-8")))
        self.path = files["GITHUB_PATH"].read_text("utf-8").split() + self.path
        self.run.summary += files["GITHUB_STEP_SUMMARY"].read_text("utf-8")
        outputs = _pairs(files["GITHUB_OUTPUT"].read_text("utf-8"))
        return Done(done.returncode == 0, f"$ {step['run']}\n{done.stdout}", outputs)

    def _machine(self) -> dict[str, str]:
        """A runner's variables: its own, and what GitHub tells of the run. None of those that the tests run under."""
        github = self.contexts["github"]
        told = ["repository", "sha", "ref", "run_id", "run_attempt", "actor", "api_url", "server_url"]
        told += ["event_name", "event_path", "workspace"]
        return {
            "HOME": os.environ.get("HOME", "/"),
            "LANG": "C.UTF-8",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "RUNNER_TEMP": str(self.temp),
            "RUNNER_ENVIRONMENT": self.contexts["runner"]["environment"],
            "no_proxy": "127.0.0.1",
            **{f"GITHUB_{name.upper()}": str(github[name]) for name in told},
            **self.platform.machine,
        }

    def check_out(self, given: dict[str, Any]) -> Done:
        standing_in = sorted(self.platform.stood_in) if self.platform.gpu_verbs and not self.hosted else []
        place = Place(self.platform.server.repository, self.contexts["github"]["sha"], self.workspace)
        machine = Machine(self.platform.origins, self.platform.gpu_verbs, tuple(standing_in))
        return checkout(place, machine, given)

    def upload(self, given: dict[str, Any]) -> Done:
        found = collected(self.workspace, given)
        if isinstance(found, Done):
            return found
        kept = self.platform.keep(self.run, found.name, found.files, found.archive)
        return uploaded(self.platform.server.repository, self.run.id, found, kept["id"] if kept else None)

    def download(self, given: dict[str, Any]) -> Done:
        kept = self.platform.artifacts(self.run.id)
        chosen = wanted(given, kept)
        for name, folder in chosen.items():
            shutil.copytree(kept[name], self.workspace / folder, dirs_exist_ok=True)
        return downloaded(given, chosen)


ACTIONS: dict[str, Callable[[WorkflowJob, dict[str, Any]], Done]] = {
    "actions/checkout": WorkflowJob.check_out,
    "actions/setup-python": lambda _, given: Done(True, str(given)),
    "actions/upload-artifact": WorkflowJob.upload,
    "actions/download-artifact": WorkflowJob.download,
}
SHELLS = {None: ["bash", "-e"], "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail"]}
"""How GitHub starts a `run`, by its `shell`."""


# Small things ---------------------------------------------------------------------------------------------------------


def starts(workflow: Workflow, event: str, payload: dict[str, Any]) -> bool:
    if event not in workflow.triggers or event == "schedule":
        return event in workflow.triggers
    kinds = (workflow.triggers[event] or {}).get("types", DEFAULT_TYPES.get(event))
    return kinds is None or payload["action"] in kinds


def _needs(job: dict[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else needs


def _ancestors(jobs: dict[str, dict[str, Any]], name: str) -> set[str]:
    """All jobs that must have ended before a job: `success()` asks about every one of them."""
    direct = set(_needs(jobs[name]))
    return direct.union(*(_ancestors(jobs, need) for need in direct))


def least(asked: dict[str, str], ceiling: dict[str, str]) -> dict[str, str]:
    """What a job is granted: what it asks for, as far as its caller may."""
    levels = ["read", "write"]
    return {name: min(level, ceiling[name], key=levels.index) for name, level in asked.items() if name in ceiling}


def _together(jobs: Iterable[JobResult]) -> str:
    ended = {job.conclusion for job in jobs}
    return next((each for each in ("failure", "waiting") if each in ended), "success")


def _ended(passed: bool) -> str:
    return "success" if passed else "failure"


def _text(value: Any) -> str:
    """A value as a variable holds it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _pairs(text: str) -> dict[str, str]:
    """`name=value` lines and `name<<END … END` blocks of a runner's command file."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        if match := re.fullmatch(r"([^=<]+)<<(.+)", line):
            block = []
            for inner in lines:
                if inner == match[2]:
                    break
                block.append(inner)
            found[match[1]] = "\n".join(block)
        elif line:
            name, _, value = line.partition("=")
            found[name] = value
    return found
