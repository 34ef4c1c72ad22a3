"""The tables of attacks and faults name tests that exist, and the documentation is written from them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.attacks.table import ATTACKS
from tests.faults.table import FAULTS
from tests.tried import ROOT, Table, Tried, count, document, named_in, rows

ALL = [*rows(ATTACKS), *rows(FAULTS)]


@pytest.mark.parametrize("row", ALL, ids=lambda row: row.what)
def test_a_row_names_a_test_that_exists(row: Tried) -> None:
    file, _, name = row.test.partition("::")
    assert name in named_in(ROOT / "tests" / file)


@pytest.mark.parametrize(("table", "least"), [(ATTACKS, 80), (FAULTS, 200)], ids=["attacks", "faults"])
def test_a_table_holds_every_case_once(table: Table, least: int) -> None:
    assert count(table) >= least
    said = [(row.what, row.test) for row in rows(table)]
    assert len(set(said)) == len(said)


@pytest.mark.parametrize(
    ("page", "table", "source"),
    [("security.md", ATTACKS, "tests/attacks/table.py"), ("reliability.md", FAULTS, "tests/faults/table.py")],
)
def test_the_documentation_is_written_from_the_table(page: str, table: Table, source: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert document(text, table, source) == text, "run: .venv/bin/python -m tests.tried"


@pytest.mark.slow
def test_every_case_is_a_parameter_of_its_test() -> None:
    swept = [row for row in ALL if row.cases]
    collected = _collected(sorted({f"tests/{row.test}" for row in swept}))
    for row in swept:
        ids = {name.removeprefix(f"tests/{row.test}[").removesuffix("]") for name in collected}
        missing = [case for case in row.cases if not any(f"-{id_}-".count(f"-{case}-") for id_ in ids)]
        assert not missing, f"{row.test} has no case {missing}"


def _collected(names: Sequence[str]) -> list[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", *names]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout.splitlines()
