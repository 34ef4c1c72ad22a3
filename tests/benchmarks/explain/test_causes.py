"""The planted causes: each applies to today's kernels, and the first sentence of "Why" names those measured so far."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from benchmarks.explain.causes import CAUSES, Cause
from benchmarks.fuzzing.bug import SOURCES, planted
from kernelgate.bench import record
from kernelgate.bench.explain import metrics, ncu_reader
from kernelgate.bench.record import RunRecord
from kernelgate.ci.explain import budget

DATA = Path(__file__).parents[2] / "data"
REPORTS = {"banks": ("bank conflicts",), "occupancy": ("occupancy ",), "spills": ("spills, ",)}
"""Of tests/data/nsight/attention_*: what was planted, as it must be named."""
# 5% more blocks do rows again; of swiglu, which moves at DRAM's rate whatever it reads, all that this costs is bytes.
RECORDS = {
    "comparisons/slower_5pct": ("instructions executed", "waits of fixed latency"),
    "cards/rmsnorm_slower": (" blocks, ", "instructions executed"),
    "cards/swiglu_slower": ("DRAM traffic",),
}
LEAST = 11 / 12
COUNTS_PCT = 1.0
"""A planted cause that changed the time by less is no cause of anything."""


@dataclass(frozen=True)
class PlantedChange:
    """Both sides' figures of a change whose cause is known."""

    name: str
    base: Mapping[str, float]
    head: Mapping[str, float]
    change_pct: float
    named: tuple[str, ...]

    def as_quick(self) -> PlantedChange:
        """With the warp states that a quick profile reads."""
        read = {metrics.STALL_PREFIX + reason for reason in metrics.quick_stalls((9, 0))}
        base, head = (
            {key: value for key, value in side.items() if not metrics.is_stall(key) or key in read}
            for side in (self.base, self.head)
        )
        return replace(self, base=base, head=head)

    def reversed(self) -> PlantedChange:
        change = 100 * (1 / (1 + self.change_pct / 100) - 1)
        return PlantedChange(f"{self.name}, undone", self.head, self.base, change, self.named)

    @property
    def said(self) -> str:
        """What "Why" says first."""
        return budget.sentences(budget.budget(self.base, self.head, self.change_pct))[0]

    @property
    def is_named(self) -> bool:
        return any(words in f" {self.said.partition(';')[0]}" for words in self.named)


def of_record(name: str, made: RunRecord, named: tuple[str, ...]) -> PlantedChange:
    sides = {one.side: {k: v for k, v in one.metrics.items() if isinstance(v, float)} for one in made.profile}
    key = made.profile[0].key
    timings = [one.samples_us for process in made.processes for one in process.timings if one.key == key]
    ratios = [median(samples["head"]) / median(samples["base"]) for samples in timings if "head" in samples]
    return PlantedChange(name, sides["base"], sides["head"], 100 * (median(ratios) - 1), named)


@cache
def figures(name: str) -> Mapping[str, float]:
    return ncu_reader.launches(str(DATA / "nsight" / f"attention_{name}.ncu-repz"))[0].figures


def of_report(name: str) -> PlantedChange:
    """Changed by what the profile's own cycles changed: nothing else was measured."""
    base, head = (figures(side) for side in ("before", name))
    cycles = [side["duration_us"] * side["sm_mhz"] for side in (base, head)]
    return PlantedChange(name, base, head, 100 * (cycles[1] / cycles[0] - 1), REPORTS[name])


def measured() -> Iterator[PlantedChange]:
    for cause in CAUSES:
        path = DATA / "causes" / f"{cause.name}.json"
        if path.exists():
            found = of_record(cause.name, record.read(path), cause.named)
            if abs(found.change_pct) >= COUNTS_PCT:
                yield found
    yield from map(of_report, REPORTS)
    for name, named in RECORDS.items():
        yield of_record(name, record.read(DATA / f"{name}.json"), named)


@pytest.fixture(scope="module")
def known() -> list[PlantedChange]:
    return list(measured())


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.name)
def test_every_cause_applies_to_the_kernels_as_they_are(cause: Cause) -> None:
    tree, _ = SOURCES[cause.head.kernel]
    assert planted(cause.base, tree) != planted(cause.head, tree)


@pytest.mark.slow
def test_the_first_sentence_names_what_was_planted(known: list[PlantedChange]) -> None:
    """And, where it is undone, what that won; from all warp states as from those of a quick profile."""
    assert len(known) >= 12
    quick = [one.as_quick() for one in known]
    for cases in (known, [one.reversed() for one in known], quick, [one.reversed() for one in quick]):
        missed = {one.name: one.said for one in cases if not one.is_named}
        assert len(missed) <= (1 - LEAST) * len(cases), missed
        said = f"its first sentence named {len(cases) - len(missed)} of {len(cases)} planted causes"
        assert said in (DATA.parents[1] / "docs" / "CUDA_COOKBOOK.md").read_text(encoding="utf-8")


def test_a_profile_of_another_kernel_explains_nothing() -> None:
    """The library ran another code path under ncu than while it was timed: 2.9 times the time, and hardly a change."""
    for path in (DATA / "causes" / "another_kernel").glob("*.json"):
        found = of_record(path.stem, record.read(path), ())
        for one in (found, found.reversed()):
            assert re.match(r"not known: \S+% \w+ under the profiler", one.said), one.said
