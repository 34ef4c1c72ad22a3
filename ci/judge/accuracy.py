"""Whether the head's outputs are less accurate than the base's, both within the tolerance: docs/statistics.md
("Accuracy") has the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from kernelgate.bench.record import CaseKey, OutputAccuracy, RunRecord
from kernelgate.ci.document.formatting import sentence
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.correctness import checks
from kernelgate.ci.judge.stats import Array, Pooled

LEVEL: Final = 0.001
"""The probability that a record of equally accurate kernels is called less, or more, accurate anywhere."""
ACCURACY_MARGIN_PCT: Final = 20.0
"""Less accurate: the mean error is certainly larger by more than this. Rounding once more than needed makes it 30 to
45% larger, cutting instead of rounding 100%; another order of summation moved it by 0 to 1.5% (docs/statistics.md)."""
MAXIMUM_PCT: Final = 100.0
"""The margin for the largest error, which one element in a million decides: twice as large says that something happens
to single elements that the mean does not show."""
BIAS_ULP: Final = 0.1
"""Outputs that are too large or too small on average, by this much more than the base's and by BIAS_SHARE of the mean
error: such errors add up where many outputs are summed, while others cancel. Cutting instead of rounding makes 0.3 to
0.5 ulp."""
BIAS_SHARE: Final = 0.1
FLOOR_ULP: Final = 0.01
"""Errors below this are alike: of two kernels that are nearly exact, none is the less accurate one."""


class Standing(StrEnum):
    """Of the head's outputs beside the base's."""

    LESS = "less accurate"
    MORE = "more accurate"
    UNCLEAR = "unclear"
    """Neither a difference nor that there is none was shown."""
    ALIKE = "alike"
    """Shown to be within the margin."""
    IDENTICAL = "identical"
    """To the last bit, on all inputs."""


class ErrorMeasure(StrEnum):
    MEAN = "mean error"
    OUTWARD = "bias in size"
    BIAS = "bias"
    MAXIMUM = "largest error"


@dataclass(frozen=True)
class AccuracyVerdict:
    key: CaseKey
    measured: OutputAccuracy
    standing: Standing
    worse: tuple[ErrorMeasure, ...] = ()
    """What is certainly worse, by more than the margin."""

    def errors(self, measure: ErrorMeasure) -> tuple[float, float]:
        """Of base and head over all draws, in ulp."""
        base, head = (getattr(side, measure.name.lower()) for side in (self.measured.base, self.measured.head))
        if measure is ErrorMeasure.MAXIMUM:
            return max(base), max(head)
        return sum(base) / len(base), sum(head) / len(head)


def judge(record: RunRecord) -> tuple[AccuracyVerdict, ...]:
    """Every output that was measured, the worst first."""
    listed = [(check.card, one) for check in checks(record, "accuracy") for one in check.accuracies if one.base.draws]
    alpha = LEVEL / max(1, len(listed) * len(ErrorMeasure))
    return tuple(sorted((_judged(card, one, alpha) for card, one in listed), key=_severity))


def _judged(card: str, one: OutputAccuracy, alpha: float) -> AccuracyVerdict:
    key = CaseKey(card, one.case)
    if one.identical >= one.base.draws:
        return AccuracyVerdict(key, one, Standing.IDENTICAL)
    if worse := _worse(one, alpha):
        return AccuracyVerdict(key, one, Standing.LESS, worse)
    ratios, margin = _ratios(one.base.mean, one.head.mean), math.log1p(ACCURACY_MARGIN_PCT / 100)
    low, high = _low(ratios, alpha), -_low(-ratios, alpha)
    if high < -margin:
        return AccuracyVerdict(key, one, Standing.MORE)
    return AccuracyVerdict(key, one, Standing.ALIKE if -margin <= low and high <= margin else Standing.UNCLEAR)


def less_accurate(record: RunRecord) -> tuple[CaseKey, ...]:
    return tuple(dict.fromkeys(one.key for one in judge(record) if one.standing is Standing.LESS))


def unmeasured(record: RunRecord) -> Iterator[Line]:
    """The cards with two libraries of which no accuracy is known, a sentence each."""
    known = {check.card: check for check in checks(record, "accuracy")}
    timings = (timing for process in record.processes for timing in process.timings)
    both = {timing.card for timing in timings if "base" in timing.samples_us}
    for card in sorted(both - cards.same_library(record)):
        check = known.get(card)
        if check is None or not check.accuracies:
            why = f": {sentence(check.reason)}" if check and check.reason else ""
            of: Line = (" of ", Code(card)) if card else ()
            yield ("the accuracy", *of, f" was not measured{why}")


def _severity(one: AccuracyVerdict) -> tuple[int, int, float]:
    """By standing, then by what is worse; of equals the largest ratio first."""
    base, head = one.errors(ErrorMeasure.MEAN)
    ratio = head / base if base else math.inf if head else 1.0
    first = list(ErrorMeasure).index(one.worse[0]) if one.worse else 0
    return list(Standing).index(one.standing), first, ratio if one.standing is Standing.MORE else -ratio


def _worse(one: OutputAccuracy, alpha: float) -> tuple[ErrorMeasure, ...]:
    base, head = one.base, one.head
    bias = max(BIAS_ULP, BIAS_SHARE * float(np.mean(head.mean)))
    increases = (
        (ErrorMeasure.MEAN, _ratios(base.mean, head.mean), math.log1p(ACCURACY_MARGIN_PCT / 100)),
        (ErrorMeasure.OUTWARD, _size(head.outward) - _size(base.outward), bias),
        (ErrorMeasure.BIAS, _size(head.bias) - _size(base.bias), bias),
        (ErrorMeasure.MAXIMUM, _ratios(base.maximum, head.maximum), math.log1p(MAXIMUM_PCT / 100)),
    )
    return tuple(measure for measure, values, margin in increases if _low(values, alpha) > margin)


def _ratios(base: Sequence[float], head: Sequence[float]) -> Array:
    return np.log(np.maximum(head, FLOOR_ULP)) - np.log(np.maximum(base, FLOOR_ULP))


def _size(biases: Sequence[float]) -> Array:
    """Biases, with their sign changed where their mean is below 0."""
    values = np.asarray(biases, dtype=float)
    return -values if values.mean() < 0 else values


def _low(values: Array, alpha: float) -> float:
    """The lower end of the two-sided interval of the values' mean that misses it with probability alpha."""
    if len(values) < 2:
        return -math.inf
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean - Pooled(mean, error, len(values) - 1).half_width(alpha)
