"""A repository on a platform that stands in for GitHub: this one's files on `main`, and pull requests against it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.fakes.github_server import FakeGitHub, Json, Pull, event
from tests.miniature import git
from tests.workflows.documents import ROOT

Change = Callable[[Path], None]


def copy_project(to: Path) -> None:
    """This project's files, as the next commit would hold them."""
    for name in filter(None, git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


@cache
def _begun() -> Path:
    """Origin and clone with this project's files in one commit: made once, and copied for each test."""
    folder = Path(tempfile.mkdtemp(prefix="kernelgate-repository-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    origin, tree = folder / "origin.git", folder / "tree"
    tree.mkdir()
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    copy_project(tree)
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "remote", "add", "origin", str(origin))
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "-m", "Begin")
    git(tree, "push", "--quiet", "origin", "main")
    return folder


class Repository:
    """`origin` is what GitHub keeps, `tree` somebody's clone."""

    def __init__(self, folder: Path) -> None:
        self.origin, self.tree = folder / "origin.git", folder / "tree"
        shutil.copytree(_begun(), folder, symlinks=True, dirs_exist_ok=True)
        self.git("remote", "set-url", "origin", str(self.origin))
        self.main = self.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        return git(self.tree, *words)

    def commit(self, subject: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def change_main(self, change: Change) -> None:
        """A commit on the default branch."""
        self.git("checkout", "--quiet", "main")
        change(self.tree)
        self.main = self.commit("Change main")
        self.git("push", "--quiet", "origin", "main")

    def push(self, number: int, change: Change) -> tuple[str, str]:
        """A commit on pull request `number`'s branch; returns it and the merge that GitHub makes of it."""
        branch = f"pull-{number}"
        known = self.git("branch", "--list", branch)
        self.git("checkout", "--quiet", *(() if known else ("-b",)), branch, *(() if known else ("main",)))
        change(self.tree)
        head = self.commit("Change")
        self.git("checkout", "--quiet", "--detach", "main")
        self.git("merge", "--quiet", "--no-ff", "-m", "Merge", branch)
        merge = self.git("rev-parse", "HEAD")
        refs = (f"{head}:refs/pull/{number}/head", f"{merge}:refs/pull/{number}/merge")
        self.git("push", "--quiet", "--force", "origin", *refs)
        return head, merge


def queue(server: FakeGitHub, repository: Repository, pull: Pull) -> tuple[Json, str, str]:
    """Somebody with write access queues the pull request: (GitHub's event, the commit that it would merge, its ref)."""
    base = repository.main
    repository.git("checkout", "--quiet", "--detach", base)
    repository.git("merge", "--quiet", "--no-ff", "-m", f"Merge pull request #{pull.number}", pull.head_ref)
    head = repository.git("rev-parse", "HEAD")
    ref = f"refs/heads/gh-readonly-queue/main/pr-{pull.number}-{base}"
    repository.git("push", "--quiet", "origin", f"{head}:{ref}")
    names = repository.git("diff", "--name-only", base, head).splitlines()
    server.compared |= {(base, head): names, ("main", head): names}
    payload = event("merge_group.checks_requested")
    payload["merge_group"] |= {"head_sha": head, "base_sha": base, "head_ref": ref, "base_ref": "refs/heads/main"}
    payload["repository"] |= {"full_name": server.repository, "default_branch": "main"}
    return payload, head, ref


def open_pull(
    server: FakeGitHub, repository: Repository, change: Change, source: str, **facts: Any
) -> tuple[Pull, Json, str]:
    """Opens a pull request from the repository `source`: (the pull request, GitHub's event, the merge commit)."""
    number = max(server.pulls, default=0) + 1
    head, merge = repository.push(number, change)
    pull = server.open_pull(
        number=number,
        head_sha=head,
        base_sha=repository.main,
        head_ref=f"pull-{number}",
        head_repository=source,
        files=_changed(repository, head),
        **facts,
    )
    server.merge_bases[repository.main, head] = repository.main
    return pull, _payload(server, pull, "opened"), merge


def push(
    server: FakeGitHub, repository: Repository, opened: tuple[Pull, Json, str], change: Change
) -> tuple[Pull, Json, str]:
    """One commit more on a pull request; the same as `open_pull` returns."""
    pull, _, _ = opened
    pull.head_sha, merge = repository.push(pull.number, change)
    pull.files = _changed(repository, pull.head_sha)
    server.merge_bases[repository.main, pull.head_sha] = repository.main
    return pull, _payload(server, pull, "synchronize"), merge


def _changed(repository: Repository, head: str) -> list[Json]:
    names = repository.git("diff", "--name-only", repository.main, head).splitlines()
    return [{"filename": name, "status": "modified"} for name in names]


def _payload(server: FakeGitHub, pull: Pull, action: str) -> Json:
    payload = event(f"pull_request.{action}")
    payload |= {"number": pull.number, "pull_request": server.show_pull(pull, whole=True)}
    payload["repository"] |= {"full_name": server.repository, "default_branch": "main"}
    return payload
