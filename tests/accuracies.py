"""Records of accuracy, from errors that are made up or computed on the spot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernelgate.bench.record import Case, Check, OutputAccuracy, RunRecord, UlpErrors

DRAWS = 8
Floats = NDArray[np.float64]


def side(
    mean: float | Sequence[float] = 0.25,
    maximum: float | Sequence[float] = 0.5,
    bias: float | Sequence[float] = 0.0,
    outward: float | Sequence[float] = 0.0,
) -> UlpErrors:
    """One number stands for that in every draw."""
    given = [[one] * DRAWS if isinstance(one, float) else one for one in (mean, maximum, bias, outward)]
    return UlpErrors(**{name: tuple(map(float, one)) for name, one in zip(UlpErrors.model_fields, given, strict=True)})


def of_errors(errors: Floats, right: Floats) -> UlpErrors:
    """From signed errors in ulp, a row for each draw, and what is right, in ulp, too."""
    outward = np.abs(right + errors) - np.abs(right)
    size = np.abs(errors)
    return side(size.mean(1).tolist(), size.max(1).tolist(), errors.mean(1).tolist(), outward.mean(1).tolist())


def output(
    base: UlpErrors, head: UlpErrors, case: str = "one", distribution: str = "normal", identical: int = 0
) -> OutputAccuracy:
    return OutputAccuracy(
        case=case, distribution=distribution, base=base, head=head, identical=identical, elements=4096
    )


def check(*outputs: OutputAccuracy, card: str = "", reason: str | None = None, asked: int | None = None) -> Check:
    return Check(
        kind="accuracy",
        card=card,
        status="passed" if outputs else "skipped",
        reason=reason,
        asked=len(outputs) if asked is None else asked,
        run=len(outputs),
        accuracies=outputs,
    )


def accuracy_record(*outputs: OutputAccuracy) -> RunRecord:
    """Of these outputs alone, whose cases were not timed."""
    ids = dict.fromkeys(one.case for one in outputs)
    return RunRecord(cases=tuple(Case(id=one) for one in ids), checks=(check(*outputs),))
