"""The tables of attacks and faults name tests that exist, and the documentation is written from them."""

from __future__ import annotations

import pytest

from tests.attacks.table import ATTACKS
from tests.faults.table import FAULTS
from tests.tried import ROOT, Collected, Table, document, named_in, rows, written

PAGES = (
    ("security.md", ATTACKS, "tests/attacks/table.py"),
    ("reliability.md", FAULTS, "tests/faults/table.py"),
)
of_each_page = pytest.mark.parametrize(("page", "table", "source"), PAGES, ids=["attacks", "faults"])


@of_each_page
def test_each_row_names_a_test_that_exists_and_is_documented(page: str, table: Table, source: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    wrong = []
    for row in rows(table):
        file, _, name = row.test.partition("::")
        exists = name in named_in(ROOT / "tests" / file)
        what, outcome = written(row).split(" | ", 1)
        if not (exists and what in text and outcome in text):
            wrong.append(row)
    assert not wrong, f"{source}: rename the test, or run .venv/bin/python -m tests.tried"
    assert len({(row.what, row.test) for row in rows(table)}) == len(list(rows(table)))


@pytest.mark.slow
@of_each_page
def test_every_case_is_a_parameter_of_its_test_and_is_documented(page: str, table: Table, source: str) -> None:
    """A case that a sweep loses changes the document's count, so nobody drops one unseen."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    collected = Collected(table)
    assert not [row.test for row in rows(table) if row.swept and not collected.cases(row)]
    assert document(text, table, source) == text, "run: .venv/bin/python -m tests.tried"
