"""The launch's share of a call: told where it is large, and why a case changed only where every process shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document.model import Bullets
from kernelgate.ci.document.render import plain_line
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import speed
from kernelgate.ci.report.gpu import JudgedCase
from tests import runs
from tests.ci.report_examples import case, record, slower

LIMIT = Policy().guidance.launch_share


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
    verdict = slower(timed, 25.0)
    return record((replace(timed, processes=tuple(told)),)), [JudgedCase(verdict, "S=32")]


def test_what_the_launch_leaves_to_the_kernel_and_to_fusing() -> None:
    said, listed = speed.launches(*made((15.0, 15.0, 5.0, 5.0)), LIMIT)
    assert "more than 33% of the head's call, by calls made one by one beside the same calls" in str(said)
    assert isinstance(listed, Bullets)
    assert plain_line(listed.lines[0]) == (
        "S=32: the launch takes 10 of 15 µs: a faster kernel wins at most 33%, two calls fused into one are 1.5× as "
        "fast, four 2×."
    )


@pytest.mark.parametrize("times", [(15.0, 15.0, 13.0, 11.0), (15.0, 15.0, 0.0, 0.0)], ids=["small", "not replayed"])
def test_nothing_is_said_of_a_small_share_and_of_one_that_was_not_measured(
    times: tuple[float, float, float, float],
) -> None:
    assert speed.launches(*made(times), LIMIT) == ()
    assert speed.why_by_launch(*made(times, times), Policy()) == ()


def test_a_launch_that_grew_is_why() -> None:
    (line,) = speed.why_by_launch(*made((12.0, 15.0, 5.0, 5.1), (12.1, 15.1, 5.0, 5.0)), Policy())
    assert plain_line(line).startswith(
        "Why, by calls made one by one beside the same calls replayed from a CUDA graph in S=32: the launch took "
        "7.050 µs → 10.00 µs; the kernels alone 5.000 µs → 5.050 µs; see the cookbook"
    )


@pytest.mark.parametrize(
    "processes",
    [
        ((12.0, 15.0, 5.0, 5.1),),
        ((12.0, 15.0, 5.0, 5.1), (12.0, 15.0, 5.0, 7.9)),
        ((12.0, 15.0, 9.0, 11.5), (12.0, 15.0, 9.0, 11.4)),
        ((12.0, 15.0, 5.0, 5.1), (12.0, 11.0, 5.0, 5.1)),
    ],
    ids=["one process", "the kernel in one", "a small share", "another way in one"],
)
def test_a_launch_is_no_cause_unless_every_process_shows_it(
    processes: tuple[tuple[float, float, float, float], ...],
) -> None:
    assert speed.why_by_launch(*made(*processes), Policy()) == ()
