"""The CUDA kernel beside the backends of PyTorch's SDPA: `python -m benchmarks.kernel LIBRARY` on a machine with a GPU.

LIBRARY is a folder that `kernelgate build -o` wrote. All sides are replayed as CUDA graphs in rounds of random order in
one process, on the same inputs; times are medians. Prints a Markdown table.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from kernelgate.bench.build import library
from kernelgate.bench.kernel.oracle import TORCH_DTYPES
from kernelgate.bench.kernel.suite import SCALE, SuiteCase
from kernelgate.bench.timing.timer import Call, CudaTimer, Interval

CASES = (
    SuiteCase(512, 32, 8, "fp16"),
    SuiteCase(512, 32, 8, "fp16", causal=True),
    SuiteCase(512, 32, 8, "bf16"),
    SuiteCase(4096, 4, 8, "fp16"),
)
ROUNDS = 200
CALLS = 16
"""In one graph."""
WARM_UP_ROUNDS = 100
SETS = 4


def sides(case: SuiteCase, kernel: library.ForwardOut) -> dict[str, Callable[[int], None]]:
    """What is timed, from the number of an input set to one call on it."""
    shape = (SETS, 3, *case.shape)
    pool = torch.randn(shape, dtype=TORCH_DTYPES[case.dtype], device="cuda", generator=torch.Generator("cuda"))
    out = torch.empty_like(pool[0, 0])

    def ours(number: int) -> None:
        q, k, v = pool[number]
        kernel(q, k, v, out, SCALE, case.causal)

    def theirs(backend: SDPBackend, number: int) -> None:
        q, k, v = pool[number]
        with sdpa_kernel(backend):
            scaled_dot_product_attention(q, k, v, is_causal=case.causal)

    return {
        "fa_s512": ours,
        "FLASH": partial(theirs, SDPBackend.FLASH_ATTENTION),
        "cuDNN": partial(theirs, SDPBackend.CUDNN_ATTENTION),
    }


def times_us(case: SuiteCase, kernel: library.ForwardOut, timer: CudaTimer) -> dict[str, float]:
    graphs: dict[str, Call] = {}
    for name, call in sides(case, kernel).items():
        for number in range(SETS):
            timer.run(partial(call, number))
        graph = timer.capture([partial(call, number % SETS) for number in range(CALLS)])
        if graph is None:
            raise SystemExit(f"{name} cannot be captured in a graph")
        graphs[name] = graph
    samples: dict[str, list[float]] = {name: [] for name in graphs}
    for number in range(WARM_UP_ROUNDS + ROUNDS):
        for name in random.sample(list(graphs), len(graphs)):
            taken = timer.measure([Interval((graphs[name],))])
            if number >= WARM_UP_ROUNDS:
                samples[name] += taken
    return {name: median(taken) / CALLS for name, taken in samples.items()}


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit("usage: python -m benchmarks.kernel LIBRARY")
    kernel = library.load(library.read(Path(sys.argv[1])))
    timer = CudaTimer()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, medians of {ROUNDS} rounds\n")
    print("| case | fa_s512 | FLASH | cuDNN | fa_s512 / FLASH |\n| --- | --: | --: | --: | --: |")
    for case in CASES:
        found = times_us(case, kernel, timer)
        cells = [f"{time_us:.1f} µs" for time_us in found.values()]
        print(f"| {case.id} | {' | '.join(cells)} | {found['fa_s512'] / found['FLASH']:.2f} |")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
