"""How much the logarithm of a ratio of two times is in percent: said once, for judge, history and every report."""

from __future__ import annotations

import math
from typing import Final

LARGEST_LOG: Final = 25.0
"""Beyond it, a bound says no more than "anything is possible"; e to its power is still a number to print."""


def percent(logarithm: float) -> float:
    """A log ratio as a change in percent."""
    return 100 * math.expm1(min(logarithm, LARGEST_LOG))
