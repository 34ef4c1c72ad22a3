"""Limits that are met exactly, to the last bit: where `<` and `<=` differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import pytest


def limit_at(value: float, used: Callable[[float], float], near: float) -> float:
    """The limit close to `near` that the judge's own arithmetic, `used`, turns into exactly `value`."""
    below = above = near
    for _ in range(200):
        for limit in (below, above):
            if used(limit) == value:
                return limit
        below, above = float(np.nextafter(below, -np.inf)), float(np.nextafter(above, np.inf))
    raise AssertionError("no such limit")


@contextmanager
def constants(module: ModuleType, **values: float) -> Iterator[None]:
    """With other constants of the module, named in small letters, than the judge's."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setattr(module, name.upper(), value)
        yield
