"""A new baseline is offered as a pull request, and as nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.record import BaselineSummary, RunRecord, timed_cases
from kernelgate.ci.github.baseline_pr import Before, as_baseline, offer, refresh
from kernelgate.ci.policy.policy import Policy, RunnerGpu
from tests.ci.desk import Desk
from tests.ci.report_examples import EXAMPLES, HEAD_SHA
from tests.runs import on, process, run_record

BRANCH = "kernelgate/baseline-l4"
RULES = Policy.model_validate({"measure": {"gpus": [{"label": "l4", "target": "8.9", "baseline": "stored.json"}]}})


def measured(example: str = "faster") -> RunRecord:
    """Two of an example's cases."""
    found = EXAMPLES[example]().record
    kept, run = run_record(timed_cases(found)[-2:]), record.Run(head_sha=HEAD_SHA, created_at="2026-11-20T10:00:00Z")
    return found.model_copy(update={"run": run, "cases": kept.cases, "processes": kept.processes})


@pytest.fixture
def run_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.json"
    record.write(measured(), path)
    return path


def test_a_baseline_keeps_the_days_of_the_one_it_replaces() -> None:
    """Of the same code on the same kind of device; a day measured twice counts once."""
    run = record.Run(head_sha=HEAD_SHA, created_at="2026-11-21T10:00:00Z")
    later, first = measured().model_copy(update={"run": run}), as_baseline(measured())
    second = as_baseline(later, first)
    for name, held in cases_of(second).items():
        assert [day.measured for day in held.days] == ["2026-11-20", "2026-11-21"]
        assert {day.code for day in held.days} == {cases_of(first)[name].days[0].code}
        assert {day.median_us for day in held.days} == {held.median_us}
    assert cases_of(as_baseline(later, second)) == cases_of(second)
    elsewhere = first.model_copy(update={"environments": run_record((), on("NVIDIA A100")).environments})
    assert {len(held.days) for held in cases_of(as_baseline(later, elsewhere)).values()} == {1}


def cases_of(baseline: RunRecord) -> dict[str, BaselineSummary]:
    return baseline.summary.cases


def test_offering_it_twice_changes_nothing(desk: Desk, run_json: Path) -> None:
    """Nor does anything reach the default branch. A newer record refreshes the same pull request; after a merge the
    branch starts anew."""
    main = desk.github.refs["heads/main"]
    first = refresh(desk.bot, run_json, "l4", RULES, force=True)
    assert (desk.github.refs["heads/main"], {branch for branch, _ in desk.github.files}) == (main, {BRANCH})
    before = len(desk.github.writes())
    assert refresh(desk.bot, run_json, "l4", RULES, force=True) == first
    assert desk.github.writes()[before:] == []
    record.write(measured("slower"), run_json)
    assert refresh(desk.bot, run_json, "l4", RULES, force=True) == first
    assert len(desk.github.pulls) == 1
    stored = record.from_json(desk.github.files[BRANCH, "stored.json"])
    assert desk.github.files[BRANCH, "stored.json"].decode() == record.to_lines(stored)
    now, then = (timed_cases(one)[0].processes[0].samples_us["head"] for one in (stored, measured("slower")))
    assert now == then
    desk.github.pulls[first or 0].state = "closed"
    record.write(measured(), run_json)
    assert refresh(desk.bot, run_json, "l4", RULES, force=True) != first
    assert f"PATCH /git/refs/heads/{BRANCH}" in desk.github.writes()


def test_a_measurement_cut_short_or_without_a_case_is_no_baseline(desk: Desk, run_json: Path) -> None:
    record.write(measured("mixed"), run_json.with_name("stored.json"))
    with pytest.raises(KernelgateError, match="the stored baseline has it"):
        refresh(desk.bot, run_json, "l4", RULES, force=False)
    assert refresh(desk.bot, run_json, "l4", RULES, force=True) is not None
    run_json.with_name("failure.json").write_text("{}", "utf-8")
    with pytest.raises(KernelgateError, match="failed before its end"):
        refresh(desk.bot, run_json, "l4", RULES, force=True)


