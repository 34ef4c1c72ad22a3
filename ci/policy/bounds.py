"""What the policy is made of: sections, and numbers, each with its bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict


def between(low: float, high: float) -> BeforeValidator:
    """A number in this range, both ends in it; whole where both ends are. No text, no truth value and no NaN is one."""
    whole = isinstance(low, int) and isinstance(high, int)
    said = f"must be a whole number from {low} to {high}" if whole else f"must be a number from {low:g} to {high:g}"

    def check(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not low <= value <= high:
            raise ValueError(said)
        return value

    return BeforeValidator(check)


Percent = Annotated[float, between(1e-3, 1e3)]
PercentOrNone = Annotated[float, between(0.0, 1e3)]
Speedup = Annotated[float, between(1e-3, 99.9)]
"""Percent that a time can shrink by."""
Times = Annotated[float, between(1e-6, 1e6)]
"""How many times as fast, or as much."""
Improbable = Annotated[float, between(1e-12, 0.5)]
"""The probability of an error."""
Chance = Annotated[float, between(1e-300, 0.999)]
"""Below it, chance does not explain something: as good as never at its lowest."""
Share = Annotated[float, between(0.0, 1.0)]
Positive = Annotated[int, between(1, 1000)]
DegreesOfFreedom = Annotated[float, between(1e-3, 1e6)]
MOST_PROCESSES = 32
"""Of one case in a record: no policy may ask for more, and no artifact may hold more."""
ProcessCount = Annotated[int, between(2, MOST_PROCESSES)]


class PolicySection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


def ordered(section: PolicySection, lower: str, upper: str) -> None:
    """Raises ValueError where two numbers of a section contradict each other."""
    least, most = getattr(section, lower), getattr(section, upper)
    if least > most:
        raise ValueError(f"{lower} ({least:g}) must not be above {upper} ({most:g})")
