"""What was looked at, and how it is told: to people as lines, to programs as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Level(StrEnum):
    PASSED = "passed"
    WARNING = "warning"
    """Measuring works; the numbers may be worse, or something beside measuring does not work."""
    FAILED = "failed"
    """This machine should not measure."""


@dataclass(frozen=True)
class MachineCheck:
    """One thing looked at."""

    name: str
    level: Level
    found: str
    fix: str | None = None
    """What to do about it; None where it passed."""


def fit(checks: Sequence[MachineCheck]) -> bool:
    return all(check.level is not Level.FAILED for check in checks)


def report(checks: Sequence[MachineCheck]) -> str:
    """The checks for a person, the worst last, with how to fix them."""
    order = {level: place for place, level in enumerate(Level)}
    lines = []
    for check in sorted(checks, key=lambda check: order[check.level]):
        lines.append(f"{check.level:8} {check.name}: {check.found}")
        if check.fix:
            lines.append(f"{'':8} → {check.fix}")
    return "\n".join([*lines, "", "This machine is fit to measure." if fit(checks) else "Not fit to measure."])


def to_json(checks: Sequence[MachineCheck]) -> str:
    """`fit`, and the `checks` with their `name`, `level`, `found` and `fix`, in the order they were made in."""
    return json.dumps({"fit": fit(checks), "checks": [asdict(check) for check in checks]}, indent=2, ensure_ascii=False)


def text_of(path: Path) -> str | None:
    """The contents without the space around them; None where it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return None
