"""A search over 16 real commits on an H200, one of which slows a kernel by about 1%: what its measurements tell."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from kernelgate.bench import record
from kernelgate.ci.bisect import rounds
from kernelgate.ci.bisect.posterior import Search
from kernelgate.ci.document.formatting import as_percent

MADE = record.read(Path(__file__).parents[2] / "data" / "bisect" / "wgmma-12.json")
PLACES = (0, 15, 1, 2, 3, 4, 5, 6, 8, 9, 11, 13, 14, 10, 12)
"""Of the commits, in the order in which they were built; the one at 7 does not compile."""


def test_the_slowed_commit_is_found_in_the_second_round() -> None:
    place = {f"commit:{built.sha}": at for built, at in zip(MADE.builds, PLACES, strict=True)}
    library = {at: built.library_sha256 for built, at in zip(MADE.builds, PLACES, strict=True)}
    same = frozenset(pair for pair in pairwise(sorted(library)) if library[pair[0]] == library[pair[1]])
    search = Search(15, unmeasurable={7: "does not compile"}, same=same, spread_pct=rounds.TOGETHER_PCT)
    kinds = []
    for process in MADE.processes:
        read = rounds.times(process.timings[0], place)
        search = replace(search, processes=(*search.processes, read))
        found = rounds.standing(search)
        kinds.append(found.kind)
    assert (kinds[-1], found.culprits) == ("found", (12,))
    assert kinds[rounds.PROCESSES - 1] == "open", "after a round"
    low, high = (as_percent(found.effect + side * rounds.NORMAL_95 * found.error) for side in (-1, 1))
    assert 1.09 <= low <= high <= 1.26
