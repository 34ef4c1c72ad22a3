"""Canaries: comparisons whose answer is known, what the history makes of them, and the GPU that is no sibling."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import CANARY, EQUAL, MORE, Device, Environment, RunRecord
from kernelgate.bench.timing import canary as canaries
from kernelgate.ci.commands import cli, local
from kernelgate.ci.commands import pair as verb
from kernelgate.ci.history import canary, judging
from kernelgate.ci.history.canary import CanaryMachine
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry, PointEntry
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import dashboard, dashboard_write
from tests.ci.history.entries import HEAD, an_entry, put, read

SIBLINGS = ("GPU-a", "GPU-b", "GPU-c")
POLICY = Policy()


def gpu(uuid: str, name: str = "NVIDIA L4") -> Environment:
    return Environment(device=Device(name=name, uuid=uuid, driver="580.1", compute_capability="8.9"), torch="2.11.0")


def measured(statuses: tuple[str, str], us: float) -> tuple[CaseEntry, ...]:
    def of(case: str, status: str) -> CaseEntry:
        point = PointEntry(side="head", commit=HEAD, us=us, processes=3, rounds=60)
        told = ComparisonEntry(base=HEAD, head=HEAD, effect=0.0, processes=3, status=status)
        return CaseEntry(card=CANARY, case=case, points=(point,), comparisons=(told,))

    return of(EQUAL, statuses[0]), of(MORE, statuses[1])


def night(index_at: Database, day: int, uuid: str, us: float, *statuses: str, kind: str = "NVIDIA L4") -> None:
    said = (*statuses, *("unchanged", "slower")[len(statuses) :])
    entry = an_entry(f"{day} {uuid}", day=day, environment=gpu(uuid, kind), cases=measured((said[0], said[1]), us))
    put(index_at, entry)


def fleet(index_at: Database) -> None:
    for day in (1, 2):
        for uuid in SIBLINGS:
            night(index_at, day, uuid, 900.0 + day)
        night(index_at, day, "GPU-odd", 1010.0)
    night(index_at, 3, "GPU-other", 70.0, kind="NVIDIA H200")


def checked(index_at: Database, uuid: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setenv("KERNELGATE_HISTORY_DATABASE", index_at.name)
    [found] = local.beside_siblings(gpu(uuid).device)
    return str(found.level), found.found


def test_a_gpu_that_differs_is_not_fit_and_its_siblings_are(
    index_at: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet(index_at)
    level, said = checked(index_at, "GPU-odd", monkeypatch)
    assert level == "failed"
    assert said == "its canary takes 12.0% longer than those of 3 other NVIDIA L4"
    assert {checked(index_at, uuid, monkeypatch)[0] for uuid in SIBLINGS} == {"passed"}
    night(index_at, 4, "GPU-odd", 905.0)
    assert checked(index_at, "GPU-odd", monkeypatch)[0] == "passed", "a good night lets it back"
    night(index_at, 5, "GPU-odd", 800.0)
    assert "less than" in checked(index_at, "GPU-odd", monkeypatch)[1]


def test_where_nobody_knows_which_is_odd_none_is(index_at: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    night(index_at, 1, "GPU-a", 900.0)
    night(index_at, 1, "GPU-b", 1200.0)
    assert checked(index_at, "GPU-a", monkeypatch)[0] == checked(index_at, "GPU-b", monkeypatch)[0] == "passed"
    assert checked(index_at, "GPU-new", monkeypatch)[0] == "passed"
    monkeypatch.setenv("KERNELGATE_HISTORY_DATABASE", str(Path(index_at.name).with_name("gone.sqlite")))
    [found] = local.beside_siblings(gpu("GPU-a").device)
    assert found.level == "warning", "a history that cannot be read stops nobody"
    monkeypatch.delenv("KERNELGATE_HISTORY_DATABASE")
    assert local.beside_siblings(gpu("GPU-a").device) == ()


def test_doctor_ends_with_1_for_it(index_at: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet(index_at)
    monkeypatch.setenv("KERNELGATE_HISTORY_DATABASE", index_at.name)
    for uuid, code in (("GPU-odd", 1), ("GPU-a", 0)):
        device = gpu(uuid).device
        monkeypatch.setattr(local, "examine", lambda *_, siblings, device=device, **__: tuple(siblings(device)))
        assert cli.run(["doctor", "--gpu"]) == code


def test_the_health_page_counts_false_alarms_and_detections(index_at: Database) -> None:
    fleet(index_at)
    night(index_at, 6, "GPU-a", 903.0, "regressed")
    night(index_at, 7, "GPU-a", 903.0, "unchanged", "undecided")
    known = {one.machine: one for one in read(index_at, canary.machines)}
    assert known["GPU-a"] == CanaryMachine("NVIDIA L4", "GPU-a", 4, 1, 4, 3, 903.0, known["GPU-a"].apart_pct, 3)
    assert known["GPU-other"].apart_pct is None, "an H200 is no sibling of an L4"
    shown = read(index_at, lambda connection: dashboard.dashboard(connection, POLICY, None))
    rows = {str(row[1]): row for row in dashboard_write._canaries(shown).rows}
    assert len(rows) == 5
    [text] = [str(row) for row in rows.values() if "GPU-odd" in str(row)]
    assert "+12.0%" in text
    assert "does not measure" in text
    assert sum("does not measure" in str(row) for row in rows.values()) == 1


def process(number: int, more: float = 0.02) -> RunRecord:
    """As `once` leaves it, of a machine with these effects."""
    rng = np.random.default_rng(number)

    def samples(change: float) -> tuple[float, ...]:
        return tuple(900.0 * np.exp(rng.normal(change, 0.001, 60)))

    effects = {EQUAL: 0.0, MORE: more}
    timings = tuple(
        record.Timing(card=CANARY, case=case, samples_us={"base": samples(0.0), "head": samples(change)})
        for case, change in effects.items()
    )
    one = record.Process(id=str(number), loaded=("base", "head"), timings=timings)
    cases = tuple(record.Case(card=CANARY, id=case) for case in effects)
    return RunRecord(environments=(gpu("GPU-a"),), cards=(record.Card(name=CANARY),), cases=cases, processes=(one,))


@pytest.mark.slow
def test_a_fresh_process_hands_over_both_pairs() -> None:
    (process,) = canaries.in_process().processes
    assert [(one.card, one.case) for one in process.timings] == [(CANARY, EQUAL), (CANARY, MORE)]
    for timing in process.timings:
        assert set(timing.samples_us) >= {"base", "head"}
        assert timing.calls["head"].failed == 0


@pytest.mark.parametrize(("more", "detected"), [(0.02, 1), (0.0, 0)])
def test_the_verbs_record_shows_what_is_known_or_that_a_machine_misses_it(
    index_at: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: float, detected: int
) -> None:
    """The other is a plant: whatever it runs takes the same time, as where a timer stands still."""
    monkeypatch.chdir(tmp_path)
    numbers = iter(range(1, 20))
    monkeypatch.setattr(verb.canaries, "in_process", lambda: process(next(numbers), more))
    assert cli.run(["canary", "--commit", HEAD, "-o", "run.json"]) == 0
    made = record.read(Path("run.json"))
    assert (made.run.base_sha, made.run.head_sha, made.run.ended) == (HEAD, HEAD, "complete")
    assert made.costs[0].phase == "canary"
    put(index_at, judging.judged("n" * 64, made, POLICY))
    [found] = read(index_at, canary.machines)
    assert (found.equal, found.false_alarms, found.more, found.detected) == (1, 0, 1, detected)

    def broken() -> RunRecord:
        raise KernelgateError("the canary ended with 1: CUDA error")

    monkeypatch.setattr(verb.canaries, "in_process", broken)
    assert cli.run(["canary", "-o", "other.json"]) == 3
