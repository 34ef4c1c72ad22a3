"""The project on a GitHub of the tests: open a pull request, comment, dispatch, and see what its workflows do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.engine.engine import Engine
from tests.engine.log import WorkflowRun
from tests.fakes.github_server import FakeGitHub, Json, Pull, event
from tests.workflows.documents import HOME_REPOSITORY, ROOT
from tests.workflows.language import Language
from tests.workflows.repository import Change, Repository

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
MEASURE = "measure (l4) / measure"
MEASURED = {"build / base", "build / head", MEASURE}
"""The jobs that measure."""
OpenedPull = tuple[Pull, Json, str]
"""A pull request, GitHub's event of it, and the merge commit."""


def appends(file: str, line: str) -> Change:
    def change(tree: Path) -> None:
        with (tree / file).open("a", encoding="utf-8") as opened:
            opened.write(f"\n{line}\n")

    return change


touch_kernel = appends(HEADER, "[[gnu::used]] static const int one_more_number = 1;")
"""Another library that does the same: its machine code differs, for otherwise nothing is measured."""
touch_kernel_again = appends(HEADER, "[[gnu::used]] static const int yet_another_number = 2;")
break_kernel = appends(HEADER, "this does not compile;")
edit_docs = appends("README.md", "Read me.")


def replaces(file: str, before: str, after: str) -> Change:
    def change(tree: Path) -> None:
        text = (tree / file).read_text("utf-8")
        assert text.count(before) == 1, file
        (tree / file).write_text(text.replace(before, after), "utf-8")

    return change


plan_one_case = replaces(
    ".ci/kernels/attention.py", "    cpu_cases = [", "    cases = [case(512, 32, 8)]\n    cpu_cases = ["
)
"""What the made-up GPU times is all that there is."""
two_cases = replaces(
    ".ci/kernels/attention.py", "case(512, 32, 8)]\n    cpu", "case(512, 32, 8), case(256, 32, 8)]\n    cpu"
)


def call_kernelgate(tree: Path) -> None:
    """The workflows of a repository whose kernel lies there and whose kernelgate lies elsewhere."""
    shutil.rmtree(tree / ".github")
    shutil.copytree(ROOT / "docs/caller", tree / ".github/workflows", ignore=shutil.ignore_patterns("*.toml"))


@dataclass(kw_only=True)
class Project(Engine):
    repository: Repository

    def pull(self, change: Change, source: str | None = None, body: str = DESCRIPTION) -> OpenedPull:
        """A pull request from the repository `source`."""
        branch = f"pull-{max(self.server.pulls, default=0) + 1}"
        self.repository.git("branch", branch, "main")
        pull = self.server.open_pull(
            base_sha=self.repository.main,
            head_ref=branch,
            head_repository=source or self.server.repository,
            body=body,
        )
        return self.push(pull, change, "opened")

    def push(self, pull: Pull, change: Change, action: str = "synchronize") -> OpenedPull:
        """One commit more on the pull request."""
        self.repository.change(pull.head_ref, change)
        return self.offer(pull, action)

    def offer(self, pull: Pull, action: str) -> OpenedPull:
        """Its branch as it is now, on top of its base, as GitHub tells it."""
        git = self.repository.git
        pull.head_sha = git("rev-parse", pull.head_ref)
        merge = self.repository.merge(pull.base_sha, pull.head_ref, "Merge")
        git("push", "--quiet", "--force", "origin", f"{pull.head_sha}:refs/pull/{pull.number}/head")
        git("push", "--quiet", "--force", "origin", f"{merge}:refs/pull/{pull.number}/merge")
        names = git("diff", "--name-only", pull.base_sha, pull.head_sha).splitlines()
        pull.files = [{"filename": name, "status": "modified"} for name in names]
        self.server.merge_bases[pull.base_sha, pull.head_sha] = pull.base_sha
        payload = self.event(f"pull_request.{action}")
        payload |= {"number": pull.number, "pull_request": self.server.show_pull(pull, whole=True)}
        return pull, payload, merge

    def event(self, name: str) -> Json:
        """GitHub's example of the event, of this repository."""
        payload = event(name)
        payload["repository"] |= {"full_name": self.server.repository, "default_branch": "main"}
        return payload

    def measure(
        self, opened: OpenedPull, file: str = "measure-pull-request.yml", only: tuple[str, ...] = ()
    ) -> WorkflowRun:
        """Runs `performance` for a pull request, from the merge commit that GitHub made of it."""
        pull, payload, merge = opened
        fork = pull.head_repository != self.server.repository
        ref = f"refs/pull/{pull.number}/merge"
        return self.start(file, "pull_request", payload, sha=merge, ref=ref, fork=fork, only=only)

    def queue(self, pull: Pull) -> WorkflowRun:
        """Somebody with write access queues the pull request: runs `performance` for the group that GitHub makes."""
        base = self.repository.main
        head = self.repository.merge(base, pull.head_ref, f"Merge pull request #{pull.number}")
        ref = f"refs/heads/gh-readonly-queue/main/pr-{pull.number}-{base}"
        self.repository.git("push", "--quiet", "origin", f"{head}:{ref}")
        names = self.repository.git("diff", "--name-only", base, head).splitlines()
        self.server.compared |= {(base, head): names, ("main", head): names}
        payload = self.event("merge_group.checks_requested")
        payload["merge_group"] |= {"head_sha": head, "base_sha": base, "head_ref": ref, "base_ref": "refs/heads/main"}
        return self.start("measure-pull-request.yml", "merge_group", payload, sha=head, ref=ref)

    def report(self, run: int) -> WorkflowRun:
        """Runs `report` after a run ended; that must succeed, whatever it reports."""
        payload = self.event("workflow_run.completed")
        payload["workflow_run"] = self.server.runs[run]
        report = self.on_main("report.yml", "workflow_run", payload)
        assert report.conclusion == "success", report.log
        return report

    def comment(self, pull: Pull, body: str, author: str, file: str = "answer-command.yml") -> WorkflowRun:
        """Runs `command` for a new comment on a pull request."""
        written = self.server.comment(pull.number, body, author)
        written["created_at"] = "2030-01-01T00:00:00Z"
        payload = self.event("issue_comment.created")
        payload["comment"] = {key: value for key, value in written.items() if key != "issue_number"}
        payload["issue"] |= {"number": pull.number, "pull_request": {"url": "x"}}
        payload["sender"]["login"] = author
        return self.on_main(file, "issue_comment", payload)

    def dispatch(self, name: str, **inputs: str) -> WorkflowRun:
        return self.on_main(name, "workflow_dispatch", self.event("workflow_dispatch") | {"inputs": inputs})

    def on_main(self, file: str, event: str, payload: Json, only: tuple[str, ...] = ()) -> WorkflowRun:
        """Runs a workflow of the default branch."""
        return self.start(file, event, payload, sha=self.repository.main, ref="refs/heads/main", only=only)


@contextmanager
def hosted(name: str, folder: Path, language: Language, starter: str) -> Iterator[Project]:
    """The project's files in a repository `name`; kernelgate's own stands beside it where that is another one. Without
    the tests, half of all files: no job reads them but the one that builds the site."""
    files = (".", ":!tests")
    repository = Repository(folder / "own", *files)
    home = repository if name == HOME_REPOSITORY else Repository(folder / "home", *files)
    origins = {HOME_REPOSITORY: home.origin, name: repository.origin}
    with FakeGitHub(name) as server:
        server.refs["heads/main"] = repository.main
        yield Project(server, origins, language, folder, starter, repository=repository)
