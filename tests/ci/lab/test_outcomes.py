"""What is learnt from: all that was measured, nothing that was only recorded, and what reviewers corrected."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.ci.lab import outcomes
from kernelgate.ci.lab.folder import SessionError
from kernelgate.ci.lab.log import Corrected
from kernelgate.ci.lab.outcomes import gain_pct, helped, of_events
from tests.ci.lab.made_up import NOWHERE, opened, session, tried, write


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (("improved",), True),
        (("faster", "unchanged"), True),
        (("faster", "slower"), False),
        (("faster", "unconfirmed"), False),
        (("undecided",), False),
        (("unchanged",), False),
        ((), False),
    ],
)
def test_only_a_certain_improvement_that_costs_nothing_elsewhere_helped(
    statuses: tuple[str, ...], expected: bool
) -> None:
    one = tried(1)
    cases = tuple(one.outcomes[0].model_copy(update={"status": status}) for status in statuses)
    assert helped(one.model_copy(update={"outcomes": cases})) is expected


def test_what_was_recorded_from_documents_is_never_learnt_from() -> None:
    assert of_events((opened("old", source="recorded"), tried(1)), NOWHERE) == ()


def test_what_failed_is_an_outcome_and_what_could_not_be_measured_is_none() -> None:
    wrong, unmeasured, nameless = (
        tried(number).model_copy(update=changes)
        for number, changes in enumerate(
            ({"failed": "correctness", "outcomes": ()}, {"failed": "measurement", "outcomes": ()}, {"action": None}), 1
        )
    )
    found = of_events((opened("new"), wrong, unmeasured, nameless), NOWHERE)
    assert [(one.tried.number, one.helped, one.log_gain) for one in found] == [(1, False, None)]


def test_a_reviewers_correction_changes_what_is_learnt() -> None:
    label = Corrected(number=1, action="larger-tiles", by="@expert", why="the tile grew as well")
    place = Corrected(number=1, bottleneck="l2", by="@expert", why="look at the L2")
    one, other = of_events((opened("new"), tried(1), tried(2), label, place), NOWHERE)
    assert (one.features.action, one.features.bottleneck) == ("larger-tiles", "l2")
    assert (other.features.action, other.features.bottleneck) == ("swizzle", "bank_conflicts")


def test_gains_go_and_come_back_as_percent_of_the_time() -> None:
    (one,) = session("one", tried(1, change_pct=-50.0))
    assert one.log_gain is not None
    assert gain_pct(one.log_gain) == pytest.approx(50.0)


def test_an_action_against_the_bottleneck_by_the_cookbook_is_aimed() -> None:
    hit, miss = session("one", tried(1), tried(2, bottleneck="dram"))
    assert hit.features.aimed
    assert not miss.features.aimed


def test_a_line_that_is_no_event_is_named(tmp_path: Path) -> None:
    write(tmp_path, (opened("one"), tried(1)))
    with (tmp_path / "one" / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"event": "try"}\n')
    with pytest.raises(SessionError, match=r"one/log\.jsonl:3 is no event of a session"):
        outcomes.read(tmp_path)
