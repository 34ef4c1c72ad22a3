"""The launch's share of a call, where it is why a case changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelgate.bench.record import RunRecord, rates
from kernelgate.ci.document.render import plain_line
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import speed
from kernelgate.ci.report.gpu import JudgedCase
from tests import runs
from tests.ci.report_examples import case, record, slower


def made(*processes: tuple[float, float, float, float]) -> tuple[RunRecord, list[JudgedCase]]:
    """A case in these processes: calls of base and head one by one, and their replays."""
    timed = case(32, 1, 15.0, 0.0)
    told = [
        runs.changed(
            timed.processes[0],
            samples_us={"base": (base_us,) * 20, "head": (head_us,) * 20},
            graph_us={} if base_graph_us == 0 else {"base": base_graph_us, "head": head_graph_us},
        )
        for base_us, head_us, base_graph_us, head_graph_us in processes
    ]
    medians = {side: rates.typical_us([(one[at],) for one in processes]) for at, side in enumerate(("base", "head"))}
    verdict = replace(slower(timed, 25.0), base_us=medians["base"], head_us=medians["head"])
    return record((replace(timed, processes=tuple(told)),)), [JudgedCase(verdict, "S=32")]


def test_a_launch_that_grew_is_why() -> None:
    (line,) = speed.why_by_launch(*made((12.0, 15.0, 5.0, 5.1), (12.1, 15.1, 5.0, 5.0)), Policy())
    assert plain_line(line).startswith(
        "Why, by calls made one by one beside the same calls replayed from a CUDA graph in S=32: the launch took "
        "7.050 µs → 10.00 µs; the kernels alone 5.000 µs → 5.050 µs; see the cookbook"
    )


@pytest.mark.parametrize("other", [None, (12.0, 15.0, 5.0, 7.9)], ids=str)
def test_a_launch_is_no_cause_unless_every_process_shows_it(other: tuple[float, float, float, float] | None) -> None:
    """Not one alone, and none in which the kernel changed or the call went the other way."""
    shows = (12.0, 15.0, 5.0, 5.1)
    assert speed.why_by_launch(*made(*((shows, other) if other else (shows,))), Policy()) == ()
