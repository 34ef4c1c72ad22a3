"""One process of a paired comparison: a fresh process that loads the libraries and times them. Led by timing/paired.py.

All sides share the same sets of inputs and one output buffer, because where tensors lie changes how fast they are.
Each call takes the next set, so that its inputs are not in the cache and the output buffer holds another set's result:
a kernel that skips work leaves a wrong output. Rounds drawn at random, which a kernel cannot know, are checked against
the oracle; between turns the sets are filled anew, so that an output remembered from an earlier turn is wrong too.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from statistics import median

import torch
from torch.nn.functional import scaled_dot_product_attention

from kernelgate.bench import record
from kernelgate.bench.build import library
from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.kernel import case_list, oracle
from kernelgate.bench.kernel.case_list import SCALE, SuiteCase
from kernelgate.bench.kernel.oracle import largest
from kernelgate.bench.kernel.tolerance import TOLERANCES
from kernelgate.bench.system import telemetry
from kernelgate.bench.system.nvml import Reading
from kernelgate.bench.system.worker_process import Parent
from kernelgate.bench.timing import timer as timers
from kernelgate.bench.timing.protocol import ROUNDS_PER_TURN, CaseDone, Doing, Failed, Go, Ready, TimingRequest
from kernelgate.bench.timing.timer import Call, Interval, Timer

CHECKS = 3
"""Rounds of each side whose output is compared with the oracle."""
CHECKED_HEADS = 16
"""Heads of it that are compared: more float64 work between rounds would heat the device and change its clocks."""
WARM_UP_S = 0.5
"""Device work before the first sample of a process: until then ratios of identical code scatter several times more."""
CASE_WARM_UP_S = 0.1
"""And before the first sample of each further case."""
GRAPH_US = 2_000.0
"""Device time of one graph, long enough for its own launch not to matter."""
GRAPH_ROUNDS = 15
MAX_SETS = 1024


# ----------------------------------------------------------------------------------------------------------------------
# What is prepared for one case
# ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inputs:
    """Shared by all sides."""

    pool: torch.Tensor
    """(sets, 3, B, H, S, 64)"""
    sets: tuple[tuple[torch.Tensor, torch.Tensor, torch.Tensor], ...]
    """Views of the pool: q, k and v."""
    out: torch.Tensor

    def refill(self, generator: torch.Generator) -> None:
        self.pool.normal_(generator=generator)


@dataclass
class Checks:
    """Copies of outputs of timed calls, and what comparing them has shown so far."""

    rounds: dict[record.Side, frozenset[int]]
    heads: torch.Tensor
    """Which of the B × H heads are compared, drawn at random: a kernel cannot know them."""
    copies: dict[tuple[record.Side, int], torch.Tensor]
    """For each checked round a buffer of shape (1, heads, S, 64)."""
    sets: dict[tuple[record.Side, int], int] = field(default_factory=dict)
    """Which input set the copy in that buffer belongs to; emptied after each turn."""
    results: dict[record.Side, list[oracle.Comparison]] = field(default_factory=dict)

    def calls(self) -> dict[record.Side, record.Calls]:
        return {
            side: record.Calls(compared=len(results), failed=sum(not result.passed for result in results))
            for side, results in self.results.items()
        }

    def errors(self) -> dict[record.Side, record.OutputErrors]:
        return {
            side: record.OutputErrors(maximum=largest([result.max_abs_error for result in results]))
            for side, results in self.results.items()
        }


@dataclass
class Rounds:
    """What the turns of a case have given so far."""

    samples_us: dict[record.Side, list[float]]
    """Of one call, by round."""
    readings: list[Reading] = field(default_factory=list)
    """Taken while rounds ran, and at no other time: warming up and checking outputs are other work."""
    inner_repeats: int = 1
    """Calls in each sample, as many as the last Go says."""


@dataclass(frozen=True)
class Bench:
    case: SuiteCase
    timer: Timer
    sides: dict[record.Side, Callable[[int], Call]]
    """From the number of an input set to the call on it."""
    inputs: Inputs
    checks: Checks
    sets: Iterator[int]
    """The number of the set for the next call, on and on."""
    generator: torch.Generator
    rng: random.Random


def prepare(
    case: SuiteCase, kernels: dict[record.Side, library.ForwardOut], timer: Timer, request: TimingRequest
) -> Bench:
    seed = f"{request.seed}/{case.id}"
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    generator = torch.Generator(request.device).manual_seed(rng.getrandbits(63))
    pool = torch.empty(
        (set_count(case, request.cache_bytes), 3, *case.shape),
        dtype=oracle.TORCH_DTYPES[case.dtype],
        device=request.device,
    )
    inputs = Inputs(pool, tuple((q, k, v) for q, k, v in pool), torch.empty_like(pool[0, 0]))
    inputs.refill(generator)
    sides: dict[record.Side, Callable[[int], Call]] = {
        side: partial(_kernel_call, kernel, inputs, case.causal) for side, kernel in kernels.items()
    }
    sides["reference"] = partial(_reference_call, inputs, case.causal)
    checked = {side: frozenset(rng.sample(range(request.rounds), min(CHECKS, request.rounds))) for side in kernels}
    all_heads = range(case.batch * case.heads)
    heads = torch.tensor(rng.sample(all_heads, min(CHECKED_HEADS, len(all_heads))), device=request.device)
    copies = {(side, number): of_heads(inputs.out, heads) for side in kernels for number in checked[side]}
    checks = Checks(checked, heads, copies)
    return Bench(case, timer, sides, inputs, checks, cycle(range(len(pool))), generator, rng)


def of_heads(tensor: torch.Tensor, heads: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Copies some heads of a tensor (B, H, S, 64), which are numbered through, to (1, heads, S, 64)."""
    return torch.index_select(tensor.reshape(1, -1, *tensor.shape[2:]), 1, heads, out=out)


