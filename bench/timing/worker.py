"""One process of a paired comparison: a fresh process that loads one card's libraries and times them. Led by
timing/paired.py.

All sides share the same sets of inputs and the same outputs, because where tensors lie changes how fast they are. Each
call takes the next set, so that its inputs are not in the cache and the outputs hold another set's result: a kernel
that skips work leaves a wrong output. Rounds drawn at random, which a kernel cannot know, are checked against the
oracle; between turns the sets are filled anew, so that an output remembered from an earlier turn is wrong too.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import torch

from kernelgate.bench import record
from kernelgate.bench.errors import KernelgateError
from kernelgate.bench.kernel import calls, compare, loading, operands
from kernelgate.bench.kernel.calls import Bound
from kernelgate.bench.kernel.operands import Tensors
from kernelgate.bench.kernel.package import autotune
from kernelgate.bench.kernel.package import cache as package_cache
from kernelgate.bench.system import telemetry
from kernelgate.bench.system.nvml import Reading
from kernelgate.bench.system.worker_process import Parent
from kernelgate.bench.timing import timer as timers
from kernelgate.bench.timing.prepared import Bench, LoadedKernels, prepare
from kernelgate.bench.timing.protocol import (
    ROUNDS_PER_TURN,
    CaseDone,
    Doing,
    Failed,
    Go,
    Ready,
    TimingRequest,
)
from kernelgate.bench.timing.timer import Interval, Timer

WARM_UP_S = 0.5
"""Device work before the first sample of a process: until then ratios of identical code scatter several times more."""
CASE_WARM_UP_S = 0.1
"""And before the first sample of each further case."""
GRAPH_US = 2_000.0
"""Device time of one graph, long enough for its own launch not to matter."""
GRAPH_ROUNDS = 15


@dataclass
class Rounds:
    """What the turns of a case have given so far."""

    samples_us: dict[record.Side, list[float]]
    """Of one call, by round."""
    readings: list[Reading] = field(default_factory=list)
    """Taken while rounds ran, and at no other time: warming up and checking outputs are other work."""
    inner_repeats: int = 1
    """Calls in each sample, as many as the last Go says."""


def run(request: TimingRequest, parent: Parent) -> None:
    """Loads the libraries, then times every case of the request, one step for each Go."""
    with package_cache.shared([at.folder for _, at in request.libraries]) as cache:
        loaded = _load(request, parent)
        parent.send(Doing(what="setting up the device"))
        if request.device == "cpu":
            torch.set_num_threads(cpu_threads(len(os.sched_getaffinity(0))))
        timer = timers.timer(request.device)
        step_us = timers.clock_step(timer)
        warm_up_s = WARM_UP_S
        with telemetry.source(request.device, request.uuid) as source:
            parent.send(Ready())
            for asked in request.cases:
                parent.receive(Go)
                parent.send(Doing(what=f"making the inputs of {asked.id}"))
                bench = prepare(asked, loaded, timer, request)
                call_us = warm_up(bench, warm_up_s, parent)
                parent.send(Ready(inner_repeats=_repeats(bench, step_us, call_us)))
                timed = _turns(bench, request.rounds, source, parent)
                parent.receive(Go)
                parent.send(Doing(what=f"replaying graphs of {asked.id}"))
                parent.send(_done(bench, timed, request, step_us, call_us, cache.compiled()))
                warm_up_s = CASE_WARM_UP_S
                del bench
                if request.device == "cuda":
                    torch.cuda.empty_cache()


def _repeats(bench: Bench, step_us: float, call_us: float) -> int:
    """Of a kernel that works in place no more than there are fresh inputs."""
    wanted = timers.inner_repeats(step_us, call_us)
    return min(wanted, len(bench.data.sets)) if bench.data.kernel.in_place else wanted


def _done(
    bench: Bench, timed: Rounds, request: TimingRequest, step_us: float, call_us: float, compiled: tuple[str, ...]
) -> CaseDone:
    timing = record.Timing(
        card=request.card,
        case=bench.asked.id,
        samples_us={side: tuple(times) for side, times in timed.samples_us.items()},
        inner_repeats=timed.inner_repeats,
        telemetry=telemetry.summary(timed.readings),
        graph_us={} if bench.data.kernel.in_place else _graphs(bench, call_us),
        calls=bench.checks.calls(),
        errors=bench.checks.errors(),
        autotuned=_autotuned(bench),
        clock_step_us=step_us,
    )
    notes = [*bench.notes, *_notes(bench.asked.id, request.device, bench.timer)]
    if compiled:
        names = ", ".join(compiled)
        text = f"{bench.asked.id}: {names} was compiled while measuring, for the build had not foreseen it"
        notes.append(record.Note(code="compiled_while_measuring", text=text))
    return CaseDone(timing=timing, notes=tuple(notes))


def _autotuned(bench: Bench) -> dict[record.Side, str]:
    """What @triton.autotune chose for each side's package."""
    return {side: choice for side, bound in bench.bound.items() if (choice := autotune.chosen(bound.ops))}


def _load(request: TimingRequest, parent: Parent) -> LoadedKernels:
    parent.send(Doing(what="reading the card"))
    judge = loading.load(request.card_file)
    bound: dict[record.Side, Bound] = {}
    for side, at in request.libraries:
        parent.send(Doing(what=f"loading {side}", loading=True))
        bound[side] = calls.bind(at.read(), judge, side)
    return LoadedKernels(judge, {side: bound[side] for side in sorted(bound)})


