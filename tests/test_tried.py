"""The tables of attacks and faults in the documentation: each row names a test, and how much it sweeps."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = {"security": 200, "reliability": 150}
"""Pages with a table, and how many rows each has at least."""
ROW = re.compile(
    r"^\| (?P<what>.+?)(?: \((?P<count>\d+): (?P<cases>.+)\))? \| (?P<ends>.+) \| `(?P<test>test_\w+)` \|$", re.M
)
SHOWN = 5
"""Cases of one row that the page names."""


@dataclass(frozen=True)
class Row:
    """One thing that was tried, or several that one test sweeps: how many, and the first of them."""

    what: str
    test: str
    count: int
    cases: str


def rows(page: str) -> list[Row]:
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    return [Row(one["what"], one["test"], int(one["count"] or 0), one["cases"] or "") for one in ROW.finditer(text)]


@cache
def files() -> dict[str, set[Path]]:
    """The files that have a test of this name."""
    found: dict[str, set[Path]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, set()).add(path)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_each_row_names_a_test_that_exists(page: str) -> None:
    tried = rows(page)
    assert len(tried) >= PAGES[page]
    known = files()
    assert [row for row in tried if row.test not in known] == []
    assert [key for key, count in Counter((row.what, row.test) for row in tried).items() if count > 1] == []


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_each_row_counts_the_cases_of_its_test(page: str) -> None:
    """A case that a sweep loses changes the page, so nobody drops one unseen."""
    tried, known = rows(page), files()
    swept = {row.test for row in tried if row.count}
    chosen = sorted({str(path) for test in swept for path in known[test]})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *chosen], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:]
    cases: dict[str, dict[str, list[str]]] = {}
    for file, name, case in re.findall(r"^(\S+)::(test_\w+)\[(.*)\]$", done.stdout, re.MULTILINE):
        listed = cases.setdefault(name, {}).setdefault(file, [])
        listed.append(case.replace("|", "\\|").replace("<", "&lt;"))
    wrong = [row for row in tried if row.count and not any(fits(row, there) for there in cases[row.test].values())]
    assert wrong == [], "what each of these tests sweeps is not what its row says"


def fits(row: Row, cases: list[str]) -> bool:
    """Whether a test has the row's cases: each that is named, or, where some are not, as many as it counts."""
    if row.cases.endswith(", …"):
        return (row.count, row.cases) == (len(cases), ", ".join(cases[:SHOWN]) + ", …")
    return sum(case in row.cases for case in cases) >= row.count
