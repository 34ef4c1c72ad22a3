"""The verbs `fuzz` and `bench`, from the words of a call to a record."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from kernelgate.bench import record, subject
from kernelgate.bench.build import build
from kernelgate.bench.build import library as libraries
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.check import fuzz as fuzzing
from kernelgate.bench.errors import KernelgateError, NoKernelError, UsageError
from kernelgate.bench.kernel import case_list
from kernelgate.bench.kernel.case_list import SuiteCase
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
        raise UsageError("--head-library also needs --base-library, --base or --alone")
    built = library(repo, head, head_folder)
    if alone:
        return Sides(None, built)
    ref = git.default_base(repo) if base is None and base_folder is None else base
    return Sides(library(repo, ref, base_folder), built)


def fuzz(
    repo: Path, ref: str | None, folder: Path | None, seed: int | None, ids: Sequence[str], output: Path | None
) -> record.Check:
    """Fuzzes one library; the results also go into a run record at `output`. Skipped where there is no kernel."""
    try:
        head = library(repo, ref, folder)
    except NoKernelError as error:
        made, done = record.RunRecord(), fuzzing.skipped(str(error))
    else:
        machine = environment.describe()
        made = record.RunRecord(run=subject.describe(None, head), environments=(machine,))
        done = fuzzing.run(head, new_seed() if seed is None else seed, machine, ids)
    if output:
        record.write(made.model_copy(update={"checks": (done,)}), output)
    return done


@dataclass(frozen=True)
class TimingOptions:
    """What a call asks for; None leaves a thing to kernelgate."""

    suite: str | None = None
    case_ids: tuple[str, ...] = ()
    processes: int = paired.PROCESSES
    rounds: int = paired.ROUNDS
    seed: int | None = None
    least: int = 1
    """Processes that each case must be timed in, for the record to be whole."""
    gpu: str | None = None
    """The label in the policy of the GPU that is measured, …"""
    target: str | None = None
    """… and the compute capability that it has."""

    def check(self) -> None:
        """Raises UsageError for a case or suite that does not exist: before anything is compiled or started."""
        self.cases("cpu")  # which can run every case

    def cases(self, device: environment.DeviceKind) -> tuple[SuiteCase, ...]:
        return case_list.select(device, self.suite, self.case_ids)


def bench(
    timed: Sides,
    asked: TimingOptions,
    output: Path,
    stop: paired.Stop = paired.never,
    resume: bool = False,
    fuzzed: Path | None = None,
) -> record.RunRecord:
    """Times both sides into a run record at `output`, and shows its times and rates. `stop` may end it early.

    `fuzzed`: a record of the same head whose fuzz results go into this one; it may be the file at `output`. Raises
    UsageError where it is of another head.
    """
    about = subject.describe(timed.base, timed.head)
    done = fuzz_results(fuzzed, about) if fuzzed else None
    machine = environment.describe()
    plan = paired.PairedPlan(
        base=timed.base,
        head=timed.head,
        cases=asked.cases(environment.kind(machine)),
        environment=machine,
        seed=new_seed() if asked.seed is None else asked.seed,
        processes=asked.processes,
        rounds=asked.rounds,
    )
    skeleton = record.RunRecord(
        run=about.model_copy(update={"gpu": asked.gpu}),
        expected=case_list.expected(
            plan.cases, min(asked.least, asked.processes), asked.gpu, asked.target, checks=("fuzz",) if done else ()
        ),
        checks=(done,) if done else (),
    )
    timed_record = paired.run(plan, skeleton, output, stop, resume)
    screen = Console(stderr=True)
    (screen if screen.is_terminal else Console(stderr=True, width=LOG_COLUMNS)).print(summary.table(timed_record))
    return timed_record


def builds(sides: Sides) -> tuple[record.Build, ...]:
    """Both libraries with what the compiler made of their kernels. Raises KernelgateError where that is not known."""
    missing = libraries.facts_missing(sides)
    if missing:
        whys = (one.split(": ", 1) for one in missing)
        message = "; ".join(f"the registers and instructions of {side} are unknown: {why}" for side, why in whys)
        raise KernelgateError(message)
    return libraries.build_records(sides, case_list.CARD)


def with_builds(old: Sequence[record.Build], new: Sequence[record.Build]) -> tuple[record.Build, ...]:
    """The builds of a record with the kernels of `new`; a side that has no build yet gets the new one.

    Raises UsageError where the record is about another library of the same side.
    """
    known = {(one.card or case_list.CARD, one.side): one for one in old}  # run/1 knows no card
    for one in new:
        before = known.get((one.card, one.side), one)
        if before.library_sha256 not in (None, one.library_sha256):
            raise UsageError(f"the record was measured with another library of the {one.side} than the one given")
        known[one.card, one.side] = before.model_copy(update={"kernels": one.kernels})
    return tuple(known.values())


def put_into(path: Path, sides: Sides, parts: Callable[[record.RunRecord], dict[str, object]]) -> None:
    """Replaces parts of the run record in `path`, such as its profile; a file that is not there starts one."""
    old = record.read(path) if path.exists() else _begun(sides)
    record.write(old.model_copy(update=parts(old)), path)


def _begun(sides: Sides) -> record.RunRecord:
    return record.RunRecord(run=subject.describe(sides.base, sides.head), environments=(environment.describe(),))


def fuzz_results(path: Path, about: record.Run) -> record.Check | None:
    """What the record at `path` says of the same head's correctness."""
    fuzzed = record.read(path)
    if fuzzed.run.head_sha != about.head_sha:
        raise UsageError(f"{path} is about commit {fuzzed.run.head_sha}, not {about.head_sha}; fuzz that one")
    return fuzzed.fuzz
