"""Made-up tries, whose outcomes are known."""

from __future__ import annotations

import random
from pathlib import Path

from kernelgate.ci.lab.log import Event, Opened, TriedChange, TryOutcome, line
from kernelgate.ci.lab.outcomes import TryResult, of_events

NOWHERE = Path("nowhere")


def opened(name: str, source: str = "measured", architecture: str = "sm_90") -> Opened:
    return Opened.model_validate(
        {"name": name, "objective": "faster", "card": "norm", "gpu": "NVIDIA H200", "base": "c0ffee"}
        | {"source": source, "architecture": architecture}
    )


def tried(
    number: int, action: str = "swizzle", bottleneck: str = "bank_conflicts", change_pct: float = -20.0
) -> TriedChange:
    """Certain, unless the change is 0."""
    status = "unchanged" if change_pct == 0 else "faster" if change_pct < 0 else "slower"
    outcome = TryOutcome(
        case="s512",
        status=status,
        change_pct=change_pct,
        interval_pct=(change_pct - 0.2, change_pct + 0.2),
        error_pct=0.1,
        processes=4,
    )
    return TriedChange(
        number=number, what="what", why="why", action=action, bottleneck=bottleneck, outcomes=(outcome,), said="",
        nvidia_gain_pct=30.0,
    )  # fmt: skip


def session(name: str, *tries: TriedChange, architecture: str = "sm_90") -> tuple[TryResult, ...]:
    return of_events((opened(name, architecture=architecture), *tries), NOWHERE)


def telling(sessions: int = 8) -> tuple[TryResult, ...]:
    """Outcomes that action and bottleneck decide: swizzle helps bank conflicts, nothing else helps anything."""
    asked = (
        ("swizzle", "bank_conflicts", -30.0),
        ("larger-tiles", "bank_conflicts", 0.0),
        ("swizzle", "dram", 0.0),
        ("cache-hints", "dram", 2.0),
        ("fewer-bytes", "dram", -40.0),
    )
    return tuple(
        one
        for at in range(sessions)
        for one in session(f"telling-{at}", *(tried(number, *words) for number, words in enumerate(asked, 1)))
    )


def meaningless(sessions: int = 12, seed: int = 4) -> tuple[TryResult, ...]:
    """Outcomes by the throw of a coin, whatever is tried."""
    rng = random.Random(seed)
    actions = ("swizzle", "larger-tiles", "more-in-flight", "wider-loads")
    return tuple(
        one
        for at in range(sessions)
        for one in session(
            f"coin-{at}",
            *(
                tried(number, rng.choice(actions), rng.choice(("dram", "barrier")), rng.choice((-10.0, 10.0)))
                for number in range(1, 7)
            ),
        )
    )


def write(folder: Path, *sessions: tuple[Event, ...]) -> None:
    for events in sessions:
        first = events[0]
        assert isinstance(first, Opened)
        (folder / first.name).mkdir(parents=True)
        (folder / first.name / "log.jsonl").write_text("".join(map(line, events)), encoding="utf-8")
