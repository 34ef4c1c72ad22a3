"""python -m benchmarks.traces OUT: records of identical code in two libraries, on the GPU at hand.

`kernels.json`: a GEMM, RMSNorm and a reduction by atomics. `contended.json`: the same beside another process that uses
the GPU. `capped.json`: a large attention without pauses, at the GPU's power limit. Times are rounded to a nanosecond.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernelgate.bench.kernel import cards, compared
from kernelgate.bench.kernel.compared import Compared
from kernelgate.bench.measure import run as verbs
from kernelgate.bench.measure.run import TimingOptions

ROOT = Path(__file__).parents[2]
SOURCES = (
    Path(__file__).parent / "row_sums",
    ROOT / "tests" / "repositories" / "rmsnorm",
    ROOT / "tests" / "repositories" / "int8_gemm",
)
CASES = ("m4096_n8192_fp32", "m64_n262144_fp32", "m4096_n4096_fp16", "m512_n8192_fp16", "m4096_n4096_k4096_int8")
CAPPED = "s640_b32_h16_d64_fp16"
SEED = 20261122
BUSY = """
import time, torch
a = torch.randn(4096, 4096, device="cuda", dtype=torch.float16)
while True:
    for _ in range(20):
        a @ a
    torch.cuda.synchronize()
    time.sleep(0.005)
"""
"""Another process on the GPU: bursts of a few milliseconds."""


def main(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        three = twins(Path(folder) / "three", SOURCES)
        measure(three, CASES, 8, out / "kernels.json")
        with busy():
            measure(three, CASES, 4, out / "contended.json")
        attention = twins(Path(folder) / "attention", (ROOT,))
        measure(attention, (CAPPED,), 6, out / "capped.json", pauses=False)


def twins(folder: Path, sources: tuple[Path, ...]) -> list[Compared]:
    """The cards of these repositories, base and head the same code in libraries of their own."""
    for source in sources:
        for name in ("csrc", ".ci"):
            shutil.copytree(source / name, folder / name, dirs_exist_ok=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    base = verbs.libraries(folder, None, None)
    for path in folder.glob("csrc/**/*.cu"):
        path.write_text(path.read_text(encoding="utf-8") + "// the same code in another library\n", encoding="utf-8")
    heads = verbs.libraries(folder, None, None)
    return list(compared.judged(cards.of_checkout(folder), verbs.against(heads, base)))


def measure(about: list[Compared], cases: tuple[str, ...], processes: int, path: Path, pauses: bool = True) -> None:
    known = {case.id for one in about for suite in one.card.suites.values() for case in suite}
    chosen = tuple(case for case in cases if case in known)
    asked = TimingOptions(processes, None, chosen, rounds=100, seed=SEED, pause_when_capped=pauses)
    verbs.bench(about, asked, path)
    kept = json.loads(path.read_text(encoding="utf-8"), parse_float=lambda word: round(float(word), 3))
    path.write_text(json.dumps(without_host(kept), separators=(",", ":")) + "\n", encoding="utf-8")


def without_host(kept: dict[str, Any]) -> dict[str, Any]:
    for environment in kept["environments"]:
        environment["host"] = None
    return kept


@contextmanager
def busy() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", BUSY]) as process:
        try:
            yield
        finally:
            process.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
