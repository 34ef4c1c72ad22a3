"""The index's nights and comparisons as changes.py reads them, and what is told of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelgate.bench.record import Run
from kernelgate.ci.history import index, nights
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry, Entry, PointEntry, SeriesEvent
from kernelgate.ci.history.facts import CaseName
from kernelgate.ci.history.nights import CaseChanges
from kernelgate.ci.history.series import Wanted
from tests.ci.history.entries import H200, an_entry, named, put, read, write

PINNED = "f" * 40
NIGHTS, STEP = 24, 12


def sha(number: int) -> str:
    return f"{number + 1:040x}"


def a_night(number: int, pct: float, pinned: str = PINNED, case: str = "one", finding: str | None = None) -> Entry:
    """The head of that number, so much slower than the pinned commit."""
    rng = np.random.default_rng(number)
    effect = float(np.log1p(pct / 100) + rng.normal(0, 5e-4))
    compared = ComparisonEntry(base=pinned, head=sha(number), effect=effect, error=5e-4, spread_pct=0.1, processes=4)
    one = CaseEntry(card="norm", case=case, comparisons=(compared,), finding=finding)
    return an_entry(f"night {number} {pinned} {case}", cases=(one,))


def a_pair(old: int, new: int, pct: float) -> Entry:
    compared = ComparisonEntry(
        base=sha(old), head=sha(new), effect=float(np.log1p(pct / 100)), error=3e-4, spread_pct=0.05, processes=7,
        status="slower",
    )  # fmt: skip
    return an_entry(f"pair {old} {new}", cases=(CaseEntry(card="norm", case="one", comparisons=(compared,)),))


def stepped(number: int) -> float:
    return 2.0 if number >= STEP else 0.0


def found(index_at: Database, *entries: Entry) -> tuple[CaseChanges, ...]:
    put(index_at, *entries)
    write(index_at, index.place, [sha(number) for number in range(NIGHTS)])
    return read(index_at, nights.of_index, Wanted())


def event(kind: str, number: int) -> SeriesEvent:
    gpu = H200.device.name or ""
    return SeriesEvent.model_validate(
        {"made": "2026-08-01T00:00:00Z", "kind": kind, "card": "norm", "case": "one", "gpu": gpu, "sha": sha(number),
         "who": "somebody", "why": "it must be"}
    )  # fmt: skip


def test_what_another_repository_accepts_is_not_accepted_here(index_at: Database) -> None:
    elsewhere = event("accepted", STEP).model_copy(update={"repository": "someone/fork"})
    write(index_at, index.add_event, named("e"), elsewhere)
    every = tuple(a_night(n, stepped(n)) for n in range(NIGHTS))
    assert [one.changes[0].state for one in found(index_at, *every)] == ["suspected"]
    theirs = (one.model_copy(update={"name": named(one.name), "run": Run(repository="someone/fork")}) for one in every)
    both = {one.series.repository: one.changes[0].state for one in found(index_at, *theirs)}
    assert both == {"": "suspected", "someone/fork": "accepted"}


def test_a_comparison_with_a_commit_off_the_default_branch_confirms_nothing(index_at: Database) -> None:
    """As of a pull request's head that was squashed: whether the change lies between the two is not known."""
    every = [a_night(number, stepped(number)) for number in range(NIGHTS)]
    ((change,),) = (one.changes for one in found(index_at, *every, a_pair(STEP - 1, NIGHTS + 7, 2.0)))
    assert change.state == "suspected"


def on(entry: Entry, uuid: str, version: str = "0.1.0") -> Entry:
    """The same on this GPU, by this kernelgate."""
    device = H200.device.model_copy(update={"uuid": uuid})
    environment, run = H200.model_copy(update={"device": device}), entry.run.model_copy(update={"version": version})
    return entry.model_copy(update={"environment": environment, "run": run})


