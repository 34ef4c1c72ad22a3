"""Tries every variant on the GPU at hand: `python -m benchmarks.variants --seconds 540 -o .ci/sessions`.

Each family becomes a session log. A run goes on where an earlier one with the same folder ended. All that is measured
is measured by kernelgate: a family's tries beside their base in the same processes, each judged against the base.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import click

from benchmarks.fuzzing import planting
from benchmarks.fuzzing.bug import Device
from benchmarks.fuzzing.planting import Planted, UnbuildableError
from benchmarks.variants import library, measure
from benchmarks.variants.family import Family
from benchmarks.variants.logs import FamilyLog
from benchmarks.variants.measure import BaseProfile, Comparison
from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.record import Environment
from kernelgate.bench.system import children, environment, lock
from kernelgate.bench.system.progress import say
from kernelgate.bench.timing import paired
from kernelgate.bench.timing.process import Measuring, Setup
from kernelgate.ci.judge import policy


@dataclass
class Run:
    """One call of this program."""

    folder: Path
    """Where repositories are made."""
    machine: Environment
    setup: Setup
    ends: float
    """No try begins after it, on the monotonic clock."""
    builders: ThreadPoolExecutor
    builds: dict[tuple[str, int], Future[Planted]] = field(default_factory=dict)

    def build(self, family: Family, number: int) -> Future[Planted]:
        """The base's (0) or a try's library, which is built once."""
        if (family.name, number) not in self.builds:
            started = self.builders.submit(measure.built, family, number, self.folder)
            self.builds[family.name, number] = started
        return self.builds[family.name, number]

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
    logs = [one for one in logs if one.left()]
    with (
        tempfile.TemporaryDirectory(prefix="kernelgate-variants-") as name,
        ThreadPoolExecutor(jobs) as builders,
        children.opened() as started,
    ):
        machine = environment.describe()
        run = Run(Path(name), machine, Setup(machine, how, started), ends, builders)
        for one in logs:
            run.build(one.family, 0)
        for one in logs:
            for number in one.left():
                run.build(one.family, number)
        try_all(run, logs)
        builders.shutdown(cancel_futures=True)
    tried = sum(len(one.family.variants) - len(one.left()) for one in logs)
    say(f"{tried} of {sum(len(one.family.variants) for one in logs)} variants are logged in {output}")


def opened(run: Run, one: FamilyLog) -> bool:
    """Whether the family's base was built; profiles it, and begins its log."""
    try:
        base = run.build(one.family, 0).result()
    except UnbuildableError as error:
        say(f"{one.family.name}: the base was not built: {error}")
        return False
    if one.path.exists() or run.is_over:
        return one.path.exists()
    found, why = None, ""
    if one.family.device == "cuda":
        try:
            found = profiled(run, one.family, base)
        except KernelgateError as error:
            why = f"no profile: {error}"
            say(f"{one.family.name}: {why}")
    one.open(run.machine, found, why)
    return True


def profiled(run: Run, family: Family, base: Planted) -> BaseProfile:
    folder = run.folder / "profiles" / family.name
    return measure.profile(family, base, folder, policy.load(), run.machine.device.uuid)


def try_all(run: Run, logs: Sequence[FamilyLog]) -> None:
    """All tries that are left, family after family; the next family's base is profiled before this one's tries."""
    with ThreadPoolExecutor(1) as profiler:
        openings = [profiler.submit(opened, run, one) for one in logs]
        for one, is_open in zip(logs, openings, strict=True):
            if not run.is_over and is_open.result():
                attempt(run, one)
    for one in logs:
        one.close()


def attempt(run: Run, one: FamilyLog) -> None:
    """The tries of a family that are left, logged whatever comes of them, as far as there is time."""
    built: dict[int, Planted] = {}
    for number in one.left():
        try:
            built[number] = run.build(one.family, number).result()
        except UnbuildableError as error:
            one.tried(number, Comparison(first_error(str(error)), "build"))
    base = run.build(one.family, 0).result()
    numbers = list(built)
    for at in range(0, len(numbers), measure.TOGETHER):
        if run.is_over:
            return
        sides = {0: base, **{number: built[number] for number in numbers[at : at + measure.TOGETHER]}}
        with lock.device(run.machine.device.uuid):
            try:
                made = measure.compare_all(one.family, sides, run.setup, policy.load())
            except (KernelgateError, TimeoutError) as error:
                made = {number: Comparison(str(error), "measurement") for number in sides if number}
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
