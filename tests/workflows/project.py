"""The project on a GitHub of the tests: open a pull request, comment, dispatch, and see what its workflows do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.github_server import FakeGitHub, Json, Pull, event
from tests.workflows.documents import ROOT
from tests.workflows.language import Language
from tests.workflows.repository import Change, Repository, open_pull, push, queue
from tests.workflows.runner import HOME_REPOSITORY, Platform, WorkflowRun

HEADER = "csrc/attention/mma_sync/tile.h"
DESCRIPTION = """## Intent and hypothesis
One line more does nothing.
## What was changed
A comment.
## Claimed effect
- s512_b32_h8_d64_fp16: 10% faster
## Statistical results
The bot's.
## Profiler evidence
Before: 200 registers
After: 200 registers
## Correctness
- [x] `kernelgate fuzz` passes on my machine
## Testing done
make pr
"""


def touch_kernel(tree: Path) -> None:
    """Another library that does the same: its machine code differs, for otherwise nothing is measured."""
    with (tree / HEADER).open("a", encoding="utf-8") as file:
        file.write("\n[[gnu::used]] static const int one_more_number = 1;\n")


def break_kernel(tree: Path) -> None:
    with (tree / HEADER).open("a", encoding="utf-8") as file:
        file.write("\nthis does not compile;\n")


def touch_kernel_again(tree: Path) -> None:
    with (tree / HEADER).open("a", encoding="utf-8") as file:
        file.write("\n[[gnu::used]] static const int yet_another_number = 2;\n")


def edit_docs(tree: Path) -> None:
    (tree / "README.md").write_text("Read me.\n", encoding="utf-8")


def call_kernelgate(tree: Path) -> None:
    """The workflows of a repository whose kernel lies there and whose kernelgate lies elsewhere."""
    shutil.rmtree(tree / ".github")
    shutil.copytree(ROOT / "docs/caller", tree / ".github/workflows", ignore=shutil.ignore_patterns("*.toml"))


@dataclass
class Project:
    """The project on GitHub: `platform` runs its workflows, `server` is what people see."""

    repository: Repository
    server: FakeGitHub
    platform: Platform

    def pull(self, change: Change, source: str | None = None, body: str = DESCRIPTION) -> tuple[Pull, Json, str]:
        return open_pull(self.server, self.repository, change, source or self.server.repository, body=body)

    def push(self, opened: tuple[Pull, Json, str], change: Change) -> tuple[Pull, Json, str]:
        """One commit more on the pull request, as the event of a push to it has it."""
        return push(self.server, self.repository, opened, change)

    def event(self, name: str) -> Json:
        """GitHub's example of the event, of this repository."""
        payload = event(name)
        payload["repository"] |= {"full_name": self.server.repository, "default_branch": "main"}
        return payload

    def measure(self, opened: tuple[Pull, Json, str], file: str = "measure-pull-request.yml") -> WorkflowRun:
        """Runs `performance` for a pull request, from the merge commit that GitHub made of it."""
        pull, payload, merge = opened
        fork = pull.head_repository != self.server.repository
        ref = f"refs/pull/{pull.number}/merge"
        return self.platform.start(file, "pull_request", payload, sha=merge, ref=ref, head_sha=pull.head_sha, fork=fork)

    def queue(self, pull: Pull, file: str = "measure-pull-request.yml") -> WorkflowRun:
        """Runs `performance` for the group that the merge queue makes of the pull request."""
        payload, head, ref = queue(self.server, self.repository, pull)
        return self.platform.start(file, "merge_group", payload, sha=head, ref=ref)

    def report(self, run: WorkflowRun) -> WorkflowRun:
        """Runs `report` on the default branch after `run` ended."""
        payload = self.event("workflow_run.completed")
        payload["workflow_run"] = self.server.runs[run.id]
        main = self.repository.main
        return self.platform.start("report.yml", "workflow_run", payload, sha=main, ref="refs/heads/main")

    def comment(self, pull: Pull, body: str, author: str, file: str = "answer-command.yml") -> WorkflowRun:
        """Runs `command` for a new comment on a pull request."""
        written = self.server.comment(pull.number, body, author)
        written["created_at"] = "2030-01-01T00:00:00Z"
        payload = self.event("issue_comment.created")
        payload["comment"] = {key: value for key, value in written.items() if key != "issue_number"}
        payload["issue"] |= {"number": pull.number, "pull_request": {"url": "x"}}
        payload["sender"]["login"] = author
        main = self.repository.main
        return self.platform.start(file, "issue_comment", payload, sha=main, ref="refs/heads/main")

    def dispatch(self, name: str, **inputs: str) -> WorkflowRun:
        payload = self.event("workflow_dispatch") | {"inputs": inputs}
        main = self.repository.main
        return self.platform.start(name, "workflow_dispatch", payload, sha=main, ref="refs/heads/main")


@contextmanager
def hosted(name: str, folder: Path, language: Language, platform: type[Platform] = Platform) -> Iterator[Project]:
    """The project's files in a repository `name`; kernelgate's own stands beside it where that is another one."""
    repository = Repository(folder / "own")
    home = repository if name == HOME_REPOSITORY else Repository(folder / "home")
    with FakeGitHub(name) as server:
        server.refs["heads/main"] = repository.main
        origins = {HOME_REPOSITORY: home.origin, name: repository.origin}
        running = platform(origins, server, language, folder)
        running.gpu_verbs = Path(__file__).with_name("gpu.py")
        yield Project(repository, server, running)
