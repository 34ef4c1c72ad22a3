"""Keeps the processes that run a pull request's code from what is not their business, with bubblewrap (bwrap): its
kernels, its cards, its compilers and build commands.

On a runner of GitHub's, where bwrap can be used, such a process sees the whole file system, but read-only: it writes
to a folder in memory of its own alone. Of the runner's folder, with its credentials and the files that later steps take
their orders from, it sees the workspace and the tools. It has no network, and a user namespace of its own, out of which
it can neither read nor change the memory of the process that leads it, nor its variables and open files.

Shared on purpose, where kernels are timed: /dev, with the GPU and the memory that CUDA shares, and the process numbers,
by which CUDA finds the memory of another process (https://github.com/openucx/ucx/pull/11514). So a kernel can still end
processes of its own user. Where kernels are checked they have shared memory of their own, and leave no note in it by
which they would know later that they were checked. Cards and compilers have process numbers of their own, too, and see
no other process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import KernelgateError

PRIVATE = "/var/tmp"  # noqa: S108 - a folder of its own in memory, for one process
"""Where an isolated process may write: its home and its temporary folder. Not /tmp, where libraries may lie."""
PROBE_S = 10.0
_NAMED = [name for name in ("shm", "mqueue") if Path("/dev", name).is_dir()]
OWN_MEMORY = ("--unshare-ipc", *(word for name in _NAMED for word in ("--tmpfs", f"/dev/{name}")))
OWN_PROCESSES = ("--unshare-pid", "--proc", "/proc", *OWN_MEMORY)
FORK = "KERNELGATE_FORK"
"""The variable of a workflow's job that says whether it measures, or may measure, what a fork brings."""
NOT_ASKED = "kernels run as this user does, as on a machine that is no runner of GitHub's"


@dataclass(frozen=True)
class Isolation:
    """How processes are kept apart here."""

    words: tuple[str, ...]
    """Put before a command, they isolate it; none where that cannot be done."""
    said: str
    """For the record."""
    last: tuple[str, ...] = ()
    """Put behind the folders that it may write to."""
    writable: tuple[Path, ...] = ()

    def around(self, command: Iterable[str | Path]) -> list[str | Path]:
        if not self.words:
            return list(command)
        bound = [word for folder in self.writable for word in ("--bind", folder, folder)]
        return [*self.words, *bound, *self.last, "--", *command]

    def writing(self, *folders: Path) -> Isolation:
        return replace(self, writable=tuple(folder.absolute() for folder in folders))

    def exit_code(self, code: int) -> int:
        """The command's own, as subprocess has it: bwrap adds 128 to the number of the signal that ended it."""
        return 128 - code if self.words and code > 128 else code


NONE = Isolation((), NOT_ASKED)


@cache
def here() -> Isolation:
    """That of this machine; looked at once."""
    return of(os.environ)


@cache
def alone() -> Isolation:
    """That of a kernel that shares no memory with another process, which has its own, where that can be had."""
    return _with(OWN_MEMORY)


@cache
def of_sources() -> Isolation:
    """That of what needs neither a GPU nor another process: cards, compilers, build commands. With process numbers of
    its own, where they can be had."""
    return _with(OWN_PROCESSES)


def _with(words: tuple[str, ...]) -> Isolation:
    found = here()
    own = replace(found, words=(*found.words, *words))
    return own if found.words and unusable((*own.words, *own.last)) is None else found


def notes() -> tuple[record.Note, ...]:
    """What a record says of it; nothing where it was not asked for."""
    found = here()
    return () if found == NONE else (record.Note(code="isolation", text=found.said),)


def of(variables: Mapping[str, str]) -> Isolation:
    """That of a process with these variables: asked for in GitHub's workflows alone, where there is much to take.
    Raises KernelgateError where it cannot be had for what a fork brings."""
    if variables.get("GITHUB_ACTIONS") != "true":
        return NONE
    words, hidden = command_line(variables), runner_folder(variables)
    # Nothing is written beside what is shown of the runner's folder.
    last = () if hidden is None else ("--remount-ro", str(hidden))
    if (why := unusable((*words, *last))) is None:
        said = "kernels ran apart from the runner: in a user namespace, without network, read-only"
        return Isolation(words, said, last)
    if variables.get(FORK) == "true":
        raise KernelgateError(
            "a fork's pull request is measured only where bubblewrap keeps its kernels apart from the runner, and "
            f"here {why}: {page('runner.md#a-pull-requests-code-is-kept-apart')} says how to set it up"
        )
    return Isolation((), f"kernels ran with the runner's own rights, and could write this record: {why}")


def command_line(variables: Mapping[str, str]) -> tuple[str, ...]:
    """What bwrap is told, but for the `last` words."""
    words = ["bwrap", "--unshare-user", "--unshare-net", "--cap-drop", "ALL", "--die-with-parent"]
    words += ["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]
    if (hidden := runner_folder(variables)) is not None:
        words += ["--tmpfs", str(hidden)]
        words += [word for folder in _shown(variables, hidden) for word in ("--ro-bind", folder, folder)]
    return (*words, "--tmpfs", PRIVATE, "--setenv", "TMPDIR", PRIVATE, "--setenv", "HOME", PRIVATE)


def runner_folder(variables: Mapping[str, str]) -> Path | None:
    """Where the runner lives: its temporary folder is `_work/_temp` in it, or in a container /__w/_temp."""
    if not variables.get("RUNNER_TEMP"):
        return None
    work = Path(variables["RUNNER_TEMP"]).resolve().parent
    return work if work.parent == Path("/") else work.parent


def _shown(variables: Mapping[str, str], hidden: Path) -> list[str]:
    """What is needed of a hidden folder: the code that runs, and what is measured."""
    named = filter(None, map(variables.get, ("GITHUB_WORKSPACE", "RUNNER_TOOL_CACHE")))
    wanted = map(Path, (*named, sys.prefix, sys.base_prefix))
    found = {one.resolve() for one in (*wanted, Path(__file__).parents[3], Path.cwd())}
    return [str(one) for one in sorted(found) if hidden in one.parents and one.is_dir()]


def unusable(words: Iterable[str]) -> str | None:
    """Why bwrap cannot be used here; None where it can."""
    try:
        done = subprocess.run(
            [*words, "--", "true"], capture_output=True, text=True, errors="replace", timeout=PROBE_S, check=False
        )
    except FileNotFoundError:
        return "bubblewrap is not installed"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bwrap does not run ({error})"
    said = done.stderr.strip().split("\n")[-1] or f"it exits with {done.returncode}"
    return None if done.returncode == 0 else f"bwrap cannot be used ({said})"
