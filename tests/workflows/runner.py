"""Executes workflows as GitHub would: jobs in order, `if`s and expressions by GitHub's evaluator, `run`s for real.

What is real: the repository (git, with refs/pull), every `run` step under bash with a runner's environment and files,
composite actions, reusable workflows read at the ref that `uses:` names, the token's permissions (the fake server is
told them job by job), artifacts as zip files that the server then serves. What stands in: the actions of GitHub itself
(checkout, setup-python, upload, download), each reduced to what these workflows ask of it, and the environment that
`make env` would install, which the tests run in already.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from documents import Workflow
from language import Language

from tests.fakes.github_server import FakeGitHub

HOME_REPOSITORY = "kernelgate/kernelgate"
GUARDED = "kernelgate/kernelgate/.github/workflows/measure.yml@main"
"""What the GPU runners' group admits: its `selected_workflows`."""
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
class Run:
    """One workflow run: what happened, by job name."""

    id: int
    path: str
    event: str
    head_sha: str
    jobs: dict[str, JobResult] = field(default_factory=dict)
    summary: str = ""

    @property
    def conclusion(self) -> str:
        ended = {job.conclusion for job in self.jobs.values()}
        return next((each for each in ("failure", "waiting") if each in ended), "success")

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
        """A program that answers the verbs which need a GPU, on the GPU runner."""
        self.machine: dict[str, str] = {}
        """Variables of every runner."""
        self._artifacts: dict[int, dict[str, Path]] = {}

    # Runs ---------------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        event: str,
        payload: dict[str, Any],
        *,
        sha: str,
        ref: str,
        head_sha: str = "",
        fork: bool = False,
    ) -> Run:
        """Runs the workflow file `name` of commit `sha` for an event; `fork`: the token can only read."""
        facts = {"event": event, "head_sha": head_sha or sha, "path": f".github/workflows/{name}"}
        pull = next((pull for pull in self.server.pulls.values() if pull.head_sha == facts["head_sha"]), None)
        shown = self.server.add_run(pull if event == "pull_request" else None, **facts)
        run = Run(shown["id"], facts["path"], event, facts["head_sha"])
        self._artifacts[run.id] = {}
        workflow = self._workflow(self.server.repository, facts["path"], sha)
        if event == "workflow_dispatch":
            payload = {**payload, "inputs": self._dispatch_inputs(workflow, payload)}
        github = self._github_context(run, event, payload, sha, ref)
        inputs = self._typed(workflow, payload["inputs"]) if event == "workflow_dispatch" else {}
        call = Call(workflow, self.server.repository, sha, ref, inputs, READ_ALL if fork else _everything())
        self._call(run, call, github)
        shown["conclusion"] = "success" if run.conclusion == "success" else "failure"
        return run

    def _dispatch_inputs(self, workflow: Workflow, payload: dict[str, Any]) -> dict[str, str]:
        """All inputs that the workflow declares, as texts: so GitHub sends them."""
        declared = workflow.triggers["workflow_dispatch"]["inputs"]
        given = payload.get("inputs") or {}
        return {name: _text(given.get(name, each.get("default"))) for name, each in declared.items()}

    def _typed(self, workflow: Workflow, given: dict[str, str]) -> dict[str, Any]:
        """The `inputs` context: as the event has them, but with real booleans."""
        declared = workflow.triggers["workflow_dispatch"]["inputs"]
        flags = {name for name, each in declared.items() if each["type"] == "boolean"}
        return {name: value == "true" if name in flags else value for name, value in given.items()}

    def _github_context(self, run: Run, event: str, payload: dict[str, Any], sha: str, ref: str) -> Contexts:
        return {
            "event_name": event,
            "event": payload,
            "repository": self.server.repository,
            "repository_owner": self.server.repository.split("/")[0],
            "sha": sha,
            "ref": ref,
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

    def _call(self, run: Run, call: Call, github: Contexts) -> dict[str, JobResult]:
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
        self, run: Run, call: Call, github: Contexts, name: str, job: dict[str, Any], results: dict[str, JobResult]
    ) -> JobResult:
        needed = {need: results[need] for need in _ancestors(call.workflow.jobs, name)}
        direct = {need: results[need] for need in _needs(job)}
        contexts: Contexts = {
            "github": github,
            "inputs": call.inputs,
            "needs": {need: {"result": each.conclusion, "outputs": each.outputs} for need, each in direct.items()},
            "matrix": {},
            "strategy": {},
            "vars": {},
            "env": {},
        }
        ended = {each.conclusion for each in needed.values()}
        status = {"success": ended <= {"success"}, "failure": "failure" in ended, "cancelled": False}
        if "waiting" in ended or not self.language.holds(job.get("if"), contexts, status):
            result = JobResult(name, "waiting" if "waiting" in ended else "skipped")
            run.jobs[call.prefix + name] = result
            return result
        together = [
            self._one_job(run, call, {**contexts, "matrix": matrix}, name, job)
            for matrix in self._matrices(job, contexts)
        ]
        ended = {each.conclusion for each in together}
        conclusion = next((each for each in ("waiting", "failure") if each in ended), "success")
        return JobResult(
            name, conclusion, outputs={key: value for each in together for key, value in each.outputs.items()}
        )

    def _matrices(self, job: dict[str, Any], contexts: Contexts) -> Iterator[Contexts]:
        axes = self.language.expanded(job.get("strategy", {}).get("matrix", {}), contexts)
        for values in product(*axes.values()):
            yield dict(zip(axes, values, strict=True))

    def _one_job(self, run: Run, call: Call, contexts: Contexts, name: str, job: dict[str, Any]) -> JobResult:
        shown = call.prefix + str(self.language.expanded(job.get("name", name), contexts))
        permissions = _least(job.get("permissions", call.workflow.content.get("permissions", {})), call.ceiling)
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
                Job(self, run, call, contexts, shown, job).execute(), permissions=permissions, environment=gate
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
        self, run: Run, contexts: Contexts, shown: str, job: dict[str, Any], permissions: dict[str, str]
    ) -> JobResult:
        """A reusable workflow: its file is read at the ref that `uses:` names."""
        repository, path, ref = re.fullmatch(r"([^/]+/[^/]+)/(.+)@(.+)", job["uses"]).groups()  # type: ignore[union-attr]
        assert repository == HOME_REPOSITORY, job["uses"]
        sha = self.git(repository, "rev-parse", ref).strip()
        workflow = self._workflow(repository, path, sha)
        declared = (workflow.triggers["workflow_call"] or {}).get("inputs", {})
        given = self.language.expanded(job.get("with", {}), contexts)
        assert set(given) <= set(declared), f"{path} has no input {set(given) - set(declared)}"
        inputs = {key: given.get(key, each.get("default", "")) for key, each in declared.items()}
        inner = Call(workflow, repository, sha, f"refs/heads/{ref}", inputs, permissions, f"{shown} / ", job["uses"])
        jobs = self._call(run, inner, contexts["github"])
        ended = {each.conclusion for each in jobs.values()}
        known = {"jobs": {name: {"outputs": each.outputs, "result": each.conclusion} for name, each in jobs.items()}}
        declared = (workflow.triggers["workflow_call"] or {}).get("outputs", {})
        outputs = {name: str(self.language.expanded(each["value"], known)) for name, each in declared.items()}
        return JobResult(
            shown, next((each for each in ("waiting", "failure") if each in ended), "success"), outputs=outputs
        )

    # Artifacts ----------------------------------------------------------------------------------

    def artifacts(self, run_id: int) -> dict[str, Path]:
        """The artifacts of a run: name to folder."""
        return self._artifacts[run_id]

    def keep(self, run_id: int, name: str, files: dict[str, bytes]) -> None:
        folder = self.folder / "artifacts" / str(run_id) / name
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        self._artifacts[run_id][name] = folder
        self.server.add_artifact(self.server.runs[run_id], name, files)


