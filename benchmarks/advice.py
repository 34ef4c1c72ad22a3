"""Writes what came of all tries into docs/advice.md: `python -m benchmarks.advice`."""

from __future__ import annotations

from pathlib import Path

from benchmarks.tables import put
from kernelgate.ci.lab import advice
from kernelgate.ci.lab.folder import FOLDER

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "advice.md"


def main() -> None:
    put(DOCUMENT, "advice", text())


def text() -> str:
    return "\n".join(advice.table_lines(advice.table(ROOT / FOLDER)))


if __name__ == "__main__":
    main()
