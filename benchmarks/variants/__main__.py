"""Tries every variant on the GPU at hand: `python -m benchmarks.variants --seconds 540 -o .ci/sessions`.

Each family becomes a session log. A run goes on where an earlier one with the same folder ended. All that is measured
is measured by kernelgate: a family's tries beside their base in the same processes, each judged against the base.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import click

from benchmarks.fuzzing import planting
from benchmarks.fuzzing.bug import Device
from benchmarks.fuzzing.planting import Planted, UnbuildableError
from benchmarks.variants import library, measure
from benchmarks.variants.logs import FamilyLog
from benchmarks.variants.measure import TriedVariant
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Environment
from kernelgate.bench.system import environment, lock
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.worker import worker_pool
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.process import Measuring, Setup
from kernelgate.ci.policy import policy

PROFILES_AT_A_TIME = 3
"""One holds the device, the others load torch."""


@dataclass(frozen=True)
class VariantRun:
    """One call of this program."""

    folder: Path
    """Where repositories are made."""
    machine: Environment
    how: Measuring
    jobs: int
    ends: float
    """No try begins after it, on the monotonic clock."""

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.ends


@click.command()
@click.option(
    "--family", "names", multiple=True, type=click.Choice([one.name for one in library.FAMILIES]), help="All."
)
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cuda", show_default=True)
@click.option("--seconds", default=3600.0, show_default=True, help="No try begins later than this.")
@click.option("--rounds", default=40, show_default=True, help="In each of four processes.")
@click.option("--jobs", default=planting.cores(), show_default=True, help="Builds at a time.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path(".ci/sessions"), show_default=True)
def main(names: tuple[str, ...], device: Device, seconds: float, rounds: int, jobs: int, output: Path) -> None:
    """Build base and variants, profile each base, time and judge each variant, and log what came of it."""
    ends = time.monotonic() + seconds
    how = Measuring(seed=1, rounds=rounds, patience_s=paired.PATIENCE_S, pause_when_capped=False, single=True)
    logs = [FamilyLog(family, output) for family in library.select(device, names)]
    with tempfile.TemporaryDirectory(prefix="kernelgate-variants-") as name:
        run = VariantRun(Path(name), environment.describe(), how, jobs, ends)
        # Which code path a library runs is said by a variable, which its processes must be started with.
        for forced in (False, True):
            some = [one for one in logs if (one.family.path in planting.PATHS) == forced and one.left()]
            with mock.patch.dict(os.environ, planting.PATHS.get(some[0].family.path, {}) if some else {}):
                try_all(run, some)
    tried = sum(len(one.family.variants) - len(one.left()) for one in logs)
    say(f"{tried} of {sum(len(one.family.variants) for one in logs)} variants are logged in {output}")


def try_all(run: VariantRun, logs: Sequence[FamilyLog]) -> None:
    """All tries that are left: builds first, and profiles beside them; then measures, family after family.

    Nothing else may run then: what measures ends every process that this one has started besides.
    """
    if run.is_over or not logs:
        return
    with ThreadPoolExecutor(run.jobs) as builders, ThreadPoolExecutor(PROFILES_AT_A_TIME) as profilers:
        numbers = {one.family.name: (0, *one.left()) for one in logs}
        bases = {one.family.name: builders.submit(measure.built, one.family, 0, run.folder) for one in logs}
        builds = {
            (one.family.name, number): bases[one.family.name]
            if number == 0
            else builders.submit(measure.built, one.family, number, run.folder)
            for one in logs
            for number in numbers[one.family.name]
        }
        for one in logs:
            profilers.submit(opened, run, one, bases[one.family.name])
    with worker_pool() as started:
        setup = Setup(run.machine, run.how, started)
        for one in logs:
            if one.path.exists() and not run.is_over and not bases[one.family.name].exception():
                attempt(
                    run, setup, one, {number: builds[one.family.name, number] for number in numbers[one.family.name]}
                )
                one.close()


def opened(run: VariantRun, one: FamilyLog, base: Future[Planted]) -> None:
    """Profiles a family's base, and begins its log; not where the base does not build."""
    found, why = None, ""
    try:
        if one.path.exists():
            return
        folder = run.folder / "profiles" / one.family.name
        if one.family.device == "cuda":
            found = measure.profile(one.family, base.result(), folder, policy.load(), run.machine.device.uuid)
        base.result()
    except UnbuildableError as error:
        say(f"{one.family.name}: the base was not built: {error}")
        return
    except KernelgateError as error:
        why = f"no profile: {error}"
        say(f"{one.family.name}: {why}")
    one.open(run.machine, found, why)


def attempt(run: VariantRun, setup: Setup, one: FamilyLog, builds: Mapping[int, Future[Planted]]) -> None:
    """The tries of a family that are left, logged whatever comes of them, as far as there is time."""
    built: dict[int, Planted] = {}
    for number, build in builds.items():
        try:
            built[number] = build.result()
        except UnbuildableError as error:
            one.tried(number, TriedVariant(first_error(str(error)), "build"))
    numbers = [number for number in built if number]
    for at in range(0, len(numbers), measure.TOGETHER):
        if run.is_over:
            return
        sides = {number: built[number] for number in (0, *numbers[at : at + measure.TOGETHER])}
        with lock.device(run.machine.device.uuid):
            try:
                made = measure.compare_all(one.family, sides, setup, policy.load())
            except (KernelgateError, TimeoutError) as error:
                made = {number: TriedVariant(str(error), "measurement") for number in sides if number}
        for number, comparison in sorted(made.items()):
            one.tried(number, comparison)
            changes = ", ".join(f"{outcome.status} {outcome.change_pct:+.1f}%" for outcome in comparison.outcomes)
            say(f"{one.family.name} {number}: {changes or f'{comparison.failed}: {comparison.said}'}")


def first_error(said: str) -> str:
    """Of a compiler's output, the line that tells."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it did not build")[:300]


if __name__ == "__main__":
    main()
