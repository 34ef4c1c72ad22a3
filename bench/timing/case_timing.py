"""One case in one process, as its leader sees it: warm up, choose how long samples are, time rounds, replay graphs."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Literal

from kernelgate.bench import record
from kernelgate.bench.kernel.cards import CaseFacts
from kernelgate.bench.system import nvml
from kernelgate.bench.timing.batches import (
    AROUND_SAMPLE,
    MAX_SAMPLES,
    CaseSamples,
    MeasuredProcess,
    Team,
    batch,
    batches,
    disagreeing,
)
from kernelgate.bench.timing.protocol import (
    Batch,
    CaseChecked,
    CaseDone,
    CaseOpened,
    CasePrepared,
    CloseCase,
    Finish,
    OpenCase,
    PrepareCase,
)

WARM_UP_S = 0.5
"""Device work before the first sample of a process: until then ratios of identical code scatter several times more."""
CASE_WARM_UP_S = 0.05
"""And before the first sample of each further case."""
REFERENCE_EVERY = 4
"""The reference is timed in every fourth round: nothing is decided by it."""
ROUNDS_PER_TURN = 20
"""Rounds after which processes that alternate take turns."""
STEP_SHARE = 1e-3
"""A sample is made so long that one step of the clock is less than this share of it."""
SHORTEST_US = 300.0
"""And at least so long, since on a GPU the two events around it add about 3 µs, which hide a part of any difference."""
MAX_REPEATS = 256
GRAPH_US = 2_000.0
"""Device time of one graph, long enough for its own launch not to matter."""
GRAPH_ROUNDS = 3
CLOCKS_AGREE_US = 5.0
CLOCKS_AGREE_SHARE = 0.01
"""The device's clock comes in steps of up to 1 µs, and medians of its differences repeat to a fraction of that."""
CAP = "sw_power_cap"
PAUSES = (0.25, 0.5, 1.0)
"""Of a sample's length: tried one after the other while the GPU runs at its power limit. Measured on an H200: 300 µs
before samples of 700 µs take 692 W at 1875 MHz to 606 W at 1980 MHz."""


def prepared(
    team: Team, asked: PrepareCase, case: CaseFacts, rng: random.Random, reference: Literal["try", "time", "leave"]
) -> CaseSamples:
    """Draws the inputs and has every process map them. Raises NotSharedError.

    `reference`: whether it is timed, where that has to be tried first.
    """
    made = team.verifier.ask(asked, CasePrepared)
    samples = CaseSamples(case, made, rng)
    for one in team.measured:
        beside = reference != "leave" and "head" in one.sides
        opened = OpenCase(id=case.id, axes=case.axes, prepared=made, reference=beside and reference == "try")
        answer = one.runner.ask(opened, CaseOpened)
        samples.clock_step_us = max(samples.clock_step_us, answer.clock_step_us)
        if answer.returns:
            text = (
                "calls return new tensors: each allocates its output, so that the sides write to different addresses "
                "and unwritten elements cannot be told apart"
            )
            samples.note("returns_new_tensors", text)
        samples.reference |= beside and answer.no_reference is None
        if answer.no_reference is not None:
            samples.no_reference = answer.no_reference
            samples.note("no_reference", f"the reference is not timed: {answer.no_reference}")
    return samples


def sides_of(case: CaseSamples, measured: MeasuredProcess) -> tuple[record.Side, ...]:
    """What a process times of a case: its kernels, and the reference beside the head."""
    return (*measured.sides, "reference") if case.reference and "head" in measured.sides else measured.sides


def warm_up(team: Team, case: CaseSamples, seconds: float, pause_when_capped: bool) -> None:
    """Calls each side in turn until the device has worked for `seconds`, and decides how many calls a sample has.

    Where the GPU then runs at its power limit, samples get pauses, so that it need not lower its clock.
    """
    calls_us = [_warmed(team, case, one, seconds / len(team.measured)) for one in team.measured]
    case.inner_repeats = _fitting(case, inner_repeats(case.clock_step_us, min(calls_us)))
    if pause_when_capped:
        sample_us = case.inner_repeats * min(calls_us)
        for share in PAUSES:
            last = case.readings[-3:]
            if sum(CAP in reading.throttle_reasons for reading in last) * 2 <= len(last):
                break
            case.pause_us = round(share * sample_us, 1)
            case.readings.clear()
            for one in team.measured:
                _warmed(team, case, one, CASE_WARM_UP_S)
        if case.pause_us:
            text = f"the GPU ran at its power limit, so each sample follows a pause of {case.pause_us:.0f} µs"
            case.note("paused", text)
    case.readings.clear()


