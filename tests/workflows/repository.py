"""A repository on a platform that stands in for GitHub: this one's files on `main`, and pull requests against it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.miniature import git
from tests.workflows.documents import ROOT

Change = Callable[[Path], None]


def copy_project(to: Path, *of: str) -> None:
    """This project's files, or those that git lists `of` it, as the next commit would hold them."""
    listed = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *of)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


@cache
def _begun(*of: str) -> Path:
    """Origin and clone with this project's files in one commit: made once, and copied for each test."""
    folder = Path(tempfile.mkdtemp(prefix="kernelgate-repository-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    origin, tree = folder / "origin.git", folder / "tree"
    tree.mkdir()
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(origin))
    git(origin, "config", "uploadpack.allowFilter", "true")
    copy_project(tree, *of)
    git(tree, "init", "--quiet", "--initial-branch=main")
    git(tree, "remote", "add", "origin", str(origin))
    for repository in (origin, tree):  # what takes time: to compress, and to look through files that were copied
        for setting in ("core.compression 0", "pack.window 0", "core.checkStat minimal", "core.trustctime false"):
            git(repository, "config", *setting.split())
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "-m", "Begin")
    git(tree, "push", "--quiet", "origin", "main")
    for repository in (origin, tree):
        git(repository, "repack", "-a", "-d", "--quiet")
    return folder


class Repository:
    """`origin` is what GitHub keeps, `tree` somebody's clone. `of`: which of this project's files, as git has it."""

    def __init__(self, folder: Path, *of: str) -> None:
        self.origin, self.tree = folder / "origin.git", folder / "tree"
        shutil.copytree(_begun(*of), folder, symlinks=True, dirs_exist_ok=True)
        self.git("remote", "set-url", "origin", str(self.origin))
        self.main = self.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        return git(self.tree, *words)

    def commit(self, subject: str) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)
        return self.git("rev-parse", "HEAD")

    def change(self, branch: str, change: Change) -> str:
        self.git("checkout", "--quiet", branch)
        change(self.tree)
        return self.commit("Change")

    def change_main(self, change: Change) -> None:
        self.main = self.change("main", change)
        self.git("push", "--quiet", "origin", "main")

    def merge(self, base: str, branch: str, subject: str) -> str:
        """The merge of a branch into a commit, which is on no branch."""
        self.git("checkout", "--quiet", "--detach", base)
        self.git("merge", "--quiet", "--no-ff", "-m", subject, branch)
        return self.git("rev-parse", "HEAD")
