"""What the checks of patterns look at: plain data, gathered by whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelgate.bench.record import RunRecord
from kernelgate.ci.lab import log


@dataclass(frozen=True)
class DoctorFinding:
    """One of `kernelgate doctor --json`'s checks that did not pass."""

    name: str
    failed: bool
    """Else a warning."""
    found: str


@dataclass(frozen=True)
class JudgedTimes:
    """What a judged record says of its head's speed. A case whose times prove nothing is in neither."""

    speedups: Mapping[str, float] = field(default_factory=dict)
    """By case: how many times as fast as the reference."""
    launch_shares: Mapping[str, float] = field(default_factory=dict)
    """By case: the launch's part of a call, from 0 to 1, where a graph's replay was timed."""


@dataclass(frozen=True)
class Thresholds:
    """The policy's."""

    stop_below: float
    profile_below: float
    launch_share: float
    build_minutes: float
    silent_s: float


@dataclass(frozen=True)
class Seen:
    """What is known now. What was not looked at is empty, and lets no pattern apply."""

    findings: tuple[DoctorFinding, ...] = ()
    record: RunRecord | None = None
    times: JudgedTimes = JudgedTimes()
    events: tuple[log.Event, ...] = ()

    def gates(self, name: log.GateName) -> tuple[log.GateAttempt, ...]:
        return tuple(one for one in self.events if isinstance(one, log.GateAttempt) and one.gate == name)

    @property
    def opened(self) -> log.Opened | None:
        return next((one for one in self.events if isinstance(one, log.Opened)), None)

    @property
    def tries(self) -> tuple[log.TriedChange, ...]:
        return tuple(one for one in self.events if isinstance(one, log.TriedChange))
