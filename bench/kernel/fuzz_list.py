"""What is fuzzed: a card's configurations, drawn.

Everything random comes from one seed and the configuration's name, so that one configuration can be run again alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.card import DeviceKind
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.system.worker import Message

DISTRIBUTION = "distribution"
WAY, PLAIN = "way", "plain"
SPECIAL_SHARE = 0.5
"""How often a range gives one of its ends, or a power of two or its neighbour."""


class Trial(Message):
    """One configuration, drawn."""

    id: str
    axes: dict[str, bool | int | float | str]
    """Of the case, with the distribution of its values."""
    run_seed: int
    """The seed with which a command repeats the trial."""
    seed: int
    """For the inputs: drawn from the run's seed and the id."""
    others: tuple[dict[str, bool | int | float | str], ...] = ()
    """Cases that are called in between, where the way has it so."""

    @property
    def case_id(self) -> str:
        """What the case would be called if it were timed."""
        return case_axes.case_id({axis: value for axis, value in self.axes.items() if axis not in (DISTRIBUTION, WAY)})

    @property
    def distribution(self) -> str:
        return str(self.axes[DISTRIBUTION])

    @property
    def way(self) -> str:
        """How the kernel is called (bench/check/ways.py)."""
        return str(self.axes.get(WAY, PLAIN))


def trials(seed: int, card: CardFacts, device: DeviceKind) -> tuple[Trial, ...]:
    """The whole list. Axes to choose from and distributions are spread: where the list is long enough, every
    combination of them stands in it at least once."""
    listed = card.fuzz[device]
    if not listed:
        return ()
    spread = _spread(card, listed.values())
    every = list(product(*spread.values()))
    rng = random.Random(f"{seed}")  # noqa: S311 - not for secrets
    combinations = every + rng.choices(every, k=max(0, len(listed) - len(every)))
    rng.shuffle(combinations)
    axes, boolean = case_axes.order([card.target.axes]), case_axes.booleans([card.target.axes])
    made = []
    for (name, ranges), combination in zip(listed.items(), combinations, strict=False):
        rng = random.Random(f"{seed}/{name}")  # noqa: S311 - not for secrets
        chosen = dict(zip(spread, combination, strict=True))
        drawn = {axis: chosen[axis] if axis in chosen else draw(rng, values) for axis, values in ranges.items()}
        whole = case_axes.complete(drawn, axes, boolean) | {DISTRIBUTION: chosen[DISTRIBUTION]}
        made.append(Trial(id=name, axes=whole, run_seed=seed, seed=rng.getrandbits(63)))
    return tuple(made)


def draw(rng: random.Random, values: Any) -> AxisValue:
    """One value of what card_reader.py wrote for an axis."""
    if not isinstance(values, Mapping):
        value: AxisValue = values
        return value
    (kind, content), *_ = values.items()
    if kind == "choice":
        return draw(rng, rng.choice(content))
    if kind == "between":
        low, high = content
        share = rng.random()
        return float(low * (high / low) ** share if low > 0 else low + (high - low) * share)
    whole = range(*content)
    return rng.choice(special(whole)) if rng.random() < SPECIAL_SHARE else rng.choice(whole)


def special(whole: range) -> Sequence[int]:
    """The ends of a range, and the powers of two in it with their neighbours: where masks and tiles go wrong."""
    powers = (2**exponent + step for exponent in range(40) for step in (-1, 0, 1))
    return sorted({whole[0], whole[-1], *(value for value in powers if value in whole)})


def _spread(card: CardFacts, listed: Iterable[Mapping[str, Any]]) -> dict[str, list[AxisValue]]:
    """The axes that are chosen from the same few values in every configuration, and the distributions."""
    first, *others = listed
    found: dict[str, list[AxisValue]] = {}
    for axis, values in first.items():
        choice = values.get("choice", [{}]) if isinstance(values, Mapping) else [{}]
        everywhere = all(other.get(axis) == values for other in others)
        if everywhere and not any(isinstance(one, Mapping) for one in choice):
            found[axis] = list(choice)
    return {**found, DISTRIBUTION: list(card.distributions)}
