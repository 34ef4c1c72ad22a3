"""How often a bisection over 64 commits names the right one, and in how many rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.history.detection import share
from benchmarks.history.series import TRACES, Generator
from benchmarks.tables import markdown
from kernelgate.ci.bisect import rounds
from kernelgate.ci.bisect.posterior import CommitTime, ProcessRead, Search, SearchStanding

COMMITS = 64
ROUND_NOISE_PCT = 0.01
OTHER_PCT = 0.03
"""What commits that are not the culprit change, as a standard deviation."""
UNBUILDABLE = 0.05
LOADED_FIRST_PCT = 0.8

Draw = Callable[[Generator, int], np.ndarray]
"""What chance adds to so many libraries of one process, as log ratios."""


@dataclass(frozen=True)
class Scene:
    name: str
    draw: Draw
    spread_pct: float
    effect_pct: float


def scenes() -> Iterator[Scene]:
    """Recorded and assumed scatter."""
    yield Scene("as 8 libraries in one H200 process", recorded("contended_copy_inter"), rounds.TOGETHER_PCT, 1.0)
    yield Scene("0.15% from process to process", normal(0.15), rounds.TOGETHER_PCT, 1.0)
    yield Scene("0.3% from process to process, twice what is expected", normal(0.3), rounds.TOGETHER_PCT, 1.0)
    yield Scene("no two libraries in one process", in_turns, rounds.APART_PCT, 3.0)


def recorded(name: str) -> Draw:
    """What 8 sides of one recorded process differ by, beside what they differ by in all processes."""
    medians = np.median(np.log(np.load(TRACES)[name]), axis=2)
    off = medians - medians.mean(axis=1, keepdims=True)
    off = (off - off.mean(axis=0)) * math.sqrt(len(off) / (len(off) - 1))

    def draw(rng: Generator, count: int) -> np.ndarray:
        return rng.permutation(np.tile(off[rng.integers(len(off))], 2))[:count]

    return draw


def normal(ratio_pct: float) -> Draw:
    return lambda rng, count: rng.normal(0, ratio_pct / 100 / math.sqrt(2), count)


def in_turns(rng: Generator, count: int) -> np.ndarray:
    """One library a process: the processes differ, and the one that starts first is slow all along."""
    off = rng.normal(0, 0.0015, count)
    off[rng.integers(count)] += rng.uniform(0, LOADED_FIRST_PCT / 100)
    return np.asarray(off)


def searched(scene: Scene, rng: Generator) -> tuple[bool, SearchStanding, int]:
    """Whether the right commit was named, what was said, and after how many rounds."""
    culprit = int(rng.integers(1, COMMITS + 1))
    times = (np.arange(COMMITS + 1) >= culprit) * math.log1p(scene.effect_pct / 100)
    times = times + rng.normal(0, OTHER_PCT / 100, COMMITS + 1)
    broken = {int(at): "does not compile" for at in np.flatnonzero(rng.random(COMMITS + 1) < UNBUILDABLE)}
    search = Search(COMMITS, unmeasurable={at: why for at, why in broken.items() if 0 < at < COMMITS})
    search = replace(search, spread_pct=scene.spread_pct)
    for _ in range(rounds.ROUNDS):
        for chosen in rounds.next_processes(search):
            off = scene.draw(rng, len(chosen)) + rng.normal(0, ROUND_NOISE_PCT / 100, len(chosen))
            read: ProcessRead = {
                at: CommitTime(float(times[at] + more), (ROUND_NOISE_PCT / 100) ** 2)
                for at, more in zip(chosen, off, strict=True)
            }
            search = replace(search, processes=(*search.processes, read))
        now = rounds.standing(search)
        if now.kind != "open":
            break
    return now.kind == "found" and culprit in now.culprits, now, len(search.processes) // rounds.PROCESSES


def table(searches: int) -> str:
    rows = []
    for scene in scenes():
        rng = np.random.default_rng(17)
        made = [searched(scene, rng) for _ in range(searches)]
        right, several = share(one for one, _, _ in made), np.mean([number for _, _, number in made])
        rows.append([scene.name, f"{scene.effect_pct:+g}%", right, f"{several:.1f}"])
    return markdown(["scatter between processes", "culprit", "right (95%)", "rounds"], rows)
