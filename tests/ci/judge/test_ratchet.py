"""What may move a stored baseline, the best and the release beside it, and what must not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from kernelgate.bench import record
from kernelgate.bench.record import BaselineDay, CaseKey, Device, Environment, Run, RunRecord, timed_cases
from kernelgate.ci.github.baseline_pr import as_baseline
from kernelgate.ci.judge import baseline_age, ratchet
from kernelgate.ci.judge.case import Status
from kernelgate.ci.judge.prior import NO_HISTORY, History
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy, Processes
from kernelgate.ci.report import baseline as baselines
from tests import runs
from tests.ci.judge.told import plain
from tests.ci.records import case, noise
from tests.runs import process, run_record

POLICY = Policy()
ONE = CaseKey("", "one")


def machine(driver: str = "580.1") -> Environment:
    return Environment(device=Device(name="NVIDIA L4", driver=driver), torch="2.11.0")


def night(day: int, changes: Mapping[str, float], driver: str = "580.1") -> RunRecord:
    """The default branch on a day of August, its cases so much slower than 100 µs."""
    rng = np.random.default_rng(day)
    cases = [
        runs.case(id_, [process({"head": side}, "block") for side in noise(rng, change, 4, 40, 0.001)[1]])
        for id_, change in changes.items()
    ]
    run = Run(head_sha=f"{day:040x}", created_at=f"2026-08-{day:02}T03:00:00Z")
    return run_record(cases, machine(driver), run=run)


def stored(day: int, changes: Mapping[str, float], driver: str = "580.1") -> RunRecord:
    return as_baseline(night(day, changes, driver))


def times(held: RunRecord | None) -> dict[str, float]:
    """Of each case the median, in percent of 100 µs."""
    assert held is not None
    return {
        one.id: round(float(np.median(np.concatenate([each.samples_us["head"] for each in one.processes]))) - 100, 1)
        for one in timed_cases(held)
    }


def test_only_what_is_certainly_faster_moves() -> None:
    before, now = stored(1, {"one": 0, "two": 0, "three": 0}), night(9, {"one": -0.2, "two": 0.2, "three": 0.003})
    verdict = judge(now, POLICY, before)
    keys = ratchet.faster(verdict, POLICY.processes)
    assert keys == {ONE} == ratchet.faster(verdict, Processes(to_block=4))
    assert not ratchet.faster(verdict, Processes(to_block=5)), "in as many processes as it takes to block"
    after = record.from_json(record.to_json(ratchet.moved(before, as_baseline(now, before), keys)))
    assert times(after) == {"two": 0.0, "three": 0.0, "one": -20.0}
    measured = {name: one.measured for name, one in after.summary.cases.items()}
    assert measured == {"one": "2026-08-09", "two": "2026-08-01", "three": "2026-08-01"}
    assert baseline_age.oldest(after) == "2026-08-01"


def test_another_machine_keeps_its_name() -> None:
    held = ratchet.moved(stored(1, {"one": 0, "two": 0}), stored(2, {"one": -0.1}, "600.1"), {ONE})
    drivers = {one.id: one.device.driver for one in held.environments}
    used = {one.id: {drivers[each.process.environment] for each in one.processes} for one in timed_cases(held)}
    assert used == {"one": {"600.1"}, "two": {"580.1"}}


def best(held: RunRecord | None, before: RunRecord, now: RunRecord, known: History = NO_HISTORY) -> RunRecord | None:
    return ratchet.best(held, before, as_baseline(now, before), POLICY, known)


def test_a_lucky_night_is_not_the_best_ever() -> None:
    usual = stored(1, {"one": 0})
    assert best(usual, stored(2, {"one": 0}), night(3, {"one": -0.12})) is None, "the night itself"
    lucky = stored(3, {"one": -0.12})
    assert best(usual, lucky, night(4, {"one": 0})) is None, "nor once it became the baseline"
    assert best(usual, lucky, night(3, {"one": -0.12})) is None, "nor twice on that day"


def test_the_best_begins_with_what_two_days_show() -> None:
    assert best(None, stored(1, {"one": -0.12}), night(2, {"one": 0})) is None
    assert best(None, stored(1, {"one": 0}), night(1, {"one": 0})) is None
    assert times(best(None, stored(1, {"one": 0}), night(2, {"one": 0.004, "two": 0}))) == {"one": 0.4}


def test_two_days_that_are_faster_make_a_new_best_of_the_slower_one() -> None:
    held = stored(1, {"one": 0, "two": 0})
    for before, now in ((-0.12, -0.1), (-0.1, -0.12)):
        made = best(held, stored(2, {"one": before, "two": 0}), night(3, {"one": now, "two": 0}))
        assert times(made) == {"two": 0.0, "one": -10.0}


def test_the_best_never_worsens_and_no_driver_makes_one() -> None:
    held = stored(1, {"one": 0})
    assert best(held, stored(2, {"one": 0.1}), night(3, {"one": 0.1})) is None
    assert best(held, stored(2, {"one": -0.12}), night(3, {"one": -0.12}, "600.1")) is None
    assert best(held, stored(2, {"one": -0.12}, "600.1"), night(3, {"one": -0.12}, "600.1")) is None


def step(number: int) -> RunRecord:
    """A pull request that makes a kernel 0.4% slower than the one before it."""
    rng = np.random.default_rng(number)
    level = 1.004**number
    base, head = noise(rng, 0.004, 5, 60, 0.0005)
    timed = case([one * level for one in base], [one * level for one in head])
    run = Run(base_sha="b" * 40, head_sha="a" * 40, created_at=f"2026-09-{number + 1:02}T03:00:00Z")
    return run_record((timed,), machine(), run=run)


def lines(measured: RunRecord, beside: Path, known: History = NO_HISTORY) -> list[str]:
    return plain(baselines.yardstick_lines(measured, baselines.yardsticks_beside(measured, beside, POLICY, known)))


def test_ten_steps_below_the_gate_are_seen_together(tmp_path: Path) -> None:
    release = stored(1, {"one": 0})
    named = release.model_copy(update={"summary": release.summary.model_copy(update={"release": "v1.4"})})
    record.write(named, tmp_path / "release_l4.json")
    record.write(stored(1, {"one": 0.2}), tmp_path / "best_l4.json")
    for number in range(10):
        (alone,) = judge(step(number), POLICY).cases
        assert alone.status not in (Status.REGRESSED, Status.LIKELY_SLOWER)
    assert lines(step(9), tmp_path / "baseline_l4.json") == [], "4% may be the machine's, as far as is known"
    pinned = [BaselineDay(measured=f"2026-08-{day:02}", code="c", median_us=100 + day % 2 / 5) for day in range(1, 7)]
    known = History(days={("NVIDIA L4", ONE): tuple(pinned)})
    assert lines(step(1), tmp_path / "baseline_l4.json", known) == []
    (line,) = lines(step(9), tmp_path / "baseline_l4.json", known)
    assert re.fullmatch(
        r".* since release v1\.4, 40 days old: 4\.1% slower \(.*\) in one; "
        r"by times of two days, with their drift in the interval, not side by side",
        line,
    )


def test_a_release_that_cannot_be_read_or_is_of_another_gpu_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "release_l4.json").write_text("{", encoding="utf-8")
    other = stored(1, {"one": -0.5}).model_copy(update={"environments": (runs.on("NVIDIA H200"),)})
    record.write(other, tmp_path / "best_l4.json")
    assert lines(step(9), tmp_path / "baseline_l4.json") == []


def test_a_baseline_that_names_no_card_gives_its_case_up_to_the_one_that_does() -> None:
    text = record.to_json(stored(2, {"one": -0.1, "two": 0}))
    for key in ("id", "case"):
        text = text.replace(f'"card":"","{key}":"one"', f'"card":"norm","{key}":"one"')
    moved = ratchet.moved(stored(1, {"one": 0, "two": 0}), record.from_json(text), {CaseKey("norm", "one")})
    assert [(one.card, one.id) for one in moved.cases] == [("", "two"), ("norm", "one")]
