"""A table of what was tried against kernelgate: each case, what must come of it, and the test that tries it.

`python -m tests.tried` writes the tables into the documentation, with the parameters of the tests that sweep several.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
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
    swept: str = ""
    """Which of the test's parameters are a case each, as a pattern of their ids."""


@dataclass(frozen=True)
class Chapter:
    title: str
    rows: tuple[Tried, ...]


Table = Sequence[Chapter]
SHOWN = 5
"""Cases of one row that the documentation names."""
_TEST = re.compile(r" {4}([\w/]+\.py::test_\w+)(?:\[(.+)\])?")


def chapter(title: str, text: str) -> Chapter:
    """Of rows that say what was tried, an arrow, and what must come of it; the last line of each names the test."""
    found: list[Tried] = []
    words: list[str] = []
    for line in text.strip("\n").rstrip().split("\n"):
        if test := _TEST.fullmatch(line):
            what, _, expected = " ".join(words).partition(" → ")
            found.append(Tried(what, expected, test[1], test[2] or ""))
            words = []
        else:
            words.append(line.strip())
    if words or not all(row.expected for row in found):
        raise ValueError(f"{title}: a row lacks its outcome or its test: {words}")
    return Chapter(title, tuple(found))


def rows(table: Table) -> Iterator[Tried]:
    for chapter in table:
        yield from chapter.rows


@cache
def named_in(path: Path) -> frozenset[str]:
    """The names of a file's test functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )


class Collected:
    """The parameters of the tests that sweep several, as pytest finds them."""

    def __init__(self, table: Table) -> None:
        files = sorted({f"tests/{row.test.partition('::')[0]}" for row in rows(table) if row.swept})
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *files]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ValueError(done.stdout[-2000:])
        self.names = done.stdout.splitlines()

    def cases(self, row: Tried) -> list[str]:
        test = f"tests/{row.test}["
        found = (name.removeprefix(test)[:-1] for name in self.names if name.startswith(test))
        return [case for case in found if row.swept and fnmatchcase(case, row.swept)]


def document(text: str, table: Table, source: str) -> str:
    """The document with its table written anew between the two comments that name `source`."""
    begin, end = f"<!-- begin: written from {source} -->", f"<!-- end: written from {source} -->"
    before, _, rest = text.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the document lacks the comments {begin} and {end}")
    collected = Collected(table)
    count = sum(len(collected.cases(row)) or 1 for row in rows(table))
    chapters = "\n\n".join(_chapter(chapter, collected) for chapter in table)
    return f"{before}{begin}\n{count} cases.\n\n{chapters}\n{end}{after}"


def _chapter(chapter: Chapter, collected: Collected) -> str:
    lines = [f"### {chapter.title}", "", "| tried | what must come of it | test |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(written(row, collected.cases(row)) for row in chapter.rows)])


def written(row: Tried, cases: Sequence[str] = ()) -> str:
    """The row of the document's table."""
    shown = ", ".join(cases[:SHOWN]) + (", …" if len(cases) > SHOWN else "")
    several = f" ({len(cases)}: {shown})" if cases else ""
    what, expected = (
        " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())
        for text in (f"{row.what}{several}", row.expected)
    )
    return f"| {what} | {expected} | `{row.test.rpartition('::')[2]}` |"


def main() -> None:
    from tests.test_tried import PAGES

    for name, table, source in PAGES:
        path = ROOT / "docs" / name
        path.write_text(document(path.read_text(encoding="utf-8"), table, source), encoding="utf-8")


if __name__ == "__main__":
    main()
