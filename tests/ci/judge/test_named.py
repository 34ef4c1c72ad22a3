"""Where a record has several kernels, whatever is said of a case names its kernel; of the only one nothing is added."""

from __future__ import annotations

from kernelgate.ci.document import render
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.gate import BlockCode
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import now
from kernelgate.ci.report.gpu import of_record
from kernelgate.ci.report.links import Links
from tests.ci.card_examples import NORM, SWIGLU, cards_record, timed
from tests.ci.report_examples import BASE_SHA, HEAD_SHA, judge, slower

SHARED = "m4096_n4096_fp16"
"""An id that both kernels have, so that it says nothing alone."""
GITHUB = Links("https://github.com/o/r", "https://github.com/o/r/pull/1", None, "https://github.com/o/r/actions/runs/1")


def test_what_blocks_names_the_kernel_and_its_command_means_that_one() -> None:
    """The other kernel's case has the same id, is slower still, and was accepted."""
    cases = timed(SWIGLU, 4096, 400.0, 480.0), timed(NORM, 4096, 400.0, 440.0)
    made = cards_record(cases, NORM, SWIGLU)
    found = judge(Outcome.REGRESSED, slower(cases[0], 20.0), slower(cases[1], 10.0))
    taken = gate.Acceptance(cases[0].key, "ada", "needed", HEAD_SHA, BASE_SHA)
    part = of_record("l4", made, found, Policy())
    decided = gate.decide([part.evidence], accepted=[taken])
    assert [(one.code, one.subject) for one in decided.blockers] == [(BlockCode.SLOWER, f"rmsnorm/{SHARED}")]
    said = render.plain_line(now.step([part], decided, GITHUB))
    assert f"/kernelgate accept rmsnorm/{SHARED} " in said