def cpu_threads(cores: int) -> int:
    """All cores but one. Where every core computes, any other process stops one thread, and the others wait for it."""
    return max(1, cores - 1)


def warm_up(bench: Bench, seconds: float, parent: Parent) -> float:
    """The time of one call of the fastest side, in microseconds, once the device has worked for `seconds`."""
    calls = {str(side): call(next(bench.sets)) for side, call in bench.sides.items()}
    for side, call in calls.items():
        parent.send(Doing(what=f"calling {side} for the first time on {bench.asked.id}"))
        bench.timer.run(call)
    parent.send(Doing(what=f"warming up {bench.asked.id}"))
    call_us = timers.warm_up(bench.timer, calls, seconds)
    bench.data.restore(list(range(len(bench.data.sets))))
    bench.timer.host_bound = 0
    return min(call_us.values())


def _turns(bench: Bench, rounds: int, read: telemetry.Source, parent: Parent) -> Rounds:
    timed = Rounds({side: [] for side in bench.sides})
    for first in range(0, rounds, ROUNDS_PER_TURN):
        timed.inner_repeats = parent.receive(Go).inner_repeats
        turn = range(first, min(first + ROUNDS_PER_TURN, rounds))
        parent.send(Doing(what=f"timing rounds {turn[0] + 1} to {turn[-1] + 1} of {bench.asked.id}"))
        order = [(number, side) for number in turn for side in bench.rng.sample(list(bench.sides), len(bench.sides))]
        intervals = [_interval(bench, number, side, timed.inner_repeats) for number, side in order]
        times = bench.timer.measure(intervals, meanwhile=lambda: timed.readings.append(read()))
        for (_, side), time_us in zip(order, times, strict=True):
            timed.samples_us[side].append(time_us / timed.inner_repeats)
        _check(bench)
        bench.data.refill()
        parent.send(Ready())
    return timed


def _interval(bench: Bench, number: int, side: record.Side, repeats: int) -> Interval:
    """The calls of one side in round `number`; where the round is checked, the last call's output is copied after."""
    used = _next_sets(bench, side, repeats)
    calls = tuple(bench.sides[side](used_set) for used_set in used)
    restore = partial(bench.data.restore, used) if bench.data.kernel.in_place else None
    if side == "reference":
        return Interval(calls)
    if number not in bench.checks.rounds[side]:
        return Interval(calls, after=restore)
    bench.checks.sets[side, number] = used[-1]
    returned: list[Any] = [None]

    def last() -> None:
        returned[0] = calls[-1]()

    def after() -> None:
        bench.checks.copies[side, number] = _copied(bench, side, returned[0], used[-1])
        if restore:
            restore()

    return Interval((*calls[:-1], last), after=after)


def _next_sets(bench: Bench, side: record.Side, repeats: int) -> list[int]:
    """The sets of a sample. The last is another one than that whose result the outputs hold: else a kernel that does
    nothing would leave what is right, always so where `repeats` is a multiple of the number of sets."""
    used = [next(bench.sets) for _ in range(repeats)]
    if side == "reference":
        return used
    writers = [other for other in bench.bound if other != side] or [side]
    if used[-1] in [bench.last_set.get(writer) for writer in writers]:
        used = [*used[1:], next(bench.sets)]
    bench.last_set[side] = used[-1]
    return used


def _copied(bench: Bench, side: record.Side, returned: Any, used_set: int) -> Tensors:
    """What is compared of the outputs of a call."""
    in_place = tuple(bench.data.kernel.in_place)
    made = calls.results(bench.bound[side], returned, bench.data.sets[used_set], bench.data.outs, in_place)
    return {name: bench.checks.part(name, tensor) for name, tensor in made.items()}


def _check(bench: Bench) -> None:
    """Compares the copies of this turn with the oracle, while their inputs still stand."""
    kernel, checks = bench.data.kernel, bench.checks
    for key, used_set in checks.sets.items():
        given = operands.changed_by_name(bench.data.sets[used_set], checks.part)
        right = compare.expected(kernel, bench.case, given, tuple(checks.copies[key]))
        checks.results.setdefault(key[0], []).append(compare.outputs(kernel, bench.case, checks.copies[key], right))
    checks.sets.clear()
    checks.copies.clear()


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


def _notes(case: str, device: str, timer: Timer) -> tuple[record.Note, ...]:
    if device == "cpu":
        cores = f"{torch.get_num_threads()} of {len(os.sched_getaffinity(0))} cores"
        return (record.Note(code="cpu_cores", text=f"the CPU kernel was timed on {cores}"),)
    if timer.host_bound:
        text = f"{case}: the host fell behind, so that the GPU may have waited for it inside samples"
        return (record.Note(code="host_bound", text=text),)
    return ()


def main() -> None:
    parent = Parent()
    request = parent.receive(TimingRequest)
    try:
        run(request, parent)
    except (KernelgateError, OSError) as error:
        parent.send(Failed(why=str(error).strip().split("\n")[0]))
    except Exception as error:
        parent.send(Failed(why=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"))


if __name__ == "__main__":
    main()
