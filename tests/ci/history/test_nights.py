"""The changes that nights suggest, what is told of them, and which commits people are told of."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench.record import Cost, Run
from kernelgate.ci.history import culprits, index, nights, store
from kernelgate.ci.history.culprits import WantedPair
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry, Entry, PointEntry, SeriesEvent
from kernelgate.ci.history.facts import CaseName, ComparedPair, KnownCulprits, NightPlan
from kernelgate.ci.history.nights import CaseChanges
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.history.store import Store
from kernelgate.ci.policy.policy import Policy
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
    effect, seen = float(np.log1p(pct / 100)), {"error": 3e-4, "spread_pct": 0.05, "processes": 7, "status": "slower"}
    compared = ComparisonEntry.model_validate({"base": sha(old), "head": sha(new), "effect": effect, **seen})
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


def test_the_records_of_one_bad_night_are_no_change_and_those_of_a_step_hide_none(index_at: Database) -> None:
    pct = [stepped(at) + 3.0 * (at == STEP // 2) for at in range(NIGHTS)]
    thrice = [
        a_night(at, pct[at]).model_copy(update={"name": named(f"{at} {of}")}) for at in range(NIGHTS) for of in "abc"
    ]
    [one] = found(index_at, *thrice)
    assert len(one.places) == NIGHTS
    assert [(change.previous, change.commit) for change in one.changes] == [(sha(STEP - 1), sha(STEP))]


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


BACK = 18
NOTHING = KnownCulprits(schema="kernelgate.culprits/1", culprits=())


def told(index_at: Database) -> KnownCulprits:
    return read(index_at, culprits.of_index, read(index_at, nights.of_index, Wanted()))


def nightly(index_at: Database, *cases: str, back: int = NIGHTS, at: int = STEP) -> None:
    """Each case 2% slower from the night `at` on, until the night `back`."""
    pct = [2.0 if at <= number < back else 0.0 for number in range(NIGHTS)]
    found(index_at, *(a_night(number, pct[number], case=case) for number in range(NIGHTS) for case in cases))


def test_nobody_is_told_of_what_is_only_suspected_or_faster(index_at: Database) -> None:
    nightly(index_at, "one")
    assert told(index_at) == NOTHING
    put(index_at, a_pair(STEP - 1, STEP, -2.0))
    assert told(index_at) == NOTHING


def test_a_confirmed_change_of_one_commit_has_its_culprit(index_at: Database) -> None:
    nightly(index_at, "one")
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    [culprit] = told(index_at).culprits
    [case] = culprit.cases
    assert (culprit.previous, culprit.commit, culprit.commits) == (sha(STEP - 1), sha(STEP), 1)
    assert (case.card, case.case, case.state, case.by) == ("norm", "one", "slower", "")
    assert case.change_pct == pytest.approx(2.0, abs=0.1)
    assert case.record == named(f"pair {STEP - 1} {STEP}")
    assert case.interval_pct[0] < 2.0 < case.interval_pct[1]
    assert culprits.text(told(index_at)).startswith(f"{sha(STEP)[:12]}: norm/one on NVIDIA H200 +2.00%, slower")
    write(index_at, index.add_event, named("e"), event("accepted", STEP))
    [culprit] = told(index_at).culprits
    assert (culprit.cases[0].state, culprit.cases[0].by) == ("accepted", "by somebody: it must be")


def test_a_confirmed_change_back_fixes_it_and_one_by_half_does_not(index_at: Database) -> None:
    nightly(index_at, "one", back=BACK)
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    assert told(index_at).culprits[0].cases[0].state == "slower", "the way back is only suspected"
    put(index_at, a_pair(BACK - 1, BACK, -1.0))
    assert [case.state for one in told(index_at).culprits for case in one.cases] == ["slower"]
    put(index_at, a_pair(BACK - 1, BACK, -1.96))
    [culprit] = told(index_at).culprits
    assert (culprit.cases[0].state, culprit.cases[0].by) == ("fixed", sha(BACK))


def test_a_comparison_of_few_processes_suffices_where_nights_show_how_far_they_scatter(index_at: Database) -> None:
    pair = a_pair(STEP - 1, STEP, 1.0)
    few = pair.cases[0].comparisons[0].model_copy(update={"error": 6e-4, "spread_pct": 0.1, "processes": 3})
    seen = [a_night(number, stepped(number) / 2) for number in range(NIGHTS)]
    case = pair.cases[0].model_copy(update={"comparisons": (few,)})
    [one] = found(index_at, *seen, pair.model_copy(update={"cases": (case,)}))
    [change] = one.changes
    assert change.state == "confirmed"
    assert nights.settled(change, one.measured).state == "suspected", "the comparison alone is not enough"


@pytest.mark.parametrize(
    ("commit", "state"), [(STEP - 2, "accepted"), (STEP - 4, "suspected"), (STEP + 1, "suspected")]
)
def test_a_step_is_accepted_by_any_commit_that_may_have_made_it(index_at: Database, commit: int, state: str) -> None:
    """Nights place it between the fourth commit before its first one and that."""
    measured = [number for number in range(NIGHTS) if not STEP - 4 < number < STEP]
    put(index_at, an_entry("a pull request, merged", sha(commit)))
    write(index_at, index.add_event, named("e"), event("accepted", commit))
    [one] = found(index_at, *(a_night(number, stepped(number)) for number in measured))
    assert [change.state for change in one.changes] == [state]
    assert told(index_at).searches == (), "what is accepted is not searched for"


def sparse(index_at: Database, gap: int) -> None:
    """Of so many commits up to the step, the last alone was measured at night."""
    measured = [number for number in range(NIGHTS) if not STEP - gap < number < STEP]
    found(index_at, *(a_night(number, stepped(number)) for number in measured), a_pair(STEP - gap, STEP, 2.0))


def compare(index_at: Database, old: int, new: int, pct: float, look: int = 0) -> None:
    pair = a_pair(old, new, pct)
    found(index_at, pair.model_copy(update={"name": named(f"{old} {new} {look}")}))


def test_a_search_that_tells_nothing_ends_and_the_whole_range_is_told(index_at: Database) -> None:
    """Each comparison shows half of the change, and so does not say on which side it lies."""
    sparse(index_at, 8)
    count = 0
    while searches := told(index_at).searches:
        count += 1
        compare(index_at, *searches[0].pairs[0], 1.0, count)
    assert count <= 4
    [one] = told(index_at).culprits
    assert (one.kind, one.previous, one.commit) == ("drift", sha(STEP - 8), sha(STEP)), "no commit made most of it"


@pytest.mark.parametrize(
    ("gap", "broken", "commits"), [(2, [1], 2), (6, [2, 3], 3), (6, [1, 2, 3, 4, 5], 6), (6, [4], 1)]
)
def test_a_search_beside_commits_that_do_not_compile_ends_with_the_range(
    index_at: Database, gap: int, broken: list[int], commits: int
) -> None:
    """The second of six commits made it; a pair that cannot be compared leaves a record of nothing."""
    sparse(index_at, gap)
    culprit, count = STEP - gap + 2, 0
    while searches := told(index_at).searches:
        old, new = searches[0].pairs[0]
        count += 1
        if {old, new} & {STEP - gap + at for at in broken}:
            run = Run(base_sha=sha(old), head_sha=sha(new), created_at="2026-08-20")
            found(index_at, an_entry(f"nothing {count}", run=run, cases=()))
        else:
            compare(index_at, old, new, 2.0 if old < culprit <= new else 0.0, count)
        assert count <= 20
    [one] = told(index_at).culprits
    assert (one.kind, one.commits) == ("commit", commits)
    assert one.previous <= sha(culprit - 1) < sha(culprit) <= one.commit


def test_a_suspicion_of_commits_that_cannot_be_compared_is_no_nights_work(index_at: Database) -> None:
    nightly(index_at, "one")
    for look in range(nights.LOOKS):
        assert len(planned(index_at).pairs) == 1
        wrong = a_pair(STEP - 1, STEP, 2.0)
        case = wrong.cases[0].model_copy(update={"finding": "the head is wrong"})
        put(index_at, wrong.model_copy(update={"name": named(f"wrong {look}"), "cases": (case,)}))
    assert planned(index_at).pairs == ()


def test_a_drift_is_told_as_one_and_not_searched(index_at: Database) -> None:
    """Nights of 60 commits, each a little slower, and a comparison of nearly its ends."""
    nights_ = 80
    line = [sha(number) for number in range(nights_)]
    put(index_at, *(a_night(number, 2.0 * min(max(number - 10, 0), 60) / 60) for number in range(nights_)))
    write(index_at, index.place, line)
    [[suspected]] = [one.changes for one in read(index_at, nights.of_index, Wanted())]
    assert (suspected.kind, told(index_at)) == ("drift", NOTHING)
    put(index_at, a_pair(suspected.previous_place + 2, suspected.place - 2, 1.9))
    assert told(index_at).searches == ()
    [one] = told(index_at).culprits
    assert (one.kind, one.commits) == ("drift", suspected.place - suspected.previous_place - 4)


POLICY = Policy()
ONE = WantedPair(CaseName("", "attention", "M=512", "H200"), "aaaaaaa", "bbbbbbb", 1.0, 5, process_seconds=10.0)
LARGE = replace(ONE, series=replace(ONE.series, case="large"), previous="c", commit="d", gain=4.0)


def with_budget(seconds: float) -> Policy:
    return POLICY.model_copy(update={"changes": POLICY.changes.model_copy(update={"gpu_seconds_a_night": seconds})})


def test_cases_of_the_same_two_commits_share_processes_on_each_kind_of_gpu() -> None:
    other = replace(ONE, series=replace(ONE.series, case="M=1024"), processes=4)
    elsewhere = replace(ONE, series=replace(ONE.series, gpu="A100"))
    first, second = culprits.planned([ONE, other, elsewhere], POLICY).pairs
    assert (first.gpu, first.cases) == ("A100", ("attention/M=512",))
    assert (second.previous, second.commit) == ("aaaaaaa", "bbbbbbb")
    assert (second.gpu, second.cases) == ("H200", ("attention/M=512", "attention/M=1024"))
    assert (second.processes, second.gpu_seconds) == (5, 100.0)


def test_the_budget_holds_and_what_reveals_most_comes_first() -> None:
    plan = culprits.planned([ONE, LARGE], with_budget(60.0))
    assert [pair.cases for pair in plan.pairs] == [("attention/large",)]
    assert [one.case for one in plan.postponed] == ["attention/M=512"]
    assert "another night: 1 comparison" in culprits.plan_text(plan, with_budget(60.0))
    [fewer] = culprits.planned([ONE], with_budget(25.0)).pairs
    assert fewer.processes == POLICY.processes.minimum
    assert culprits.planned([ONE], with_budget(19.0)).pairs == ()


def planned(index_at: Database) -> NightPlan:
    return read(index_at, culprits.plan, read(index_at, nights.of_index, Wanted()), POLICY)


def test_what_is_suspected_becomes_commands_that_settle_it(index_at: Database) -> None:
    nightly(index_at, "one", "two")
    plan = planned(index_at)
    [pair] = plan.pairs
    assert (pair.previous, pair.commit, pair.cases) == (sha(STEP - 1), sha(STEP), ("norm/one", "norm/two"))
    words = shlex.split(pair.commands[0])
    assert words[:6] == ["kernelgate", "bench", "--base", sha(STEP - 1), "--head", sha(STEP)]
    assert [words[at + 1] for at, word in enumerate(words) if word == "--case"] == ["norm/one", "norm/two"]
    assert shlex.split(pair.commands[1]) == ["kernelgate", "history", "add", words[-1]]
    text = culprits.plan_text(plan, POLICY).splitlines()
    assert text == [f"# on {pair.gpu}: about {pair.gpu_seconds:.0f} of 600 GPU-seconds", *pair.commands]


TONIGHT = (datetime(2026, 8, 20, 4, tzinfo=UTC), [sha(number) for number in range(NIGHTS)])
COMPARED = Run(created_at="2026-08-20T03:30:00Z", event="schedule", base_sha="b" * 40)


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    return store.at(str(tmp_path / "store"))


def labelled(index_at: Database, kept: Store, gpu: str = "l4", day: int = 19) -> None:
    """The newest record of the kind of GPU says on which runners it is."""
    made = an_entry(f"of {gpu}", run=Run(gpu=gpu, created_at=f"2026-08-{day}T00:00:00Z"), cases=())
    put(index_at, made)
    store.write(kept, "judgements", f"{made.name}-{made.rules}", made.model_dump_json(by_alias=True).encode())


def spent(index_at: Database, name: str, run: Run, seconds: float = 598.0) -> None:
    put(index_at, an_entry(name, run=run, cases=(), costs=(Cost(phase="calls", gpu_seconds=seconds),)))


def chosen(index_at: Database, kept: Store, now: datetime = TONIGHT[0]) -> list[ComparedPair]:
    plan = read(index_at, culprits.plan, read(index_at, nights.of_index, Wanted()), POLICY, TONIGHT[1], now)
    return list(read(index_at, culprits.of_run, kept, plan, POLICY))


def test_a_run_compares_all_pairs_that_a_runner_can(index_at: Database, kept: Store) -> None:
    labelled(index_at, kept)
    put(index_at, an_entry("a pull request's"))
    assert chosen(index_at, kept) == [], "nothing is suspected"
    nightly(index_at, "one")
    nightly(index_at, "two", at=BACK)
    first, second = chosen(index_at, kept)
    assert (first.name, first.gpu, first.target, first.cases) == ("-1", "l4", "8.9", "norm/one")
    assert [(pair.base_sha, pair.head_sha) for pair in (first, second)] == [
        (sha(at - 1), sha(at)) for at in (STEP, BACK)
    ]
    labelled(index_at, kept, "a100", 20)
    assert chosen(index_at, kept) == [], "no runner has that GPU"


def test_what_the_night_has_spent_is_gone(index_at: Database, kept: Store) -> None:
    """By comparisons of this night: neither its own baseline nor last night counts."""
    nightly(index_at, "one")
    labelled(index_at, kept)
    spent(index_at, "yesterday", COMPARED.model_copy(update={"created_at": "2026-08-19T05:00:00Z"}))
    spent(index_at, "baseline", COMPARED.model_copy(update={"base_sha": None}))
    assert len(chosen(index_at, kept)) == 1
    spent(index_at, "tonight", COMPARED)
    assert chosen(index_at, kept) == []


def test_searches_share_a_pair_that_tells_much_of_each(index_at: Database, kept: Store) -> None:
    """Of eight commits and of four, between two that were measured; the index knows none between them."""
    measured = [number for number in range(NIGHTS) if not STEP - 9 < number < STEP]
    pair, half = a_pair(STEP - 9, STEP, 2.0), a_pair(STEP - 9, STEP - 5, 2.0)
    two = [one.cases[0].model_copy(update={"case": "two"}) for one in (pair, half)]
    both = pair.model_copy(update={"cases": (*pair.cases, two[0])})
    ended = half.model_copy(update={"cases": (two[1],)})
    found(index_at, *(a_night(at, stepped(at), case=case) for at in measured for case in ("one", "two")), both)
    labelled(index_at, kept)
    [one] = chosen(index_at, kept)
    assert (one.base_sha, one.cases, one.processes) == (sha(STEP - 9), "norm/one norm/two", "2")
    assert one.head_sha in {sha(STEP - back) for back in (4, 5)}
    found(index_at, ended)
    heads = {pair.head_sha: pair.cases for pair in chosen(index_at, kept)}
    assert heads.keys() <= {sha(STEP - back) for back in range(3, 9)}, heads


@pytest.mark.parametrize("culprit", [STEP - 5, STEP])
def test_comparisons_with_the_older_end_halve_the_range_until_one_commit_is_left(
    index_at: Database, culprit: int
) -> None:
    sparse(index_at, 6)
    for _ in range(4):
        for search in told(index_at).searches:
            old, new = search.pairs[0]
            compare(index_at, old, new, 2.0 if old < culprit <= new else 0.0)
    [one] = told(index_at).culprits
    assert (one.kind, one.previous, one.commit, one.commits) == ("commit", sha(culprit - 1), sha(culprit), 1)
