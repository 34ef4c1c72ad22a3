"""Two comparisons whose answer is known: equal functions, and one that does 2% more. They tell of the machine alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import CANARY, EQUAL, MORE, CaseKey, RunRecord
from kernelgate.bench.system import lock, progress

ELEMENTS = {"cuda": 1 << 25, "cpu": 1 << 20}
"""Of float32: far more than any cache holds, and 0.9 ms on an L4 by its data sheet (300 GB/s)."""
SHARE = 50
"""MORE does a part more of so many: 2%, since memory bounds both."""
ROUNDS = 60


def run(
    limit: int,
    undecided: Callable[[RunRecord], frozenset[CaseKey]],
    identity: record.Run,
    start: Callable[[], RunRecord],
) -> RunRecord:
    """Fresh processes, each with both pairs, until none is undecided; `start` makes the record of one."""
    took, made = lock.stopwatch(), RunRecord()
    while len(made.processes) < limit and (not made.processes or undecided(made)):
        progress.say(f"canary, process {len(made.processes) + 1} of at most {limit}")
        one = start()
        made = one.model_copy(update={"processes": (*made.processes, *one.processes), "run": identity})
    ended = identity.model_copy(update={"ended": "complete"})
    return made.model_copy(update={"run": ended, "costs": record.with_costs((), canary=took())})


def in_process() -> RunRecord:
    """One of them, in a fresh process."""
    done = subprocess.run([sys.executable, "-P", "-m", __name__], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip()[-400:] or "nothing said"
        raise KernelgateError(f"the canary ended with {done.returncode}: {said}")
    return record.from_json(done.stdout, "the canary's record")


def once(device: str, count: int = 0) -> RunRecord:
    """Both pairs in this process."""
    import torch

    from kernelgate.bench.timing import functions

    count = count or ELEMENTS[device]
    values = torch.rand(count + count // SHARE, device=device)

    def base(given: torch.Tensor) -> torch.Tensor:
        return given[:count] * 2

    def more(given: torch.Tensor) -> torch.Tensor:
        return (given * 2)[:count]

    pairs = {EQUAL: base, MORE: more}
    made = [functions.timed(base, head, (values,), {}, name, ROUNDS, None) for name, head in pairs.items()]
    timings = tuple(timing.model_copy(update={"card": CANARY}) for one in made for timing in one.processes[0].timings)
    cases = tuple(record.Case(card=CANARY, id=name) for name in pairs)
    process = made[0].processes[0].model_copy(update={"timings": timings})
    return made[0].model_copy(update={"cards": (record.Card(name=CANARY),), "cases": cases, "processes": (process,)})


if __name__ == "__main__":
    import torch

    print(record.to_json(once("cuda" if torch.cuda.is_available() else "cpu")))
