"""A case whose processes ran on several GPUs of one kind: what the GPUs themselves do to a change.

Processes of one GPU are no evidence of what another would show. So the mean of each GPU is one value, and how far these
values lie apart, beyond what the scatter of processes explains, widens the interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelgate.bench.record import RunRecord, TimedProcess
from kernelgate.ci.document.formatting import as_percent
from kernelgate.ci.judge import dependence, stats
from kernelgate.ci.judge.stats import Array, Pooled
from kernelgate.ci.judge.validity import Finding

DISAGREE = "gpus_disagree"


def by_environment(record: RunRecord) -> dict[str, str]:
    """Which GPU each environment of a record is: one is told from another by its UUID, a CPU by its host."""
    return {one.id: one.device.uuid or one.host or "" for one in record.environments}


def of_processes(processes: Sequence[TimedProcess], known: Mapping[str, str]) -> tuple[int, ...]:
    """A number for each process's GPU; empty where all ran on one, as far as the record says."""
    names = [known.get(process.process.environment, "") for process in processes]
    order = list(dict.fromkeys(names))
    return tuple(order.index(name) for name in names) if len(order) > 1 else ()


@dataclass(frozen=True)
class Between:
    """The GPUs' means, each with the variance that the scatter of its processes explains."""

    means: Array
    variances: Array
    centred: Array
    """The processes' values, moved by whole GPUs so that all GPUs have the mean of all."""

    @property
    def scatter(self) -> float:
        """How much further the means scatter than is explained (1: as much; squared scale)."""
        return stats.scatter_ratio(self.means, self.variances, 0.0)

    @property
    def disagree(self) -> bool:
        return stats.scatter_p(self.scatter, len(self.means) - 1) < dependence.DISAGREE_P

    def widened(self, pooled: Pooled) -> Pooled:
        """What all processes show, no surer than their GPUs are alike. Where these disagree, nothing but their means
        says how far a further one would lie from them."""
        if not self.disagree:
            of_means = math.sqrt(max(1.0, self.scatter) / float((1 / self.variances).sum()))
            return replace(pooled, error=max(pooled.error, of_means))
        error = float(np.std(self.means, ddof=1)) / math.sqrt(len(self.means))
        return Pooled(float(self.means.mean()), error, len(self.means) - 1, pooled.bias)

    def findings(self) -> list[Finding]:
        if not self.disagree:
            return []
        told = ", ".join(f"{as_percent(float(mean)):+.1f}%" for mean in self.means)
        text = f"its GPUs disagree about the change ({told}), so each GPU counts as one measurement"
        return [Finding(DISAGREE, text, False)]


def between(values: Array, variances: Array, prior: float, gpus: Sequence[int]) -> Between:
    weights = 1 / (prior**2 + variances)
    known, numbers = np.unique(gpus, return_inverse=True)
    masks = [numbers == number for number in range(len(known))]
    sums = np.array([weights[mask].sum() for mask in masks])
    means = np.array([weights[mask] @ values[mask] for mask in masks]) / sums
    own, df = values - means[numbers], len(values) - len(masks)
    squares = float(weights @ own**2)
    together = own + float(weights @ values / weights.sum())
    return Between(means, max(1.0, squares / df if df else 1.0) / sums, together)
