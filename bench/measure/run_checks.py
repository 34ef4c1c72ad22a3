"""The verbs `fuzz` and `sanitize`, from the words of a call to the checks of a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.build.archs import only_gpu
from kernelgate.bench.build.library import Sides
from kernelgate.bench.check import fuzz as fuzzing
from kernelgate.bench.check import sanitize as sanitizing
from kernelgate.bench.check import soak as soaks
from kernelgate.bench.check.fuzz import NO_LIMITS, FuzzLimits
from kernelgate.bench.check.sanitize import SanitizerOptions
from kernelgate.bench.check.soak import Soak
from kernelgate.bench.check.trials import WORKER
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, NoKernelError, UsageError
from kernelgate.bench.kernel import cards, compared, fuzz_corpus
from kernelgate.bench.kernel.compared import Compared
from kernelgate.bench.measure import run
from kernelgate.bench.measure.run import libraries, new_seed
from kernelgate.bench.system import environment, lock
from kernelgate.bench.system.worker import WorkerPool, worker_pool


@dataclass(frozen=True)
class FuzzOptions:
    """What a call asks for; None leaves a thing to kernelgate."""

    seed: int | None = None
    ids: tuple[str, ...] = ()
    """Of configurations; of one card's as CARD/ID."""
    limits: FuzzLimits = NO_LIMITS
    """For each card."""


def fuzz(
    repo: Path, ref: str | None, folder: Path | None, asked: FuzzOptions, output: Path | None
) -> tuple[record.Check, ...]:
    """Fuzzes every card's library; the results also go into a run record at `output`. Skipped where there is none."""
    try:
        about = _heads(repo, ref, folder)
    except NoKernelError as error:
        made = record.RunRecord()
        done: tuple[record.Check, ...] = (fuzzing.skipped(str(error)),)
    else:
        with worker_pool() as workers:
            workers.prepare({WORKER: 1})  # it loads torch while another process has the device
            machine = environment.describe()
            done = fuzz_all(about, asked, machine, workers)
        head = about[0].sides.head
        made = record.RunRecord(
            run=run.run_identity(None, head), environments=(machine,), cards=tuple(one.recorded for one in about)
        )
    if output:
        record.write(made.model_copy(update={"checks": done}), output)
    return done


def fuzz_all(
    about: Sequence[Compared], asked: FuzzOptions, machine: record.Environment, workers: WorkerPool | None = None
) -> tuple[record.Check, ...]:
    """The fuzz check of each card's head. `workers`: processes that were started before."""
    seed = new_seed() if asked.seed is None else asked.seed
    wanted = by_card(asked.ids, [one.card.name for one in about])
    return tuple(
        fuzzing.run(one.sides.head, one.card, seed, machine, wanted[one.card.name], (asked.limits, workers))
        for one in about
        if one.card.name in wanted
    )


def soak(
    repo: Path, ref: str | None, folder: Path | None, seed: int | None, seconds: float, corpus: Path | None
) -> tuple[Soak, ...]:
    """Fuzzes the cards' libraries in turn, each for its share of the time. `corpus`: None is the cache's.

    Raises NoKernelError where there is nothing to fuzz on this machine.
    """
    place = corpus or build_cache.cache_folder() / fuzz_corpus.FOLDER
    files.try_folder(place)
    about = _heads(repo, ref, folder)
    machine = environment.describe()
    device = environment.kind(machine)
    fuzzed = [one for one in about if one.card.fuzz[device]]
    if not fuzzed:
        raise NoKernelError(fuzzing.nothing_to_fuzz(about[0].card, device))
    done = []
    with worker_pool() as workers:
        for one in fuzzed:
            workers.prepare({WORKER: 1})
            soak = Soak(one.card, place, seconds / len(fuzzed))
            soaks.run(one.sides.head, soak, new_seed() if seed is None else seed, machine, workers)
            done.append(soak)
    return tuple(done)


def _heads(repo: Path, ref: str | None, folder: Path | None) -> tuple[Compared, ...]:
    """The cards and libraries of one commit. Raises NoKernelError where it has none."""
    heads = libraries(repo, ref, folder)
    about = compared.judged(cards.of_checkout(repo), {name: Sides(None, one) for name, one in heads.built.items()})
    if not about:
        raise NoKernelError(f"{repo} has no card in {cards.FOLDER}/")
    return about


def sanitize(about: Sequence[Compared], asked: SanitizerOptions, ids: Sequence[str] = ()) -> tuple[record.Check, ...]:
    """The sanitizer check of each card's head, but of those whose base is the same library. `ids`: of cases.

    What keeps a check from being made is its reason, and no error.
    """
    chosen = compared.select(about, "cuda", None, ids) if ids else ()
    touched = [one for one in about if not one.same]
    done: list[record.Check] = []
    for one in touched:
        cases = tuple(each.case for each in chosen if each.card.name == one.card.name)
        if ids and not cases:
            continue
        try:
            gpu = only_gpu()
            with lock.device(environment.describe().device.uuid):
                done.append(sanitizing.check(one.card, one.sides, gpu, replace(asked, cases=cases)))
        except KernelgateError as error:
            done.append(sanitizing.skipped(str(error), one.card.name))
    return tuple(done)


def by_card(ids: Sequence[str], names: Sequence[str]) -> dict[str, list[str]]:
    """What is asked of each card; of all of them all where nothing is."""
    if not ids:
        return {name: [] for name in names}
    wanted: dict[str, list[str]] = {}
    for text in ids:
        name, _, case_id = text.rpartition("/")
        if not name and len(names) > 1:
            raise UsageError(f"there are {len(names)} cards: write --case {names[0]}/{case_id}")
        if name and name not in names:
            raise UsageError(f"there is no card {name}; there are {', '.join(names)}")
        wanted.setdefault(name or names[0], []).append(case_id)
    return wanted
