"""Which GPU a job measured, and whose fault it is where one failed."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import Run
from kernelgate.ci.document import render
from kernelgate.ci.github.run_info import Job, RunInfo, blame, blame_run, gpu_of, gpus_of, stopped
from kernelgate.ci.judge.gate import Fault


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("measure (l4) / measure", "l4"),
        ("performance / measure (h100-sxm.2) / measure", "h100-sxm.2"),
        ("measure (l4)", "l4"),
        ("measure", None),
        ("measure (L4)", None),
        ("build / build", None),
        ("measure ()", None),
    ],
)
def test_the_name_of_a_job_names_its_gpu(name: str, label: str | None) -> None:
    assert gpu_of(name) == label


def test_a_skipped_job_asked_for_no_gpu() -> None:
    jobs = [
        Job(name="measure (l4) / measure", conclusion="success"),
        Job(name="measure (h100) / measure", conclusion="skipped"),
        Job(name="measure (a100) / measure", conclusion="failure"),
        Job(name="report", conclusion="none"),
    ]
    assert gpus_of(jobs) == ("a100", "l4")


@pytest.mark.parametrize(
    ("conclusion", "step", "fault", "said"),
    [
        ("failure", "build head", Fault.BUILD, "the job j stopped at build head"),
        ("failure", "Fuzz the head", Fault.OUTPUT, "the job j stopped at Fuzz the head"),
        ("failure", "Set up job", Fault.RUNNER, "the job j stopped at Set up job"),
        ("failure", "doctor", Fault.RUNNER, "the job j stopped at doctor"),
        ("failure", "bench", Fault.OURS, "the job j stopped at bench"),
        ("failure", None, Fault.RUNNER, "the job j"),
        ("cancelled", "build head", Fault.RUNNER, "and was cancelled"),
        ("timed_out", "fuzz", Fault.RUNNER, "ran into its time limit"),
    ],
)
def test_the_step_tells_whose_fault_it_is(conclusion: str, step: str | None, fault: Fault, said: str) -> None:
    found, sentence = blame(Job(name="j", conclusion=conclusion, step=step))
    assert found is fault
    assert said in sentence


def test_without_any_job_the_run_itself_is_all_that_is_known() -> None:
    info = RunInfo(run=Run(head_sha="a" * 40, run_id=1, run_attempt=1), run_url="https://x")
    assert blame_run(info) == (Fault.OURS, "the run ended (without a result) and left no record")
    refused = info.model_copy(update={"refused": ("artifact x is refused",)})
    assert blame_run(refused) == (Fault.OURS, "no record could be used")


def test_what_is_missing_of_a_record_names_its_job() -> None:
    job = Job(name="measure (l4) / measure", conclusion="failure", step="bench")
    line = render.plain_line(stopped(job))
    assert line == "not everything was measured, since the job measure (l4) / measure stopped at bench"
    assert render.plain_line(stopped(job.model_copy(update={"step": None}))).endswith(" ended: failure")
