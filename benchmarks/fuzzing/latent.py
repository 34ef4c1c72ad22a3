"""Does a latent bug ever change a bit? `python -m benchmarks.fuzzing.latent -o FILE`, on a GPU.

Each latent bug's kernel and the kernel as it is get the same inputs, on every timed case of the card and on fuzzed
ones: while the device is idle, while its cache is cold, and while another stream keeps its memory busy. Outputs are
compared to the bit. A process of its own for each bug, since variables that choose a path are read once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click
import torch

from benchmarks.fuzzing import library, planting
from benchmarks.fuzzing.bug import Bug, control
from benchmarks.fuzzing.planting import Planted
from benchmarks.fuzzing.results import LatentResult, LatentResults
from kernelgate.bench.build import library as libraries
from kernelgate.bench.check import examine
from kernelgate.bench.check.examine import ReadyCall, Subject, bits
from kernelgate.bench.core import files
from kernelgate.bench.kernel import calls, cards, fuzz_risk, loading
from kernelgate.bench.kernel.card import CaseAxes, Kernel
from kernelgate.bench.kernel.fuzz_trials import PLAIN
from kernelgate.bench.kernel.operands import Draw
from kernelgate.bench.system import environment
from kernelgate.bench.system.progress import say

SECONDS = 0.1
"""Of calls, for each case and load."""
FUZZED = 32
"""Fuzzed cases besides the timed ones."""
BUSY_ELEMENTS = 1 << 27
"""Of float32, copied to and fro: many times what a cache holds."""


@click.group(invoke_without_command=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("out/latent.json"), show_default=True)
@click.pass_context
def main(context: click.Context, output: Path) -> None:
    """Call every latent bug's kernel under load, and count the calls of which a bit differs."""
    if context.invoked_subcommand:
        return
    machine = f"{environment.describe().device.name}, torch {torch.__version__}"
    found: list[LatentResult] = []
    with tempfile.TemporaryDirectory(prefix="kernelgate-latent-") as folder, ThreadPoolExecutor(4) as builders:
        for one, right in builders.map(lambda bug: _built(bug, Path(folder)), _latent()):
            words = (sys.executable, "-m", "benchmarks.fuzzing.latent", "calls", str(one.library), str(right.library))
            done = subprocess.run(words, env=one.environment, cwd=planting.ROOT, stdout=subprocess.PIPE, check=True)
            found.append(LatentResult(bug=one.bug.id, **json.loads(done.stdout)))
            say(f"{one.bug.id}: {found[-1].differing} of {found[-1].calls} calls differ")
            # As it grows: what was counted stays where a later bug's run is ended.
            files.write(output, LatentResults(machine=machine, results=tuple(found)).model_dump_json(indent=1) + "\n")


def _latent() -> tuple[Bug, ...]:
    return tuple(bug for bug in library.BUGS if bug.latent)


def _built(bug: Bug, folder: Path) -> tuple[Planted, Planted]:
    """The bug's library and that of the kernel as it is, each in a tree of its own."""
    pair = (
        planting.plant(bug, "cuda", folder / "bug"),
        planting.plant(control(bug.kernel, bug.path), "cuda", folder / bug.id),
    )
    for one in pair:
        planting.build(one)
    return pair


@main.command("calls")
@click.argument("wrong", type=click.Path(path_type=Path))
@click.argument("right", type=click.Path(path_type=Path))
def compare_calls(wrong: Path, right: Path) -> None:
    """Print how many calls there were of the one library, and which differ from the other's."""
    card = cards.of_checkout(wrong.parent).cards[0]
    judge = loading.load(wrong.parent / ".ci" / "kernels" / f"{card.name}.py")
    sides = [Subject(judge, _bound(one, judge), "cuda") for one in (wrong, right)]
    listed = [case.axes for case in card.suites["full"]]
    risky = [one.axes for one in fuzz_risk.risks(1, card, "cuda") if one.way == PLAIN][:FUZZED]
    loads = _loads()
    count, differing, where = 0, 0, []
    for axes in (*listed, *risky):
        case = {name: value for name, value in axes.items() if name not in ("distribution", "way")}
        one, other = (examine.prepared(side, Draw(CaseAxes(case), "cuda", 1)) for side in sides)
        for load, begin in loads.items():
            made, bad = _differing(one, other, begin)
            count, differing = count + made, differing + bad
            where += [f"{case}, {load}: {bad} of {made}"] if bad else []
    click.echo(json.dumps({"calls": count, "differing": differing, "where": where}))


def _bound(folder: Path, judge: Kernel) -> calls.Bound:
    (built,) = libraries.read_all(folder).built.values()
    return calls.bind(built, judge, "head")


def _loads() -> Mapping[str, Callable[[], None]]:
    """What goes before each call."""
    one = torch.zeros(BUSY_ELEMENTS, device="cuda")
    other, beside = torch.empty_like(one), torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def idle() -> None: ...

    def cold() -> None:
        other.copy_(one)

    def busy() -> None:
        with torch.cuda.stream(beside):
            cold()

    return {"idle": idle, "cold": cold, "busy": busy}


def _differing(one: ReadyCall, other: ReadyCall, begin: Callable[[], None]) -> tuple[int, int]:
    """Calls, and how many of them gave other bits than the other side's."""
    right = examine.called(other)
    count, differing = 0, torch.zeros((), device="cuda", dtype=torch.int64)
    begun = time.monotonic()
    while time.monotonic() - begun < SECONDS:
        for buffer in one.outputs.values():
            buffer.tensor.fill_(7)
        begin()
        made = one.made(one.call())
        unequal = [(bits(made[name]) != bits(right[name])).any() for name in right]
        differing += torch.stack(unequal).any()
        count += 1
    return count, int(differing)


if __name__ == "__main__":
    main()
