"""A case that was measured on two GPUs: what they do to a change is no noise of processes."""

from __future__ import annotations

import numpy as np
import pytest

from kernelgate.bench import record as records
from kernelgate.bench.record import RunRecord
from kernelgate.ci.judge.case import Outcome
from tests.ci.judge.told import only
from tests.ci.records import noise, paired_record

SECOND = "GPU-second"


def on_two(made: RunRecord, factor: float, uuid: str = SECOND) -> RunRecord:
    """Every other process on another GPU, whose head takes `factor` times as long."""
    here = made.environments[0]
    there = here.model_copy(update={"id": "1", "device": here.device.model_copy(update={"uuid": uuid})})

    def moved(timing: records.Timing) -> records.Timing:
        head = tuple(factor * us for us in timing.samples_us["head"])
        return timing.model_copy(update={"samples_us": {**timing.samples_us, "head": head}})

    processes = [*made.processes]
    for number, one in list(enumerate(processes))[1::2]:
        processes[number] = one.model_copy(update={"environment": "1", "timings": tuple(map(moved, one.timings))})
    return made.model_copy(update={"environments": (here, there), "processes": tuple(processes)})


def made(change: float, seed: int = 5) -> RunRecord:
    base, head = noise(np.random.default_rng(seed), change, processes=6)
    return paired_record(base, head, device="NVIDIA H200")


@pytest.mark.parametrize("change", [0.05, -0.12, 0.0])
def test_gpus_that_differ_by_three_percent_are_no_certain_verdict(change: float) -> None:
    case = only(on_two(made(change), 1.03))
    assert case.verdict == Outcome.INCONCLUSIVE
    assert case.interval_pct[1] - case.interval_pct[0] > 10, "two values, one degree of freedom"
    [finding] = [one for one in case.findings if one.code == "gpus_disagree"]
    assert "its GPUs disagree about the change (" in finding.message