def _warmed(team: Team, case: CaseSamples, measured: MeasuredProcess, seconds: float) -> float:
    """The time of one call of the fastest side, in microseconds."""
    how = Batch(what="warming up", samples=())
    sides = sides_of(case, measured)
    few = min(2, case.prepared.slots)
    first = [batch(team, case, measured, [side] * few, 1, how) for side in sides]  # each alone: one may crash
    call_us = {side: max(1e-3, min(one.us for one in done)) for side, done in zip(sides, first, strict=True)}
    worked_us, tries = sum(one.us for done in first for one in done), 0
    while worked_us < seconds * 1e6 and tries < 10_000:
        repeats = _fitting(case, inner_repeats(0.0, min(call_us.values())))
        room = min(case.prepared.slots // repeats, case.queue_length // (repeats + AROUND_SAMPLE), MAX_SAMPLES)
        left = math.ceil((seconds * 1e6 - worked_us) / (repeats * sum(call_us.values())))
        rounds = max(1, min(room // len(sides), left))
        order = [side for _ in range(rounds) for side in sides]
        done = []
        for first_, end in batches([repeats] * len(order), case.prepared.slots, case.queue_length):
            done += batch(team, case, measured, order[first_:end], repeats, how)
        call_us = {side: max(median(one.us for one in done if one.side == side) / repeats, 1e-3) for side in sides}
        worked_us += sum(one.us for one in done)
        tries += 1
    return min(call_us.values())


def inner_repeats(step_us: float, call_us: float) -> int:
    """How many calls make an interval of SHORTEST_US of which one step of the clock is less than STEP_SHARE.

    A power of two, so that processes agree on it although they estimate `call_us` anew.
    """
    needed = max(step_us / STEP_SHARE, SHORTEST_US) / call_us
    return min(MAX_REPEATS, 2 ** (math.floor(math.log2(needed)) + 1)) if needed >= 1 else 1


def _fitting(case: CaseSamples, repeats: int) -> int:
    """No more calls than have outputs of their own."""
    return min(repeats, 1 << (case.prepared.slots.bit_length() - 1))


def time_rounds(team: Team, case: CaseSamples, rounds: int, turned: Callable[[], None]) -> None:
    """Times the rounds, in random order within each, in turns where several processes take part."""
    for first in range(0, rounds, ROUNDS_PER_TURN):
        for one in case.rng.sample(team.measured, len(team.measured)):
            _turn(team, case, one, min(ROUNDS_PER_TURN, rounds - first))
        turned()


def _turn(team: Team, case: CaseSamples, measured: MeasuredProcess, rounds: int) -> None:
    how = Batch(what="timing", samples=())
    order: list[tuple[record.Side, int]] = []
    for number in range(rounds):
        sides = sides_of(case, measured) if number % REFERENCE_EVERY == 0 else measured.sides
        order += [(side, place) for place, side in enumerate(case.rng.sample(sides, len(sides)))]
    at = 0
    while at < len(order):
        left = [case.inner_repeats] * (len(order) - at)
        _, count = next(batches(left, case.prepared.slots, case.queue_length))
        chosen = order[at : at + count]
        done = batch(team, case, measured, [side for side, _ in chosen], case.inner_repeats, how)
        before: record.Side | None = None  # between batches the device does other work
        for (side, place), sample in zip(chosen, done, strict=True):
            case.samples_us.setdefault(side, []).append(sample.us / case.inner_repeats)
            case.positions.setdefault(side, []).append(place)
            case.previous.setdefault(side, []).append(before)
            if sample.started_us is not None:
                case.started_us.setdefault(side, []).append(sample.started_us)
            if sample.sm_mhz is not None:
                case.sm_mhz.setdefault(side, []).append(sample.sm_mhz)
            if sample.probed_us is not None:
                case.clocks_apart.setdefault(side, []).append(sample.probed_us - sample.us)
            before = side
        at += count


def replay_graphs(team: Team, case: CaseSamples) -> None:
    """The median time of one call of each side when many are replayed as one graph, in rounds like the samples.

    Not of kernels in place, which a graph would run again on what they have made.
    """
    if not case.prepared.outputs:
        return
    for one in team.measured:
        sides = sides_of(case, one)
        known = min((median(case.samples_us[side]) for side in sides), default=1.0)
        count = max(1, min(case.prepared.slots, max(8, round(GRAPH_US / known))))
        times: dict[record.Side, list[float]] = {side: [] for side in sides}
        for _ in range(GRAPH_ROUNDS):
            for side in case.rng.sample(list(times), len(times)):
                done = batch(team, case, one, [side], count, Batch(what="replaying graphs of", samples=(), graph=True))
                if not done:
                    times.pop(side)
                    continue
                times[side].append(done[0].us / count)
        case.graph_us.update({side: median(us) for side, us in times.items()})


def contradiction(case: CaseSamples) -> str | None:
    """Whether the device's own clock, which the verifier read, and the clock of the measured process disagree.

    Both add the same to every sample; what they add must not depend on the side.
    """
    call_us = min((median(case.samples_us[side]) for side in case.clocks_apart), default=0.0)
    allowed_us = CLOCKS_AGREE_US + CLOCKS_AGREE_SHARE * case.inner_repeats * call_us
    found = disagreeing(case.clocks_apart, allowed_us)
    if found is None:
        return None
    low, high, least_us, most_us = found
    return (
        f"{case.case.id}: by the device's own clock a sample takes {least_us:.1f} µs more of {low} and {most_us:.1f} "
        f"µs more of {high} than by the clock of the process that made the calls: that clock is wrong"
    )


@dataclass(frozen=True)
class CaseResult:
    """What one case has given in one process."""

    timing: record.Timing
    notes: tuple[record.Note, ...]
    calling_s: float
    """Device time of the calls, …"""
    verifying_s: float
    """… and what drawing inputs and looking at outputs took."""
    contradiction: str | None
    """What the device's own clock says against that of the measured process."""


def finished(team: Team, case: CaseSamples, card: str) -> CaseResult:
    """Ends the case in every process."""
    done = [one.runner.ask(Finish(), CaseDone) for one in team.measured]
    checked = team.verifier.ask(CloseCase(), CaseChecked)
    notes = [*case.notes.values(), *(note for one in done for note in one.notes)]
    notes += [note.model_copy(update={"text": f"{case.case.id}: {note.text}"}) for note in checked.notes]
    rounds = {side: len(samples) for side, samples in case.samples_us.items()}

    def complete(values: dict[record.Side, list[float]]) -> dict[record.Side, tuple[float, ...]]:
        """Those of the sides of which every sample has one."""
        return {side: tuple(known) for side, known in sorted(values.items()) if len(known) == rounds[side]}

    timing = record.Timing(
        card=card,
        case=case.case.id,
        samples_us={side: tuple(samples) for side, samples in sorted(case.samples_us.items())},
        positions={side: tuple(places) for side, places in sorted(case.positions.items())},
        previous={side: tuple(sides) for side, sides in sorted(case.previous.items())},
        started_us=complete(case.started_us),
        sm_mhz=complete(case.sm_mhz),
        inner_repeats=case.inner_repeats,
        pause_us=case.pause_us or None,
        telemetry=nvml.telemetry(case.readings),
        graph_us=dict(sorted(case.graph_us.items())),
        calls=checked.calls,
        errors=checked.errors,
        autotuned={side: choice for one in done for side, choice in one.autotuned.items()},
        memory_bytes={side: most for one in done for side, most in one.memory_bytes.items()},
        clock_step_us=case.clock_step_us,
    )
    return CaseResult(timing, tuple(notes), case.busy_us / 1e6, checked.seconds, contradiction(case))
