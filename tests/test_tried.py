"""The tables of attacks and faults that tests try: each row names its test, and the pages count the rows."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TABLES = {"docs/security.md": "tests/attacks/tried.md", "docs/reliability.md": "tests/faults/tried.md"}
"""A page, and the table that it counts."""
# One thing that was tried, or several that one test sweeps: how many, and which, where it sweeps others too.
ROW = re.compile(
    r"^\| (?P<what>.+?)(?: \((?P<count>\d+)(?:: (?P<cases>.+))?\))? \| .+ \| `(?P<test>test_\w+)` \|$", re.M
)


def groups(table: str) -> dict[str, list[re.Match[str]]]:
    """{heading: the rows below it}."""
    _, *parts = re.split(r"^## (.+)$", (ROOT / table).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {heading: list(ROW.finditer(text)) for heading, text in zip(parts[::2], parts[1::2], strict=True)}


def rows(table: str) -> list[re.Match[str]]:
    return [row for group in groups(table).values() for row in group]


@cache
def files() -> dict[str, set[Path]]:
    """The files that have a test of this name."""
    found: dict[str, set[Path]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^ *def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            found.setdefault(name, set()).add(path)
    return found


@pytest.mark.parametrize("page", TABLES)
def test_the_page_counts_the_rows(page: str) -> None:
    told = re.findall(r"\[(\d+) (?:attacks|faults)\]\(", (ROOT / page).read_text(encoding="utf-8"))
    assert told == [str(len(rows(TABLES[page])))]


@pytest.mark.parametrize("table", TABLES.values())
def test_each_row_names_a_test_that_exists(table: str) -> None:
    tried, known = rows(table), files()
    lines = (ROOT / table).read_text(encoding="utf-8").count("\n| ") - 2 * len(groups(table))
    assert len(tried) == lines, "each line of a table but its head is a row"
    assert [row[0] for row in tried if row["test"] not in known] == []
    assert len({(row["what"], row["test"]) for row in tried}) == lines, "a row stands twice"


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES.values())
def test_each_row_counts_the_cases_of_its_test(table: str) -> None:
    """A case that a sweep loses changes the table, so nobody drops one unseen."""
    tried, known = rows(table), files()
    swept = {row["test"] for row in tried if row["count"]}
    chosen = sorted({str(path) for test in swept for path in known[test]})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", *chosen], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:]
    cases: dict[str, dict[str, list[str]]] = {}
    for file, name, case in re.findall(r"^(\S+)::(test_\w+)\[(.*)\]$", done.stdout, re.MULTILINE):
        cases.setdefault(name, {}).setdefault(file, []).append(case)
    wrong = [row[0] for row in tried if row["count"] and not any(fits(row, one) for one in cases[row["test"]].values())]
    assert wrong == [], "what each of these tests sweeps is not what its row says"


def fits(row: re.Match[str], cases: list[str]) -> bool:
    """Whether a test has as many cases as its row counts; where the row names some and no "…" follows, these."""
    if row["cases"] and not row["cases"].endswith("…"):
        return sum(case in row["cases"] for case in cases) >= int(row["count"])
    return len(cases) == int(row["count"])