class Job:
    """One job on a fresh runner."""

    def __init__(
        self, platform: Platform, run: Run, call: Call, contexts: Contexts, shown: str, job: dict[str, Any]
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
        outputs = {key: str(self._expanded(value)) for key, value in self.job.get("outputs", {}).items()}
        return JobResult(self.shown, "failure" if self.failed else "success", tuple(steps), outputs)

    @property
    def status(self) -> dict[str, bool]:
        return {"success": not self.failed, "failure": self.failed, "cancelled": False}

    def _expanded(self, value: Any) -> Any:
        return self.platform.language.expanded(value, self.contexts, self.status)

    def _step(self, step: dict[str, Any]) -> Iterator[StepResult]:
        name = str(self._expanded(step.get("name", step.get("uses", "run"))))
        if not self.platform.language.holds(step.get("if"), self.contexts, self.status):
            self._remember(step, "skipped", {})
            yield StepResult(name, "skipped")
            return
        outputs: dict[str, str] = {}
        if "run" in step:
            passed, log = self._run(step, outputs)
        elif step["uses"].startswith("./"):
            passed, log = self._composite(step)
        else:
            passed, log = ACTIONS[step["uses"].split("@")[0]](self, self._expanded(step.get("with", {})))
        tolerated = self._expanded(step.get("continue-on-error", False)) is True
        if not passed and not tolerated:
            self.failed = True
        self._remember(step, "success" if passed or tolerated else "failure", outputs)
        yield StepResult(name, "success" if passed or tolerated else "failure", log)

    def _remember(self, step: dict[str, Any], conclusion: str, outputs: dict[str, str]) -> None:
        if "id" in step:
            self.contexts["steps"][step["id"]] = {"conclusion": conclusion, "outputs": outputs}

    def _composite(self, step: dict[str, Any]) -> tuple[bool, str]:
        action = yaml.safe_load((self.workspace / step["uses"] / "action.yml").read_text("utf-8"))
        results = [result for inner in action["runs"]["steps"] for result in self._step(inner)]
        return all(each.conclusion != "failure" for each in results), "\n".join(each.log for each in results)

    def _run(self, step: dict[str, Any], outputs: dict[str, str]) -> tuple[bool, str]:
        """A `run` under `bash -e`, as the runner starts it, with its command files."""
        files = {
            name: self.temp / name.lower()
            for name in ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
        }
        for file in files.values():
            file.write_text("", "utf-8")
        script = self.temp / "step.sh"
        script.write_text(self._expanded(step["run"]), "utf-8")
        folder = self.workspace / str(self._expanded(step.get("working-directory", "")))
        variables = {**self.contexts["env"], **self._expanded(step.get("env", {}))}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            cwd=folder,
            env={
                **self._machine(),
                **{name: str(file) for name, file in files.items()},
                **{key: _text(value) for key, value in variables.items()},
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        outputs.update(_pairs(files["GITHUB_OUTPUT"].read_text("utf-8")))
        self.contexts["env"].update(_pairs(files["GITHUB_ENV"].read_text("utf-8")))
        self.path = files["GITHUB_PATH"].read_text("utf-8").split() + self.path
        self.run.summary += files["GITHUB_STEP_SUMMARY"].read_text("utf-8")
        return done.returncode == 0, f"$ {step['run']}\n{done.stdout}"

    def _machine(self) -> dict[str, str]:
        """A runner's variables: its own, and what GitHub tells of the run. None of those that the tests run under."""
        github = self.contexts["github"]
        told = (
            "repository",
            "sha",
            "ref",
            "run_id",
            "run_attempt",
            "actor",
            "api_url",
            "server_url",
            "event_name",
            "event_path",
            "workspace",
        )
        return {
            "PATH": os.pathsep.join([*self.path, *TOOLS]),
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

    def plant_environment(self) -> None:
        """What `make env` would make: a .venv whose kernelgate runs this checkout's code in the tests' Python."""
        verb = self.workspace / ".venv/bin/kernelgate"
        verb.parent.mkdir(parents=True)
        lines = ["#!/bin/sh", f"export PYTHONPATH={self.workspace}"]
        if not self.hosted and self.platform.gpu_verbs:
            stand_in = f'exec {sys.executable} -P {self.platform.gpu_verbs} "$@"'
            lines.append(f'case "$1" in doctor|fuzz|bench|profile) {stand_in};; esac')
        lines.append(f'exec {sys.executable} -P -m ci.cli "$@"')
        verb.write_text("\n".join(lines) + "\n", "utf-8")
        verb.chmod(0o755)
        (self.workspace / ".venv/.ready").write_text("", "utf-8")


# GitHub's own actions -------------------------------------------------------------------------------------------------

TOOLS = [str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/cuda/bin"]


def _checkout(job: Job, given: dict[str, Any]) -> tuple[bool, str]:
    assert given["persist-credentials"] is False
    repository = given.get("repository") or job.platform.server.repository
    sha = given.get("ref") or job.contexts["github"]["sha"]
    folder = job.workspace / given.get("path", "")
    for words in (
        ["clone", "--quiet", "--shared", "--no-checkout", str(job.platform.origins[repository]), str(folder)],
        ["-C", str(folder), "checkout", "--quiet", "--detach", sha],
    ):
        done = subprocess.run(["git", *words], capture_output=True, text=True)
        if done.returncode:
            return False, done.stderr
    if "path" not in given:
        job.plant_environment()
    return True, f"{repository} at {sha}"


def _upload(job: Job, given: dict[str, Any]) -> tuple[bool, str]:
    """Files and folders, below their least common ancestor, as upload-artifact lays them out."""
    asked = [job.workspace / line.strip() for line in given["path"].splitlines() if line.strip()]
    roots = [path for path in asked if path.exists()]
    if not roots:
        return given["if-no-files-found"] != "error", "no files were found"
    found = [
        file for root in roots for file in ([root] if root.is_file() else sorted(root.rglob("*"))) if file.is_file()
    ]
    top = Path(os.path.commonpath([root.parent if root.is_file() else root for root in roots]))
    job.platform.keep(job.run.id, given["name"], {str(file.relative_to(top)): file.read_bytes() for file in found})
    return True, f"{given['name']}: {len(found)} files"


def _download(job: Job, given: dict[str, Any]) -> tuple[bool, str]:
    """One artifact into `path`, or those that match `pattern` each into a folder of its name."""
    kept = job.platform.artifacts(job.run.id)
    folder = job.workspace / given["path"]
    if "name" in given:
        if given["name"] not in kept:
            return False, f"there is no artifact {given['name']}"
        shutil.copytree(kept[given["name"]], folder, dirs_exist_ok=True)
        return True, given["name"]
    pattern = re.compile(given["pattern"].replace("*", ".*"))
    chosen = [name for name in kept if pattern.fullmatch(name)]
    for name in chosen:
        shutil.copytree(kept[name], folder / name)
    return True, ", ".join(chosen)


def _nothing(_: Job, given: dict[str, Any]) -> tuple[bool, str]:
    return True, str(given)


ACTIONS: dict[str, Callable[[Job, dict[str, Any]], tuple[bool, str]]] = {
    "actions/checkout": _checkout,
    "actions/setup-python": _nothing,
    "actions/upload-artifact": _upload,
    "actions/download-artifact": _download,
}


# Small things ---------------------------------------------------------------------------------------------------------


def _needs(job: dict[str, Any]) -> list[str]:
    needs = job.get("needs", [])
    return [needs] if isinstance(needs, str) else needs


def _ancestors(jobs: dict[str, dict[str, Any]], name: str) -> set[str]:
    """All jobs that must have ended before a job: `success()` asks about every one of them."""
    direct = set(_needs(jobs[name]))
    return direct.union(*(_ancestors(jobs, need) for need in direct))


def _least(asked: dict[str, str], ceiling: dict[str, str]) -> dict[str, str]:
    """What a job is granted: what it asks for, as far as its caller may."""
    levels = ["read", "write"]
    return {name: min(level, ceiling[name], key=levels.index) for name, level in asked.items() if name in ceiling}


def _everything() -> dict[str, str]:
    return dict.fromkeys(READ_ALL, "write")


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
