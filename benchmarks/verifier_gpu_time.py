"""What the safeguards of the timing cost the GPU: device time of what the verifier does, beside that of the calls.

    python -m benchmarks.verifier_gpu_time [--kernels] [CASE ...]

Prints a table of the work tree's attention, by default of the cases of a pull request: one paired process, and then the
witness, as `kernelgate bench` leads them (bench/timing/process.py, witness.py), but with verifier and kernels in this
process, so that torch.profiler sees all of them. `--kernels` adds what takes most of the verifier's time.
"""

from __future__ import annotations

import argparse
import random
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from torch.autograd import DeviceType  # type: ignore[attr-defined]  # it is there, and not in __all__
from torch.profiler import ProfilerActivity, profile

from kernelgate.bench.build.library import LibraryAt, Sides
from kernelgate.bench.kernel import calls, cards, commit, loading
from kernelgate.bench.kernel.triton_runtime import SharedCache
from kernelgate.bench.system import environment
from kernelgate.bench.system.nvml import Reading
from kernelgate.bench.system.worker import Ready
from kernelgate.bench.timing import process, references, timer, witness
from kernelgate.bench.timing.batches import MeasuredProcess
from kernelgate.bench.timing.pool import Pool
from kernelgate.bench.timing.process import CardPlan, Measuring, Setup, Turn
from kernelgate.bench.timing.protocol import Batch, PrepareCase, Start, TimingRequest, ToVerifier
from kernelgate.bench.timing.references import Oracle
from kernelgate.bench.timing.verifier import CaseVerifier, Verifier
from kernelgate.bench.timing.worker import LoadedLibraries, Worker

ROOT = Path(__file__).parent.parent
CARD = "attention"
ROUNDS = 100
OWN = ("probe", "wait", "spin_kernel")
"""Kernels of the timing itself that run among the calls."""
CALLS = "calls"
PARTS = ("draw", "references", "shuffle", "compare", "poison", "other")

T = TypeVar("T")


# ----------------------------------------------------------------------------------------------------------------------
# Which part of the work the device is at
# ----------------------------------------------------------------------------------------------------------------------


@dataclass
class DeviceParts:
    """When each part began, by the host's clock: the device is idle at every change."""

    starts: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=lambda: [""])

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        self.stack.append(name)
        self._begin(name)
        try:
            yield
        finally:
            self.stack.pop()
            self._begin(self.stack[-1])

    def _begin(self, name: str) -> None:
        torch.cuda.synchronize()
        self.starts.append(time.time_ns())
        self.names.append(name)

    def wrap(self, owner: Any, method: str, name: str) -> None:
        inner = getattr(owner, method)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.of(name):
                return inner(*args, **kwargs)

        setattr(owner, method, wrapped)

    def at(self, time_ns: int) -> str:
        place = bisect_right(self.starts, time_ns) - 1
        return self.names[place] if place >= 0 else ""


@dataclass(frozen=True)
class DeviceTime:
    """Microseconds by part, and by part and kernel."""

    parts: Counter[str]
    kernels: Counter[tuple[str, str]]


def device_time(parts: DeviceParts, of: Callable[..., T], *given: Any) -> tuple[T, DeviceTime]:
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        made = of(*given)
        torch.cuda.synchronize()
    found = DeviceTime(Counter(), Counter())
    for event in profiled.profiler.kineto_results.events():
        if event.device_type() != DeviceType.CUDA:
            continue
        part, name, us = parts.at(event.start_ns()), event.name(), event.duration_ns() / 1e3
        if part == CALLS and any(own in name for own in OWN):
            part = "around the calls"
        found.parts[part] += us
        found.kernels[part, name] += us
    return made, found


# ----------------------------------------------------------------------------------------------------------------------
# The processes of a run, all of them in this one
# ----------------------------------------------------------------------------------------------------------------------


class Here:
    """A Runner of what works in this process, the verifier or a measured process."""

    name = "here"

    def __init__(self, parts: DeviceParts, inner: Any = None) -> None:
        self.parts = parts
        self.inner = inner
        self.answers: list[Any] = []
        self.held: Batch | None = None

    def send(self, message: Any) -> None:
        """What a worker answers."""
        self.answers.append(message)

    def receive(self, _kind: object) -> Start:
        return Start()

    def ask(self, message: Any, _kind: object) -> Any:
        if isinstance(message, ToVerifier):
            if isinstance(message, PrepareCase):
                message = message.model_copy(update={"shared": False})
            with self.parts.of("other"):
                return self.inner.answer(message)
        if isinstance(message, Batch) and message.blind:
            self.held = message
            return Ready()
        self.answers.clear()
        with self.parts.of(CALLS):
            self.inner.answer(self.held if isinstance(message, Start) else message)
        return self.answers[-1]