@pytest.mark.parametrize(
    "asked", ["GET /git/ref/.*", "POST /git/refs", "GET /contents/.*", "PUT /contents/.*", "GET /pulls", "POST /pulls"]
)
def test_bad_days_only_take_longer(desk: Desk, run_json: Path, asked: str) -> None:
    for fault in ({"status": 502}, {"drop": "before"}, {"drop": "after"}):
        desk.github.fault(*asked.split(), **fault)
    refresh(desk.bot, run_json, "l4", RULES, force=True)
    assert len(desk.github.pulls) == 1
    assert len([said for said in desk.github.writes() if said.startswith("PUT")]) in (1, 3)
    assert len(desk.slept) == 3


def test_what_cannot_be_a_baseline_is_refused() -> None:
    new, gpu = measured(), RULES.measure.gpus[0]
    with pytest.raises(UsageError, match="no samples of a head"):
        offer(new.model_copy(update={"cases": (), "processes": ()}), gpu, RULES, None, Before())
    for path in ("../x.json", "/etc/passwd"):
        with pytest.raises(UsageError, match="inside the repository"):
            offer(new, RunnerGpu(label="l4", target="8.9", baseline=path), RULES, None, Before())


def scaled(found: RunRecord, scale: float = 1.0, day: str = "2026-11-20", driver: str = "") -> RunRecord:
    """The default branch by itself, so many times as slow, on a day."""
    cases = [
        replace(
            timed,
            processes=tuple(
                process({"head": [sample * scale for sample in one.samples_us["head"]]}, "block")
                for one in timed.processes
                if one.role != "witness"
            ),
        )
        for timed in timed_cases(found)
    ]
    where = found.environment
    device = where.device.model_copy(update={"driver": driver or where.device.driver})
    return found.model_copy(
        update={
            "processes": run_record(cases).processes,
            "builds": (),
            "environments": (where.model_copy(update={"device": device}),),
            "run": record.Run(head_sha=HEAD_SHA, created_at=f"{day}T10:00:00Z"),
        }
    )


def on_branch(desk: Desk, branch: str = BRANCH) -> set[str]:
    return {path for on, path in desk.github.files if on == branch}


def test_another_driver_is_no_gain(desk: Desk, run_json: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record.write(scaled(measured(), 1.2, driver="570.1"), Path("stored.json"))
    record.write(scaled(measured(), 1.0, "2026-11-22", driver="580.1"), run_json)
    assert refresh(desk.bot, run_json, "l4", RULES, force=False) is None
    said = "it is of another machine (driver 570.1 then, 580.1 now), so that no change is the code's alone; --force"
    assert said in "".join(capsys.readouterr())
    assert refresh(desk.bot, run_json, "l4", RULES, force=True) is not None
    assert on_branch(desk) == {"stored.json"}, "by force the best ever does not move"


def test_a_confirmed_best_is_offered_and_a_forced_loss_leaves_it(desk: Desk, run_json: Path) -> None:
    record.write(as_baseline(scaled(measured(), 1.3, "2026-11-18")), Path("best_stored.json"))
    record.write(as_baseline(scaled(measured(), 1.0, "2026-11-19")), Path("stored.json"))
    record.write(scaled(measured(), 1.5), run_json)
    assert refresh(desk.bot, run_json, "l4", RULES, force=False) is None
    refresh(desk.bot, run_json, "l4", RULES, force=True)
    assert on_branch(desk) == {"stored.json"}
    record.write(scaled(measured(), 1.01), run_json)
    refresh(desk.bot, run_json, "l4", RULES, force=False)
    assert on_branch(desk) == {"stored.json", "best_stored.json"}


def test_a_tag_moves_the_release_alone(desk: Desk, run_json: Path) -> None:
    record.write(as_baseline(scaled(measured(), 1.3, "2026-11-18")), Path("stored.json"))
    desk.bot.step.environment.update({"GITHUB_REF_TYPE": "tag", "GITHUB_REF_NAME": "v1.4"})  # type: ignore[attr-defined]
    number = refresh(desk.bot, run_json, "l4", RULES, force=False)
    assert desk.github.pulls[number or 0].title == "Hold l4 against release v1.4"
    assert on_branch(desk) == set()
    held = record.from_json(desk.github.files["kernelgate/release-l4", "release_stored.json"])
    assert held.summary.release == "v1.4"
