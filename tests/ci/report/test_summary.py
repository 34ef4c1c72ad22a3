"""What to do now: always said, and never more than the record holds; and how two speeds are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelgate.bench.core.documentation import DOCS
from kernelgate.bench.record import Note, Run
from kernelgate.ci.document import render
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.gate import Fault, decide
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import gpu
from kernelgate.ci.report.build import build, reported
from kernelgate.ci.report.gpu import Failure, GpuReport
from kernelgate.ci.report.links import Links
from tests.ci.mixes import MADE
from tests.ci.records import paired_record
from tests.ci.report_examples import BASE_SHA, HEAD_SHA

REPOSITORY = "https://github.com/octo-org/kernels"
ON_GITHUB = Links(REPOSITORY, f"{REPOSITORY}/pull/7", f"{REPOSITORY}/page", f"{REPOSITORY}/actions/runs/5")
DIFF = f"[the diff]({REPOSITORY}/compare/{BASE_SHA}..{HEAD_SHA})"


def of_part(part: GpuReport, **facts: Any) -> str:
    return render.comment(build([part], decide([part.evidence], **facts), Policy(), places=ON_GITHUB))


def comment(name: str, **facts: Any) -> str:
    return of_part(gpu.of_record("l4", MADE[name].record, MADE[name].verdict, Policy()), **facts)


def of_failure(fault: Fault, message: str = "it broke") -> str:
    run = Run(base_sha=BASE_SHA, head_sha=HEAD_SHA)
    return of_part(gpu.of_failure("l4", Failure(fault, message, target="sm_89"), run))


def step(text: str) -> str:
    (found,) = [line for line in text.splitlines() if line.startswith(("**Now:**", "**To unblock:**"))]
    return found


@pytest.mark.parametrize(
    ("name", "facts", "said"),
    [
        ("slower", {}, f"**Now:** look for the cause in {DIFF}; `kernelgate pr --base 9f8e7d6` measures a fix on your "
         f"machine. [Intended?]({DOCS}/comment.md#accept) "
         "`/kernelgate accept s512_b32_h8_d64_fp16 because it is intended`"),
        ("faster", {"description": ("## Intent", "## Claimed effect")}, "**To unblock:** add `## Intent` and "
         f"`## Claimed effect` to [the description]({REPOSITORY}/pull/7). Needs no new measurement."),
    ],
)  # fmt: skip
def test_the_next_step(name: str, facts: dict[str, Any], said: str) -> None:
    assert step(comment(name, **facts)) == said


def test_a_machine_for_which_no_card_has_cases_is_not_to_be_asked_again() -> None:
    note = Note(code=cards.NO_CASES, text="not run: no card has cases for it")
    record = MADE["faster"].record.model_copy(update={"processes": (), "cases": (), "notes": (note,)})
    told = render.comment(reported(record, Policy()).report)
    assert step(told).startswith("**Now:** run it on a machine without a GPU, or give the card cases for this one")


def test_an_unfinished_card_is_to_be_finished_and_is_no_error_of_the_compiler() -> None:
    said = of_failure(Fault.BUILD, ".ci/kernels/scale.py:8: unfinished: which shapes are timed")
    assert said.startswith("### 🔧 Blocks: unusable card\n")
    assert "`.ci/kernels/scale.py:8: unfinished: which shapes are timed`" in said
    assert step(said) == "**Now:** mend the card there; `kernelgate cards` names all that it lacks."
    assert of_failure(Fault.BUILD).startswith("### 🔧 Blocks: does not compile")


def test_both_speeds_are_named_and_no_interval() -> None:
    """The head draws one of two speeds for each round."""
    rng = np.random.default_rng(0)
    noise = [np.exp(rng.normal(0, 0.002, 100)) for _ in range(10)]
    head = [np.where(rng.random(100) < 0.5, 165.1, 152.8) * one for one in noise[5:]]
    text = render.comment(reported(paired_record([152.8 * one for one in noise[:5]], head), Policy()).report)
    assert text.startswith(
        "### ❔ Held: cannot tell: head has two speeds, 152.8 and 165.1 µs\n\nHow often each side is "
    )
    assert "interval" not in text.split("<details>")[0]
    assert "[+" not in text
