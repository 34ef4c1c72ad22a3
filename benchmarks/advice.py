"""Writes what came of all tries into docs/advice.md: `python -m benchmarks.advice`."""

from __future__ import annotations

from pathlib import Path

from kernelgate.ci.lab import advice
from kernelgate.ci.lab.folder import FOLDER

ROOT = Path(__file__).parent.parent
DOCUMENT = ROOT / "docs" / "advice.md"
BEGIN, END = "<!-- benchmark-advice: begin -->", "<!-- benchmark-advice: end -->"


def main() -> None:
    before, rest = DOCUMENT.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    DOCUMENT.write_text(f"{before}{BEGIN}\n{text()}\n{END}{after}", encoding="utf-8")


def text() -> str:
    return "\n".join(advice.table_lines(advice.table(ROOT / FOLDER)))


if __name__ == "__main__":
    main()
