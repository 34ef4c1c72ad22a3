"""A verifier and a measured process whose device takes as long as a test says."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kernelgate.bench import record
from kernelgate.bench.kernel.cards import CaseFacts
from kernelgate.bench.system.nvml import Reading
from kernelgate.bench.system.worker import Message
from kernelgate.bench.timing import protocol
from kernelgate.bench.timing.case_timing import A, CaseSamples, Runner, Team

CASE = CaseFacts(id="here", axes={"M": 8}, label="M=8", flops=None, bytes=None, tolerance=None)
MEMORY = protocol.Memory(kind="file", bytes=0)
PLACE = protocol.Place(offset=0, step=256, count=1, bytes=4, shape=(1,), stride=(1,), dtype="fp32")


class SimulatedProcess(Runner):
    """Answers for both. Times are those of one call; a graph's calls take half."""

    def __init__(
        self,
        call_us: dict[record.Side, float],
        *,
        slots: int = 512,
        around_us: float | dict[record.Side, float] | None = None,
        sm_mhz: float | None = None,
        held: Sequence[bool] = (),
        capped_below_us: float = 0.0,
        no_graphs: tuple[record.Side, ...] = (),
    ) -> None:
        """`around_us`: what probes see beside each sample; without it there are none. `capped_below_us`: the pause from
        which on the device is not at its power limit. `held`: of each batch, first to last."""
        self.name = "simulated"
        self._call_us = call_us
        self._slots = slots
        self._around_us = around_us
        self._sm_mhz = sm_mhz
        self._held = list(held)
        self._capped_below_us = capped_below_us
        self._no_graphs = no_graphs
        self._windows = 0
        self._now_us = 0.0
        self._last = protocol.BatchDone()
        self._sides: list[record.Side] = []
        self.batches: list[protocol.Batch] = []
        self.looked: list[protocol.CheckCalls] = []
        self.sides = tuple(sorted(side for side in call_us if side != "reference"))
        self.team = Team(self, (self,))

    def samples(self, seed: int = 1) -> CaseSamples:
        """Of a case that is opened."""
        made = protocol.CasePrepared(
            memory=MEMORY, written=MEMORY, inputs=(), outputs={"out": PLACE}, probes=PLACE, slots=self._slots
        )
        case = CaseSamples(CASE, made, random.Random(seed))
        case.reference = "reference" in self._call_us
        return case

    def calls(self, what: str) -> dict[record.Side, int]:
        """How many calls were made for this, by side."""
        made: dict[record.Side, int] = {}
        for asked in self.batches:
            for sample in asked.samples if asked.what == what else ():
                made[sample.side] = made.get(sample.side, 0) + len(sample.windows)
        return made

    def ask(self, asked: Message, kind: type[A], calls_s: float | None = None) -> A:  # noqa: ARG002
        answer = self._answer(asked)
        assert isinstance(answer, kind)
        return answer

    def _answer(self, asked: Message) -> Message:
        if isinstance(asked, protocol.PlanCalls):
            first, self._windows = self._windows, self._windows + asked.count
            return protocol.Planned(windows=tuple(range(first, self._windows)), slots=tuple(range(asked.count)))
        if isinstance(asked, protocol.Batch):
            self.batches.append(asked)
            self._sides = [sample.side for sample in asked.samples]
            self._last = self._made(asked)
            return self._last
        if isinstance(asked, protocol.CheckCalls):
            self.looked.append(asked)
            return protocol.Checked(probed=self._probed() if asked.samples else ())
        if isinstance(asked, protocol.OpenCase):
            return protocol.CaseOpened(clock_step_us=0.001)
        if isinstance(asked, protocol.Finish):
            return protocol.CaseDone(autotuned={})
        assert isinstance(asked, protocol.CloseCase)
        return protocol.CaseChecked(calls={}, errors={}, seconds=0.25)

    def _made(self, asked: protocol.Batch) -> protocol.BatchDone:
        if asked.graph and set(self._sides) & set(self._no_graphs):
            return protocol.BatchDone()
        factor = 0.5 if asked.graph else 1.0
        times = tuple(factor * len(sample.windows) * self._call_us[sample.side] for sample in asked.samples)
        starts = []
        for time_us in times:
            starts.append(self._now_us)
            self._now_us += time_us
        reasons = ("sw_power_cap",) if asked.pause_us < self._capped_below_us else ()
        held = self._held.pop(0) if self._held else True
        return protocol.BatchDone(
            times_us=times,
            started_us=tuple(starts) if held else (),
            held=held,
            readings=(Reading(throttle_reasons=reasons),),
        )

    def _probed(self) -> tuple[protocol.ProbeReading, ...]:
        around = self._around_us
        if around is None:
            return ()
        read, now = [], 0.0
        for side, time_us in zip(self._sides, self._last.times_us, strict=True):
            took_us = time_us + (around[side] if isinstance(around, dict) else around)
            read.append(protocol.ProbeReading(started_us=now, us=took_us, sm_mhz=self._sm_mhz))
            now += took_us
        return tuple(read)
