"""What looks for a bug: the commands that a pull request runs, as processes, each until it finds something."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from benchmarks.fuzzing import planting
from benchmarks.fuzzing.planting import KERNELGATE, Planted
from kernelgate.bench import record
from kernelgate.bench.system import supervise
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.ci.judge import outputs

DetectorName = Literal["fuzz", "timed", "memcheck", "racecheck", "accuracy"]
WORKING = re.compile(r"\w+: \d+ steps?")
"""What a command says once it has the device: its time counts from there."""
LESS_ACCURATE = "⚠ less accurate"
"""How the command begins that says so."""
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


def fuzz(one: Planted, seed: int, limit_s: float) -> DetectorResult:
    """`kernelgate fuzz`, until its first failure."""
    return _watched("fuzz", one, ("fuzz", "--library", str(one.library), "--seed", str(seed)), limit_s, "FAILED ")


def memcheck(one: Planted, _seed: int, limit_s: float) -> DetectorResult:
    return _sanitized("memcheck", one, limit_s)


def racecheck(one: Planted, _seed: int, limit_s: float) -> DetectorResult:
    return _sanitized("racecheck", one, limit_s)


def timed(one: Planted, seed: int, limit_s: float) -> DetectorResult:
    """The outputs of timed calls, in one process of `kernelgate bench --alone` on the card's smallest case."""
    run = one.tree / "run.json"
    run.unlink(missing_ok=True)
    words = ("bench", "--alone", "--head-library", str(one.library), "--case", _smallest(one), "--processes", "1")
    look = _watched("timed", one, (*words, "--rounds", "20", "--seed", str(seed), "-o", str(run)), limit_s, None)
    if look.caught is None or not run.exists():
        return look
    wrong = list(outputs.wrong_outputs(record.read(run)).values())
    return look.model_copy(update={"caught": bool(wrong), "message": wrong[0].message if wrong else ""})


def accuracy(one: Planted, seed: int, limit_s: float) -> DetectorResult:
    """`kernelgate accuracy` with the kernel as it is for a base: right within the tolerance, and worse than before."""
    if not one.bug.edits:
        return DetectorResult(detector="accuracy", caught=False, seconds=0.0, message="one library is as accurate")
    base = planting.unmodified(one).library
    words = ("accuracy", "--base-library", str(base), "--head-library", str(one.library), "--seed", str(seed))
    return _watched("accuracy", one, words, limit_s, LESS_ACCURATE)


DETECTORS: dict[DetectorName, Callable[[Planted, int, float], DetectorResult]] = {
    "fuzz": fuzz,
    "timed": timed,
    "memcheck": memcheck,
    "racecheck": racecheck,
    "accuracy": accuracy,
}
"""In the order in which they are run."""


def _sanitized(tool: Literal["memcheck", "racecheck"], one: Planted, limit_s: float) -> DetectorResult:
    words = ("sanitize", "--library", str(one.library), "--tool", tool)
    return _watched(tool, one, words, limit_s, f"{tool}: ")


def _watched(
    detector: DetectorName, one: Planted, words: Sequence[str], limit_s: float, telling: str | None
) -> DetectorResult:
    """Runs a command until a line begins with `telling`. One that ends with 0 has found nothing."""
    lines: list[str] = []
    begun = time.monotonic()
    working = False

    def heard(line: str = "") -> None:
        nonlocal begun, working
        if not working and WORKING.fullmatch(line):
            begun, working = time.monotonic(), True
        if working and time.monotonic() - begun > limit_s:
            raise TimeoutError
        lines.append(line)
        if telling and line.startswith(telling):
            raise _FoundError

    def look(caught: bool | None, message: str = "") -> DetectorResult:
        return DetectorResult(
            detector=detector, caught=caught, seconds=round(time.monotonic() - begun, 1), message=message
        )

    limits = TimeLimits(silence_s=min(1.0, limit_s), total_s=PATIENCE_S)
    with supervise.running((*KERNELGATE, *words), cwd=one.tree, env=one.environment) as running:
        try:
            code = running.follow(limits, heard, lambda _: heard())
        except _FoundError:
            return look(True, lines[-1])
        except TimeoutError:
            return look(None, f"not done after {limit_s:g} s")
    if code == 0:
        return look(False)
    return look(None, f"exited with {code}: {next((line for line in reversed(lines) if line.strip()), 'no output')}")


def _smallest(one: Planted) -> str:
    """The id of the first case of the card's suite for the device."""
    from kernelgate.bench.kernel import cards

    card = cards.of_checkout(one.tree).cards[0]
    suite = card.suites["cpu" if one.device == "cpu" else "pr"]
    return min(suite, key=lambda case: case.bytes or 0.0).id
