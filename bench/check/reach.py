"""Which cases compute-sanitizer watches: the smallest that together launch every kernel of a library.

Which kernels a case launches is asked of torch's profiler, in a process that calls each case once. It starts while the
tools load torch, and is over before the first of them calls a kernel.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelgate.bench.build import archs, machine_code
from kernelgate.bench.build.archs import sm, target
from kernelgate.bench.build.library import Library, imports
from kernelgate.bench.core.hardware import Capability
from kernelgate.bench.kernel import axes, cards, fuzz_trials, watched_call
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.kernel.watched_call import WatchedCall
from kernelgate.bench.system.worker import Leader, Message, Ready, WorkerError, WorkerPool

WORKER = f"{__name__}:launch_each"
STARTING_S = 30.0
"""For the process to load torch and the library, and for the profiler to start; on an H200 that took under 5 s."""

MOST_BYTES = 2.0**24
"""Of a case that a tool watches unless the card names it. On an H100, memcheck and racecheck took 25 s for 400 MB."""


class LaunchedKernels(Message):
    """The kernels of one case, as the profiler names them; none where the case could not be made, or was refused."""

    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reach:
    cases: tuple[CaseFacts, ...]
    unreached: tuple[str, ...] = ()
    """Kernels that no case of the card launches; none where not every case was tried."""
    unknown: str | None = None
    """What is not known of the kernels that are launched, and why."""


def of_card(card: CardFacts, fuzzed: Iterable[CaseFacts] = ()) -> tuple[CaseFacts, ...]:
    """Those that the card names for it; else its smallest timed one, since the tools slow a kernel down a hundredfold,
    or where that is larger than MOST_BYTES, the largest of `fuzzed` that is not."""
    timed = _by_size(card.suites["pr"])[:1]
    if card.sanitize or all(_bytes(case) <= MOST_BYTES for case in timed):
        return card.sanitize or tuple(timed)
    small = [case for case in fuzzed if _bytes(case) <= MOST_BYTES]
    return tuple(_by_size(small)[-1:] or timed)


def choose(library: Library, card: CardFacts, gpu: Capability, patience_s: float, workers: WorkerPool) -> Reach:
    """The card's own cases, and of its suites and fuzz list the smallest that launch a kernel which no earlier one
    launches, as far as that is found out in the time, which counts from when torch is loaded."""
    fuzzed = _fuzzed(card)
    own = of_card(card, fuzzed.values())
    names = [kernel.name for kernel in library.manifest.kernels if kernel.target in targets_on(library, gpu)]
    wanted = frozenset(machine_code.short_names(names).values())
    if library.manifest.kind == "package":  # those of its functions
        wanted = frozenset(name.partition(" at ")[0].partition("[")[0] for name in names)
    if not wanted:
        why = library.manifest.facts_missing or "nothing is known of the library's kernels"
        return Reach(own, unknown=f"which kernels these cases launch is not known: {why}")
    candidates = (*own, *_others(card, own, fuzzed))
    found, unknown = _launches(library, card, candidates, len(own), wanted, patience_s, workers)
    reached: set[str] = set()
    chosen: list[CaseFacts] = []
    for number, case in enumerate(candidates):
        new = found[number] & wanted - reached if number < len(found) else set()
        if number < len(own) or new:
            chosen.append(case)
            reached |= new
    missing = sorted(wanted - reached)
    if unknown is None and not reached:
        unknown = "the profiler saw no launch of any"
    if unknown and missing:
        seen = f"no case was seen to launch {len(missing)} of {len(wanted)} kernels, and the search is not whole"
        return Reach(tuple(chosen), unknown=f"{seen}: {unknown}")
    return Reach(tuple(chosen), tuple(missing))


def targets_on(library: Library, gpu: Capability) -> frozenset[str]:
    """Those of the library whose code runs on this GPU, such as "sm_90a"."""
    targets = [target(name.removeprefix("sm_")) for name in library.manifest.targets]
    return frozenset(sm(one) for one in archs.serving([gpu], targets))


def _others(card: CardFacts, own: Sequence[CaseFacts], fuzzed: Mapping[str, CaseFacts]) -> list[CaseFacts]:
    """The card's timed and fuzzed cases besides, the smallest first."""
    timed = {case.id: case for suite, cases in card.suites.items() if suite != "cpu" for case in cases}
    known = {case.id for case in own}
    return _by_size([case for id_, case in {**fuzzed, **timed}.items() if id_ not in known])


def _fuzzed(card: CardFacts) -> dict[str, CaseFacts]:
    trials = fuzz_trials.trials(0, card, "cuda")
    listed = [{axis: value for axis, value in one.axes.items() if axis != fuzz_trials.DISTRIBUTION} for one in trials]
    return {case.id: case for case in (cards.with_cases(card, listed).asked if listed else ())}


def _by_size(cases: Sequence[CaseFacts]) -> list[CaseFacts]:
    return sorted(cases, key=_bytes)


def _bytes(case: CaseFacts) -> float:
    """Where the card does not say, as if it had one tensor of all sizes in single precision."""
    return case.bytes or 4.0 * axes.size(case.axes)


def _launches(
    library: Library,
    card: CardFacts,
    candidates: Sequence[CaseFacts],
    least: int,
    wanted: frozenset[str],
    patience_s: float,
    workers: WorkerPool,
) -> tuple[list[set[str]], str | None]:
    """The kernels of each case, until all that are wanted are among them, of the first `least` anyway; and why some
    were not tried, where the time is over or the kernel takes the process down."""
    found: list[set[str]] = []
    deadline = None
    try:
        with workers.take(WORKER, imports({"head": library}), library.python) as worker:
            worker.ask(WatchedCall.of(library, card, *candidates), Ready, STARTING_S)
            deadline = time.monotonic() + patience_s
            while len(found) < len(candidates) and (len(found) < least or not wanted <= set().union(*found)):
                launched = worker.receive(LaunchedKernels, max(0.0, deadline - time.monotonic()))
                found.append(set(machine_code.short_names(launched.kernels).values()))
    except WorkerError as error:
        if deadline is not None and time.monotonic() >= deadline:
            return found, f"only {len(found)} of {len(candidates)} cases were tried in {patience_s:.0f} s"
        return found, str(error)
    return found, None


def launches(call: Callable[[], Any]) -> tuple[str, ...]:
    """The names of what a call runs on the GPU."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    events = profiler.events() or ()
    return tuple(dict.fromkeys(event.name for event in events if event.device_type.name == "CUDA"))


def launch_each(request: WatchedCall, leader: Leader) -> None:
    """Calls each case under torch's profiler, in order."""
    import torch

    from kernelgate.bench.kernel import loading, operands, triton_runtime

    with triton_runtime.shared([request.library.folder]):
        judge = loading.load(request.card)
        bound = operands.bind(request.library.read(), judge, "head")
        launches(lambda: None)  # the first time, the profiler takes seconds
        leader.send(Ready())
        for axes in request.cases:
            try:
                with triton_runtime.untuned(axes):
                    launched = LaunchedKernels(kernels=launches(watched_call.prepared_case(judge, bound, axes, "cuda")))
            except Exception:  # of the card's code, or of the kernel, which may refuse the case
                launched = LaunchedKernels()
                torch.cuda.synchronize()  # where the kernel has ended the context, that ends this process
            leader.send(launched)
