"""Which commits people are told of: confirmed ones alone, searched for where several come into question."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kernelgate.bench.record import Cost, Environment, Run
from kernelgate.ci.history import culprits, index, nights, store
from kernelgate.ci.history.culprits import Suspicion
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import SeriesEvent
from kernelgate.ci.history.facts import CaseName, Change, KnownCulprits, NightPlan
from kernelgate.ci.history.nights import LOOKS
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.history.store import Store
from kernelgate.ci.policy.policy import TO_DIRECT, Policy
from tests.ci.history.entries import an_entry, named, put, read, write
from tests.ci.history.test_nights import NIGHTS, STEP, a_night, a_pair, event, found, sha, stepped, times

BACK = 18
NOTHING = KnownCulprits(schema="kernelgate.culprits/1", culprits=())


def told(index_at: Database) -> KnownCulprits:
    return read(index_at, culprits.of_index, read(index_at, nights.of_index, Wanted()))


def decide(index_at: Database, *events: SeriesEvent) -> None:
    for number, one in enumerate(events):
        write(index_at, index.add_event, named(f"e{number}"), one)


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


def test_of_several_commits_one_is_searched_for_first(index_at: Database) -> None:
    nightly(index_at, "one")
    put(index_at, a_pair(STEP - 3, STEP, 2.0))
    [search] = told(index_at).searches
    assert (told(index_at).culprits, search.good, search.bad) == ((), sha(STEP - 3), sha(STEP))
    assert set(search.pairs) == {(STEP - 3, STEP - 2), (STEP - 3, STEP - 1)}


def test_a_confirmed_change_back_fixes_it_and_one_by_half_does_not(index_at: Database) -> None:
    nightly(index_at, "one", back=BACK)
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    assert told(index_at).culprits[0].cases[0].state == "slower", "the way back is only suspected"
    half = a_pair(BACK - 1, BACK, -1.0)
    put(index_at, half)
    assert [case.state for one in told(index_at).culprits for case in one.cases] == ["slower"]
    put(index_at, a_pair(BACK - 1, BACK, -1.96))
    [culprit] = told(index_at).culprits
    assert (culprit.cases[0].state, culprit.cases[0].by) == ("fixed", sha(BACK))


def test_what_was_accepted_is_said_to_be(index_at: Database) -> None:
    found(index_at, *(a_night(number, stepped(number)) for number in range(NIGHTS)))
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    decide(index_at, event("accepted", STEP))
    [culprit] = told(index_at).culprits
    assert (culprit.cases[0].state, culprit.cases[0].by) == ("accepted", "by somebody: it must be")


def sparse(index_at: Database, gap: int) -> None:
    """Of so many commits up to the step, the last alone was measured at night."""
    measured = [number for number in range(NIGHTS) if not STEP - gap < number < STEP]
    found(index_at, *(a_night(number, stepped(number)) for number in measured), a_pair(STEP - gap, STEP, 2.0))


def compare(index_at: Database, old: int, new: int, pct: float, look: int = 0) -> None:
    pair = a_pair(old, new, pct)
    found(index_at, pair.model_copy(update={"name": named(f"{old} {new} {look}")}))


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


def test_what_came_little_by_little_is_no_commits_fault(index_at: Database) -> None:
    """Each of the commits made a sixth; the one in the middle is compared with the one before it, and let go."""
    sparse(index_at, 6)
    for look in range(8):
        for search in told(index_at).searches:
            old, new = search.pairs[0]
            compare(index_at, old, new, 2.0 / 6 * (new - old), look)
    [one] = told(index_at).culprits
    assert (one.kind, one.previous, one.commit, one.commits) == ("drift", sha(STEP - 6), sha(STEP), 6)
    assert culprits.text(told(index_at)).startswith(
        f"drift since {sha(STEP - 6)[:12]} up to {sha(STEP)[:12]}: norm/one"
    )


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


def test_a_commit_that_cannot_be_told_is_left_and_the_rest_is_told_as_several(index_at: Database) -> None:
    sparse(index_at, 2)
    for look in range(LOOKS):
        [search] = told(index_at).searches
        assert search.pairs == ((STEP - 2, STEP - 1),)
        compare(index_at, STEP - 2, STEP - 1, 1.0, look)
    [one] = told(index_at).culprits
    assert (one.previous, one.commit, one.commits) == (sha(STEP - 2), sha(STEP), 2)


# ---- Which comparisons a night is to make, as commands and for a workflow's run, within what is left of the night ----

POLICY = Policy()
CHANGE = Change("step", "aaaaaaa", 10, "bbbbbbb", 13, "e", 1.0, (0.8, 1.2))
ONE = Suspicion(CaseName("", "attention", "M=512", "H200"), CHANGE, process_seconds=10.0)
LARGE = Suspicion(replace(ONE.series, case="large"), replace(CHANGE, previous="c", commit="d", change_pct=-4.0), 10.0)


def with_budget(seconds: float) -> Policy:
    return POLICY.model_copy(update={"changes": POLICY.changes.model_copy(update={"gpu_seconds_a_night": seconds})})


def test_cases_of_the_same_two_commits_share_processes_on_each_kind_of_gpu() -> None:
    other = replace(ONE, series=replace(ONE.series, case="M=1024"))
    elsewhere = replace(ONE, series=replace(ONE.series, gpu="A100"))
    first, second = culprits.planned([ONE, other, elsewhere], POLICY).pairs
    assert (first.gpu, first.cases) == ("A100", ("attention/M=512",))
    assert (second.previous, second.commit) == ("aaaaaaa", "bbbbbbb")
    assert (second.gpu, second.cases) == ("H200", ("attention/M=512", "attention/M=1024"))
    assert second.gpu_seconds == 20.0 * second.processes


def test_small_changes_and_noisy_cases_take_more_processes() -> None:
    large = replace(ONE, change=replace(CHANGE, change_pct=9.0))
    small = replace(ONE, change=replace(CHANGE, change_pct=0.2))
    counts = [culprits.needed(one, POLICY) for one in (large, small, replace(ONE, spread_pct=0.5))]
    assert counts[0] == TO_DIRECT
    assert counts[1] > counts[0]
    assert counts[2] == POLICY.processes.limit


def test_the_budget_holds_and_the_larger_change_comes_first_unless_one_waited_long() -> None:
    plan = culprits.planned([ONE, LARGE], with_budget(50.0))
    assert [pair.cases for pair in plan.pairs] == [("attention/large",)]
    assert plan.pairs[0].gpu_seconds <= 50.0
    assert [one.case for one in plan.postponed] == ["attention/M=512"]
    [waited] = culprits.planned([replace(ONE, waited=9), LARGE], with_budget(50.0)).pairs
    assert waited.cases == ("attention/M=512",)


def test_a_pair_that_is_too_long_gets_fewer_processes_or_is_postponed() -> None:
    [pair] = culprits.planned([ONE], with_budget(25.0)).pairs
    assert pair.processes == POLICY.processes.minimum
    for budget in (19.0, 0.0):
        plan = culprits.planned([ONE], with_budget(budget))
        assert (plan.pairs, len(plan.postponed)) == ((), 1)
        assert "another night: 1 suspicion" in culprits.plan_text(plan, with_budget(budget))


def planned(index_at: Database) -> NightPlan:
    return read(index_at, culprits.plan, read(index_at, nights.of_index, Wanted()), POLICY)


def suspect(index_at: Database, *cases: str) -> None:
    found(index_at, *(a_night(at, stepped(at), case=case) for at in range(NIGHTS) for case in cases))


def test_what_is_suspected_becomes_commands_that_settle_it(index_at: Database) -> None:
    suspect(index_at, "one", "two")
    plan = planned(index_at)
    [pair] = plan.pairs
    assert (pair.previous, pair.commit, pair.cases) == (sha(STEP - 1), sha(STEP), ("norm/one", "norm/two"))
    words = shlex.split(pair.commands[0])
    assert words[:6] == ["kernelgate", "bench", "--base", sha(STEP - 1), "--head", sha(STEP)]
    assert [words[at + 1] for at, word in enumerate(words) if word == "--case"] == ["norm/one", "norm/two"]
    assert shlex.split(pair.commands[1]) == ["kernelgate", "history", "add", words[-1]]
    text = culprits.plan_text(plan, POLICY).splitlines()
    assert text == [f"# on {pair.gpu}: about {pair.gpu_seconds:.0f} of 600 GPU-seconds", *pair.commands]


def test_what_was_confirmed_is_not_measured_again_nor_what_cannot_be_built(index_at: Database) -> None:
    suspect(index_at, "one")
    put(index_at, a_pair(STEP - 1, STEP, 2.0))
    assert planned(index_at) == NightPlan((), ())
    assert culprits.plan_text(planned(index_at), POLICY) == "# nothing is suspected"
    put(index_at, *(one.model_copy(update={"environment": Environment()}) for one in times(40, 25, 8.0)))
    assert planned(index_at) == NightPlan((), ()), "these commits are not on the default branch"


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


def spent(index_at: Database, name: str, run: Run, seconds: float = 590.0) -> None:
    put(index_at, an_entry(name, run=run, cases=(), costs=(Cost(phase="calls", gpu_seconds=seconds),)))


def chosen(index_at: Database, kept: Store) -> dict[str, str]:
    return read(index_at, culprits.next_pair, kept, read(index_at, nights.of_index, Wanted()), POLICY, *TONIGHT)


def test_the_pair_and_its_runners(index_at: Database, kept: Store) -> None:
    labelled(index_at, kept)
    put(index_at, an_entry("a pull request's"))
    assert set(chosen(index_at, kept).values()) == {""}, "nothing is suspected"
    suspect(index_at, "one")
    told = chosen(index_at, kept)
    assert (told["gpu"], told["target"], told["cases"]) == ("l4", "8.9", "norm/one")
    assert (told["base_sha"], told["head_sha"]) == (sha(STEP - 1), sha(STEP))
    labelled(index_at, kept, "a100", 20)
    assert set(chosen(index_at, kept).values()) == {""}, "no runner has that GPU"


def test_what_the_night_has_spent_is_gone(index_at: Database, kept: Store) -> None:
    """By comparisons of this night: neither its own baseline nor last night counts."""
    suspect(index_at, "one")
    labelled(index_at, kept)
    spent(index_at, "yesterday", COMPARED.model_copy(update={"created_at": "2026-08-19T05:00:00Z"}))
    spent(index_at, "baseline", COMPARED.model_copy(update={"base_sha": None}))
    assert chosen(index_at, kept)["gpu"] == "l4"
    spent(index_at, "tonight", COMPARED)
    assert chosen(index_at, kept)["gpu"] == ""


def test_a_confirmed_change_among_several_commits_is_searched_by_halves(index_at: Database, kept: Store) -> None:
    """Between two measured commits, of which the index knows none; its cases share a run as far as the night allows."""
    measured = [number for number in range(NIGHTS) if not STEP - 5 < number < STEP]
    pair = a_pair(STEP - 5, STEP, 2.0)
    both = pair.model_copy(update={"cases": (*pair.cases, pair.cases[0].model_copy(update={"case": "two"}))})
    found(index_at, *(a_night(at, stepped(at), case=case) for at in measured for case in ("one", "two")), both)
    assert chosen(index_at, kept)["gpu"] == ""
    labelled(index_at, kept)
    told = chosen(index_at, kept)
    assert (told["gpu"], told["base_sha"], told["cases"]) == ("l4", sha(STEP - 5), "norm/one norm/two")
    assert told["head_sha"] in {sha(STEP - back) for back in (2, 3, 4)}
    spent(index_at, "tonight", COMPARED, 550.0)
    assert chosen(index_at, kept)["cases"] == "norm/one"
    spent(index_at, "and more", COMPARED)
    assert chosen(index_at, kept)["gpu"] == ""
