"""The witness: base and head, each alone in a process without the other, timed by clocks that neither reaches.

What one library does to the other, to the clock or to the checks of a process that they share, it cannot do here. On a
GPU the time is between two probes, which the verifier reads, and the leader's own clock says whether that can be right;
on a CPU it is the leader's. Every call reads inputs that its process has never seen. The witness is less precise than
the paired comparison, and there to contradict it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from statistics import median

from kernelgate.bench import record
from kernelgate.bench.kernel.cards import CaseFacts
from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.bench.system import progress
from kernelgate.bench.system.worker import Ready
from kernelgate.bench.timing import case_timing, process
from kernelgate.bench.timing.batches import CaseSamples, MeasuredProcess, Team, disagreeing
from kernelgate.bench.timing.process import CardPlan, Setup, Timed, Turn
from kernelgate.bench.timing.protocol import (
    Batch,
    BatchDone,
    CaseChecked,
    CaseDone,
    CheckCalls,
    Checked,
    CloseCase,
    Finish,
    PlanCalls,
    Planned,
    Redraw,
    SampleCalls,
    Start,
)

TURNS = {"cuda": 1, "cpu": 3}
"""Fresh processes of each side. On a CPU, where its code lies makes a kernel up to 15% faster or slower in a process,
and a core may be slower by as much for seconds: no number of batches of one process shows either."""
BATCHES = {"cuda": 8, "cpu": 5}
"""Of each side in a turn, one after the other in random order."""
BATCH_US = {"cuda": 3_000.0, "cpu": 20_000.0}
"""Of calls in a batch: the leader's clock starts and stops with a message, which takes about 0.1 ms."""
CLOCKS_AGREE_US = 150.0
CLOCKS_AGREE_SHARE = 0.05
"""By so much, and such a share of a batch, the leader's clock may differ from the device's on one side alone."""
MOST_CALLS = 384
EMPTY = 3
"""Batches without calls, whose time is taken off."""
SPARE, SPARE_US = 1.5, 200.0
"""How much longer a hold lasts than the slower host needed to queue a batch."""


@dataclass
class Alone:
    """One case of the witness."""

    samples: CaseSamples
    calls: int
    """In a batch."""
    queued_us: float = 0.0
    """The most that a host needed to queue a batch."""
    hold_us: float = 0.0
    empty_us: float = 0.0
    times_us: dict[record.Side, list[float]] = field(default_factory=dict)
    """Of one call, by batch."""
    apart_us: dict[record.Side, list[float]] = field(default_factory=dict)
    """How much longer this process's clock says that each batch took than the device's own."""


def timed(setup: Setup, part: CardPlan, number: int, known: RunRecord, advance: progress.Advance) -> Timed:
    """Times every case of a card in one turn, the `number`th. `known`: the paired comparison, which says how long a
    call takes."""
    words = ["witness", *([] if setup.how.single else [part.card.name]), *([str(number + 1)] if number else [])]
    turn = Turn(part, part.cases, number, together=False, id="-".join(words), name=", ".join(words))
    return process.hosted_where_refused(setup, lambda: _timed(setup, turn, known, advance))


def _timed(setup: Setup, turn: Turn, known: RunRecord, advance: progress.Advance) -> Timed:
    part, name = turn.part, turn.name
    rng = random.Random(f"{setup.how.seed}/{turn.id}/{part.card.name}")  # noqa: S311 - not for secrets
    started_at, begun = datetime.now(UTC), time.monotonic()
    timings: list[record.Timing] = []
    contradictions: list[str] = []
    spent_s = 0.0
    with ExitStack() as stack:
        sides: list[record.Side] = ["base", "head"]
        rng.shuffle(sides)
        names = [f"{name}, {side} alone" for side in sides]
        measured = process.started(setup, part, [[side] for side in sides], names, stack)
        for case in turn.cases:
            call_us = _call_us(known, CaseKey(part.card.name, case.id))
            asked = max(1, min(MOST_CALLS, round(BATCH_US[setup.device] / call_us)))
            alone, timing, seconds = _case(setup, turn, measured, case, asked, rng)
            contradictions += [text] if (text := contradiction(alone)) else []
            timings.append(timing)
            spent_s += seconds
            advance(f"{name}, {case.id}")
    notes = setup.end_orphans(name)
    made = record.Process(
        id=turn.id,
        environment=setup.environment.id,
        role="witness",
        loaded=tuple(sides),
        seed=f"{setup.how.seed}/{turn.id}",
        started_at=started_at.isoformat(timespec="seconds"),
        gpu_seconds=round(spent_s, 3) if setup.device == "cuda" else None,
        wall_seconds=round(time.monotonic() - begun, 3),
        exit=0,
        timings=tuple(timings),
    )
    return Timed(made, notes, spent_s, 0.0, tuple(contradictions))


