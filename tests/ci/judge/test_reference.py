"""A kernel far below its reference, or that takes far more memory: said first, and blocking where the policy has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.judge import gate, reference
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.gate import BlockCode
from kernelgate.ci.policy.policy import Action, Gates, Policy
from kernelgate.ci.report.build import of_verdict
from tests.ci.judge.told import plain
from tests.ci.report_examples import EPYC, EXAMPLES

MADE = EXAMPLES["equivalent"]()
FIRST = MADE.verdict.cases[0].id
MIB = 2**20


def comment(
    record: RunRecord = MADE.record, verdict: RecordVerdict = MADE.verdict, **gates: Action
) -> tuple[str, gate.Decision]:
    made = of_verdict(record, verdict, Policy(gates=Gates(**gates)))
    return render.comment(made.report), made.decision


def slow(ratio: float, cases: int = 1) -> RecordVerdict:
    """The first cases with a reference that is `ratio` times as slow as the head."""
    listed = [
        replace(case, reference_us=ratio * (case.head_us or 1.0)) if at < cases else case
        for at, case in enumerate(MADE.verdict.cases)
    ]
    return replace(MADE.verdict, cases=tuple(listed))


@pytest.mark.parametrize(("ratio", "found"), [(0.4999, True), (0.5, False)])
def test_a_case_counts_below_half_of_the_reference(ratio: float, found: bool) -> None:
    assert bool(reference.far_below(slow(ratio), Gates())) is found


def taking(*processes: dict[str, int]) -> RunRecord:
    """The first case takes this much in each process; of the others nothing is known."""
    known = [*processes, *[processes[-1]] * (len(MADE.record.processes) - len(processes))]
    changed = []
    for process, taken in zip(MADE.record.processes, known, strict=True):
        beside = {True: {"memory_bytes": taken}, False: {}}
        timings = tuple(one.model_copy(update=beside[one.case == FIRST]) for one in process.timings)
        changed.append(process.model_copy(update={"timings": timings}))
    return MADE.record.model_copy(update={"processes": tuple(changed)})


def sides(base: int, head: int, reference: int) -> dict[str, int]:
    return {"base": base, "head": head, "reference": reference}


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("ignore", ""),
        ("warn", "⚠️ takes 3.00× the memory of PyTorch in S=448 B=8 H=8 fp16; the limit is 2×"),
        ("fail", "❌ takes 3.00× the memory of PyTorch in S=448 B=8 H=8 fp16; the limit is 2×"),
    ],
)
def test_three_times_the_references_memory(action: Action, said: str) -> None:
    text, decision = comment(taking(sides(96 * MIB, 96 * MIB, 32 * MIB)), above_memory_max=action)
    assert said in text
    assert ("the limit is 2×" in text) is bool(said)
    assert [one.code for one in decision.blockers] == [BlockCode.MEMORY] * (action == "fail")
    assert text.startswith("### ⛔ Blocks: more memory than the policy allows in ") is (action == "fail")


@pytest.mark.parametrize(
    ("processes", "found"),
    [
        ((sides(100, 201, 100),), True),
        ((sides(100, 200, 100),), False),
        ((sides(100, 201, 100), sides(100, 150, 100)), False),
        ((sides(100, 201, 100), sides(100, 201, 110)), False),
        ((sides(100, 201, 0),), False),
        (({"head": 201},), False),
    ],
)
def test_only_what_every_process_shows_is_above_the_limit(processes: tuple[dict[str, int], ...], found: bool) -> None:
    assert bool(reference.above_memory_max(taking(*processes), Gates())) is found


@pytest.mark.parametrize(
    ("processes", "found"),
    [
        ((sides(16 * MIB, 24 * MIB, MIB),), True),
        ((sides(100, 101, MIB),), False),
        ((sides(16 * MIB, 24 * MIB, MIB), sides(25 * MIB, 24 * MIB, MIB)), False),
        (({"head": 24 * MIB},), False),
    ],
)
def test_a_head_that_certainly_takes_more_than_its_base_is_said(
    processes: tuple[dict[str, int], ...], found: bool
) -> None:
    text, decision = comment(taking(*processes))
    said = "⚠️ takes more memory a call than the base: 16.0 MiB → 24.0 MiB in S=448 B=8 H=8 fp16"
    assert (said in text) is found is bool(reference.memory_grown(taking(*processes)))
    assert not decision.blocks


def test_a_gate_that_blocks_is_open_where_memory_was_not_measured() -> None:
    known = taking(sides(16, 16, 32))
    _, decision = comment(known, above_memory_max="fail")
    left = len(MADE.verdict.cases) - 1
    assert plain(decision.open) == [f"the peak memory of {left} cases was not measured"]
    assert comment(known, above_memory_max="warn")[1].open == ()
    cpu = known.environment.model_copy(update={"device": EPYC})
    assert comment(known.model_copy(update={"environments": (cpu,)}), above_memory_max="fail")[1].open == ()
