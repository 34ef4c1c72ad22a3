"""How far outputs of base and head lie from the oracle, on the same inputs."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from kernelgate.bench.record.base import Count, Finite, Model, NonNegative, Positive

MAX_DRAWS = 64
"""Of inputs, for one output of one case."""
Errors = Annotated[tuple[NonNegative, ...], Field(max_length=MAX_DRAWS)]
SignedErrors = Annotated[tuple[Finite, ...], Field(max_length=MAX_DRAWS)]


class UlpErrors(Model):
    """One side's errors in units in the last place (ulp), an entry for each draw of inputs.

    The unit of an element is the spacing of the output's dtype at the larger of |oracle| and the output's root mean
    square, and at least the step between subnormal numbers; of integers it is 1 (docs/statistics.md, "Accuracy").
    """

    mean: Errors
    """Of |output - oracle|."""
    maximum: Errors
    bias: SignedErrors
    """Mean of output - oracle."""
    outward: SignedErrors
    """Mean of |output| - |oracle|: below 0 where outputs are too near to zero, such as after truncation."""

    @property
    def draws(self) -> int:
        return len(self.mean)

    @model_validator(mode="after")
    def _one_entry_a_draw(self) -> Self:
        if len({len(self.mean), len(self.maximum), len(self.bias), len(self.outward)}) > 1:
            raise ValueError("errors need one entry for each draw")
        return self


class OutputAccuracy(Model):
    """One output of one case, on inputs of one distribution: base and head called on the same draws."""

    case: Annotated[str, Field(min_length=1)]
    output: str = "out"
    distribution: str = "normal"
    """Of the inputs' values; timed cases have normal ones."""
    base: UlpErrors
    head: UlpErrors
    identical: Count = 0
    """Of the draws, those on which every bit of both sides' outputs is the same."""
    elements: Positive
    """Compared in each draw, at least."""
    not_finite: Count = 0
    """Elements of all draws that were left out of the errors: NaN or Inf in an output or in the oracle."""

    @model_validator(mode="after")
    def _of_the_same_draws(self) -> Self:
        if self.base.draws != self.head.draws:
            raise ValueError(f"base has {self.base.draws} draws, head has {self.head.draws}")
        if self.identical > self.base.draws:
            raise ValueError(f"{self.identical} of {self.base.draws} draws cannot be identical")
        return self
