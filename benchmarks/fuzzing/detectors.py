"""What looks for a bug: the commands that a pull request runs, as processes, each until it finds something."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from benchmarks.fuzzing import bug as planting
from benchmarks.fuzzing.bug import KERNELGATE, Bug, Device, Planted, UnbuildableError
from kernelgate.bench.system import supervise
from kernelgate.bench.system.supervise import TimeLimits

DetectorName = Literal["fuzz", "memcheck", "racecheck", "accuracy"]
WORKING = re.compile(r"\w+: \d+ steps?")
"""What a command says once it has the device: its time counts from there."""
LIMIT_S = 180.0
"""For one detector and one bug."""
LIMITS = TimeLimits(silence_s=0.2, total_s=3600.0)
"""Other commands may hold the device."""


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


def sanitizer(tool: Literal["memcheck", "racecheck"], one: Planted) -> DetectorResult:
    return _watched(tool, one, ("sanitize", "--tool", tool, "--library", str(one.library)), f"{tool}: ")


def accuracy(one: Planted) -> DetectorResult:
    """`kernelgate accuracy` with the kernel as it is for a base: right within the tolerance, and worse than before."""
    if not one.bug.edits:
        return DetectorResult(detector="accuracy", caught=False, seconds=0.0, message="one library is as accurate")
    base = planting.unmodified(one).library
    words = ("accuracy", "--base-library", str(base), "--head-library", str(one.library), "--seed", "1")
    return _watched("accuracy", one, words, "⚠ less accurate")


DETECTORS: dict[DetectorName, Callable[[Planted], DetectorResult]] = {
    "fuzz": fuzz,
    "memcheck": partial(sanitizer, "memcheck"),
    "racecheck": partial(sanitizer, "racecheck"),
    "accuracy": accuracy,
}
"""In the order in which they are run."""


def _watched(detector: DetectorName, one: Planted, words: Sequence[str], telling: str) -> DetectorResult:
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
        if line.startswith(telling):
            raise _FoundError

    def look(caught: bool | None, message: str = "") -> DetectorResult:
        seconds = round(time.monotonic() - begun, 1)
        return DetectorResult(detector=detector, caught=caught, seconds=seconds, message=message)

    with supervise.running((*KERNELGATE, *words), cwd=one.tree, env=one.environment) as running:
        try:
            running.follow(LIMITS, heard, lambda _: heard())
        except _FoundError:
            return look(True, lines[-1])
        except TimeoutError:
            return look(None, f"not done after {LIMIT_S:g} s")
    if (code := running.process.wait()) == 0:
        return look(False)
    return look(None, f"exited with {code}: {next((line for line in reversed(lines) if line.strip()), 'no output')}")


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


def measure(
    bugs: Sequence[Bug], device: Device, folder: Path, detectors: Sequence[DetectorName]
) -> Iterator[BugResult]:
    """Builds bugs in parallel in this folder, shows each to the detectors until one catches it, and gives what came of
    each as it comes."""

    def result(bug: Bug) -> BugResult:
        one = planting.plant(bug, device, folder)
        try:
            planting.build(one)
        except UnbuildableError as error:
            return BugResult(bug=bug.id, device=device, built=False, message=str(error))
        looks: list[DetectorResult] = []
        for name in detectors:
            looks.append(DETECTORS[name](one))
            if looks[-1].caught:
                break
        return BugResult(bug=bug.id, device=device, looks=tuple(looks))

    # kernelgate lets one at a time have the device: the others are built, or load torch, meanwhile.
    with ThreadPoolExecutor(1 + planting.cores() // 2) as pool:
        for done in as_completed([pool.submit(result, bug) for bug in bugs]):
            yield done.result()
