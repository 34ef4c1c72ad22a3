"""A working tree as a commit that no branch knows: taken, compared and restored without touching index or branch.

A snapshot holds all changes of files that git follows, and the new files below given paths; what git ignores is not in
it. Paths are beginnings of paths below the root, as cards name their sources. A snapshot stands under
`refs/kernelgate/`, so that git keeps it and no push sends it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import git, temporary

REFS = "refs/kernelgate/sessions"
_WHO = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "kernelgate"), ("EMAIL", "kernelgate@localhost"))
}
_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
}


def take(repo: Path, paths: Sequence[str]) -> str:
    """The sha of a commit that holds the working tree as it is; HEAD's where that is the same.

    `paths`: below them files that git does not follow yet are taken, too.
    Raises KernelgateError while a merge or the like is under way.
    """
    root = git.root(repo)
    _refuse_half_done(root)
    head = git.resolve(root, "HEAD")
    with temporary.folder("kernelgate-index-") as made:
        index = made / "index"
        mine = Path(_path(root, "index"))
        if mine.exists():
            shutil.copy2(mine, index)  # with what git knows of the files' times, or it would read them all
        extra = {"GIT_INDEX_FILE": str(index)}
        git.checked(root, "add", "--update", "--", ".", extra=extra)
        new = _listed(
            git.checked(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *_below(paths)).stdout
        )
        if new:
            git.checked(root, "add", "--", *(f":(literal){path}" for path in new), extra=extra)
        tree = git.checked(root, "write-tree", extra=extra).stdout.strip()
    if tree == git.checked(root, "rev-parse", f"{head}^{{tree}}").stdout.strip():
        return head
    words = ("commit-tree", tree, "-p", head, "-m", "The working tree, as kernelgate session took it")
    return git.checked(root, *words, extra=_WHO).stdout.strip()


def _refuse_half_done(root: Path) -> None:
    for name, what in _UNDER_WAY.items():
        if Path(_path(root, name)).exists():
            raise KernelgateError(f"{what} is under way in {root}: end it, or give it up, and call this again")
    unmerged = git.checked(root, "diff", "--name-only", "--diff-filter=U").stdout.split()
    if unmerged:
        raise KernelgateError(
            f"{root} has files with conflicts, such as {unmerged[0]}: resolve them, and `git add` them"
        )


def _path(root: Path, name: str) -> str:
    return os.path.join(root, git.checked(root, "rev-parse", "--git-path", name).stdout.removesuffix("\n"))  # noqa: PTH118


def keep(repo: Path, session: str, label: str, sha: str) -> None:
    """Keeps a snapshot from being collected."""
    git.checked(git.root(repo), "update-ref", f"{REFS}/{session}/{label}", sha)


def difference(repo: Path, old: str, new: str, paths: Sequence[str]) -> str:
    """The patch from one commit to another below these paths, as text that `git apply` takes."""
    how = (
        "--binary",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--no-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    )
    return git.checked(git.root(repo), "diff", *how, old, new, "--", *_below(paths)).stdout


def changed(repo: Path, old: str, new: str, paths: Sequence[str]) -> tuple[str, ...]:
    """The files below these paths that differ."""
    words = ("diff", "--name-only", "-z", "--no-renames", old, new, "--", *_below(paths))
    return _listed(git.checked(git.root(repo), *words).stdout)


def restore(repo: Path, patch: Path) -> None:
    """Takes a patch back from the working tree: all of it or nothing. The index stays as it is."""
    git.checked(git.root(repo), "apply", "--reverse", "--binary", "--whitespace=nowarn", str(patch))


def _below(paths: Sequence[str]) -> list[str]:
    return [f":(top){path}*" for path in paths]  # here * crosses folders


def _listed(output: str) -> tuple[str, ...]:
    return tuple(filter(None, output.split("\0")))
