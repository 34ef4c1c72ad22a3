"""Tries every variant on the GPU at hand: `python -m benchmarks.variants --seconds 540 -o .ci/sessions`.

Each family becomes a session log. A run goes on where an earlier one with the same folder ended. All that is measured
is measured by kernelgate's own verbs, one command at a time on the device, while the next ones load torch.
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
from kernelgate.bench.system import environment
from kernelgate.bench.system.progress import say
from kernelgate.ci.judge import policy

AT_A_TIME: dict[Device, int] = {"cpu": 1, "cuda": 4}
"""Commands that time: one holds the device, the others load torch meanwhile."""


@dataclass
class Run:
    """One call of this program."""

    folder: Path
    """Where repositories are made."""
    machine: Environment
    words: tuple[str, ...]
    """Of `kernelgate bench`."""
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
@click.option("--processes", default=4, show_default=True, help="A direction takes four.")
@click.option("--rounds", default=25, show_default=True)
@click.option("--jobs", default=planting.cores(), show_default=True, help="Builds at a time.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path(".ci/sessions"), show_default=True)
def main(
    names: tuple[str, ...], device: Device, seconds: float, processes: int, rounds: int, jobs: int, output: Path
) -> None:
    """Build base and variants, profile each base, time and judge each variant, and log what came of it."""
    ends = time.monotonic() + seconds
    words = ("--processes", str(processes), "--rounds", str(rounds), "--seed", "1")
    logs = [FamilyLog(family, output) for family in library.select(device, names)]
    logs = [one for one in logs if one.left()]
    with tempfile.TemporaryDirectory(prefix="kernelgate-variants-") as name, ThreadPoolExecutor(jobs) as builders:
        run = Run(Path(name), environment.describe(), words, ends, builders)
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
    with ThreadPoolExecutor(AT_A_TIME[logs[0].family.device] if logs else 1) as commands:
        openings: list[Future[bool]] = []
        done: list[Future[None]] = []
        for at, one in enumerate(logs):
            openings += [commands.submit(opened, run, each) for each in logs[len(openings) : at + 2]]
            done += [commands.submit(attempt, run, one, number, openings[at]) for number in one.left()]
        for each in done:
            each.result()
    for one in logs:
        one.close()


def attempt(run: Run, one: FamilyLog, number: int, is_open: Future[bool]) -> None:
    """One try, logged whatever comes of it, unless there is no time for it."""
    if not is_open.result() or run.is_over:
        return
    try:
        sides = (run.build(one.family, 0).result(), run.build(one.family, number).result())
    except UnbuildableError as error:
        made = Comparison(first_error(str(error)), "build")
    else:
        if run.is_over:
            return
        try:
            made = measure.compare(one.family, sides, run.words, policy.load())
        except (KernelgateError, TimeoutError) as error:
            made = Comparison(str(error), "measurement")
    one.tried(number, made)
    changes = ", ".join(f"{outcome.status} {outcome.change_pct:+.1f}%" for outcome in made.outcomes)
    say(f"{one.family.name} {number}: {changes or f'{made.failed}: {made.said}'}")


def first_error(said: str) -> str:
    """Of a compiler's output, the line that tells."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "it did not build")[:300]


if __name__ == "__main__":
    main()
