"""What a run could have shown."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

UPPER_TAILS = (np.arange(4000) + 0.5) / 4000
"""Where the distribution of the estimated error is looked at."""


def smallest(error: float, df: float, alpha: float, power: float) -> float:
    """The smallest true change that a two-sided t-test at `alpha` shows, in its direction, with probability `power`.

    The estimate over its standard error then has a noncentral t distribution, since the error is itself estimated.
    """
    return error * _noncentrality(df, alpha, power)


@lru_cache(maxsize=1024)
def _noncentrality(df: float, alpha: float, power: float) -> float:
    """The true change in standard errors: where normal noise passes t times the estimated error so often.

    scipy's inverse of this distribution does not end where t is large, as it is for few degrees of freedom.
    """
    limits = -float(special.stdtrit(df, alpha / 2)) * np.sqrt(special.chdtri(df, UPPER_TAILS) / df)
    low, high = 0.0, float(limits.max()) + 40.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if special.ndtr(middle - limits).mean() > power else (middle, high)
    return high
