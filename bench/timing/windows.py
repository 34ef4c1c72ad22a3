"""Which inputs each call reads: windows in a pool, in an order that comes back to none before all were read.

Pure arithmetic. A pool holds more entries along a card's independent axes than one case has; a call reads as many
neighbouring ones as the case has, from a start that no call before it had.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

ALIGNMENT = 256
"""Bytes: what CUDA's allocator gives. Each window begins so, because alignment changes how fast a kernel is."""
MANY = 1024
"""Windows that a pool should have, where that costs little memory."""
CHEAP_BYTES = 64 << 20


@dataclass(frozen=True)
class PoolSize:
    """How a pool is cut into windows."""

    entries: int
    """In the pool, along the independent axes."""
    length: int
    """Of one window, in entries: what the case has."""
    grain: int
    """Windows start at multiples of this many entries, so that each is aligned."""

    @property
    def windows(self) -> int:
        return (self.entries - self.length) // self.grain + 1

    def start(self, window: int) -> int:
        """The first entry of a window."""
        return window * self.grain


def grain(entry_bytes: list[int]) -> int:
    """The least number of entries after which every tensor is aligned again."""
    return math.lcm(*(ALIGNMENT // math.gcd(ALIGNMENT, size) for size in entry_bytes))


def set_count(set_bytes: int, cache_bytes: int, most_bytes: int) -> int:
    """So many whole sets that those which are read between two uses of one fill the cache, and more of small ones."""
    cold, many = cache_bytes // max(1, set_bytes) + 2, CHEAP_BYTES // max(1, set_bytes)
    return min(MANY, max(cold, many), max(2, most_bytes // max(1, set_bytes)))


def pool_size(length: int, entry_bytes: list[int], cache_bytes: int, most_entries: int) -> PoolSize:
    """A pool whose windows do not find each other's inputs in the cache, of at most `most_entries`.

    `entry_bytes`: of each independent tensor. At least three windows side by side, and more of a small case, so that
    what lies between two calls that share entries exceeds the cache.
    """
    size, step = sum(entry_bytes), grain(entry_bytes)
    cold = -(-cache_bytes // max(1, size))
    many = min(MANY * step, CHEAP_BYTES // max(1, size))
    wanted = length + max(2 * -(-length // step) * step, cold, many)
    drawn = MANY * length  # one draw gives one case's entries: cases of a few rows stay in the cache
    return PoolSize(max(length, min(wanted, most_entries, drawn)), length, step)


def separate(count: int, length: int, entry_bytes: list[int]) -> PoolSize:
    """A pool of so many windows that share nothing."""
    step = grain(entry_bytes)
    apart = -(-length // step) * step
    return PoolSize((count - 1) * apart + length, length, apart)


class Order:
    """The numbers from 0 to `count` - 1, each once, then anew. Neighbours are a window's length apart, where that many
    are left, so that consecutive calls share no inputs. A kernel cannot know the start and the step."""

    def __init__(self, count: int, apart: int, rng: random.Random) -> None:
        self._count = count
        self._apart = apart
        self._rng = rng
        self.left = 0
        self._start = self._step = 0

    def renew(self) -> None:
        """Begins anew: the windows now hold other inputs."""
        self._start = self._rng.randrange(self._count)
        self._step = self._drawn_step()
        self.left = self._count

    def take(self) -> int:
        """The next one; after the last, in the same order again."""
        number = (self._count - self.left) % self._count
        rounds = number // (self._count // math.gcd(self._step, self._count))  # each leads back to its first one
        self.left -= 1
        return (self._start + number * self._step + rounds) % self._count

    def _drawn_step(self) -> int:
        """Neither near 0 nor near the count, which leads back to the one before."""
        least = max(1, min(self._apart, self._count // 2))
        most = max(least, self._count - least)
        steps = [step for step in range(least, min(2 * least + 16, most + 1)) if math.gcd(step, self._count) == 1]
        return self._rng.choice(steps or [least])