def test_machines_that_take_turns_are_no_change_and_a_release_of_ours_hides_none(index_at: Database) -> None:
    """The second machine is 3% off; another case is 2% slower from one night on, and kernelgate is new each night."""
    every = [on(a_night(n, 3.0 * (n % 2)), f"GPU-{n % 2}") for n in range(NIGHTS)]
    (one,) = found(index_at, *every)
    assert (len(one.places), one.changes) == (NIGHTS, ())
    put(index_at, *(on(a_night(n, stepped(n), case="two"), "GPU-0", f"0.{n}") for n in range(NIGHTS)))
    (two,) = read(index_at, nights.of_index, Wanted(case="two"))
    [change] = two.changes
    assert (change.previous, change.commit) == (sha(STEP - 1), sha(STEP))
    put(index_at, *(a_night(n, stepped(n), PINNED if n < STEP else "e" * 40, case="three") for n in range(NIGHTS)))
    (three,) = read(index_at, nights.of_index, Wanted(case="three"))
    assert three.changes == (), "of another pinned commit"


def test_nights_that_nobody_should_believe_are_left_out(index_at: Database) -> None:
    good = [a_night(number, 0.0) for number in range(STEP)]
    throttled = [a_night(number, 9.0, finding="throttled") for number in range(STEP, NIGHTS - 2)]
    write(index_at, index.add_event, named("e"), event("excluded", NIGHTS - 2))
    off_the_branch = a_night(NIGHTS + 5, 9.0)
    (one,) = found(index_at, *good, *throttled, a_night(NIGHTS - 2, 9.0), off_the_branch)
    assert (len(one.places), one.changes) == (STEP, ())


def test_what_a_terminal_and_a_script_get(index_at: Database) -> None:
    every = [a_night(number, stepped(number)) for number in range(NIGHTS)]
    cases = found(index_at, *every, a_pair(STEP - 1, STEP, 2.0))
    (change,) = nights.oldest_first(cases)
    assert change.series == CaseName("", "norm", "one", "NVIDIA H200")
    assert (change.commit, change.previous, change.commits) == (sha(STEP), sha(STEP - 1), 1)
    lines = nights.text(cases).splitlines()
    assert lines[0].split() == ["commits", "change", "95%", "state", "case"]
    size = ["0000000..0000000", "+2.0%", "[+1.9,", "+2.1]"]
    assert lines[1].split() == [*size, "confirmed", "norm/one", "on", "the", "H200"]
    assert lines[3].split() == [sha(STEP)[:7], "2026-08-01"]
    assert lines[-1] == f"1 case, {NIGHTS} nights: 1 change"
    by = replace(change, author="Ada", subject="Tile by 128", commits=3)
    told = nights.text([replace(one, changes=(by,)) for one in cases])
    assert f"\n\n{sha(STEP)[:7]} 2026-08-01 Ada: Tile by 128 (the last of 3 commits)\n\n1 case" in told


def times(count: int, step_at: int, pct: float, noise: float = 0.01, seed: int = 1) -> tuple[Entry, ...]:
    """Heads that nothing ran beside, of commits whose places are known or not."""
    draw = np.random.default_rng(seed).normal(0, noise, count)
    return tuple(
        an_entry(
            f"time {number} {seed}",
            run=Run(head_sha=sha(number), created_at=f"2026-08-01T00:{number:02d}:00Z"),
            cases=(CaseEntry(card="norm", case="one", points=(a_point(number, pct * (number >= step_at), draw),)),),
        )
        for number in range(count)
    )


def a_point(number: int, pct: float, draw: np.ndarray) -> PointEntry:
    us = 100.0 * (1 + pct / 100) * float(np.exp(draw[number]))
    return PointEntry(side="head", commit=sha(number), us=us, processes=3, rounds=60)


@pytest.mark.parametrize("placed", [True, False])
def test_without_a_pinned_commit_a_step_is_suspected_by_times_alone(index_at: Database, placed: bool) -> None:
    put(index_at, *times(40, 25, 8.0))
    if placed:
        write(index_at, index.place, [sha(number) for number in range(40)])
    made = read(index_at, nights.of_index, Wanted())
    [one] = made
    [change] = one.changes
    assert (one.pinned, change.state) == (False, "suspected")
    assert 25 - 7 <= change.previous_place < 25 <= change.place < 25 + 7
    assert change.change_pct == pytest.approx(8.0, abs=1.5)
    assert "By times alone in 1 case" in nights.text(made)
    assert nights.oldest_first(made)[0].pinned is False
