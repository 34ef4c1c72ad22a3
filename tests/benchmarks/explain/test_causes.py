"""The planted causes: each applies to today's kernels, and to a case that the card has."""

from __future__ import annotations

import pytest

from benchmarks.explain.causes import CAUSES, Cause
from benchmarks.fuzzing.bug import planted
from benchmarks.fuzzing.planting import SOURCES
from kernelgate.bench.explain import metrics


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_every_cause_applies_to_the_kernels_as_they_are(cause: Cause) -> None:
    tree, _ = SOURCES[cause.head.kernel]
    assert planted(cause.base, tree) != planted(cause.head, tree)


def test_what_an_explanation_must_name_are_figures_that_are_known() -> None:
    known = {*metrics.BY_KEY, *metrics.DERIVED, *(metrics.STALL_PREFIX + reason for reason in metrics.STALLS)}
    assert {name for cause in CAUSES for name in cause.named} <= known
    assert len({cause.name for cause in CAUSES}) == len(CAUSES)
