"""Where a value stands on an axis, in drawing units, and which values the axis names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

ROOM = 0.06
"""Of an axis, left free beyond the first and the last value."""
NARROW = 5.0
"""The largest value over the smallest: below that, a logarithmic axis has round numbers like any other."""


@dataclass(frozen=True)
class Scale:
    """Maps values to drawing units; what lies beyond the axis stands at its end."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float, room: float = ROOM) -> Scale:
        """An axis that shows all these values; of one value alone, something around it."""
        low, high = min(values), max(values)
        free = room * (high - low) or abs(high) * 0.01 or 1.0
        return cls(low - free, high + free, start, end)

    def at(self, value: float) -> float:
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def ticks(self, most: int) -> list[float]:
        """Round numbers, at most so many: steps of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * (1 - 1e-9))
        return [step * k for k in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


@dataclass(frozen=True)
class Decades:
    """A logarithmic axis over whole powers of ten."""

    low: int
    high: int
    start: float
    end: float

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> Decades:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return cls(low, max(high, low + 1), start, end)

    def at(self, value: float) -> float:
        return self.start + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


@dataclass(frozen=True)
class Logarithmic:
    """A logarithmic axis from the smallest of its values to the largest."""

    logs: Scale

    @classmethod
    def over(cls, values: Sequence[float], start: float, end: float) -> Logarithmic:
        return cls(Scale.over([math.log10(value) for value in values], start, end))

    def at(self, value: float) -> float:
        return self.logs.at(math.log10(value))

    def ticks(self, most: int) -> list[float]:
        """Round numbers over a small range; else 1, 2 and 5 times powers of ten, or as many of the powers as fit."""
        low, high = 10.0**self.logs.low, 10.0**self.logs.high
        if high < NARROW * low:
            return Scale(low, high, self.logs.start, self.logs.end).ticks(most)
        powers = range(math.floor(self.logs.low), math.ceil(self.logs.high) + 1)
        fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
        held = [value for value in fine if low <= value <= high]
        if len(held) > most:
            held = [value for value in fine[::3] if low <= value <= high]
        return held[:: math.ceil(len(held) / most)]
