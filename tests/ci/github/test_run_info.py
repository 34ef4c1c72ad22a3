"""Which GPU a job measured, and whose fault it is where one failed."""

from __future__ import annotations

import pytest

from kernelgate.ci.github.assemble import blame
from kernelgate.ci.github.fetch import Job
from kernelgate.ci.judge.gate import Fault


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("measure (l4) / measure", "l4"),
        ("performance / measure (h100-sxm.2) / measure", "h100-sxm.2"),
        ("measure", None),
        ("measure (L4)", None),
    ],
)
def test_the_name_of_a_job_names_its_gpu(name: str, label: str | None) -> None:
    assert Job(name=name, conclusion="success").gpu == label


@pytest.mark.parametrize(
    ("conclusion", "step", "fault", "said"),
    [
        ("failure", "build head", Fault.BUILD, "the job j stopped at build head"),
        ("failure", "Fuzz the head", Fault.OUTPUT, "the job j stopped at Fuzz the head"),
        ("failure", "doctor", Fault.RUNNER, "the job j stopped at doctor"),
        ("failure", "bench", Fault.OURS, "the job j stopped at bench"),
        ("failure", None, Fault.RUNNER, "the job j"),
        ("timed_out", "fuzz", Fault.RUNNER, "ran into its time limit"),
    ],
)
def test_the_step_tells_whose_fault_it_is(conclusion: str, step: str | None, fault: Fault, said: str) -> None:
    found, sentence = blame(Job(name="j", conclusion=conclusion, step=step))
    assert found is fault
    assert said in sentence
