"""A table of what was tried against kernelgate: each case, what must come of it, and the test that tries it.

`python -m tests.tried` writes the tables into the documentation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Tried:
    """One case, or several that one parametrized test sweeps."""

    what: str
    expected: str
    """What must come of it; of what is not prevented, what it can do."""
    test: str
    """Of a file below tests/, such as `ci/github/test_fetch.py::test_a_run_of_a_fork`."""
    cases: tuple[str, ...] = ()
    """The ids of the test's parameters, where it sweeps several; each is a case."""

    def __post_init__(self) -> None:
        if len(set(self.cases)) < len(self.cases):
            raise ValueError(f"{self.what}: a case is named twice")


@dataclass(frozen=True)
class Chapter:
    title: str
    rows: tuple[Tried, ...]


def ids(text: str) -> tuple[str, ...]:
    return tuple(text.split("; "))


def crossed(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """Each case of the one with each of the other."""
    return tuple(f"{one}-{other}" for one in first for other in second)


Table = Sequence[Chapter]
SHOWN = 5
"""Cases of one row that the documentation names."""


def rows(table: Table) -> Iterator[Tried]:
    for chapter in table:
        yield from chapter.rows


def count(table: Table) -> int:
    """The number of cases: a test that sweeps several counts as many."""
    return sum(len(row.cases) or 1 for row in rows(table))


@cache
def named_in(path: Path) -> frozenset[str]:
    """The names of a file's test functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


def markdown(table: Table) -> str:
    """A heading and a table for each chapter."""
    return "\n\n".join(_chapter(chapter) for chapter in table)


def _chapter(chapter: Chapter) -> str:
    lines = [f"### {chapter.title}", "", "| tried | what must come of it | test |", "| --- | --- | --- |"]
    return "\n".join([*lines, *map(_row, chapter.rows)])


def _row(row: Tried) -> str:
    shown = ", ".join(row.cases[:SHOWN]) + (", …" if len(row.cases) > SHOWN else "")
    several = f" ({len(row.cases)}: {shown})" if row.cases else ""
    name = row.test.rpartition("::")[2]
    what, expected = (
        " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
        for text in (f"{row.what}{several}", row.expected)
    )
    return f"| {what} | {expected} | `{name}` |"


def document(text: str, table: Table, source: str) -> str:
    """The document with its table written anew between the two comments that name `source`."""
    begin, end = f"<!-- begin: written from {source} -->", f"<!-- end: written from {source} -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the document lacks the comments {begin} and {end}")
    return f"{before}{begin}\n{count(table)} cases.\n\n{markdown(table)}\n{end}{after}"


def main() -> None:
    from tests.attacks.table import ATTACKS
    from tests.faults.table import FAULTS

    for name, table, source in (
        ("security.md", ATTACKS, "tests/attacks/table.py"),
        ("reliability.md", FAULTS, "tests/faults/table.py"),
    ):
        path = ROOT / "docs" / name
        path.write_text(document(path.read_text(encoding="utf-8"), table, source), encoding="utf-8")


if __name__ == "__main__":
    main()