def _call_us(known: RunRecord, key: CaseKey) -> float:
    """What one call takes, by the paired comparison; the witness only sizes its batches by it."""
    times = [
        time_us
        for one in known.processes
        for timing in one.timings
        if one.role in record.COMPARED and timing.key == key
        for side in ("base", "head")
        for time_us in timing.samples_us.get(side, ())
    ]
    return median(times) if times else 100.0


def _case(
    setup: Setup, turn: Turn, measured: Sequence[MeasuredProcess], case: CaseFacts, asked: int, rng: random.Random
) -> tuple[Alone, record.Timing, float]:
    """`asked`: calls of a batch, where there is memory for so many."""
    teams = process.verified_teams(setup, measured)
    prepared = [
        case_timing.prepared(team, process.asked_case(setup, turn, case, asked), case, rng, "leave") for team in teams
    ]
    calls = min(one.prepared.slots for one in prepared)
    alone = Alone(prepared[0], calls)
    pairs = [(team, one) for team in teams for one in team.measured]
    for team, one in pairs:
        _blind(team, one, 1, alone)
    for team, one in pairs:
        _blind(team, one, calls, alone)
    alone.hold_us = SPARE * alone.queued_us + SPARE_US if setup.device == "cuda" else 0.0
    alone.empty_us = median(_blind(team, one, 0, alone)[0] for _ in range(EMPTY) for team, one in pairs)
    for _ in range(BATCHES[setup.device]):
        for team in teams:
            team.verifier.ask(Redraw(), Checked)
        for at, (team, one) in enumerate(rng.sample(pairs, len(pairs))):
            took_us, probed_us = _blind(team, one, calls, alone, again=at > 0 and len(teams) == 1)
            wall_us, side = took_us - alone.empty_us, one.sides[0]
            # The device's own clock is the finer one; this process's says whether it can be right.
            us = wall_us if probed_us is None else probed_us
            alone.times_us.setdefault(side, []).append(max(us / calls, 1e-3))
            if probed_us is not None:
                alone.apart_us.setdefault(side, []).append(wall_us - probed_us)
    return alone, *_finished(teams, alone, turn.part.card.name)


def contradiction(alone: Alone) -> str | None:
    """Whether the two clocks disagree on one side more than on the other: its library writes where the probes do."""
    batch_us = alone.calls * min(median(times) for times in alone.times_us.values())
    found = disagreeing(alone.apart_us, CLOCKS_AGREE_US + CLOCKS_AGREE_SHARE * batch_us)
    if found is None:
        return None
    low, high, least_us, most_us = found
    return (
        f"{alone.samples.case.id}: timed alone, a batch of {high} takes {most_us - least_us:.0f} µs longer by the "
        f"clock of the process that waits for it than by the device's, compared with one of {low}"
    )


def _blind(
    team: Team, measured: MeasuredProcess, calls: int, alone: Alone, again: bool = False
) -> tuple[float, float | None]:
    """A batch, whose outputs are compared, too: its time in µs on this process's clock, from asking for it to its end,
    and on the device's own, which the verifier read; None on a CPU."""
    planned = team.verifier.ask(PlanCalls(count=calls, again=again), Planned)
    side = measured.sides[0]
    samples = (SampleCalls(side=side, windows=planned.windows, slots=planned.slots),) if calls else ()
    how = Batch(what="timing alone", samples=samples, inputs=planned.inputs, pause_us=alone.hold_us, blind=True)
    measured.runner.ask(how, Ready)
    begun = time.perf_counter()
    answer = measured.runner.ask(Start(), BatchDone)
    took_us = (time.perf_counter() - begun) * 1e6
    alone.samples.busy_us += took_us
    alone.queued_us = max(alone.queued_us, answer.queued_us)
    looked = CheckCalls(sides=(side,) * calls, copied=answer.copied, busy_us=took_us, samples=1)
    checked = team.verifier.ask(looked, Checked)
    return took_us, checked.probed[0].us if checked.probed else None


def _finished(teams: Sequence[Team], alone: Alone, card: str) -> tuple[record.Timing, float]:
    calls: dict[record.Side, record.Calls] = {}
    errors: dict[record.Side, record.OutputErrors] = {}
    seconds = alone.samples.busy_us / 1e6
    for team in teams:
        for one in team.measured:
            one.runner.ask(Finish(), CaseDone)
        checked = team.verifier.ask(CloseCase(), CaseChecked)
        calls.update(checked.calls)
        errors.update(checked.errors)
        seconds += checked.seconds
    timing = record.Timing(
        card=card,
        case=alone.samples.case.id,
        samples_us={side: tuple(times) for side, times in sorted(alone.times_us.items())},
        inner_repeats=alone.calls,
        calls=calls,
        errors=errors,
    )
    return timing, seconds
