"""A kernel that memory bounds, beside a copy of as many bytes and PyTorch, on a machine with a GPU.

    python -m benchmarks.memory_bound measure LIBRARY RECORD.json
    python -m benchmarks.memory_bound table RECORD.json...

LIBRARY is a folder that `kernelgate build -o` wrote in a repository with one card, such as tests/repositories/rmsnorm.
Sides and method are those of benchmarks/kernel.py. Each takes its turn on several sets of inputs and outputs, together
well larger than L2.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks import replays
from kernelgate.bench.build import library
from kernelgate.bench.kernel import axes, operands
from kernelgate.bench.kernel.calls import Bound, bind
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.loading import kernel_class, load_module
from kernelgate.bench.kernel.operands import Draw
from kernelgate.bench.system import nvml
from kernelgate.bench.timing.timer import Call, CudaTimer

SCHEMA = "kernelgate.memory-bound/1"
KERNEL, COPY, PYTORCH, COMPILED = "kernel", "copy", "PyTorch", "PyTorch compiled"
ROUNDS = 60
POOL_BYTES = 2**29
"""Of all sets of inputs and outputs together; an H200 has 60 MB of L2."""
DRAM_BYTES_US = 4.8e6
"""Of an H200, to estimate how many calls a graph should hold."""
COMPILED_SIZES = {4096}
"""torch.compile takes seconds: only cases of these sizes are compiled."""


def moved_bytes(given: operands.Inputs, outs: operands.Tensors) -> int:
    tensors = [*dict(operands.tensors(given)).values(), *outs.values()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def card_in(path: Path) -> Kernel:
    """As a module that can be imported, which torch.compile asks for."""
    module = load_module(path)
    sys.modules[module.__name__] = module
    return kernel_class(module, path)()


def sides(kernel: Kernel, bound: Bound, case: CaseAxes) -> tuple[dict[str, list[Call]], int]:
    """What is timed, a call for each set of inputs, and the bytes that one call moves."""
    draw = Draw(case, "cuda", seed=0)
    sets: list[tuple[Any, Any]] = []
    total, bytes_each = 0, 0
    while not sets or total < POOL_BYTES:
        given = operands.inputs(kernel, case, draw)
        outs = operands.empty_outputs(kernel, operands.output_shapes(kernel, case, given), "cuda")
        bytes_each = moved_bytes(given, outs)
        total += bytes_each
        sets.append((given, outs))
    halves = [torch.empty((2, bytes_each // 2), dtype=torch.uint8, device="cuda") for _ in sets]

    def reference(given: Mapping[str, Any]) -> object:
        return kernel.oracle(case, **given)

    calls: dict[str, list[Call]] = {
        KERNEL: [bound.prepared(case, given, outs) for given, outs in sets],
        COPY: [partial(half[0].copy_, half[1]) for half in halves],
        PYTORCH: [partial(reference, given) for given, _ in sets],
    }
    if {size for axis, size in case.items() if axis != "dtype"} == COMPILED_SIZES:
        compiled: Any = torch.compile(reference, dynamic=False)
        calls[COMPILED] = [partial(compiled, given) for given, _ in sets]
    return calls, bytes_each


def measure(folder: Path) -> dict[str, Any]:
    ((card, built),) = library.read_all(folder).built.items()
    if built.card is None:
        raise SystemExit(f"{folder} holds no card beside the library")
    kernel = card_in(built.card)
    bound = bind(built, kernel, "head")
    timer = CudaTimer()
    rows = []
    for one in kernel.cases:
        case = CaseAxes(one)
        calls, bytes_each = sides(kernel, bound, case)
        count = replays.calls_each(bytes_each / DRAM_BYTES_US + 2)
        samples = replays.samples_us(calls, count, ROUNDS, timer)
        rows.append({"card": card, "case": axes.case_id(case), "bytes": bytes_each, "samples_us": samples})
        print(rows[-1]["case"], {name: round(median(taken), 2) for name, taken in samples.items()}, file=sys.stderr)
    with nvml.opened():
        driver = nvml.driver_version()
    machine = {"gpu": torch.cuda.get_device_name(), "driver": driver, "torch": torch.__version__}
    return {"schema": SCHEMA, "machine": machine, "rows": rows}


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: microseconds, and how the kernel stands to the others."""
    names = (KERNEL, COPY, PYTORCH, COMPILED)
    lines = [f"| case | MB | {' | '.join(names)} | copy / kernel |", f"| --- |{' --: |' * (len(names) + 2)}"]
    for row in (row for record in records for row in record["rows"]):
        times = {name: median(taken) for name, taken in row["samples_us"].items()}
        cells = [f"{times[name]:.1f}" if name in times else "–" for name in names]
        share = f"{times[COPY] / times[KERNEL]:.2f}"
        lines.append(f"| {row['card']} `{row['case']}` | {row['bytes'] / 1e6:.1f} | {' | '.join(cells)} | {share} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("measure")
    measuring.add_argument("library", type=Path)
    measuring.add_argument("record", type=Path)
    showing = commands.add_parser("table")
    showing.add_argument("records", type=Path, nargs="+")
    options = parser.parse_args()
    if options.command == "measure":
        record = measure(options.library)
        options.record.write_text(json.dumps(record) + "\n", encoding="utf-8")
        print(table([record]))
    else:
        print(table([json.loads(path.read_text(encoding="utf-8")) for path in options.records]))


if __name__ == "__main__":
    main()
