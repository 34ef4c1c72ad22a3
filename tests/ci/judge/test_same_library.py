"""When base and head are one library, so that nothing has to be measured to know that nothing changed."""

from __future__ import annotations

from typing import Any

import pytest

from kernelgate.bench.record import Build, RunRecord
from kernelgate.ci.judge import cards

BOTH: dict[str, Any] = {"card": "one", "key": "k", "call_hash": "c", "library_sha256": "ab"}


def built(**head: str | None) -> RunRecord:
    builds = (Build(side="base", **BOTH), Build(side="head", **(BOTH | head)))
    return RunRecord(builds=builds)


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
    assert cards.same_library(built(**head)) == (frozenset({"one"}) if same else frozenset())


def test_nothing_that_is_unknown_is_the_same() -> None:
    unknown = Build(side="head", card="one", call_hash="c")
    made = RunRecord(builds=(unknown.model_copy(update={"side": "base"}), unknown))
    assert cards.same_library(made) == frozenset()
