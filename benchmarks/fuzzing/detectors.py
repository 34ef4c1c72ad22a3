"""What looks for a bug: the commands that a pull request runs, as processes, each until it finds something."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from benchmarks.fuzzing import bug as planting
from benchmarks.fuzzing.bug import KERNELGATE, Bug, Device, Planted, UnbuildableError
from kernelgate.bench import record
from kernelgate.bench.kernel import cards
from kernelgate.bench.system import supervise
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.ci.judge import correctness

DetectorName = Literal["fuzz", "timed", "memcheck", "racecheck", "accuracy"]
WORKING = re.compile(r"\w+: \d+ steps?")
"""What a command says once it has the device: its time counts from there."""
LESS_ACCURATE = "⚠ less accurate"
"""How the command begins that says so."""
LIMIT_S = 180.0
"""For one detector and one bug."""
PATIENCE_S = 3600.0
"""For the device, which other commands may hold."""


class DetectorResult(BaseModel):
    """What one detector said of one bug."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    detector: DetectorName
    caught: bool | None
    """None where it could not tell: it did not end in time, or could not run."""
    seconds: float
    """Until it found something, else until it ended."""
    message: str = ""


class _FoundError(Exception):
    """Ends a command that has said what was looked for."""


def fuzz(one: Planted) -> DetectorResult:
    """`kernelgate fuzz`, until its first failure."""
    return _watched("fuzz", one, ("fuzz", "--library", str(one.library), "--seed", "1"), "FAILED ")


def sanitizer(tool: Literal["memcheck", "racecheck"]) -> Callable[[Planted], DetectorResult]:
    words = ("sanitize", "--tool", tool, "--library")
    return lambda one: _watched(tool, one, (*words, str(one.library)), f"{tool}: ")


def timed(one: Planted) -> DetectorResult:
    """The outputs of timed calls, in one process of `kernelgate bench --alone` on the card's smallest case."""
    run = one.tree / "run.json"
    run.unlink(missing_ok=True)
    suite = cards.of_checkout(one.tree).cards[0].suites["cpu" if one.device == "cpu" else "pr"]
    case = min(suite, key=lambda case: case.bytes or 0.0).id
    words = ("bench", "--alone", "--head-library", str(one.library), "--case", case, "--processes", "1")
    look = _watched("timed", one, (*words, "--rounds", "20", "--seed", "1", "-o", str(run)), None)
    if look.caught is None or not run.exists():
        return look
    wrong = list(correctness.wrong_outputs(record.read(run)).values())
    return look.model_copy(update={"caught": bool(wrong), "message": wrong[0].message if wrong else ""})


def accuracy(one: Planted) -> DetectorResult:
    """`kernelgate accuracy` with the kernel as it is for a base: right within the tolerance, and worse than before."""
    if not one.bug.edits:
        return DetectorResult(detector="accuracy", caught=False, seconds=0.0, message="one library is as accurate")
    base = planting.unmodified(one).library
    words = ("accuracy", "--base-library", str(base), "--head-library", str(one.library), "--seed", "1")
    return _watched("accuracy", one, words, LESS_ACCURATE)


DETECTORS: dict[DetectorName, Callable[[Planted], DetectorResult]] = {
    "fuzz": fuzz,
    "timed": timed,
    "memcheck": sanitizer("memcheck"),
    "racecheck": sanitizer("racecheck"),
    "accuracy": accuracy,
}
"""In the order in which they are run."""


def _watched(detector: DetectorName, one: Planted, words: Sequence[str], telling: str | None) -> DetectorResult:
    """Runs a command until a line begins with `telling`. One that ends with 0 has found nothing."""
    lines: list[str] = []
    begun = time.monotonic()
    working = False

    def heard(line: str = "") -> None:
        nonlocal begun, working
        if not working and WORKING.fullmatch(line):
            begun, working = time.monotonic(), True
        if working and time.monotonic() - begun > LIMIT_S:
            raise TimeoutError
        lines.append(line)
        if telling and line.startswith(telling):
            raise _FoundError

    def look(caught: bool | None, message: str = "") -> DetectorResult:
        return DetectorResult(
            detector=detector, caught=caught, seconds=round(time.monotonic() - begun, 1), message=message
        )

    limits = TimeLimits(silence_s=min(1.0, LIMIT_S), total_s=PATIENCE_S)
    with supervise.running((*KERNELGATE, *words), cwd=one.tree, env=one.environment) as running:
        try:
            code = running.follow(limits, heard, lambda _: heard())
        except _FoundError:
            return look(True, lines[-1])
        except TimeoutError:
            return look(None, f"not done after {LIMIT_S:g} s")
    if code == 0:
        return look(False)
    return look(None, f"exited with {code}: {next((line for line in reversed(lines) if line.strip()), 'no output')}")


# ---- many bugs -------------------------------------------------------------------------------------------------------


class BugResult(BaseModel):
    """One bug on one device."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bug: str
    """Its id."""
    device: Device
    built: bool = True
    message: str = ""
    """What the compiler said, where it was not built."""
    looks: tuple[DetectorResult, ...] = ()
    """One for each detector that was run."""

    @property
    def caught_by(self) -> DetectorName | None:
        return next((look.detector for look in self.looks if look.caught), None)

    @property
    def undecided(self) -> bool:
        """Whether nothing caught it, and a detector could not tell."""
        return self.caught_by is None and (not self.built or any(look.caught is None for look in self.looks))

    @property
    def seconds(self) -> float:
        """Of all detectors that were run."""
        return sum(look.seconds for look in self.looks)


class BugResults(BaseModel):
    """A run of the program on one machine."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    machine: str
    results: tuple[BugResult, ...] = ()

    def of(self, bug: str, device: Device) -> BugResult | None:
        return next((one for one in self.results if (one.bug, one.device) == (bug, device)), None)


AHEAD: dict[Device, int] = {"cpu": 1, "cuda": 4}
"""Bugs that are shown to detectors at a time. kernelgate lets one fuzz at a time have the device; the others load torch
meanwhile, for which a GPU's machine has cores to spare."""


def measure(
    bugs: Sequence[Bug], device: Device, folder: Path, detectors: Sequence[DetectorName]
) -> Iterator[BugResult]:
    """Builds bugs in parallel in this folder, shows each to the detectors as soon as it is built, until one catches it,
    and gives what came of each as it comes."""

    def built(bug: Bug) -> Planted:
        one = planting.plant(bug, device, folder)
        planting.build(one)
        return one

    def result(bug: Bug, build: Future[Planted]) -> BugResult:
        try:
            one = build.result()
        except UnbuildableError as error:
            return BugResult(bug=bug.id, device=device, built=False, message=str(error))
        looks: list[DetectorResult] = []
        for name in detectors:
            looks.append(DETECTORS[name](one))
            if looks[-1].caught:
                break
        return BugResult(bug=bug.id, device=device, looks=tuple(looks))

    jobs = max(1, planting.cores() // 2)
    with ThreadPoolExecutor(jobs) as builders, ThreadPoolExecutor(AHEAD[device]) as watchers:
        builds = {builders.submit(built, bug): bug for bug in bugs}
        shown: list[Future[BugResult]] = []
        for build in as_completed(builds):
            shown.append(watchers.submit(result, builds[build], build))
            for ended in [one for one in shown if one.done()]:
                shown.remove(ended)
                yield ended.result()
        for ended in as_completed(shown):
            yield ended.result()
