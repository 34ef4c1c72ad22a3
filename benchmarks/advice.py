"""Writes what came of all tries into docs/loop.md: `python -m benchmarks.advice`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.tables import markdown, put
from kernelgate.ci.lab import advice
from kernelgate.ci.lab.folder import FOLDER

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "loop.md"


def text() -> str:
    """All tries in a sentence, and a row for each action that enough sessions tried against a bottleneck."""
    known = advice.table(ROOT / FOLDER)
    rows = ((one.action, one.bottleneck, str(one.sessions), one.helped_words) for one in known.actions if one.measured)
    table = markdown(("action", "bottleneck", "sessions", "helped"), rows, numbers=False)
    return f"{advice.summary_line(known)}\n\n{table}"


if __name__ == "__main__":
    put(DOCUMENT, "advice", text())
