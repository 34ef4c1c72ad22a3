"""What is known of a session, as plain data: gates, tries, budgets, figures, and what comes next."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from kernelgate.ci.lab.log import GateName

GateStatus = Literal["passed", "failed", "skipped", "open"]
Stop = Literal["time", "cost", "gate"]


@dataclass(frozen=True)
class GateState:
    """One gate, and how far it is."""

    name: GateName
    status: GateStatus
    minutes: float
    """That its attempts took."""
    limit_minutes: float
    passes: str
    on_failure: str
    said: str | None
    """At the last attempt."""
    at: str | None
    """Of the first attempt that passed."""


@dataclass(frozen=True)
class TryState:
    """One try, and what became of it."""

    number: int
    what: str
    why: str
    said: str
    gain_pct: float | None
    """How much faster, in percent of the time before, over all its cases; negative is slower."""
    interval_pct: tuple[float, float] | None
    """Of the gain, 95%; of several cases that of the mean, as if they were independent."""
    decision: Literal["kept", "reverted"] | None
    advised: Literal["keep", "revert"] | None
    failed: str | None
    variables: tuple[str, ...]
    action: str | None
    bottleneck: str | None
    seconds: float | None


@dataclass(frozen=True)
class SessionBudget:
    """What was spent of what may be spent; None is unlimited."""

    of: Literal["time", "cost"]
    spent: float
    limit: float | None
    unit: str


@dataclass(frozen=True)
class AdviceAtHand:
    """What is recommended for the last kept state, as whoever asks found it on disk."""

    command: str
    """That says it."""
    bottleneck: str | None
    actions: tuple[str, ...]
    """Stable names, the best first."""


@dataclass(frozen=True)
class NextCommand:
    """What to do now."""

    command: str | None
    """None of a session that is closed."""
    why: str
    recommend: str | None = None
    """Before a change: the command that says what to try, by the profile of the last kept state."""
    action: str | None = None
    """Of what that recommends the first that was not tried since; None where there is none."""


@dataclass(frozen=True)
class SessionFigures:
    """What a session came to, so far. Minutes count from its opening; None is not known."""

    minutes_to_build: float | None
    minutes_to_bottleneck: float | None
    tries: int
    kept: int
    blind: int
    """Tries without a named bottleneck although a profile could have been made."""
    several_variables: int
    """Tries that changed more than one thing at once."""
    reference_ms: float | None
    ours_ms: float | None
    """As the performance gate measured them last."""
    speedup_before: float | None
    """Times as fast as the reference, at the first performance gate."""
    speedup: float | None
    """The same now: as measured last, and by what was kept since."""
    speedup_interval: tuple[float, float] | None
    """Its 95%; None where the log has none of the measurement against the reference."""
    gain_kept_pct: float
    """How much faster what was kept is than the beginning, in percent of the time."""
    gpu_seconds: float
    usd_gpu: float | None
    usd_assistant: float | None
    usd_other: float | None
    """What is known of its cost: logged, or by a price of the policy."""

    @property
    def usd(self) -> float:
        """All that is known."""
        return sum(filter(None, (self.usd_gpu, self.usd_assistant, self.usd_other)))


@dataclass(frozen=True)
class SessionState:
    name: str
    objective: str
    card: str | None
    cases: tuple[str, ...]
    gpu: str | None
    template: str
    target: float | None
    closed: str | None
    """Why it was closed; None while it is open."""
    minutes: float
    stop: Stop | None
    stop_reason: str | None
    gates: tuple[GateState, ...]
    tries: tuple[TryState, ...]
    budgets: tuple[SessionBudget, ...]
    figures: SessionFigures
    next: NextCommand
    remarks: tuple[str, ...]


def as_data(state: SessionState) -> dict[str, Any]:
    """What JSON takes."""
    return asdict(state)
