"""What a measurement had of the GPU, and what it cost: seconds as the record has them, money where a price is known."""

from __future__ import annotations

from datetime import date

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Cost, Device, Environment, RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Costs, GpuPrice
from kernelgate.ci.report import costs
from tests.ci.report import situations

PRICE = GpuPrice(hour=0.68, restart=0.5, day=date(2025, 10, 14), source="a price list")
RULES = Costs(gpu_hour={"NVIDIA L4": PRICE})
PHASES = {
    "fuzz": 12.0,
    "calls": 20.0,
    "verifying": 9.0,
    "witness": 11.0,
    "starting": 8.0,
    "accuracy": 2.0,
    "profile": 12.0,
}


def measured(gpu: str = "NVIDIA L4", capability: str | None = "8.9") -> RunRecord:
    made = tuple(Cost(phase=phase, gpu_seconds=seconds) for phase, seconds in PHASES.items())
    device = Device(name=gpu, compute_capability=capability)
    return RunRecord(environments=(Environment(device=device),), costs=made)


def test_the_comment_says_what_a_measurement_cost() -> None:
    spent = "74 s (fuzz 12, bench 50, profile 12), 0.014 USD at 0.68 USD an hour (a price list, 2025-10-14)"
    assert costs.spent(measured(), RULES) == spent
    rules = situations.POLICY.model_copy(update={"costs": RULES})
    shown = situations.of_verdict(measured(), situations.EXAMPLES["slower"]().verdict, rules).report
    assert spent in render.comment(shown).partition("<details>")[2], "folded"


@pytest.mark.parametrize("gpu", ["NVIDIA L40S", "NVIDIA H200"])
def test_without_a_price_there_are_seconds_and_no_money(gpu: str) -> None:
    assert costs.spent(measured(gpu), RULES) == "74 s (fuzz 12, bench 50, profile 12)"


def test_a_cpu_costs_no_gpu_time() -> None:
    assert costs.spent(measured("AMD EPYC", None), RULES) == ""
    assert costs.spent(RunRecord(), RULES) == ""


def test_a_price_says_when_and_where_it_was_found() -> None:
    with pytest.raises(KernelgateError, match=r"NVIDIA L4.*is 0\.8: must be a table with hour, day and source"):
        policy.parse('[costs.gpu_hour]\n"NVIDIA L4" = 0.8\n')
    with pytest.raises(KernelgateError, match=r"day.*; .*source"):
        policy.parse('[costs.gpu_hour."NVIDIA L4"]\nhour = 0.68\n')
    known = policy.parse('[costs.gpu_hour."NVIDIA L4"]\nhour = 0.68\nday = 2025-10-14\nsource = "a list"\n')
    assert known.costs.of("NVIDIA L4") is not None


def test_a_machine_idles_as_long_as_a_restart_costs() -> None:
    assert PRICE.idle_minutes == pytest.approx(44.1, abs=0.1)
    [said] = costs.prices(RULES)
    assert "stop it after 44 idle minutes" in said
    for without in ({"restart": None}, {"hour": 0.0}):
        [said] = costs.prices(Costs(gpu_hour={"NVIDIA L4": PRICE.model_copy(update=without)}))
        assert "stop" not in said


@pytest.mark.parametrize("gap", [1.0, 30.0, 44.0, 45.0, 60.0, 10_000.0])
def test_the_bill_is_at_most_twice_that_of_foresight(gap: float) -> None:
    """Of an idle gap of so many minutes: who knows it beforehand stops at once, or never."""
    stop, minute, restart = PRICE.idle_minutes or 0.0, PRICE.hour / 60, PRICE.restart or 0.0
    paid = gap * minute if gap <= stop else stop * minute + restart
    assert paid <= 2 * min(gap * minute, restart) + 1e-9
    late = 4 * stop
    assert late * minute + restart > 2 * restart, "a plant: who waits longer pays more in a long gap"
