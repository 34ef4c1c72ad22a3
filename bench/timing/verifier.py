"""The verifier: a process that never loads a kernel. It draws the inputs, knows what is right, and looks at outputs.

Which calls are compared is drawn after they were made, from a seed that no other process has. The measured process
shares inputs and outputs with it, and neither references nor seeds.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, first_line
from kernelgate.bench.kernel import compare, loading, operands
from kernelgate.bench.kernel.card import CaseAxes, Kernel, asked_for
from kernelgate.bench.kernel.operands import Draw
from kernelgate.bench.system import environment, orphans
from kernelgate.bench.system.worker import Doing, Leader, Message, Ready
from kernelgate.bench.timing import pool as memory
from kernelgate.bench.timing import protocol
from kernelgate.bench.timing import timer as timers
from kernelgate.bench.timing.pool import Layout, Order, Pool
from kernelgate.bench.timing.protocol import PrepareCase
from kernelgate.bench.timing.references import CallTally, Oracle, References, Way, synchronize

SHARE = 0.25
"""Of all calls, how many are compared. One that is wrong is found with this probability, n of them with 1 - 0.75^n."""
BUDGET = 0.15
"""Comparing takes about this share of the calls' time at most, and so do new draws of sets, where windows cannot give
new inputs. Where a kernel is so fast that a quarter takes more, fewer calls are compared."""
LEAST_US = {"cuda": 20_000.0, "cpu": 150_000.0}
FEWER = 8
FEWEST = 0.02
"""Of the calls of a side, how many are compared though the oracle is slow: twice what a judge asks for."""
POISONED = (128, 512)
"""Bytes of the first in each of the second are poisoned between two uses of an output, at a place that moves. The rest
holds the result of a call on other inputs, which is as wrong; all of it would take a fifth of an L4's time. Of the
witness all is: there the other side's call may have read the same inputs."""
WORD = 8
MAX_SLOTS = 512
MAX_BYTES = {"cuda": 8 << 30, "cpu": 256 << 20}
"""Of inputs, and of outputs; on a GPU at most a quarter of what is free for each."""
MAX_SAMPLES = 1024
PROBE_WORDS = 6


