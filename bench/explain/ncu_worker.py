"""What the profiler watches: one library, one case, warm-up calls and one more.

python -m kernelgate.bench.explain.ncu_worker LIBRARY_FOLDER CASE_ID
"""

from __future__ import annotations

import sys
from pathlib import Path

from kernelgate.bench.build import library
from kernelgate.bench.dtypes import DTYPES
from kernelgate.bench.kernel import case_list

WARM_UP = 2
"""Launches before the one that is profiled: the first loads the module, the second finds it in the caches."""


def run(folder: Path, case_id: str) -> None:
    import torch

    case = case_list.parse(case_id)
    dtype = getattr(torch, DTYPES[case.dtype].torch_name)
    forward = library.load(library.read(folder))
    generator = torch.Generator(device="cuda").manual_seed(0)
    q, k, v = (torch.randn(case.shape, generator=generator, device="cuda", dtype=dtype) for _ in range(3))
    out = torch.empty_like(q)
    for _ in range(WARM_UP + 1):
        forward(q, k, v, out, case_list.HEAD_DIM**-0.5, case.causal)
    torch.cuda.synchronize()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2])
