"""Commits of a made-up range, for searches that build in a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace


@dataclass
class FakeCommits:
    """What a search asks of `bench.measure.bisect.BuiltCommits`, by place, the good end first."""

    of_each: Sequence[float]
    """What is made up of each commit: its time, or how often it fails."""
    broken: Mapping[int, str] = field(default_factory=dict)
    libraries: Mapping[int, str] = field(default_factory=dict)
    """Those that are the same have the same name."""
    unchanged: frozenset[int] = frozenset()
    range = SimpleNamespace(subject=lambda _: "Tile by 128", submodule="")
    card, case = SimpleNamespace(name="scale"), SimpleNamespace(id="n")

    @property
    def shas(self) -> tuple[str, ...]:
        return tuple(f"{at:012x}{0:028x}" for at in range(len(self.of_each)))

    def build(self, place: int) -> str | None:
        return self.broken.get(place)

    def same(self, one: int, other: int) -> bool:
        return self.libraries.get(one, one) == self.libraries.get(other, other)

    def untouched(self) -> frozenset[int]:
        return self.unchanged