def set_count(case: SuiteCase, cache_bytes: int) -> int:
    """So many input sets that those which are read between two uses of one fill the cache.

    Bounded, because each set costs the host memory too: cases of fewer than some hundred rows in all stay in the cache.
    """
    return min(MAX_SETS, max(2, cache_bytes // (3 * case.tensor_bytes) + 2))


def _kernel_call(kernel: library.ForwardOut, inputs: Inputs, causal: bool, number: int) -> Call:
    return partial(kernel, *inputs.sets[number], inputs.out, SCALE, causal)


def _reference_call(inputs: Inputs, causal: bool, number: int) -> Call:
    """PyTorch's SDPA with the backend that it chooses by itself. It allocates its output: it has no `out` argument."""
    return partial(scaled_dot_product_attention, *inputs.sets[number], is_causal=causal)


# ----------------------------------------------------------------------------------------------------------------------
# The steps
# ----------------------------------------------------------------------------------------------------------------------


def run(request: TimingRequest, parent: Parent) -> None:
    """Loads the libraries, then times every case of the request, one step for each Go."""
    kernels = _load(request, parent)
    parent.send(Doing(what="setting up the device"))
    if request.device == "cpu":
        torch.set_num_threads(cpu_threads(len(os.sched_getaffinity(0))))
    timer = timers.timer(request.device)
    step_us = timers.clock_step(timer)
    warm_up_s = WARM_UP_S
    with telemetry.source(request.device, request.uuid) as source:
        parent.send(Ready())
        for case in map(case_list.parse, request.cases):
            parent.receive(Go)
            parent.send(Doing(what=f"making the inputs of {case.id}"))
            bench = prepare(case, kernels, timer, request)
            call_us = warm_up(bench, warm_up_s, parent)
            parent.send(Ready(inner_repeats=timers.inner_repeats(step_us, call_us)))
            timed = _turns(bench, request.rounds, source, parent)
            parent.receive(Go)
            parent.send(Doing(what=f"replaying graphs of {case.id}"))
            timing = record.Timing(
                card=case_list.CARD,
                case=case.id,
                samples_us={side: tuple(times) for side, times in timed.samples_us.items()},
                inner_repeats=timed.inner_repeats,
                telemetry=telemetry.summary(timed.readings),
                graph_us=_graphs(bench, call_us),
                calls=bench.checks.calls(),
                errors=bench.checks.errors(),
                clock_step_us=step_us,
            )
            parent.send(CaseDone(timing=timing, notes=_notes(case, request.device, timer)))
            warm_up_s = CASE_WARM_UP_S
            del bench
            if request.device == "cuda":
                torch.cuda.empty_cache()


def _load(request: TimingRequest, parent: Parent) -> dict[record.Side, library.ForwardOut]:
    kernels: dict[record.Side, library.ForwardOut] = {}
    for side, folder in request.libraries:
        parent.send(Doing(what=f"loading {side}", loading=True))
        kernels[side] = library.load(library.read(folder))
    return {side: kernels[side] for side in sorted(kernels)}


def cpu_threads(cores: int) -> int:
    """All cores but one. Where every core computes, any other process stops one thread, and the others wait for it."""
    return max(1, cores - 1)


def warm_up(bench: Bench, seconds: float, parent: Parent) -> float:
    """The time of one call of the fastest side, in microseconds, once the device has worked for `seconds`."""
    calls = {str(side): call(next(bench.sets)) for side, call in bench.sides.items()}
    for side, call in calls.items():
        parent.send(Doing(what=f"calling {side} for the first time on {bench.case.id}"))
        bench.timer.run(call)
    parent.send(Doing(what=f"warming up {bench.case.id}"))
    call_us = timers.warm_up(bench.timer, calls, seconds)
    bench.timer.host_bound = 0
    return min(call_us.values())


def _turns(bench: Bench, rounds: int, read: telemetry.Source, parent: Parent) -> Rounds:
    timed = Rounds({side: [] for side in bench.sides})
    for first in range(0, rounds, ROUNDS_PER_TURN):
        timed.inner_repeats = parent.receive(Go).inner_repeats
        turn = range(first, min(first + ROUNDS_PER_TURN, rounds))
        parent.send(Doing(what=f"timing rounds {turn[0] + 1} to {turn[-1] + 1} of {bench.case.id}"))
        order = [(number, side) for number in turn for side in bench.rng.sample(list(bench.sides), len(bench.sides))]
        intervals = [_interval(bench, number, side, timed.inner_repeats) for number, side in order]
        times = bench.timer.measure(intervals, meanwhile=lambda: timed.readings.append(read()))
        for (_, side), time_us in zip(order, times, strict=True):
            timed.samples_us[side].append(time_us / timed.inner_repeats)
        _check(bench)
        bench.inputs.refill(bench.generator)
        parent.send(Ready())
    return timed


def _interval(bench: Bench, number: int, side: record.Side, repeats: int) -> Interval:
    """The calls of one side in round `number`; where the round is checked, the last call's output is copied after."""
    used = [next(bench.sets) for _ in range(repeats)]
    calls = tuple(bench.sides[side](used_set) for used_set in used)
    if side == "reference" or number not in bench.checks.rounds[side]:
        return Interval(calls)
    bench.checks.sets[side, number] = used[-1]
    copy = partial(of_heads, bench.inputs.out, bench.checks.heads, out=bench.checks.copies[side, number])
    return Interval(calls, after=copy)


def _check(bench: Bench) -> None:
    """Compares the copies of this turn with the oracle, while their inputs still stand."""
    tolerance = TOLERANCES[bench.case.dtype]
    for key, used_set in bench.checks.sets.items():
        q, k, v = (of_heads(tensor, bench.checks.heads) for tensor in bench.inputs.sets[used_set])
        expected = oracle.expected(q, k, v, SCALE, bench.case.causal)
        compared = oracle.compare(bench.checks.copies[key], expected, tolerance)
        bench.checks.results.setdefault(key[0], []).append(compared)
    bench.checks.sets.clear()


def _graphs(bench: Bench, call_us: float) -> dict[record.Side, float]:
    """The median time of one call of each side when many are replayed as one graph, in rounds like the samples."""
    count = max(8, min(512, round(GRAPH_US / call_us)))
    sets = [next(bench.sets) for _ in range(count)]
    captured = {side: bench.timer.capture([call(number) for number in sets]) for side, call in bench.sides.items()}
    replays = {side: replay for side, replay in captured.items() if replay}
    times: dict[record.Side, list[float]] = {side: [] for side in replays}
    for _ in range(GRAPH_ROUNDS):
        for side in bench.rng.sample(list(replays), len(replays)):
            # One at a time: many graphs are more than the device's queue holds, and the host would be blocked.
            times[side] += bench.timer.measure([Interval((replays[side],))])
    return {side: median(times_us) / count for side, times_us in times.items()}


def _notes(case: SuiteCase, device: str, timer: Timer) -> tuple[str, ...]:
    if device == "cpu":
        return (f"the CPU kernel was timed on {torch.get_num_threads()} of {len(os.sched_getaffinity(0))} cores",)
    if timer.host_bound:
        return (f"{case.id}: the host fell behind, so that the GPU may have waited for it inside samples",)
    return ()


def main() -> None:
    parent = Parent()
    request = parent.receive(TimingRequest)
    try:
        run(request, parent)
    except (KernelgateError, RuntimeError) as error:  # torch reports what a kernel did wrong as RuntimeError
        parent.send(Failed(why=str(error).strip().split("\n")[0]))


if __name__ == "__main__":
    main()
