"""Builds bugs in parallel, and shows each to the detectors as soon as it is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fuzzing import planting
from benchmarks.fuzzing.bug import Bug, Device
from benchmarks.fuzzing.detectors import DETECTORS, DetectorName, DetectorResult
from benchmarks.fuzzing.planting import Planted, UnbuildableError
from benchmarks.fuzzing.results import BugResult

AHEAD: dict[Device, int] = {"cpu": 1, "cuda": 4}
"""Bugs that are shown to detectors at a time. kernelgate lets one fuzz at a time have the device; the others load torch
meanwhile, for which a GPU's machine has cores to spare."""


@dataclass(frozen=True)
class Asked:
    """How bugs are looked for."""

    device: Device
    folder: Path
    """Where their repositories are made."""
    detectors: tuple[DetectorName, ...] = ("fuzz",)
    every: bool = False
    """Run the other detectors, too, once one has caught a bug."""
    seed: int = 1
    limit_s: float = 180.0
    """For one detector and one bug."""
    jobs: int = 1
    """Builds at a time."""


def measure(bugs: Sequence[Bug], asked: Asked) -> Iterator[BugResult]:
    """What came of each bug, as it comes."""
    with ThreadPoolExecutor(asked.jobs) as builders, ThreadPoolExecutor(AHEAD[asked.device]) as watchers:
        builds = {builders.submit(built, bug, asked): bug for bug in bugs}
        shown: list[Future[BugResult]] = []
        for done in as_completed(builds):
            shown.append(watchers.submit(_result, builds[done], asked, done.result))
            yield from _finished(shown)
        for future in as_completed(shown):
            yield future.result()


def built(bug: Bug, asked: Asked) -> Planted:
    """Raises UnbuildableError."""
    one = planting.plant(bug, asked.device, asked.folder)
    planting.build(one)
    return one


def _finished(shown: list[Future[BugResult]]) -> Iterator[BugResult]:
    """Takes those that are done from the list."""
    for future in [one for one in shown if one.done()]:
        shown.remove(future)
        yield future.result()


def _result(bug: Bug, asked: Asked, planted: Callable[[], Planted]) -> BugResult:
    try:
        one = planted()
    except UnbuildableError as error:
        return BugResult(bug=bug.id, device=asked.device, built=False, message=str(error))
    return BugResult(bug=bug.id, device=asked.device, looks=tuple(_looks(one, asked)))


def _looks(one: Planted, asked: Asked) -> Iterator[DetectorResult]:
    for name in asked.detectors:
        look = DETECTORS[name](one, asked.seed, asked.limit_s)
        yield look
        if look.caught and not asked.every:
            return
