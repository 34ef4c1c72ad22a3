"""A commit's files without touching the user's checkout, and a working tree as a commit that no branch knows."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system import lock
from kernelgate.bench.system.progress import say

PATIENCE_S = 600.0
"""A worktree of a large repository takes a while; no call here talks to a network."""
MISDIRECTING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_LITERAL_PATHSPECS")
"""Set while git runs a hook; they would send every call to that hook's repository. With the last no pattern is one."""
PLAIN = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.graftFileDeprecated=false")
"""No hook and no watcher of files runs: it may be another's, and reads what git is told. No advice comes first."""
AS_COMMITTED = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull}
"""Each sha means what was committed, whatever `git replace` puts in its place here."""

_CHECKING_OUT = threading.Lock()

LINK_MODE = "160000 "
"""Of a submodule, in git's lists."""
DEFAULT_BRANCHES = (
    "refs/remotes/origin/HEAD",
    "refs/remotes/origin/main",
    "refs/remotes/origin/master",
    "refs/heads/main",
    "refs/heads/master",
)


def root(path: Path) -> Path:
    """The checkout that the folder is in, also where git is missing or refuses it; outside of one the folder itself."""
    above = (one for one in (path.absolute(), *path.absolute().parents) if (one / ".git").exists())
    return toplevel(path) or next(above, path)


def toplevel(path: Path) -> Path | None:
    """The root of the checkout that `path` lies in; None outside of one, and where there is no git."""
    found = _answer(path, "rev-parse", "--show-toplevel") if shutil.which("git") else None
    return None if found is None else Path(found)


