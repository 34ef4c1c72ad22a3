"""How long builds and the commands take that need no GPU, and how much memory these take: `make benchmark`.

Prints Markdown tables. HEAD's kernels are compiled for sm_89 and sm_90 on two cores, first from an empty cache, without
ccache. Records are simulated with a fixed seed; their content does not change the work.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.tables import markdown
from kernelgate.bench.build import archs, toolchain
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.kernel import commit
from kernelgate.bench.record import SCHEMA
from kernelgate.bench.system import git

REPEATS, BUILDS = 5, 3
CORES = 2
"""Of a build."""
ROOT = Path(__file__).parent.parent
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


# ---- builds ----------------------------------------------------------------------------------------------------------


def process(cache: Path) -> None:
    """`kernelgate build --ref HEAD`, from starting Python to its end."""
    environment = {**os.environ, build_cache.CACHE_VARIABLE: str(cache)}
    subprocess.run((*KERNELGATE, "build", "--ref", "HEAD"), cwd=ROOT, env=environment, capture_output=True, check=True)


def seconds(call: Callable[[int], object]) -> list[float]:
    taken = []
    for number in range(BUILDS):
        start = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - start)
    return taken


def machine() -> str:
    found = toolchain.find()
    versions = (
        found.gxx_version.splitlines()[0],
        found.cuda.version.splitlines()[-2] if found.cuda else found.cuda_missing,
        f"torch {found.torch.version}",
        f"Python {platform.python_version()}",
    )
    cores = len(os.sched_getaffinity(0))
    return f"{platform.machine()}, {cores} of {os.cpu_count()} cores; {'; '.join(versions)}"


def builds() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    os.environ |= {archs.ARCH_LIST: "8.9;9.0", "CCACHE_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        caches = [Path(folder, str(number)) for number in range(BUILDS)]
        cold = seconds(lambda number: process(caches[number]))
        cached = seconds(lambda number: process(caches[number]))
        os.environ[build_cache.CACHE_VARIABLE] = str(caches[0])
        found = seconds(lambda _: commit.build_commit(ROOT))
    print(f"Commit {git.resolve(ROOT, 'HEAD')[:7]} for sm_89 and sm_90. {machine()}\n")
    taken = {
        "`kernelgate build`, empty cache, whole process": cold,
        "`kernelgate build`, cached, whole process": cached,
        "`kernelgate.bench.kernel.commit.build_commit`, cached": found,
    }
    rows = ([what, f"{statistics.median(s):.2f}", f"{min(s):.2f} – {max(s):.2f}"] for what, s in taken.items())
    print(markdown(["what", f"seconds, median of {BUILDS}", "range"], rows))


def main() -> None:
    print(f"{platform.machine()}, Python {platform.python_version()}, one core, median of {REPEATS} runs\n")
    rows = [
        [one.what, f"{one.seconds:.2f}", f"{one.slowest_s:.2f}", f"{one.peak_bytes / 1e6:.0f} MB"]
        for one in measurements()
    ]
    print(markdown(["command", "seconds", "slowest", "peak memory"], rows), end="\n\n")
    builds()


if __name__ == "__main__":
    main()
