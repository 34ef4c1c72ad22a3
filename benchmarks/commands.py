"""How long the commands take that need no GPU, as whole processes, and how much memory: `make benchmark`.

Prints a Markdown table. The records are simulated with a fixed seed; their content does not change the work.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelgate.bench.record import SCHEMA

REPEATS = 5
KERNELGATE = (sys.executable, "-m", "kernelgate.ci.commands.cli")


@dataclass(frozen=True)
class Measured:
    what: str
    seconds: float
    """Median of the repeats."""
    slowest_s: float
    peak_bytes: int


def simulated(cases: int, processes: int, rounds: int) -> str:
    """A record of identical code: 100 µs, 1% noise."""
    random = np.random.default_rng(1)

    def timing(case: str) -> dict[str, object]:
        sides = {side: np.round(100 * np.exp(0.01 * random.standard_normal(rounds)), 3).tolist() for side in SIDES}
        return {"case": case, "samples_us": sides}

    ids = [f"case{number}" for number in range(cases)]
    made = [{"id": str(number), "timings": [timing(id_) for id_ in ids]} for number in range(processes)]
    return json.dumps({"schema": SCHEMA, "cases": [{"id": id_} for id_ in ids], "processes": made})


SIDES = ("base", "head", "reference")


def run(what: str, command: Sequence[str]) -> Measured:
    """Runs one command on one core, several times."""
    seconds, peaks = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        child = os.fork()
        if child == 0:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            os.execvp(command[0], list(command))  # noqa: S606 a fixed command
        _, _, usage = os.wait4(child, 0)
        seconds.append(time.perf_counter() - start)
        peaks.append(usage.ru_maxrss * 1024)
    return Measured(what, statistics.median(seconds), max(seconds), max(peaks))


def measurements() -> Iterator[Measured]:
    yield run("`kernelgate --help`", (*KERNELGATE, "--help"))
    with tempfile.TemporaryDirectory() as folder:
        for shape in ((27, 5, 100), (27, 20, 1000)):
            path = Path(folder) / "run.json"
            path.write_text(simulated(*shape), encoding="utf-8")
            cases, processes, rounds = shape
            what = f"`kernelgate compare`, {cases} cases × {processes} processes × {rounds} rounds, 10,000 resamples"
            yield run(what, (*KERNELGATE, "compare", str(path)))


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}, one core, median of {REPEATS} runs\n")
    print("| command | seconds | slowest | peak memory |")
    print("| --- | --: | --: | --: |")
    for row in measurements():
        print(f"| {row.what} | {row.seconds:.2f} | {row.slowest_s:.2f} | {row.peak_bytes / 1e6:.0f} MB |")


if __name__ == "__main__":
    main()