def _named(repo: Path, name: str) -> str | None:
    """The sha that has this name in git; None where there is none."""
    return _answer(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", name)


def resolve(repo: Path, ref: str) -> str:
    """The full sha of the commit that `ref` names. Raises KernelgateError saying what to do where there is none."""
    found = _named(repo, f"{ref}^{{commit}}")
    if found and not found.startswith("^"):
        name = re.split("[~^@:]", ref, maxsplit=1)[0]
        both = (f"refs/heads/{name}", f"refs/tags/{name}") if name not in ("", "HEAD", found) else ()
        if len({_named(repo, f"{one}^{{commit}}") for one in both} - {None}) > 1:
            how = f"write refs/heads/{ref} for the branch, or refs/tags/{ref} for the tag"
            raise KernelgateError(f"{repo} has a branch and a tag {name!r}, of two commits: {how}")
        return found
    if (named := _named(repo, ref)) not in (None, ref):
        checked(repo, "cat-file", "-p", str(named).lstrip("^"))  # git says so where what it names is lost or damaged
    if is_shallow(repo):
        raise KernelgateError(
            f"{repo} is a shallow clone without {ref!r}: run `git fetch --unshallow` (in a workflow: fetch-depth: 0)"
        )
    other = "check the name, or run `git fetch` if it is a remote's"
    if ref == "HEAD":
        other = "commit something, or check out a branch that has a commit"
    elif _named(repo, f"refs/remotes/origin/{ref}^{{commit}}"):
        other = f"origin/{ref} is there"
    raise KernelgateError(f"{repo} has no commit {ref!r}: {other}")


def default_base(repo: Path) -> str:
    """The sha where HEAD's branch left the default branch: their merge base, which is HEAD on that branch itself.

    Raises KernelgateError, saying how to fetch, where this checkout does not hold that commit.
    """
    head, branch = resolve(repo, "HEAD"), _default_branch(repo)
    if branch is None:
        raise KernelgateError(
            f"{repo} has no default branch (none of origin/HEAD, origin/main, origin/master, main and master), so that "
            "where HEAD's branch began is unknown: name the base with --base, or fetch the default branch, such as "
            "`git fetch origin main:refs/remotes/origin/main` (in a workflow: fetch-depth: 0)"
        )
    if (base := _answer(repo, "merge-base", "HEAD", branch)) is None:
        raise KernelgateError(
            f"HEAD and {branch} have no common commit in {repo}: name the base yourself, or, in a shallow clone, "
            "run `git fetch --unshallow`"
        )
    if base == head and is_shallow(repo):
        raise KernelgateError(
            f"{repo} is a shallow clone that ends at HEAD, which would be compared with itself: run `git fetch "
            "--unshallow` (in a workflow: fetch-depth: 0), or compare the working tree with its commit by --base HEAD"
        )
    return base


def default_branch_line(repo: Path) -> tuple[str, ...] | None:
    """The default branch's commits by first parents, the oldest first; None where this checkout does not know them all.

    That is: outside of git, without a default branch, and in a shallow clone, whose first commit is not the first.
    """
    if toplevel(repo) is None or is_shallow(repo) or (branch := _default_branch(repo)) is None:
        return None
    return _first_parents(repo, branch)


def release(repo: Path, named: str | None = None) -> tuple[str, tuple[str, ...]] | None:
    """A release's name, and the commits up to it by first parents: of the tag or commit `named`, else of the newest tag
    that the default branch holds. None where there is none, and where this checkout does not know those commits.

    Raises KernelgateError where nothing has that name.
    """
    if named is not None:
        return named, _first_parents(repo, resolve(repo, named))[::-1]
    branch = None if toplevel(repo) is None else _default_branch(repo)
    tag = _answer(repo, "describe", "--tags", "--abbrev=0", branch) if branch else None
    if tag is None or is_shallow(repo):
        return None
    return tag, _first_parents(repo, f"refs/tags/{tag}")[::-1]


def _default_branch(repo: Path) -> str | None:
    return next((name for name in DEFAULT_BRANCHES if _named(repo, name)), None)


def branch_name(repo: Path) -> str:
    """The default branch as the clone knows it, else the one that is checked out; "main" where none is."""
    named = (_answer(repo, "symbolic-ref", "--quiet", "--short", ref) for ref in ("refs/remotes/origin/HEAD", "HEAD"))
    return next(filter(None, named), "main").removeprefix("origin/").strip()


def is_ancestor(repo: Path, old: str, new: str) -> bool:
    return _answer(repo, "merge-base", "--is-ancestor", old, new) is not None


def first_parents(repo: Path, old: str, new: str, paths: Sequence[str] = ()) -> tuple[str, ...]:
    """The commits after `old` up to `new`, oldest first, as the branch of `new` got them: merges, not what they merge.

    With `paths`, those that change a file that begins with one of them, or move a submodule that it lies in. Raises
    KernelgateError as git does.
    """
    links = {link for end in (old, new) for link in submodules(repo, end)} if paths else ()
    lies_in = (next((link for link in links if path.startswith(f"{link}/")), None) for path in paths)
    # Git finds nothing behind a submodule's own path; here * crosses folders.
    patterns = [f":(top){link or f'{path}*'}" for path, link in zip(paths, lies_in, strict=True)]
    return _first_parents(repo, f"{old}..{new}", *(["--", *patterns] if patterns else []))


def since(repo: Path, date: str, head: str) -> tuple[str, ...]:
    """The commits of the line of `head` that are not older than `date`, oldest first, in words that git reads."""
    return _first_parents(repo, f"--since={date}", head)


def _first_parents(repo: Path, *words: str) -> tuple[str, ...]:
    return tuple(checked(repo, "rev-list", "--first-parent", "--reverse", *words).split())


def last_change(repo: Path, patterns: Sequence[str]) -> str | None:
    """The newest commit of HEAD, by first parents, that changes files which the patterns name; None where none does."""
    return _answer(repo, "log", "-1", "--first-parent", "--format=%H", "HEAD", "--", *_below(patterns)) or None


def is_changed(repo: Path, patterns: Sequence[str]) -> bool:
    """Whether files that the patterns name differ from HEAD's in the working tree, or are not committed."""
    return bool(checked(repo, "status", "--porcelain", "--untracked-files=all", "--", *_below(patterns)).strip())


def parent(repo: Path, sha: str) -> str | None:
    """The first parent; None of a root."""
    return _named(repo, f"{sha}^1")


def files(tree: Path) -> tuple[str, ...]:
    """The files of a work tree, but those that git ignores; of a folder that is no checkout all."""
    if toplevel(tree) != tree.resolve():
        return tuple(sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if not path.is_dir()))
    return _listed(checked(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard"))


def submodules(repo: Path, sha: str) -> dict[str, str]:
    """The commit of each submodule of a commit, by its path from the root."""
    listed = _git(root(repo), "ls-tree", "-r", "-z", sha).stdout.split("\0")
    entries = (line.partition("\t") for line in listed if line.startswith(LINK_MODE))
    return {name: entry.split()[2] for entry, _, name in entries}


def is_here(repo: Path, sha: str) -> bool:
    return _answer(repo, "cat-file", "-e", f"{sha}^{{commit}}") is not None


def is_shallow(repo: Path) -> bool:
    """Whether history may end before it began. Raises KernelgateError where this is no repository that git reads."""
    inside = _git(repo, "rev-parse", "--is-shallow-repository")
    if inside.returncode != 0:
        raise KernelgateError(f"{repo} is not a git repository that can be read: {_reason(inside)}")
    return inside.stdout.strip() == "true"


def subject(repo: Path, sha: str) -> str:
    return checked(repo, "log", "-1", "--format=%s", sha).strip()


def unchanged_head(
    tree: Path, paths: Sequence[str], read_alike: Callable[[Path, Callable[[Iterable[str]], None]], bool]
) -> str | None:
    """HEAD's sha where these paths (or patterns) of the checkout at `tree` are as HEAD has them; else None.

    None outside of git, too. Git's word is not enough: it says nothing of what it ignores or was told to assume
    unchanged, nor of what lies behind a link. So `read_alike` is asked whether a work tree of HEAD reads the same,
    in which only what it checks out is there.
    """
    root = tree.resolve()
    if toplevel(tree) != root:
        return None
    # Git answers for a submodule as a whole.
    links = submodules(root, "HEAD")
    asked = {next((one for one in links if path.startswith(f"{one}/")), path) for path in paths}
    changed = checked(root, "status", "--porcelain", "--untracked-files=all", "--", *asked)
    if (sha := _named(root, "HEAD")) is None or changed or _answer(root, "check-ignore", "--", *asked):
        return None
    try:
        with worktree(root, sha, ()) as clean:
            return sha if read_alike(clean, partial(check_out, root, sha, clean)) else None
    except (KernelgateError, OSError):  # HEAD lacks what was read
        return None


@contextmanager
def worktree(
    repo: Path, sha: str, paths: Iterable[str] = ("**",), pins: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """A temporary work tree of `sha`, removed when the block ends, that holds what `paths` name as check_out has it.

    It is never registered under .git/worktrees: what a killed run leaves behind is a temporary folder, which the next
    one removes, and neither stale registrations nor a repository that cannot be written to are in the way.
    """
    with lock.temporary_folder("kernelgate-worktree-") as made:
        tree = made / "tree"
        tree.mkdir()
        check_out(root(repo), sha, tree, paths, pins)  # paths count from there
        yield tree


def check_out(root: Path, sha: str, tree: Path, paths: Iterable[str], pins: Mapping[str, str] | None = None) -> None:
    """Puts what these paths name of a commit, and nothing else, into `tree`, beside what is there: files, folders with
    all that is in them, and patterns as pathlib has them. A path that the commit lacks gives nothing.

    Submodules are followed as far as the checkout has them; those in `pins`, paths from the root, at these commits in
    place of the commit's own. Cards that are built side by side share a tree: what is there stays untouched.
    """
    wanted = [path.rstrip("/") for path in dict.fromkeys(paths) if not path.startswith(("/", "../"))]
    if not wanted:
        return
    specs = [f":(glob){path}{end}" for path in wanted for end in ("", "/**")]
    with lock.temporary_folder("kernelgate-index-") as made:
        index = {"GIT_INDEX_FILE": str(made / "index")}
        checked(root, "read-tree", sha, extra=index)
        listed = checked(root, "ls-files", "-z", "--stage", "--", *specs, extra=index)
        files = [line.partition("\t")[2] for line in filter(None, listed.split("\0")) if not line.startswith(LINK_MODE)]
        words = (f"--work-tree={tree}", "checkout-index", "--quiet", "-z", "--stdin")
        with _CHECKING_OUT:
            missing = [path for path in files if not os.path.lexists(tree / path)]
            checked(root, *words, extra=index, told="\0".join(missing))
    for submodule, own in submodules(root, sha).items():
        below = f"{submodule}/"
        inside = [path.removeprefix(below) for path in wanted if path.startswith(below)]
        inside += ["**" for path in wanted if below.startswith(_plain_folder(path))]
        if not inside or not (root / submodule / ".git").exists():
            continue
        commit = (pins or {}).get(submodule, own)
        if is_here(root / submodule, commit):
            (tree / submodule).mkdir(parents=True, exist_ok=True)
            deeper = {one.removeprefix(below): pin for one, pin in (pins or {}).items() if one.startswith(below)}
            check_out(root / submodule, commit, tree / submodule, inside, deeper)
        else:
            say(f"the checkout of the submodule {submodule} has no commit {commit[:12]}: it is left out of {sha[:12]}")


def _plain_folder(pattern: str) -> str:
    """The folder in which all that a pattern matches lies, "" for the root: "csrc/" of "csrc/*.cu" and of "csrc"."""
    plain = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
    return f"{plain}/" if plain == pattern else plain.rpartition("/")[0] + "/" if "/" in plain else ""


def checked(repo: Path, *words: str, extra: Mapping[str, str] | None = None, told: str = "") -> str:
    """What git prints. Raises KernelgateError with all that it said where it fails. `extra`: of its environment;
    `told`: what it reads."""
    done = _git(repo, *words, extra=extra, told=told)
    if done.returncode != 0:
        raise KernelgateError(f"`git {' '.join(words)}` failed in {repo}: {_reason(done)}")
    return done.stdout


def _answer(repo: Path, *words: str) -> str | None:
    """What git prints, without the end of its line; None where it fails."""
    done = _git(repo, *words)
    return done.stdout.removesuffix("\n") if done.returncode == 0 else None


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """All that git said, in one line: what to do comes last, such as `git config --global --add safe.directory …`."""
    return " ".join(done.stderr.split()) or f"it ended with {done.returncode} and said nothing"


def _git(
    repo: Path, *words: str, extra: Mapping[str, str] | None = None, told: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in MISDIRECTING}
    environment |= {"LC_ALL": "C", **AS_COMMITTED, **(extra or {})}
    try:
        return subprocess.run(
            ["git", *PLAIN, *words],
            cwd=repo,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",  # paths may be any bytes
            check=False,
            input=told,  # it may ask, and nobody answers
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired as error:
        last = (error.stderr or b"").decode(errors="replace").strip().rpartition("\n")[2]
        raise KernelgateError(
            f"git {words[0]} in {repo} did not end within {PATIENCE_S:g} s{f'; last line: {last}' if last else ''}"
        ) from None
    except OSError as error:
        if not repo.is_dir():
            raise KernelgateError(f"{repo} is no folder: name that of a git checkout") from None
        if isinstance(error, FileNotFoundError):
            raise KernelgateError("git is not on PATH: install it (apt-get install git)") from None
        if error.errno in (errno.EACCES, errno.ENOEXEC):
            raise KernelgateError(f"git cannot be run in {repo}: {error.strerror}") from None
        raise  # the machine's


# ---- Snapshots: all changes of files that git follows, and new files below given paths, under refs/kernelgate/ -------

REFS = "refs/kernelgate/sessions"
_WHO = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (("NAME", "kernelgate"), ("EMAIL", "kernelgate@localhost"))
}
_UNDER_WAY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")
"""What git leaves in its folder while a merge or the like waits for its end."""


def take_snapshot(repo: Path, paths: Sequence[str]) -> str:
    """The sha of a commit that holds the working tree as it is; HEAD's where that is the same.

    `paths`: below them files that git does not follow yet are taken, too.
    Raises KernelgateError while a merge or the like is under way.
    """
    top = root(repo)
    half_done = [name for name in _UNDER_WAY if _path(top, name).exists()]
    if half_done or (half_done := checked(top, "diff", "--name-only", "--diff-filter=U").split()):
        raise KernelgateError(f"{top}: a merge or the like is under way ({half_done[0]}): end it, or give it up")
    head = resolve(top, "HEAD")
    with lock.temporary_folder("kernelgate-index-") as made:
        if (mine := _path(top, "index")).exists():
            shutil.copy2(mine, made / "index")  # with what git knows of the files' times, or it would read them all
        extra = {"GIT_INDEX_FILE": str(made / "index")}
        checked(top, "add", "--update", "--", ".", extra=extra)
        new = _listed(checked(top, "ls-files", "-z", "--others", "--exclude-standard", "--", *_below(paths)))
        if new:
            checked(top, "add", "--", *(f":(literal){path}" for path in new), extra=extra)
        tree = checked(top, "write-tree", extra=extra).strip()
    if tree == checked(top, "rev-parse", f"{head}^{{tree}}").strip():
        return head
    message = "The working tree, as kernelgate session took it"
    return checked(top, "commit-tree", tree, "-p", head, "-m", message, extra=_WHO).strip()


def _path(root: Path, name: str) -> Path:
    return root / checked(root, "rev-parse", "--git-path", name).removesuffix("\n")


def keep_snapshot(repo: Path, session: str, label: str, sha: str) -> None:
    checked(root(repo), "update-ref", f"{REFS}/{session}/{label}", sha)


def difference(repo: Path, old: str, new: str, paths: Sequence[str]) -> str:
    """The patch from one commit to another below these paths, as text that `git apply` takes."""
    how = ("--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
    return checked(root(repo), "diff", *how, "--src-prefix=a/", "--dst-prefix=b/", old, new, "--", *_below(paths))


def changed_files(repo: Path, old: str, new: str, paths: Sequence[str]) -> tuple[str, ...]:
    return _listed(checked(root(repo), "diff", "--name-only", "-z", "--no-renames", old, new, "--", *_below(paths)))


def take_back(repo: Path, patch: Path) -> None:
    """Takes a patch back from the working tree: all of it or nothing. The index stays as it is."""
    checked(root(repo), "apply", "--reverse", "--binary", "--whitespace=nowarn", str(patch))


def _below(paths: Sequence[str]) -> list[str]:
    return [f":(top){path}*" for path in paths]  # here * crosses folders


def _listed(output: str) -> tuple[str, ...]:
    return tuple(filter(None, output.split("\0")))
