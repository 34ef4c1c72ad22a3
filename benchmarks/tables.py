"""What all benchmarks write: Markdown tables, and their place in a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


def markdown(header: Sequence[str], body: Iterable[Sequence[str]], numbers: bool = True) -> str:
    """`numbers`: all columns but the first hold numbers."""
    rule = ["---", *(["--:" if numbers else "---"] * (len(header) - 1))]
    rows = (header, *([cell.replace("|", "\\|") for cell in row] for row in body))
    first, *rest = (f"|{'|'.join(row)}|" for row in rows)
    return "\n".join((first, f"|{'|'.join(rule)}|", *rest))


def put(page: Path, name: str, text: str) -> None:
    """The page has the text in place of what stands between the marks of this benchmark."""
    begin, end = (f"<!-- benchmark-{name}: {which} -->" for which in ("begin", "end"))
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
