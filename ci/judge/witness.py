"""Whether the comparison agrees with the witness: base and head timed each in a process of its own, by a clock that
neither could reach. That is less precise, so only a large difference says anything."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from kernelgate.bench.record import CaseKey, Device, Role, RunRecord, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import cards, stats
from kernelgate.ci.judge.correctness import checks
from kernelgate.ci.judge.stats import GATES_P, MISS, Array, Pooled
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.policy.policy import Gates

WITNESS: tuple[Role, ...] = ("witness",)
TOLERANCE_PCT: Final = 3.0
"""Base and head are also timed each in a process of its own. No verdict if that differs from the comparison by more
than this, and by more than noise explains. Placement in different processes alone makes up to 0.8% on an H200; a
kernel that is timed wrongly on purpose is to gain more than this."""
CPU_TOLERANCE_PCT: Final = 25.0
"""The same for a CPU. Where the code lies in a process makes a kernel of 50 us up to 15% faster or slower there, and
each core has phases of 0.1 to 2 s in which it is 1.3 to 1.6 times slower. Measured on two cores of a shared
machine."""
CPU_SPREAD_PCT: Final = 3.0
"""Standard deviation, between fresh processes on a CPU, of the change that they see, where the cores are quiet.
Measured: 0.5 to 5.5% of ten pairs of kernels, 2.6% in the mean of squares. Weighs as much as PRIOR_TURNS turns of
evidence."""
PRIOR_TURNS: Final = 4
ALTERNATING_BIAS_PCT: Final = 0.8
"""Processes that take turns have a systematic error that more of them do not reduce. Measured: up to 0.8%."""
LEAST_BATCHES: Final = 5
"""Of a turn; a GPU's have eight."""
CONTRADICTS = "witness_contradicts"
UNCONFIRMED = "witness_unconfirmed"
VERIFIED_IN_PROCESS = "verified_in_process"


def wrong_clocks(record: RunRecord, card: str) -> list[Finding]:
    """What failed checks of the kind `witness` found of a card: it may be wrong for every case of the card."""
    failed = [one for one in checks(record, "witness") if one.status == "failed" and one.card in ("", card)]
    text = next((found.text for check in failed for found in check.findings), "the record does not say how")
    said = f"the times of the comparison cannot be believed: {formatting.sentence(text)}"
    return [Finding(CONTRADICTS, said, True)] if failed else []


def reachable(record: RunRecord, change: float) -> list[Finding]:
    """No gain is believed of a process that held what its outputs are compared with."""
    if change >= 0 or not cards.notes(record, VERIFIED_IN_PROCESS):
        return []
    text = "the outputs were compared in the measured process, where its code can reach: faster is not believed"
    return [Finding(VERIFIED_IN_PROCESS, text, True)]


def log_ratios(record: RunRecord) -> dict[CaseKey, tuple[Array, ...]]:
    """Of each case that a witness timed, the log ratios of head over base in each turn that has enough of them."""
    found: dict[CaseKey, tuple[Array, ...]] = {}
    for case in timed_cases(record, WITNESS):
        for times in (process.samples_us for process in case.processes):
            base, head = times.get("base", ()), times.get("head", ())
            if len(base) == len(head) >= LEAST_BATCHES:
                found[case.key] = (*found.get(case.key, ()), np.log(np.array(head) / np.array(base)))
    return found


def tolerance(device: Device) -> float:
    """As a log ratio; where the device is not known, of a GPU."""
    cpu = device.name and device.compute_capability is None and device.driver is None
    return math.log1p((CPU_TOLERANCE_PCT if cpu else TOLERANCE_PCT) / 100)


def apart(turns: Sequence[Array], base: Sequence[Array], head: Sequence[Array], tolerated: float) -> Pooled:
    """The change that the witness saw: of several turns, their medians, combined as processes are. `base`, `head`: the
    times of the comparison's processes; where those of one side lie further apart than what is `tolerated`, so may a
    single turn's."""
    medians = [stats.median_of(ratios) for ratios in turns]
    if len(medians) > 1:
        changes, variances = np.array([one.change for one in medians]), np.array([one.error**2 for one in medians])
        return stats.pool(changes, variances, math.log1p(CPU_SPREAD_PCT / 100), PRIOR_TURNS)
    levels = [[float(np.median(np.log(times))) for times in side] for side in (base, head) if len(side) > 1]
    scatter = sum(max(0.0, float(np.var(of_side, ddof=1)) - tolerated**2) for of_side in levels)
    return replace(medians[0], error=math.sqrt(medians[0].error ** 2 + scatter))


def contradiction(
    compared: Pooled, paired: bool, alone: Pooled, alpha: float, tolerated: float, gates: Gates
) -> tuple[Finding | None, float]:
    """What is said of a case whose witness differs from its comparison by more than the tolerance and than noise, and
    by how much its interval is wider, as a log ratio.

    The time of a short kernel depends on what runs before it. So the case is open unless both are surely slower by more
    than blocks, or surely faster, the witness by half at least: then the gain lies between both.

    `alpha`: this case's share of the chance of a false alarm in the record.
    """
    gap = stats.difference(alone, compared, compared.bias + math.log1p(ALTERNATING_BIAS_PCT / 100))
    if abs(gap.change) <= max(tolerated, gap.half_width(alpha)):
        return None, 0.0
    where = "in one process" if paired else "where they take turns"
    together = f"{where} head is {_size(compared.change, ' than base', ' as base')}"
    apart = f"timed alone, each in a process of its own, it is {_size(alone.change)}"
    blocks = math.log1p(gates.regression_pct / 100)
    if min(one.change - one.half_width(alpha) for one in (compared, alone)) > blocks:
        return Finding(CONTRADICTS, f"{together}; {apart}: slower either way", False), 0.0
    if (
        compared.change + compared.half_width(alpha) < 0
        and alone.change + alone.half_width(alpha) < compared.change / 2
    ):
        return Finding(CONTRADICTS, f"{together}; {apart}: faster either way", False), abs(gap.change)
    return Finding(CONTRADICTS, f"{together}; {apart}: something in the process changes what is measured", True), 0.0


def contradicted(findings: Iterable[Finding]) -> bool:
    return any(finding.code == CONTRADICTS for finding in findings)


def unconfirmed(compared: Pooled, alone: Pooled | None, gates: Gates) -> Finding | None:
    """What keeps an improvement open of which the witness does not surely see half; nor does one that a head ended,
    which is None. A change that the comparison itself does not show needs no witness."""
    shown = compared.change <= math.log1p(-gates.improvement_pct / 100) and compared.p() < GATES_P
    least = alone.change + alone.half_width(2 * MISS) if alone else math.inf
    if not shown or least <= compared.change / 2:
        return None
    text = f"head is {_size(compared.change, ' than base')}"
    if alone is None:
        text += ", and was not timed alone, in a process of its own"
    else:
        # What is sure of a gain, where that is another word than the gain itself.
        sure = f", and {_size(least)} for sure" if least < 0 else ", but not for sure"
        seen = f"{_size(alone.change)}{sure if alone.change < 0 else ''}"
        text += f"; timed alone, each in a process of its own, it is {seen}"
    return Finding(UNCONFIRMED, f"{text}: that confirms no improvement", True)


def _size(change: float, than: str = "", as_: str = "") -> str:
    return formatting.moved(as_percent(change), than, as_)