@dataclass(frozen=True)
class ProfiledRun:
    setup: Setup
    turn: Turn
    together: list[MeasuredProcess]
    apart: list[MeasuredProcess]


def prepared(parts: DeviceParts, ids: Sequence[str]) -> ProfiledRun:
    found = cards.read(ROOT / cards.FOLDER)
    chosen = [one for one in cards.select(found, "cuda", None, ids) if one.card.name == CARD]
    built = commit.build_tree(ROOT).built[CARD]
    machine = environment.seen_by_torch()
    plan = CardPlan(chosen[0].card, Sides(built, built), tuple(one.case for one in chosen))
    how = Measuring(seed=1, rounds=ROUNDS, patience_s=0, pause_when_capped=True, single=True)
    setup = Setup(machine, how, SimpleNamespace(fd=None), verifier=Here(parts, Verifier()))  # type: ignore[arg-type]
    judge = loading.load(plan.card.file)
    bound = calls.bind(built, judge, "head")
    clock = timer.timer("cuda")
    step_us = timer.clock_step(clock)

    def measured(*sides: Any) -> MeasuredProcess:
        request = TimingRequest(
            device="cuda",
            uuid=machine.device.uuid,
            card=CARD,
            card_file=plan.card.file,
            libraries=tuple((side, LibraryAt.of(built)) for side in sides),
        )
        loaded = LoadedLibraries(request, judge, dict.fromkeys(sides, bound), clock, step_us, SharedCache(None))
        here = Here(parts)
        here.inner = Worker(loaded, here, Reading)  # type: ignore[arg-type]
        return MeasuredProcess(here, sides)  # type: ignore[arg-type]

    turn = Turn(plan, plan.cases, 0, together=True, id="0", name="here")
    return ProfiledRun(setup, turn, [measured("base", "head")], [measured("base"), measured("head")])


def watched(parts: DeviceParts) -> None:
    """Has the parts of the verifier's work say when they begin and end."""
    parts.wrap(Pool, "__init__", "draw")
    parts.wrap(Pool, "fill", "draw")
    parts.wrap(Pool, "shuffle", "shuffle")
    parts.wrap(Oracle, "compute", "references")
    parts.wrap(CaseVerifier, "_poison", "poison")
    parts.wrap(references, "compare_calls", "compare")


def measure(run: ProfiledRun, parts: DeviceParts, kernels: bool) -> None:
    heads = ["calls ms", *PARTS, "all", "witness: calls ms", *PARTS, "all"]
    print(f"| case | {' | '.join(heads)} |")
    print(f"| --- |{' --: |' * len(heads)}")
    sums = (Counter[str](), Counter[str]())
    for case in run.turn.cases:
        team = process.verified_teams(run.setup, run.together)[0]
        done, paired = device_time(parts, process.time_case, run.setup, run.turn, case, team, lambda: None)
        call_us = median([*done.timing.samples_us["base"], *done.timing.samples_us["head"]])
        asked = max(1, min(witness.MOST_CALLS, round(witness.BATCH_US["cuda"] / call_us)))
        _, alone = device_time(parts, witness._case, run.setup, run.turn, run.apart, case, asked, random.Random(1))  # noqa: S311
        for total, found in zip(sums, (paired, alone), strict=True):
            total.update(found.parts)
        print(f"| {case.id} | {' | '.join([*cells(paired.parts), *cells(alone.parts)])} |", flush=True)
        if kernels:
            for what, found in (("paired", paired), ("alone", alone)):
                rest = found.parts["around the calls"] / 1e3
                print(f"  {what}: events say {1e3 * done.calling_s:.1f} ms; {rest:.1f} ms around the calls")
                for (part, name), us in found.kernels.most_common(14):
                    print(f"    {us / 1e3:8.2f} ms {part:12} {name[:110]}")
    print(f"| all | {' | '.join([*cells(sums[0]), *cells(sums[1])])} |")


def cells(parts: Counter[str]) -> list[str]:
    """The calls in milliseconds, and what the verifier took as a share of them."""
    total = max(parts[CALLS], 1e-9)
    shares = [parts[part] / total for part in PARTS]
    unknown = f" (and {parts['']:.0f} µs nobody knows of)" if parts[""] else ""
    return [f"{total / 1e3:.1f}", *(f"{100 * share:.1f}%" for share in shares), f"{100 * sum(shares):.1f}%{unknown}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--kernels", action="store_true")
    asked = parser.parse_args()
    environment.pin_numerics()
    parts = DeviceParts()
    run = prepared(parts, asked.cases)
    watched(parts)
    device_time(parts, lambda: torch.zeros(1, device="cuda"))  # the profiler's own start
    measure(run, parts, asked.kernels)


if __name__ == "__main__":
    main()
