"""Commands that a test calls in its own process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Printed(NamedTuple):
    out: str
    err: str


EndsWith = Callable[..., Printed]
"""The fixture `ends_with`: `ends_with(3, "compare", path)` calls it, and gives what it printed before it ended so."""
