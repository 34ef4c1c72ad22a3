"""Where and how a record was measured, a line for each thing; how long it had the GPU, and what that cost."""

from __future__ import annotations

from datetime import date

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Cost, Device, Environment, Note, RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Costs, GpuPrice, Policy
from kernelgate.ci.report import machine
from kernelgate.ci.report.build import of_verdict
from tests.ci.report_examples import EXAMPLES


def test_of_many_notes_of_one_code_the_first_stands_for_all() -> None:
    notes = tuple(Note(code="compared_in_part", text=f"case {n}: 3% of it was looked at") for n in range(4))
    for some, said in (
        (notes, [f"{notes[0].text} (and 3 more such notes in the record)"]),
        (notes[:1], [notes[0].text]),
    ):
        other = Note(text="Seed 3.")
        lines = machine.how_measured(RunRecord(notes=(*some, other)))
        assert [render.plain_line(line) for line in lines] == [*said, other.text]


PRICE = GpuPrice(hour=0.68, restart=0.5, day=date(2025, 10, 14), source="a price list")
RULES = Costs(gpu_hour={"NVIDIA L4": PRICE})
PHASES = {"fuzz": 12, "calls": 20, "verifying": 9, "witness": 11, "starting": 8, "accuracy": 2, "profile": 12}


def measured(gpu: str = "NVIDIA L4", capability: str | None = "8.9") -> RunRecord:
    made = tuple(Cost(phase=phase, gpu_seconds=seconds) for phase, seconds in PHASES.items())
    device = Device(name=gpu, compute_capability=capability)
    return RunRecord(environments=(Environment(device=device),), costs=made)


def test_the_comment_says_what_a_measurement_cost() -> None:
    spent = "74 s (fuzz 12, bench 50, profile 12), 0.014 USD at 0.68 USD an hour (a price list, 2025-10-14)"
    assert machine.spent(measured(), RULES) == spent
    shown = of_verdict(measured(), EXAMPLES["slower"]().verdict, Policy(costs=RULES)).report
    assert spent in render.comment(shown).partition("<details>")[2], "folded"
    assert machine.spent(measured("NVIDIA L40S"), RULES) == "74 s (fuzz 12, bench 50, profile 12)", "of no known price"
    assert machine.spent(measured("AMD EPYC", None), RULES) == ""
    assert machine.spent(RunRecord(), RULES) == ""


def test_a_price_says_when_and_where_it_was_found() -> None:
    with pytest.raises(KernelgateError, match=r"day.*; .*source"):
        policy.parse('[costs.gpu_hour."NVIDIA L4"]\nhour = 0.68\n')


def test_a_machine_idles_as_long_as_a_restart_costs() -> None:
    assert PRICE.idle_minutes == pytest.approx(44.1, abs=0.1)
    for price, stops in ((PRICE, True), (PRICE.model_copy(update={"restart": None}), False)):
        [said] = machine.prices(Costs(gpu_hour={"NVIDIA L4": price}))
        assert ("stop it after 44 idle minutes" in said) == stops
