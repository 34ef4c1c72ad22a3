"""The project's workflows in a real engine: nektos/act, on this host, against the GitHub of the tests.

act parses the files, orders the jobs, evaluates expressions and matrices, calls reusable workflows and composite
actions, and runs each step. What stands in: GitHub's own actions (stand_in.py), the API (tests/fakes) and the GPU
(tests/workflows/gpu.py). act enforces no permissions: the server does, with those that the files give the jobs that
run at the time.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Listener
from pathlib import Path
from typing import Any

import yaml

from tests.engine.log import Log
from tests.engine.prepared import GATE, keep_calls, prepare_tree
from tests.engine.stand_in import asked
from tests.fakes.github_server import FakeGitHub, Json
from tests.miniature import git
from tests.workflows.actions import HOSTED_TOOLS, INSTALLED, KNOWN, TOOLS
from tests.workflows.documents import ROOT, actions, steps, workflows
from tests.workflows.language import Language
from tests.workflows.runner import HOME_REPOSITORY, Call, Contexts, JobResult, Platform, WorkflowRun

LIMIT_S = 400
"""A workflow that takes longer hangs."""
OUTPUTS = ("artifact-id", "artifact-url", "commit", "page_url", "ref")


class Engine(Platform):
    """The same GitHub as `Platform`; act runs the jobs."""

    runners = 1
    """Jobs that go on at the same time."""

    def __init__(self, origins: dict[str, Path], server: FakeGitHub, language: Language, folder: Path) -> None:
        super().__init__(origins, server, language, folder)
        self._begun: dict[int, tuple[Call, Contexts]] = {}
        self._before: set[str] = set()
        """Artifacts of an attempt before, which the next one may replace."""

    def run_failed_again(self, run: WorkflowRun) -> None:
        """The run's next attempt, with what the jobs that succeeded left and put out in the one before."""
        call, github = self._begun[run.id]
        shown = self.server.runs[run.id]
        shown["run_attempt"] += 1
        run.jobs = {name: job for name, job in run.jobs.items() if job.conclusion == "success"}
        self.server.jobs[run.id] = [job for job in self.server.jobs[run.id] if job["name"] in run.jobs]
        self._before = set(self.artifacts(run.id))
        self.run_jobs(run, call, {**github, "run_attempt": str(shown["run_attempt"])})
        shown["conclusion"] = "success" if run.conclusion == "success" else "failure"

    def keep(self, run: WorkflowRun, name: str, files: dict[str, bytes], archive: bool = True) -> Json | None:
        if name in self._before:
            self._before.remove(name)
            shutil.rmtree(self.artifacts(run.id).pop(name))
        return super().keep(run, name, files, archive)

    def run_jobs(self, run: WorkflowRun, call: Call, github: Contexts) -> dict[str, JobResult]:
        self._begun[run.id] = call, github
        folder = self.folder / "act" / f"{run.id}-{github['run_attempt']}"
        tree = self._tree(folder / "tree", call.repository, call.sha)
        keep_calls(tree, call.workflow.path, run.jobs)
        with self._desk(run) as desk:
            known = {
                **desk,
                "origins": {name: str(path) for name, path in self.origins.items()},
                "repository": call.repository,
                "sha": call.sha,
                "run_id": run.id,
                "gpu_verbs": str(self.gpu_verbs or ""),
                "stood_in": sorted(self.stood_in),
                "held": sorted(self.protected - self.approved),
            }
            (folder / "engine.json").write_text(json.dumps(known), "utf-8")
            (folder / "event.json").write_text(json.dumps(github["event"]), "utf-8")
            log = Log(run, self.server, call)
            self._act(folder, tree, call, github, log)
        return run.jobs

    def _tree(self, folder: Path, repository: str, ref: str) -> Path:
        """A checkout whose workflows and actions are prepared for act."""
        sha = self.git(repository, "rev-parse", f"{ref}^{{commit}}").strip()
        git(self.folder, "clone", "--quiet", "--no-checkout", str(self.origins[repository]), str(folder))
        git(folder, "fetch", "--quiet", "origin", sha)
        git(folder, "checkout", "--quiet", "--detach", sha)
        prepare_tree(folder, repository, sha)
        return folder

    def _act(self, folder: Path, tree: Path, call: Call, github: Contexts, log: Log) -> None:
        words = [
            str(INSTALLED / "act"),
            github["event_name"],
            *("-W", call.workflow.path, "-e", str(folder / "event.json"), "--actor", github["actor"]),
            *("--json", "--insecure-secrets", "--no-skip-checkout", "--no-cache-server"),
            *("--concurrent-jobs", str(self.runners)),
            *("--action-cache-path", str(folder / "cache"), "-s", f"GITHUB_TOKEN={github['token']}"),
            *(word for name in ("ubuntu-24.04", "self-hosted") for word in ("-P", f"{name}=-self-hosted")),
            *(word for pair in self._repositories(folder, tree) for word in ("--local-repository", "=".join(pair))),
            *(word for pair in self._variables(folder, call, github).items() for word in ("--env", "=".join(pair))),
            *(word for pair in self.variables.items() for word in ("--var", "=".join(pair))),
        ]
        path = os.pathsep.join([str(HOSTED_TOOLS), *TOOLS])
        outside = {"PATH": path, "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8"}
        quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "start_new_session": True}
        with (
            (folder / "log.jsonl").open("w", encoding="utf-8") as file,
            subprocess.Popen(words, cwd=tree, env=outside, text=True, **quiet) as act,
        ):
            hanging = threading.Timer(LIMIT_S, os.killpg, (act.pid, signal.SIGKILL))
            hanging.start()
            for line in act.stdout or ():
                file.write(line)
                log.read(line)
            hanging.cancel()
        assert log.run.jobs or act.returncode == 0, (folder / "log.jsonl").read_text("utf-8")[-4000:]

    def _variables(self, folder: Path, call: Call, github: Contexts) -> dict[str, str]:
        """What GitHub tells a job; SHA_REF is act's name for the commit."""
        told = ("repository", "repository_owner", "ref", "ref_name", "run_id", "run_attempt", "api_url", "server_url")
        return {
            **{f"GITHUB_{name.upper()}": github[name] for name in told},
            "SHA_REF": call.sha,
            "ENGINE": str(folder / "engine.json"),
            "no_proxy": "127.0.0.1",
            **self.machine,
        }

    # What `uses:` names -------------------------------------------------------------------------

    def _repositories(self, folder: Path, tree: Path) -> Iterator[tuple[str, str]]:
        """Each action and each repository that a workflow names, with the folder that stands for it."""
        home = [self.origins[HOME_REPOSITORY]]
        refs = git(home[0], "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags").split()
        trees = {ref: self._tree(folder / "home" / ref, HOME_REPOSITORY, ref) for ref in refs}
        yield from ((f"{HOME_REPOSITORY}@{ref}", str(each)) for ref, each in trees.items())
        documents = [
            doc for each in (tree, *trees.values()) for doc in (*workflows(each).values(), *actions(each).values())
        ]
        used = {step["uses"] for doc in documents for _, step in steps(doc) if "uses" in step}
        for uses in sorted(name for name in used if name.startswith("actions/") or name == GATE):
            name = uses.split("@")[0].split("/")[1]
            yield uses, str(_stand_in(folder / "actions" / name, name))

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
                asked(known, "end")
                thread.join()

    def _answer(self, listener: Listener, run: WorkflowRun) -> None:
        question: tuple[Any, ...] = ()
        while question != ("end",):
            with listener.accept() as connection:
                question = connection.recv()
                match question:
                    case ("keep", name, files, archive):
                        kept = self.keep(run, name, files, archive)
                        connection.send(kept["id"] if kept else None)
                    case _:
                        connection.send(self.artifacts(run.id))


def _stand_in(folder: Path, name: str) -> Path:
    """A composite action that hands its inputs to stand_in.py."""
    command = f"{sys.executable} -P -m tests.engine.stand_in {name}"
    inputs = KNOWN.get(name, {"name"})
    body: dict[str, Any] = {
        "name": name,
        "inputs": {each: {"default": ""} for each in sorted(inputs)},
        "outputs": {each: {"value": f"${{{{ steps.done.outputs.{each} }}}}"} for each in OUTPUTS},
        "runs": {
            "using": "composite",
            "steps": [
                {
                    "id": "done",
                    "shell": "bash",
                    "run": command,
                    "env": {"INPUTS": "${{ toJSON(inputs) }}", "PYTHONPATH": str(ROOT)},
                }
            ],
        },
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "action.yml").write_text(yaml.safe_dump(body), "utf-8")
    return folder
