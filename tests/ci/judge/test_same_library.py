"""When base and head are one library, so that nothing has to be measured to know that nothing changed."""

from __future__ import annotations

from typing import Any

import pytest

from kernelgate.bench.record import Build, Case, Expected, RunRecord
from kernelgate.ci.judge import cards
from tests.ci.judge.told import missing

BOTH: dict[str, Any] = {"card": "one", "key": "k", "call_hash": "c", "library_sha256": "ab"}


@pytest.mark.parametrize(
    ("head", "same"),
    [
        ({"key": "other sources, such as another comment"}, True),
        ({"library_sha256": "cd"}, True),
        ({"library_sha256": "cd", "key": "other"}, False),
        ({"call_hash": "called in another way"}, False),
        ({"call_hash": None}, False),
    ],
)
def test_the_same_sources_or_the_same_bytes_called_alike(head: dict[str, str | None], same: bool) -> None:
    made = RunRecord(builds=(Build(side="base", **BOTH), Build(side="head", **(BOTH | head))))
    assert cards.same_library(made) == (frozenset({"one"}) if same else frozenset())


CODE: dict[str, Any] = {"card": "one", "key": "k", "call_hash": "c", "host": "h", "code": {"a": "1", "b": "2"}}
CASES = tuple(Case(card="one", id=name) for name in ("a", "b"))


def coded(**head: Any) -> RunRecord:
    """Planned with cases a and b, of which nothing was timed."""
    builds = (Build(side="base", **CODE), Build(side="head", **(CODE | {"key": "other"} | head)))
    return RunRecord(expected=Expected(cases=CASES), cases=CASES, builds=builds)


@pytest.mark.parametrize(
    ("head", "same"),
    [
        ({}, {"a", "b"}),
        ({"code": {"a": "1", "b": "3"}}, {"a"}),
        ({"code": {"a": "1"}}, {"a"}),
        ({"host": "changed"}, set()),
        ({"host": None}, set()),
        ({"call_hash": "called in another way"}, set()),
        ({"python": "another"}, set()),
    ],
)
def test_cases_of_one_machine_code_are_rightly_not_run_and_no_others(head: dict[str, Any], same: set[str]) -> None:
    made = coded(**head)
    assert {key.id for key in cards.same_code(made)} == same
    assert {case.id for case in cards.compared(made)} == {"a", "b"} - same
    assert cards.nothing_differs(made) is (same == {"a", "b"})
    untimed = ", ".join(sorted({"a", "b"} - same))
    assert missing(made, "") == ([f"{untimed} {'was' if same else 'were'} not timed"] if untimed else [])
