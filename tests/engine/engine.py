"""The project's workflows in a real engine: nektos/act, on this host, against the GitHub of the tests.

act parses the files, orders the jobs, evaluates expressions and matrices, calls reusable workflows and composite
actions, and runs each step. What stands in: GitHub's own actions (stand_in.py), the API (tests/fakes) and the GPU
(gpu.py). act enforces no permissions: the server does, with those that the files give the jobs that run at the time.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

from tests.engine.log import Log, WorkflowRun
from tests.engine.prepared import GATE, prepare_tree, put_aside, write
from tests.engine.stand_in import HOSTED_TOOLS, INSTALLED, KNOWN, TOOLS, asked_of, started_by
from tests.fakes.github_server import FakeGitHub, Json
from tests.miniature import git
from tests.workflows.documents import HOME_REPOSITORY, ROOT, Workflow, actions, steps, workflows
from tests.workflows.language import Language

LIMIT_S = 900
"""A workflow that takes longer hangs."""
OUTPUTS = ("artifact-id", "artifact-url", "commit", "page_url", "ref")
DEFAULT_TYPES = {"pull_request": ("opened", "synchronize", "reopened")}
"""Which kinds of an event start a workflow that names none; all, where it does not stand here."""
CALLED = re.compile(rf"uses: {re.escape(HOME_REPOSITORY)}/\S+@(\S+)")
READABLE = ("actions", "checks", "contents", "issues", "pull-requests")


@dataclass
class Engine:
    """GitHub with hosted runners and one GPU runner, for the repository of `server`."""

    server: FakeGitHub
    origins: dict[str, Path]
    """The bare repositories by name; kernelgate's own must be among them."""
    language: Language
    folder: Path
    starter: str
    """Of the process that runs the verbs and the stand-ins; empty where each is started by itself."""
    held: set[str] = field(default_factory=lambda: {"kernelgate-forks"})
    """Environments whose jobs wait for a maintainer."""
    approver: str = ""
    """Who approves each run's `kernelgate-forks`, as GitHub tells it."""
    stood_in: tuple[str, ...] = ("doctor", "canary", "fuzz", "bench", "sanitize", "profile")
    """The verbs that gpu.py answers on the GPU runner; the others are real."""
    machine: dict[str, str] = field(default_factory=dict)
    """Variables of every runner."""
    variables: dict[str, str] = field(default_factory=dict)
    """Of the repository's settings."""
    runners: int = 1
    """Jobs that go on at the same time."""
    artifacts: dict[int, dict[str, Path]] = field(default_factory=lambda: defaultdict(dict))
    """Of each run the newest of each name: name to folder."""
    before: set[str] = field(default_factory=set)
    """Artifacts of an attempt before, which the next one may replace."""

    # Runs ---------------------------------------------------------------------------------------

    def start(
        self,
        name: str,
        event: str,
        payload: Json,
        *,
        sha: str,
        ref: str,
        fork: bool = False,
        only: tuple[str, ...] = (),
    ) -> WorkflowRun:
        """Runs the workflow file `name` of commit `sha` for an event. `fork`: the token can only read."""
        path = f".github/workflows/{name}"
        workflow = Workflow(path, git(self.origins[self.server.repository], "show", f"{sha}:{path}"))
        kinds = (workflow.triggers[event] or {}).get("types", DEFAULT_TYPES.get(event)) if event != "schedule" else None
        assert kinds is None or payload["action"] in kinds, f"{path} is not started by {event} {payload['action']}"
        if event == "workflow_dispatch":
            # GitHub sends all inputs that the workflow declares, as texts.
            declared = {key: each.get("default", "") for key, each in workflow.triggers[event]["inputs"].items()}
            given = {**declared, **payload["inputs"]}
            payload = {**payload, "inputs": {key: {False: "false"}.get(value, value) for key, value in given.items()}}
        facts = {"event": event, "path": path}
        if event == "pull_request":
            shown = self.server.add_run(self.server.pulls[payload["number"]], **facts)
        else:
            shown = self.server.add_run(**facts, head_sha=sha, head_branch=ref.removeprefix("refs/heads/"))
        known = {"github": {"event_name": event, "event": payload}}
        shown["display_title"] = self.language.expanded(workflow.content.get("run-name", ""), known) or "Change"
        if self.approver:
            self.server.approvals[shown["id"]] = {"kernelgate-forks": self.approver}
        ceiling = dict.fromkeys(READABLE, "read" if fork else "write")
        run = WorkflowRun(shown["id"], workflow, event, payload, sha, ref, ceiling, only)
        self._run_jobs(run)
        return run

    def run_failed_again(self, run: WorkflowRun) -> None:
        """The run's next attempt, with what the jobs that succeeded left and put out in the one before."""
        self.server.runs[run.id]["run_attempt"] += 1
        run.jobs = {name: job for name, job in run.jobs.items() if job.conclusion == "success"}
        self.server.jobs[run.id] = [job for job in self.server.jobs[run.id] if job["name"] in run.jobs]
        self.before = set(self.artifacts[run.id])
        self._run_jobs(run)

    def keep(
        self, run: WorkflowRun, name: str, files: dict[str, bytes], archive: bool = True, overwrite: bool = False
    ) -> int | None:
        """A new artifact, a zip file or one file: its id; None where the run has one of that name, which stays."""
        kept, folder = self.artifacts[run.id], self.folder / "artifacts" / str(run.id) / name
        if name in self.before:
            self.before.remove(name)
            shutil.rmtree(kept.pop(name))
        if name in kept and not overwrite:
            return None
        for number, one in list(self.server.artifacts.items()):
            if (one["workflow_run"]["id"], one["name"]) == (run.id, name) and overwrite:
                del self.server.artifacts[number]
                shutil.rmtree(folder)
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        kept[name] = folder
        whole = files if archive else next(iter(files.values()))
        return int(self.server.add_artifact(self.server.runs[run.id], name, whole)["id"])

    def _run_jobs(self, run: WorkflowRun) -> None:
        shown = self.server.runs[run.id]
        folder = self.folder / "act" / f"{run.id}-{shown['run_attempt']}"
        folder.mkdir(parents=True)
        tree = self._tree(self.server.repository, run.sha)
        if run.jobs or run.only:
            tree = shutil.copytree(tree, folder / "tree", symlinks=True)
            put_aside(tree, run.workflow.path, {name: job.outputs for name, job in run.jobs.items()}, run.only)
        with self._desk(run) as desk:
            known = {
                **desk,
                "origins": {name: str(path) for name, path in self.origins.items()},
                "repository": self.server.repository,
                "sha": run.sha,
                "ref": run.ref,
                "run_id": run.id,
                "stood_in": self.stood_in,
                "starter": self.starter,
                "held": sorted(self.held),
            }
            (folder / "engine.json").write_text(json.dumps(known), "utf-8")
            (folder / "event.json").write_text(json.dumps(run.payload), "utf-8")
            self._act(folder, tree, run)
        shown["conclusion"] = "success" if run.conclusion == "success" else "failure"

    def _act(self, folder: Path, tree: Path, run: WorkflowRun) -> None:
        words = [
            *("timeout", "--signal=KILL", str(LIMIT_S), str(INSTALLED / "act")),
            run.event,
            *("-W", run.workflow.path, "-e", str(folder / "event.json"), "--actor", "octocat"),
            *("--json", "--insecure-secrets", "--no-skip-checkout", "--no-cache-server"),
            *("--concurrent-jobs", str(self.runners)),
            *("--action-cache-path", str(folder / "cache"), "-s", f"GITHUB_TOKEN={self.server.token}"),
            *(word for name in ("ubuntu-24.04", "self-hosted") for word in ("-P", f"{name}=-self-hosted")),
            *(word for pair in self._repositories(tree) for word in ("--local-repository", "=".join(pair))),
            *(word for pair in self._variables(folder, run).items() for word in ("--env", "=".join(pair))),
            *(word for pair in self.variables.items() for word in ("--var", "=".join(pair))),
        ]
        path = os.pathsep.join([str(HOSTED_TOOLS), *TOOLS])
        outside = {"PATH": path, "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "start_new_session": True}
        log = Log(run, self.server)
        with (
            (folder / "log.jsonl").open("w", encoding="utf-8") as file,
            subprocess.Popen(words, cwd=tree, env=outside, text=True, **quiet) as act,
        ):
            for line in act.stdout or ():
                file.write(line)
                log.read(line)
        assert run.jobs or act.returncode == 0, (folder / "log.jsonl").read_text("utf-8")[-4000:]

    def _variables(self, folder: Path, run: WorkflowRun) -> dict[str, str]:
        """What GitHub tells a job; SHA_REF is act's name for the commit."""
        return {
            "GITHUB_REPOSITORY": self.server.repository,
            "GITHUB_REPOSITORY_OWNER": self.server.repository.split("/")[0],
            "GITHUB_REF": run.ref,
            "GITHUB_REF_NAME": run.ref.split("/", 2)[2],
            "GITHUB_RUN_ID": str(run.id),
            "GITHUB_RUN_ATTEMPT": str(self.server.runs[run.id]["run_attempt"]),
            "GITHUB_API_URL": self.server.url,
            "GITHUB_SERVER_URL": "https://github.com",
            "SHA_REF": run.sha,
            "ENGINE": str(folder / "engine.json"),
            "no_proxy": "127.0.0.1",
            **self.machine,
        }

    # What `uses:` names -------------------------------------------------------------------------

    def _tree(self, repository: str, ref: str) -> Path:
        """A checkout, of the workflows and actions alone, which are prepared for act; made once."""
        sha = git(self.origins[repository], "rev-parse", f"{ref}^{{commit}}")
        folder = self.folder / "trees" / repository / sha
        if not folder.exists():
            git(self.folder, "clone", "--quiet", "--shared", "--sparse", str(self.origins[repository]), str(folder))
            git(folder, "sparse-checkout", "set", ".github")
            git(folder, "checkout", "--quiet", "--detach", sha)
            prepare_tree(folder, repository, sha)
        return folder

    def _repositories(self, tree: Path) -> Iterator[tuple[str, str]]:
        """Each action and each repository that a workflow names, with the folder that stands for it."""
        trees, waiting, documents = dict[str, Path](), [tree], list[Workflow]()
        while waiting:
            each = waiting.pop()
            documents += (*workflows(each).values(), *actions(each).values())
            refs = {ref for doc in documents for ref in CALLED.findall(doc.text)}
            new = {ref: self._tree(HOME_REPOSITORY, ref) for ref in refs - trees.keys()}
            trees |= new
            waiting += new.values()
        yield from ((f"{HOME_REPOSITORY}@{ref}", str(each)) for ref, each in trees.items())
        used = {step["uses"] for doc in documents for _, step in steps(doc.content) if "uses" in step}
        for uses in sorted(name for name in used if name.startswith("actions/") or name == GATE):
            name = uses.split("@")[0].split("/")[1]
            yield uses, str(_stand_in(self.folder / "actions" / name, name, self.starter))

    # Artifacts ----------------------------------------------------------------------------------

    @contextmanager
    def _desk(self, run: WorkflowRun) -> Iterator[dict[str, str]]:
        """Answers the stand-ins of upload and download while a run goes on: (how they reach it)."""
        key = secrets.token_hex(8)
        with Listener(authkey=key.encode()) as listener:
            known = {"desk": str(listener.address), "key": key}
            thread = threading.Thread(target=self._answer, args=(listener, run), daemon=True)
            thread.start()
            try:
                yield known
            finally:  # a thread that still waited here would answer for the next run's listener
                asked_of(known, "end")
                thread.join()

    def _answer(self, listener: Listener, run: WorkflowRun) -> None:
        question: tuple[Any, ...] = ()
        while question != ("end",):
            with listener.accept() as connection:
                question = connection.recv()
                match question:
                    case ("keep", *what):
                        connection.send(self.keep(run, *what))
                    case _:
                        connection.send(self.artifacts[run.id])


def _stand_in(folder: Path, name: str, starter: str) -> Path:
    """A composite action that hands its inputs to stand_in.py."""
    command = f"{started_by(starter)} -m tests.engine.stand_in {name}"
    told = {"INPUTS": "${{ toJSON(inputs) }}", "PYTHONPATH": str(ROOT)}
    body: dict[str, Any] = {
        "name": name,
        "inputs": {each: {"default": ""} for each in sorted(KNOWN[name])},
        "outputs": {each: {"value": f"${{{{ steps.done.outputs.{each} }}}}"} for each in OUTPUTS},
        "runs": {"using": "composite", "steps": [{"id": "done", "shell": "bash", "run": command, "env": told}]},
    }
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "action.yml", body)
    return folder
