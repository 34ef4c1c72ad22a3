"""Events of made-up sessions, for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kernelgate.ci.lab import folder
from kernelgate.ci.lab.log import Decided, Event, GateAttempt, GateName, Opened, TriedChange, TryOutcome

HERE = Path(__file__).parent
GATES: tuple[GateName, ...] = ("environment", "build", "correctness", "performance")


def clock(minute: float) -> str:
    """So many minutes after the session was opened, at noon."""
    hours, minutes = divmod(minute, 60)
    return f"2026-11-22T{12 + int(hours):02d}:{int(minutes):02d}:{round(minutes % 1 * 60):02d}Z"


def opened(**fields: object) -> Opened:
    return Opened.model_validate(
        {"at": clock(0), "name": "one", "objective": "faster", "card": "toy", "gpu": "cpu", "base": "b" * 40} | fields
    )


def gate(name: GateName, minute: float, passed: bool = True, **fields: object) -> GateAttempt:
    return GateAttempt.model_validate(
        {"at": clock(minute), "gate": name, "passed": passed, "seconds": 30.0, "said": f"{name} was tried"} | fields
    )


def measured(speedup: float, minute: float = 4) -> GateAttempt:
    return gate("performance", minute, figures={"speedup": speedup, "reference_ms": speedup, "ours_ms": 1.0})


def passed(speedup: float) -> tuple[Event, ...]:
    """All gates before the profile."""
    return (gate("environment", 1), gate("build", 2), gate("correctness", 3), measured(speedup))


def tried(number: int, change_pct: float, minute: float = 10, **fields: object) -> TriedChange:
    """A change of time of one case; half a percent on either side."""
    interval = (change_pct - 0.5, change_pct + 0.5)
    status = "faster" if change_pct < 0 else "slower"
    case = TryOutcome(
        case="n4", status=status, change_pct=change_pct, interval_pct=interval, error_pct=0.25, processes=4
    )
    told = {"at": clock(minute), "number": number, "what": "wider", "why": "reuse", "said": "so it was"}
    return TriedChange.model_validate(told | {"seconds": 60.0, "outcomes": (case,), "advised": "keep"} | fields)


def decided(number: int, kept: bool, minute: float = 11) -> Decided:
    return Decided(at=clock(minute), number=number, kept=kept, why="so it was")


def checkout(root: Path) -> Path:
    """Makes a repository of the folder: with a commit, the session `one` on an H200, and no card."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q"], cwd=root, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "one"], cwd=root, check=True)
    (root / ".ci/kernels").mkdir(parents=True)
    folder.create(root, opened(gpu="NVIDIA H200"))
    return root
