"""Honest changes: two draws from a kernel's knobs, the base's and the head's. All are cases of one run.

Which change a call is of, the axis `change` says: so one library has them all, and fifty take as many processes as one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelgate.bench.build.library import Library
from tests.cheats import judged, libraries

CHANGES = 50
ACCUSED = ("refused", "wrong output")
CONTRADICTED = "witness_contradicts"
"""A witness that is too noisy to confirm an improvement says so, which accuses nobody."""

Change = tuple[tuple[int, ...], tuple[int, ...]]
"""The knobs of base and head."""


def changes(knobs: Mapping[str, Sequence[int]], seed: int) -> list[Change]:
    """As many as were promised, each unlike all others."""
    rng = random.Random(seed)
    made: list[Change] = []
    while len(made) < CHANGES:
        base, head = (tuple(rng.choice(values) for values in knobs.values()) for _ in range(2))
        if base != head and (base, head) not in made:
            made.append((base, head))
    return made


def check(chosen: Sequence[Change], folder: Path, shape: str, original: Library) -> None:
    """Times and judges them in one run, and asserts that none is accused. `shape`: axes, as a card writes them.

    What is accused is timed again: other tests share the cores, and what threads do there is no affair of the kernel.
    """
    accused = _accused(chosen, folder / "first", shape, original)
    if accused:
        accused = _accused(list(accused), folder / "again", shape, original)
    assert not accused, accused


def check_gain(
    knobs: Mapping[str, Sequence[int]], slow: Mapping[str, int], folder: Path, shape: str, original: Library
) -> None:
    """As large a gain as most cheats pretend, from knobs that make the base `slow`."""
    head = {name: values[0] for name, values in knobs.items()}
    change = (tuple({**head, **slow}.values()), tuple(head.values()))

    def once(number: int) -> judged.Judgement:
        ((_, done),) = _judged([change], folder / f"{number}", shape, original)
        return done

    judged.check_faster(once)


def _accused(chosen: Sequence[Change], folder: Path, shape: str, original: Library) -> dict[Change, str]:
    done = _judged(chosen, folder, shape, original)
    return {one: str(said) for one, said in done if said.outcome in ACCUSED or CONTRADICTED in said.codes}


def _judged(
    chosen: Sequence[Change], folder: Path, shape: str, original: Library
) -> list[tuple[Change, judged.Judgement]]:
    case = f"*(dict({shape}, change=change, dtype='fp32') for change in range({len(chosen)}))"
    repo = judged.repository(folder / "repository", case=case, call="ops.norm_as", more=", case.change")
    sides = []
    for at, side in enumerate(("base", "head")):
        lists = "".join(f"{','.join(map(str, change[at]))};" for change in chosen)
        sides.append(libraries.native(folder / side, f"cheat=none changes={lists}", original=original))
    done = judged.judge_all(repo, sides[0].folder, sides[1].folder, 30, cuda=bool(original.manifest.targets))
    assert len(done) == len(chosen), done
    numbers = [int(re.findall(r"_change(\d+)_", (one.case or {})["id"])[0]) for one in done]
    return [(chosen[number], one) for number, one in zip(numbers, done, strict=True)]