class CaseVerifier:
    def __init__(
        self, kernel: Kernel, asked: PrepareCase, way: Way | None = None, stops: Callable[[], int] = lambda: 0
    ) -> None:
        """`stops`: how often this process was stopped so far."""
        self._stops, self._stopped_before = stops, stops()
        self._untouched = True
        """Whether inputs were, each time before they were drawn anew, what had been drawn."""
        self.rng = random.Random(asked.seed)  # noqa: S311 - not for secrets
        self.axes, self._asked_reference = CaseAxes(asked.axes), asked.reference
        draw = Draw(self.axes, asked.device, self.rng.getrandbits(63))
        self.device = asked.device
        self.seconds = 0.0
        self.tallies: dict[record.Side, CallTally] = {}
        self.replayed: dict[record.Side, CallTally] = {}
        """Of calls from CUDA graphs."""
        self.planned: list[tuple[int, int]] = []
        self._again: list[bool] = []
        self._busy_us = self._drawing_us = self._draw_cost_us = self._comparing_us = 0.0
        self._first_probe: int | None = None
        self._numbers_drawn = False
        alone = asked.fresh_calls is not None
        self._flushed = torch.empty(asked.cache_bytes, dtype=torch.uint8, device=asked.device) if alone else None
        with self._spending():
            most = MAX_BYTES[asked.device]
            if asked.device == "cuda":
                most = min(most, torch.cuda.mem_get_info()[0] // 4)
            self.pool = pool = Pool(kernel, draw, asked.cache_bytes, most, asked.fresh_calls)
            size = sum(memory.aligned(memory.footprint(out)) for out in pool.outs.values())
            self.slots = max(1, min(MAX_SLOTS, most // max(1, size)))
            if alone or pool.size.mixes:  # no two calls of a batch read one window
                self.slots = min(self.slots, pool.size.windows)
            self._alone, self.windows = alone, self.slots if alone else pool.size.windows
            written = Layout()
            pool.outputs = {name: written.guarded(out, self.slots) for name, out in pool.outs.items()}
            self.probes = written.place(torch.empty(PROBE_WORDS, dtype=torch.int64), 8 * PROBE_WORDS, MAX_SAMPLES)
            read_fd, written_fd = asked.fds or (None, None)
            pool.arena = memory.create(asked.device, pool.layout.bytes, read_fd, asked.shared, sealed=True)
            pool.written = memory.create(asked.device, written.bytes, written_fd, asked.shared)
            pool.fill()
            self._guard = self.rng.randrange(1, 255)
            for place in pool.outputs.values():
                pool.written.rows(place).fill_(0xFF)
                for rows in memory.guards(pool.written, place):
                    rows.fill_(self._guard)
            pool.sign()
            self.oracle = Oracle(pool, alone, way)
            self.references: References = self.oracle.compute()
            synchronize(self.device)
        self.order = Order(self.windows, pool.size.apart, self.rng)
        self.order.renew()
        self.fresh = True
        """Whether no call has read the windows in their present form."""

    def answer(self) -> protocol.CasePrepared:
        return protocol.CasePrepared(
            memory=self.pool.arena.memory,
            written=self.pool.written.memory,
            inputs=self._inputs(),
            outputs={name: at for name, at in self.pool.outputs.items() if name not in self.pool.kernel.in_place},
            probes=self.probes,
            slots=self.slots,
            no_reference=self._without_reference() if self._asked_reference else None,
        )

    def _without_reference(self) -> str | None:
        given = memory.arguments(self.pool.arena, self.pool.written, self._inputs(), 0, 0, self.pool.moved)
        return without_reference(self.pool.kernel, self.axes, given)

    def _inputs(self) -> tuple[protocol.NamedInput, ...]:
        return tuple(
            given.model_copy(update={"items": (self.pool.outputs[given.name],)}) if given.slotted else given
            for given in self.pool.inputs
        )

    def plan(self, count: int, inputs: Literal["next", "again", "new"] = "next") -> protocol.Planned:
        """Inputs that no call has read in that form, as far as there are any, and an output for each call."""
        with self._spending():
            if inputs == "new":
                self._redraw()
            if inputs != "next":
                self.order.renew()
            windows, self._again = [], []
            if self.order.left < min(count, self.windows):
                self._renew()  # before any is taken: each call of a plan reads what the pool holds after it
            for _ in range(count):
                self._again.append(not self.fresh or self.order.left <= 0)
                windows.append(self.order.take())
            # Alone, each window has an output, so that every call can be prepared before the clock runs.
            slots = windows if self._alone else [at % self.slots for at in range(count)]
            self.planned = list(zip(windows, slots, strict=True))
            self.pool.restore(self.planned)
            if self._flushed is not None:  # what was just drawn would be read from the cache
                self._flushed.zero_()
            synchronize(self.device)
        told = self._inputs() if self._numbers_drawn else ()
        self._numbers_drawn = False
        return protocol.Planned(windows=tuple(windows), slots=tuple(slots), inputs=told, moved=self.pool.moved)

    def _renew(self) -> None:
        """Every window was read: their entries change places. Whole sets only change addresses, so they are drawn anew
        where that takes little of the time."""
        mixes = self.pool.size.mixes
        if not mixes and self._drawing_us + self._draw_cost_us < self._budget_us:
            begun = time.perf_counter()
            self._redraw()
            synchronize(self.device)
            self._draw_cost_us = (time.perf_counter() - begun) * 1e6
            self._drawing_us += self._draw_cost_us
        else:
            self._untouched = self._untouched and self.pool.untouched
            order = self.pool.shuffle()
            self.pool.sign()
            if order is not None:
                self.references.follow(order)
            self.fresh = mixes
        self.order.renew()

    @property
    def _budget_us(self) -> float:
        return max(LEAST_US[self.device], BUDGET * self._busy_us)

    def _redraw(self) -> None:
        self._untouched = self._untouched and self.pool.untouched
        self.pool.fill()
        self.pool.sign()
        self.references = self.oracle.compute()
        self.fresh = True
        self._numbers_drawn = self.pool.fixed

    def check(self, asked: protocol.CheckCalls) -> protocol.Checked:
        """Compares a quarter of the planned calls, and makes their outputs unusable for those that follow."""
        self._busy_us += asked.busy_us
        tallies = self.replayed if asked.graph else self.tallies
        with self._spending():
            for side, again in zip(asked.sides, self._again, strict=True):
                if side != "reference":
                    tally = tallies.setdefault(side, CallTally())
                    tally.made += 1
                    tally.repeated += again
            begun = time.perf_counter()
            made = [at for at, side in enumerate(asked.sides) if side != "reference"]
            chosen = self._chosen({at: asked.sides[at] for at in made}, tallies)
            errors = self.references.compare([self.planned[at] for at in chosen])
            outside = self._outside()
            synchronize(self.device)
            self._comparing_us += (time.perf_counter() - begun) * 1e6
            for at, error in zip(chosen, errors, strict=True):
                tallies[asked.sides[at]].add(error)
            for at in made:
                if self.planned[at][1] in outside:
                    tallies[asked.sides[at]].wrote_outside(at in chosen)
            self._poison(self.slots if self._alone else len(self.planned))
            synchronize(self.device)
        return protocol.Checked(probed=self._probed(asked.samples))

    def _chosen(self, made: Mapping[int, record.Side], tallies: Mapping[record.Side, CallTally]) -> list[int]:
        """Of the calls made, those to compare. Where the oracle must be asked for it first, as many as there is time
        for, of the batch's sides in turn, for twice the time up to FEWEST of each, and one of each at least."""
        known = self.references.comparable([self.planned[at][0] for at in made])
        able = [at for at, is_known in zip(made, known, strict=True) if is_known]
        share = SHARE if self._comparing_us <= self._budget_us else SHARE / FEWER
        count = max(1, round(share * len(made))) if made else 0
        if not self.pool.whole:
            return sorted(self.rng.sample(able, min(count, len(able))))
        asked, have = frozenset(able), {side: tallies[side].compared for side in set(made.values())}
        left_us = self._budget_us - self._comparing_us
        chosen: list[int] = []
        for at in self.rng.sample(sorted(made), len(made)):
            side, cost_us = made[at], 0.0 if at in asked else self.references.set_us
            least = max(1, FEWEST * tallies[side].made) if left_us + self._budget_us >= cost_us else 1
            timely = at in asked or (left_us >= cost_us and have[side] <= min(have.values()))
            if have[side] < least or (len(chosen) < count and timely):
                left_us -= cost_us
                chosen.append(at)
                have[side] += 1
        return sorted(chosen)

    def _outside(self) -> set[int]:
        """The slots whose calls have written before or behind their outputs. What they wrote there is undone."""
        found: set[int] = set()
        for place in self.pool.outputs.values():
            first, behind = memory.guards(self.pool.written, place)
            half = memory.GUARD // 2
            touched = [rows != self._guard for rows in (first, behind[:, :-half], behind[:, -half:])]
            if not any(bool(one.any()) for one in touched):
                continue
            in_front, after, before_next = (one.any(1).tolist() for one in touched)
            before = [*in_front, *before_next]
            found |= {slot for slot in range(self.slots) if before[slot] or after[slot]}
            first.fill_(self._guard)
            behind.fill_(self._guard)
        return found

    def _poison(self, used: int) -> None:
        part, every = (1, 1) if self._alone else (count // WORD for count in POISONED)
        offset = part * self.rng.randrange(every // part)
        for place in self.pool.outputs.values():
            if not place.bytes:
                continue
            # In words: torch fills what is not contiguous element by element, bytes at a tenth of the memory's speed.
            used_rows = self.pool.written.rows(place)[: min(used, self.slots)]
            rows = used_rows.view(torch.int64)
            words = place.bytes // WORD
            whole = words // every * every
            if whole:
                rows[:, :whole].view(len(rows), whole // every, every)[:, :, offset : offset + part].fill_(-1)
            rows[:, whole:words].fill_(-1)
            used_rows[:, words * WORD : place.bytes].fill_(0xFF)

    def _probed(self, samples: int) -> tuple[protocol.ProbeReading, ...]:
        if not samples or self.device == "cpu":
            return ()
        rows = self.pool.written.rows(self.probes)[:samples].contiguous().view(torch.int64).cpu().tolist()
        if self._first_probe is None:
            self._first_probe = rows[0][0]
        return tuple(_probed(row, self._first_probe) for row in rows)

    def close(self) -> protocol.CaseChecked:
        notes = []
        graphs = "base" not in self.replayed or not self.replayed["base"].failed
        if graphs:
            for side, tally in self.replayed.items():
                self.tallies.setdefault(side, CallTally()).join(tally)
        else:  # a kernel that launches on another stream, whose time says nothing
            text = "a CUDA graph does not hold what a call of base does, so no time from graphs is given"
            notes.append(record.Note(code="no_graphs", text=text))
        repeated, made, compared = (
            sum(getattr(one, what) for one in self.tallies.values()) for what in ("repeated", "made", "compared")
        )
        if not self.references.complete:
            share = len(self.references.entries) / self.pool.size.entries
            looked = f"the outputs of {compared} of {made} calls"
            if not self.pool.whole:
                looked = f"of the outputs of compared calls, only {100 * share:.2g}% of each"
            text = f"the oracle takes long: {looked} were looked at"
            notes.append(record.Note(code="compared_in_part", text=text))
        if repeated:
            text = f"{100 * repeated / made:.2g}% of the calls read inputs that an earlier call of the process had read"
            notes.append(record.Note(code="fewer_inputs", text=text))
        for side, tally in self.tallies.items():
            if tally.outside:
                text = f"{tally.outside} calls of {side} wrote before or behind their outputs"
                notes.append(record.Note(code="wrote_outside", text=text))
        disturbed = None
        if self._stops() > self._stopped_before:
            disturbed = "the verifier was stopped while base and head were called, which kernelgate never does"
        elif not (self._untouched and self.pool.untouched):
            disturbed = "an input was changed while base and head were called; `kernelgate fuzz` shows by which"
        for arena in (self.pool.arena, self.pool.written):
            memory.close(arena, owner=True)
        return protocol.CaseChecked(
            calls={side: tally.calls() for side, tally in self.tallies.items()},
            errors={side: tally.errors() for side, tally in self.tallies.items() if tally.compared},
            notes=tuple(notes),
            seconds=self.seconds,
            disturbed=disturbed,
            graphs=graphs,
        )

    @contextmanager
    def _spending(self) -> Iterator[None]:
        begun, before = time.perf_counter(), self.seconds
        try:
            yield
        finally:
            self.seconds = before + time.perf_counter() - begun  # what is nested counts once


def _probed(words: Sequence[int], first: int) -> protocol.ProbeReading:
    """The clock is known where both probes ran on one multiprocessor, whose counter it is."""
    began, clock, place, ended, later, other = words
    us = (ended - began) / 1e3
    known = place == other and us > 0 and later > clock
    return protocol.ProbeReading(
        started_us=(began - first) / 1e3, us=max(0.0, us), sm_mhz=(later - clock) / us if known else None
    )


class Verifier:
    def __init__(
        self,
        cards: Mapping[Path, Kernel] = {},
        stops: Callable[[], int] = lambda: 0,
        tell: Callable[[Doing], None] = lambda _: None,
    ) -> None:
        """`cards`: those that need not be read from their files. `stops`: as of a CaseVerifier. `tell`: who hears what
        is done next."""
        self._cards, self._stops, self._tell = dict(cards), stops, tell
        self._case: CaseVerifier | None = None
        self._tried: memory.Arena | None = None
        self._ways: dict[tuple[object, ...], Way | None] = {}

    def answer(self, message: protocol.ToVerifier) -> Message:
        """Raises KernelgateError where a card's own code fails, SharingError where memory cannot be shared."""
        if isinstance(message, PrepareCase):
            self._tell(Doing(doing=f"drawing inputs of {message.id} and asking the oracle about them"))
            key = (message.card_file, tuple(message.axes.items()), message.fresh_calls is not None)
            card = self._cards.get(message.card_file) or loading.load(message.card_file)
            self._cards[message.card_file] = card
            self._case = CaseVerifier(card, message, self._ways.get(key), self._stops)
            self._ways[key] = self._case.oracle.way
            return self._case.answer()
        if isinstance(message, protocol.ShareMemory):
            self._tried = memory.create(message.device, memory.ALIGNMENT, message.fd, shared=True, sealed=True)
            return self._tried.memory
        case = self._case
        if case is None:
            raise KernelgateError("no case is prepared")
        if isinstance(message, protocol.PlanCalls):
            return case.plan(message.count, message.inputs)
        if isinstance(message, protocol.CheckCalls):
            return case.check(message)
        closed, on_gpu = case.close(), case.device == "cuda"
        self._case = case = None  # so that its memory goes back
        if on_gpu:
            torch.cuda.empty_cache()
        return closed


def without_reference(judge: Kernel, axes: CaseAxes, given: operands.Inputs) -> str | None:
    """Why the reference cannot be timed; None where it can. It is tried on copies of the inputs."""
    if otherwise := environment.changed_numerics():
        return f"the code of base or head sets torch to other numerics than references are timed with: {otherwise}"
    before, tried = (operands.changed(given, torch.Tensor.clone) for _ in range(2))
    try:
        judge.reference(axes, **asked_for(judge.reference, tried))
    except Exception as error:
        return first_line(error)
    for (name, tensor), (_, old) in zip(operands.tensors(tried), operands.tensors(before), strict=True):
        bits = compare.bits_dtype(tensor.dtype)
        if not torch.equal(tensor.view(bits), old.view(bits)):
            return f"it changes its input {name}, which the kernels read, too"
    if waits := timers.waits(lambda: judge.reference(axes, **asked_for(judge.reference, tried))):
        return f"it waits for the GPU, and base and head would wait with it: {waits}"
    return None


def map_memory(shared: protocol.Memory) -> Ready:
    """In a process without any kernel: maps what the verifier has shared. Raises SharingError."""
    memory.close(memory.open_shared(shared), owner=False)
    return Ready()


def cpu_threads(cores: int) -> int:
    """All cores but one. Where every core computes, any other process stops one thread, and the others wait for it."""
    return max(1, cores - 1)


def verify(leader: Leader) -> None:
    orphans.keep_private()  # references and seeds are in here
    torch.set_num_threads(cpu_threads(len(os.sched_getaffinity(0))))
    verifier = Verifier(stops=orphans.watch_stops(), tell=leader.send)
    while True:
        leader.send(verifier.answer(leader.receive(protocol.VERIFIER_STEP)))
