"""How long builds and the commands take that need no GPU, and how much memory: `make benchmark` prints a table.

HEAD's kernels are compiled for sm_89 and sm_90 on two cores, first from an empty cache, without ccache; all else runs
on one. Records are simulated with a fixed seed; their content does not change the work.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.tables import markdown
from kernelgate.bench.build import archs, toolchain
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.record import SCHEMA
from kernelgate.bench.system import git

REPEATS = 5
ROOT = Path(__file__).parent.parent
KERNELGATE = (sys.executable, "-m", "kernelgate.ci.commands.cli")
SIDES = ("base", "head", "reference")


def simulated(cases: int, processes: int, rounds: int) -> str:
    """A record of identical code: 100 µs, 1% noise."""
    random = np.random.default_rng(1)

    def timing(case: str) -> dict[str, object]:
        sides = {side: np.round(100 * np.exp(0.01 * random.standard_normal(rounds)), 3).tolist() for side in SIDES}
        return {"case": case, "samples_us": sides}

    ids = [f"case{number}" for number in range(cases)]
    made = [{"id": str(number), "timings": [timing(id_) for id_ in ids]} for number in range(processes)]
    return json.dumps({"schema": SCHEMA, "cases": [{"id": id_} for id_ in ids], "processes": made})


def measured(what: str, *words: str, cores: int = 1, before: Callable[[], object] = lambda: None) -> list[str]:
    """A row of the table: a command on so many cores, several times."""
    seconds, peaks = [], []
    for _ in range(REPEATS):
        before()
        start = time.perf_counter()
        child = os.fork()
        if child == 0:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            os.execv(sys.executable, [*KERNELGATE, *words])  # noqa: S606 a fixed command
        _, _, usage = os.wait4(child, 0)
        seconds.append(time.perf_counter() - start)
        peaks.append(usage.ru_maxrss / 1e3)
    return [what, f"{statistics.median(seconds):.2f}", f"{max(seconds):.2f}", f"{max(peaks):.0f} MB"]


def rows(folder: Path) -> Iterator[list[str]]:
    cache = folder / "cache"
    os.environ |= {archs.ARCH_LIST: "8.9;9.0", "CCACHE_DISABLE": "1", build_cache.CACHE_VARIABLE: str(cache)}
    build = ("build", "--ref", "HEAD")

    def empty() -> None:
        shutil.rmtree(cache, ignore_errors=True)

    yield measured("`kernelgate build`, sm_89 and sm_90, empty cache, whole process", *build, cores=2, before=empty)
    yield measured("`kernelgate build`, cached, whole process", *build)
    yield measured("`kernelgate --help`", "--help")
    for cases, processes, rounds in ((27, 5, 100), (27, 20, 1000)):
        path = folder / "run.json"
        path.write_text(simulated(cases, processes, rounds), encoding="utf-8")
        what = f"`kernelgate compare`, {cases} cases × {processes} processes × {rounds} rounds"
        yield measured(what, "compare", str(path))


def main() -> None:
    found = toolchain.find()
    nvcc = found.cuda.version.splitlines()[-2] if found.cuda else found.cuda_missing
    versions = f"Python {platform.python_version()}; {found.gxx_version.splitlines()[0]}; {nvcc}"
    print(f"{git.resolve(ROOT, 'HEAD')[:7]}, {platform.machine()}, torch {found.torch.version}, {versions}\n")
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as folder:
        print(markdown(["command", f"seconds, median of {REPEATS}", "slowest", "peak memory"], rows(Path(folder))))


if __name__ == "__main__":
    main()
