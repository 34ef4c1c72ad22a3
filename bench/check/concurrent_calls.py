"""Ways of calling a kernel in company, where what a call leaves behind or shares meets another one.

between-others  calls of other cases before it and between two of it: a choice, a table or a workspace that an earlier
                call left, and that is kept by less than all that it depends on
shared-inputs   inputs of one shape and dtype are one tensor, as in a product of a matrix with itself
two-threads     two threads call at once, each with inputs of its own: what the host keeps in static memory
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from kernelgate.bench.check import examine
from kernelgate.bench.check.examine import (
    Examined,
    InapplicableError,
    KernelCallError,
    ReadyCall,
    Subject,
    bits,
    drawn,
    same_bits,
)
from kernelgate.bench.kernel import operands
from kernelgate.bench.kernel.card import CaseAxes
from kernelgate.bench.kernel.compare import Comparison
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.kernel.operands import Draw, Tensors

THREAD_CALLS = 100
"""Of each thread."""


def between_others(subject: Subject, trial: Trial) -> Examined:
    """Each other case is called, then this one again."""
    comparisons: list[Comparison] = []

    def looked_at(axes: dict[str, bool | int | float | str], seed: int, said: str) -> str | None:
        draw = Draw(CaseAxes(axes), subject.device, trial.seed + seed, trial.distribution)
        done = examine.run(examine.prepared(subject, draw))
        comparisons.append(done.comparison)
        found = examine.fault([done])
        return found and f"{said}: {found}; does a call keep something by less than all that it depends on?"

    for at, other in enumerate(trial.others):
        changed = ", ".join(f"{axis}={value}" for axis, value in other.items() if trial.axes.get(axis) != value)
        for axes, said in ((trial.axes, "between calls of other cases"), (other, f"called with {changed} in between")):
            found = looked_at(axes, at, said)
            if found:
                return Examined(found, tuple(comparisons))
    found = looked_at(trial.axes, len(trial.others), "after calls of other cases")
    return Examined(found, tuple(comparisons))


def shared_inputs(subject: Subject, trial: Trial) -> Examined:
    ready = examine.prepared(subject, drawn(subject, trial), share=True)
    if len(ready.inputs) == len(list(operands.tensors(ready.originals))):
        raise InapplicableError("no two inputs are of one shape and dtype")
    done = examine.run(ready)
    found = examine.fault([done])
    return Examined(found and f"where inputs of one shape are one tensor: {found}", (done.comparison,))


def two_threads(subject: Subject, trial: Trial) -> Examined:
    ready = [examine.prepared(subject, drawn(subject, trial, seed)) for seed in (0, 1)]
    rights = [one.right() for one in ready]
    for one in ready:
        examine.called(one)  # the first call loads the kernel
    compared: list[list[Comparison]] = [[], []]
    raised: list[Exception] = []

    def calls(side: int) -> None:
        try:
            compared[side] += _compared(ready[side], rights[side])
        except Exception as error:
            raised.append(error)

    _at_once(calls)
    if raised:
        raise KernelCallError(f"called from two threads at once, {raised[0]}") from None
    worst = max((one for side in compared for one in side), key=lambda one: (not one.passed, one.error_ratio or 0.0))
    wrong = examine.wrong(worst, rights[0][worst.output].shape)
    return Examined(wrong and f"called from two threads at once: {wrong}", (worst,))


def _compared(ready: ReadyCall, right: Tensors) -> list[Comparison]:
    """The first of many calls, and each whose bits are others."""
    ready.refill()  # an earlier call may have overwritten its inputs
    made = examine.called(ready)
    first = {name: bits(tensor).clone() for name, tensor in made.items()}
    found = [ready.compared(made, right)]
    for _ in range(THREAD_CALLS - 1):
        ready.refill()
        made = examine.called(ready)
        if not same_bits(made, first):
            found.append(ready.compared(made, right))
    return found


def _at_once(calls: Callable[[int], None]) -> None:
    threads = [threading.Thread(target=calls, args=(side,)) for side in (0, 1)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
