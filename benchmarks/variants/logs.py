"""The session of a family: its log, the profile of its base, and the diffs from which both sides of a try follow."""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.fuzzing.bug import Bug, control
from benchmarks.variants.family import Family, diff
from benchmarks.variants.measure import BaseProfile, TriedVariant
from kernelgate.bench.record import Environment
from kernelgate.ci.explain.recommend import CATALOGUE
from kernelgate.ci.lab import log
from kernelgate.ci.lab.log import Closed, Decided, Event, GateAttempt, Opened, TriedChange

PROFILE = "profile.json"
ALONE = "each variant is tried on its own, against the same base"


@dataclass
class FamilyLog:
    """The folder of one session."""

    family: Family
    folder: Path
    """Of all sessions."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def path(self) -> Path:
        return self.folder / self.family.name / log.FILE

    def events(self) -> list[Event]:
        if not self.path.exists():
            return []
        return [log.event_of(line) for line in self.path.read_text(encoding="utf-8").splitlines()]

    def left(self) -> tuple[int, ...]:
        """The numbers of tries that are not logged yet."""
        done = {event.number for event in self.events() if isinstance(event, TriedChange)}
        return tuple(number for number in range(1, len(self.family.variants) + 1) if number not in done)

    def profile(self) -> BaseProfile | None:
        path = self.path.parent / PROFILE
        return BaseProfile.model_validate_json(path.read_text(encoding="utf-8")) if path.exists() else None

    def open(self, machine: Environment, found: BaseProfile | None, why: str = "") -> None:
        """Begins the log, unless it has begun: the target, and what the base's profile says. `why` there is none."""
        if self.path.exists():
            return
        family = self.family
        self.path.parent.mkdir(parents=True, exist_ok=True)
        capability = machine.device.compute_capability
        opened = Opened(
            at=now(),
            name=family.name,
            objective=family.objective,
            card=family.kernel,
            cases=(family.case,),
            gpu=machine.device.name if capability else "cpu",
            architecture="cpu" if capability is None else f"sm_{capability.replace('.', '')}",
        )
        (self.path.parent / "base.diff").write_text(diff(_as_it_is(family), family.base), encoding="utf-8")
        events: list[Event] = [opened]
        if found is not None:
            (self.path.parent / PROFILE).write_text(found.model_dump_json(indent=1) + "\n", encoding="utf-8")
            said = f"{found.kernel}: {found.bottleneck}, {found.strength:.2f}"
            events.append(GateAttempt(at=now(), gate="profile", passed=True, said=said, bottleneck=found.bottleneck))
        elif capability:
            events.append(GateAttempt(at=now(), gate="profile", passed=False, said=why))
        self.add(*events)

    def tried(self, number: int, made: TriedVariant) -> None:
        """A try, and that the next one begins with the base again."""
        variant = self.family.variants[number - 1]
        changed = diff(self.family.base, self.family.head(number))
        (self.path.parent / f"try-{number}.diff").write_text(changed, encoding="utf-8")
        found = self.profile()
        event = TriedChange(
            at=now(),
            number=number,
            what=variant.what,
            why=variant.why,
            files=tuple(sorted({edit.file for edit in variant.edits})),
            diff_sha256=hashlib.sha256(changed.encode()).hexdigest(),
            variables=(variant.variable,),
            action=variant.action,
            recommended=found is not None and variant.action in found.recommended,
            bottleneck=found.bottleneck if found else None,
            nvidia_gain_pct=nvidia_gain_pct(found, variant.action) if found else None,
            outcomes=made.outcomes,
            failed=made.failed,  # type: ignore[arg-type]
            said=made.said,
            gpu_seconds=made.gpu_seconds,
            seconds=made.seconds,
        )
        self.add(event, Decided(at=now(), number=number, kept=False, why=ALONE))

    def close(self) -> None:
        if not self.left() and not any(isinstance(event, Closed) for event in self.events()):
            self.add(Closed(at=now(), why="done", said=f"{len(self.family.variants)} variants tried"))

    def add(self, *events: Event) -> None:
        with self.lock, self.path.open("a", encoding="utf-8") as file:
            file.writelines(map(log.line, events))


def nvidia_gain_pct(found: BaseProfile, action: str) -> float | None:
    """What NVIDIA's rules estimate for what this action is against."""
    against = (bottleneck.value for bottleneck in CATALOGUE[action].against)
    return next((found.nvidia_gain_pct[one] for one in against if one in found.nvidia_gain_pct), None)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _as_it_is(family: Family) -> Bug:
    return control(family.kernel, family.path)
