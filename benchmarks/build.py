"""How long it takes to compile HEAD's kernels for sm_89 and sm_90 on two cores, and to find it again: `make benchmark`.

Prints a Markdown table. Cold builds start from an empty cache, without ccache.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kernelgate.bench.build import archs, toolchain
from kernelgate.bench.build import cache as build_cache
from kernelgate.bench.kernel import commit
from kernelgate.bench.system import git

REPEATS = 3
CORES = 2
ROOT = Path(__file__).parent.parent
VERB = (sys.executable, "-m", "kernelgate.ci.commands.cli", "build", "--ref", "HEAD")


def process(cache: Path) -> None:
    """`kernelgate build --ref HEAD`, from starting Python to its end."""
    environment = {**os.environ, build_cache.CACHE_VARIABLE: str(cache)}
    subprocess.run(VERB, cwd=ROOT, env=environment, capture_output=True, check=True)


def seconds(repeats: int, call: Callable[[int], object]) -> list[float]:
    taken = []
    for number in range(repeats):
        start = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - start)
    return taken


def row(what: str, taken: list[float]) -> str:
    return f"| {what} | {statistics.median(taken):.2f} | {min(taken):.2f} – {max(taken):.2f} |"


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


def main() -> None:
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    os.environ |= {archs.ARCH_LIST: "8.9;9.0", "CCACHE_DISABLE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        caches = [Path(folder, str(number)) for number in range(REPEATS)]
        cold = seconds(REPEATS, lambda number: process(caches[number]))
        cached = seconds(REPEATS, lambda number: process(caches[number]))
        os.environ[build_cache.CACHE_VARIABLE] = str(caches[0])
        found = seconds(REPEATS, lambda _: commit.build_commit(ROOT))
    print(f"Commit {git.resolve(ROOT, 'HEAD')[:7]} for sm_89 and sm_90. {machine()}\n")
    print(f"| what | seconds, median of {REPEATS} | range |")
    print("| --- | --: | --: |")
    print(row("`kernelgate build`, empty cache, whole process", cold))
    print(row("`kernelgate build`, cached, whole process", cached))
    print(row("`kernelgate.bench.kernel.commit.build_commit`, cached", found))


if __name__ == "__main__":
    main()
