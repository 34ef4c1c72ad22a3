"""The verbs `fuzz` and `bench`, from the words of a call to a record."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from kernelgate.bench import record, subject
from kernelgate.bench.build import build
from kernelgate.bench.build import library as libraries
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.check import fuzz as fuzzing
from kernelgate.bench.errors import NoKernelError, UsageError
from kernelgate.bench.kernel import suite
from kernelgate.bench.system import environment, git
from kernelgate.bench.timing import paired, summary

LOG_COLUMNS = 120
"""Of a log, which has no width of its own."""


def new_seed() -> int:
    return secrets.randbelow(2**31)


def library(repo: Path, ref: str | None, folder: Path | None) -> Library:
    """The library in `folder`, or compiled from the commit `ref`, or from the working tree where neither is named."""
    if ref is not None and folder is not None:
        raise UsageError(f"name either a commit ({ref}) or a compiled library ({folder}), not both")
    if folder is not None:
        return libraries.read(folder)
    return build.build_tree(git.toplevel(repo) or repo) if ref is None else build.build_commit(repo, ref)


def sides(
    repo: Path, base: str | None, base_folder: Path | None, head: str | None, head_folder: Path | None, alone: bool
) -> Sides:
    """Both libraries. The base that is not named is the commit where the branch of `repo` began."""
    if alone and (base is not None or base_folder is not None):
        raise UsageError("--alone times the head without a base: leave out --base and --base-library")
    if head_folder is not None and not alone and base is None and base_folder is None:
        raise UsageError("--head-library needs --base-library, --base or --alone beside it")
    built = library(repo, head, head_folder)
    if alone:
        return Sides(None, built)
    ref = git.default_base(repo) if base is None and base_folder is None else base
    return Sides(library(repo, ref, base_folder), built)


def fuzz(
    repo: Path, ref: str | None, folder: Path | None, seed: int | None, ids: Sequence[str], output: Path | None
) -> record.Fuzz:
    """Fuzzes one library; the results also go into a run record at `output`. Skipped where there is no kernel."""
    try:
        head = library(repo, ref, folder)
    except NoKernelError as error:
        made, done = record.RunRecord(), fuzzing.skipped(str(error))
    else:
        machine = environment.describe()
        made = record.RunRecord(subject=subject.describe(None, head), environment=machine)
        done = fuzzing.run(head, new_seed() if seed is None else seed, machine, ids)
    if output:
        record.write(made.model_copy(update={"fuzz": done}), output)
    return done


def bench(
    timed: Sides,
    suite_name: str | None,
    case_ids: Sequence[str],
    launches: int,
    rounds: int,
    seed: int | None,
    resume: bool,
    output: Path,
    stop: paired.Stop = paired.never,
    fuzzed: Path | None = None,
) -> record.RunRecord:
    """Times both sides into a run record at `output`, and shows its times and rates. `stop` may end it early.

    `fuzzed`: a record of the same head whose fuzz results go into this one; it may be the file at `output`. Raises
    UsageError where it is of another head.
    """
    machine = environment.describe()
    plan = paired.PairedPlan(
        base=timed.base,
        head=timed.head,
        cases=suite.select(environment.kind(machine), suite_name, case_ids),
        environment=machine,
        seed=new_seed() if seed is None else seed,
        launches=launches,
        rounds=rounds,
    )
    about = subject.describe(timed.base, timed.head)
    skeleton = record.RunRecord(subject=about, fuzz=fuzz_results(fuzzed, about) if fuzzed else None)
    done = paired.run(plan, skeleton, output, stop, resume)
    screen = Console(stderr=True)
    (screen if screen.is_terminal else Console(stderr=True, width=LOG_COLUMNS)).print(summary.table(done))
    return done


def put_into(path: Path, sides: Sides, **parts: object) -> None:
    """Replaces parts of the run record in `path`, such as its profile; a file that is not there starts one."""
    old = record.read(path) if path.exists() else _begun(sides)
    record.write(old.model_copy(update=parts), path)


def _begun(sides: Sides) -> record.RunRecord:
    return record.RunRecord(subject=subject.describe(sides.base, sides.head), environment=environment.describe())


def fuzz_results(path: Path, about: record.Subject) -> record.Fuzz | None:
    """What the record at `path` says of the same head's correctness."""
    fuzzed = record.read(path)
    if fuzzed.subject.head_sha != about.head_sha:
        raise UsageError(f"{path} is about commit {fuzzed.subject.head_sha}, not {about.head_sha}; fuzz that one")
    return fuzzed.fuzz
