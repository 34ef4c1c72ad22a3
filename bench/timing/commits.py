"""Several commits of one card, timed beside each other in fresh processes: what a bisection measures."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from kernelgate.bench import record
from kernelgate.bench.build.library import Library, Sides
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.system import progress
from kernelgate.bench.timing import process
from kernelgate.bench.timing.case_timing import ROUNDS_PER_TURN
from kernelgate.bench.timing.process import Setup, Timed, Turn
from kernelgate.bench.timing.runner import ProcessError


@dataclass(frozen=True)
class CommitsPlan:
    """One case of these commits, by `commit:SHA`."""

    card: CardFacts
    case: CaseFacts
    libraries: dict[record.Side, Library]

    def role(self, together: bool) -> record.Role:  # noqa: ARG002 - a search has but one
        return "bisect"


def side(sha: str) -> record.Side:
    return f"commit:{sha}"


def clash(libraries: Sequence[Library]) -> str | None:
    """Why not all of these can share a process."""
    pairs = combinations(libraries, 2)
    # A file that two commits have in common, whose cards differ, is loaded once.
    found = (Sides(one, other).clash for one, other in pairs if one.manifest.sha256 != other.manifest.sha256)
    return next((why for why in found if why), None)


def timed(setup: Setup, plan: CommitsPlan, number: int, together: bool) -> Timed:
    """Times the case of all commits in one process, or in processes that take turns. Raises ProcessError."""
    steps = -(-setup.how.rounds // ROUNDS_PER_TURN)
    # Whichever process starts first may be slow for good, so it is drawn.
    rng = random.Random(f"{setup.how.seed}/{number}/order")  # noqa: S311 - not for secrets
    shuffled = dict(rng.sample(list(plan.libraries.items()), len(plan.libraries)))
    drawn = CommitsPlan(plan.card, plan.case, shuffled)
    name = f"process {number}"
    turn = Turn(part=drawn, cases=(plan.case,), number=number, together=together, id=f"bisect-{number}", name=name)
    with progress.track(f"bisect, {name}, {len(shuffled)} commits", steps) as advance:
        return process.timed(setup, turn, advance)


def at_fault(setup: Setup, plan: CommitsPlan, number: int) -> Mapping[record.Side, str]:
    """Which commits cannot be timed even without the others, and why. None of them: they do not get on together."""
    found: dict[record.Side, str] = {}
    for at, (one, library) in enumerate(plan.libraries.items(), 1):
        alone = CommitsPlan(plan.card, plan.case, {one: library})
        turn = Turn(alone, (plan.case,), number, together=True, id=f"bisect-{number}-{at}", name="it")
        try:
            process.timed(setup, turn, lambda _: None)
        except ProcessError as error:
            found[one] = error.fault.replace(one, "it")
    return found
