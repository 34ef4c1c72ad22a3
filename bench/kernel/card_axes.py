"""What a card draws for an axis of `fuzz` or `limits`, as plain data that fuzz_list.draw reads."""

from __future__ import annotations

from typing import Any

from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.card import Between


def drawn(axis: str, values: Any) -> Any:
    """A value, or an object with one key that says what is drawn. Raises ValueError saying what is wrong."""
    if isinstance(values, range):
        if not values:
            raise ValueError(f"the range of {axis} is empty")
        return {"range": [values.start, values.stop, values.step]}
    if isinstance(values, Between):
        if not (is_real(values.low) and is_real(values.high) and values.low <= values.high):
            raise ValueError(f"{axis} is between({values.low!r}, {values.high!r}), which holds no number")
        return {"between": [values.low, values.high]}
    if isinstance(values, tuple | list):
        if not values:
            raise ValueError(f"there is nothing to choose from for {axis}")
        return {"choice": [drawn(axis, value) for value in values]}
    why = case_axes.mistake(axis, values)
    if why:
        raise ValueError(why)
    return values


def is_real(value: Any) -> bool:
    """Whether it is a number, and neither NaN nor a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value
