"""How long measurements had the GPU, and what that costs where the policy has a price."""

from __future__ import annotations

from collections import defaultdict

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.policy.policy import Costs, GpuPrice

HOUR_S = 3600.0
TIMING = ("calls", "verifying", "witness", "starting", "accuracy")
"""The phases of `kernelgate bench`, which people see as one."""
MOST = 6
"""Phases that are named: a record may name any."""


def spent(record: RunRecord, rules: Costs) -> str:
    """Such as "74 s (fuzz 12, bench 50, profile 12), 0.014 USD at 0.68 USD an hour (…)"; "" of none on a GPU."""
    phases: defaultdict[str, float] = defaultdict(float)
    for cost in record.costs:
        phases["bench" if cost.phase in TIMING else visible(cost.phase, 20)] += cost.gpu_seconds
    total = sum(phases.values())
    if not total or record.environment.device.name is None or formatting.on_cpu(record.environment.device):
        return ""
    named = ", ".join(f"{phase} {seconds:.0f}" for phase, seconds in list(phases.items())[:MOST])
    price = rules.of(record.environment.device.name)
    money = f", {amount(price, total, rules)} at {hourly(price, rules)}" if price else ""
    return f"{total:.0f} s ({named}){money}"


def amount(price: GpuPrice, seconds: float, rules: Costs) -> str:
    return f"{formatting.significant(price.hour * seconds / HOUR_S, 2)} {rules.currency}".rstrip()


def hourly(price: GpuPrice, rules: Costs) -> str:
    return f"{price.hour:g} {rules.currency}".rstrip() + f" an hour ({price.source}, {price.day})"


def prices(rules: Costs) -> tuple[str, ...]:
    """Of each kind of GPU: its price, and when a machine that idles is better stopped."""
    found = []
    for gpu, price in rules.gpu_hour.items():
        stop = f": stop it after {price.idle_minutes:.0f} idle minutes" if price.idle_minutes else ""
        restart = f", since a stop and a start cost {price.restart:g} {rules.currency}".rstrip() if stop else ""
        found.append(f"{gpu}: {hourly(price, rules)}{stop}{restart}")
    return tuple(found)
