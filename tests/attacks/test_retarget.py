"""What was found for another base: it holds no longer from the moment that GitHub starts a new run."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import yaml

from kernelgate.bench import record
from kernelgate.ci.github import assemble
from kernelgate.ci.github.check_run import CHECK_NAME, CheckRun, put_check
from kernelgate.ci.github.client import connect
from kernelgate.ci.github.fetch import fetch
from kernelgate.ci.github.publish import post
from kernelgate.ci.github.upsert import Stamp
from kernelgate.ci.policy.policy import Policy
from tests.attacks.honest import judged_once
from tests.ci.desk import Desk
from tests.ci.github.test_publish import BODY, FILES, l4, named
from tests.ci.report_examples import BASE_SHA, HEAD_SHA
from tests.fakes.github_server import Json
from tests.workflows.documents import ROOT

POLICY = Policy()
MEASURED = "measure (l4) / measure"


@pytest.fixture(autouse=True)
def pull(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "judge", judged_once)
    desk.github.open_pull(head_sha=HEAD_SHA, base_sha=BASE_SHA, files=FILES, body=BODY.format(claim="none"))


def report(desk: Desk, folder: Path, run: Json) -> None:
    """What report.yml does when the run began, or ended."""
    fetch(desk.bot, run["id"], folder / f"{run['id']}-{run['status']}")
    assert post(desk.bot, folder / f"{run['id']}-{run['status']}", POLICY) == 0


def begun(desk: Desk, folder: Path) -> Json:
    """One more run of the pull request, which waits to be approved."""
    run = desk.github.add_run(desk.github.pulls[1], status="waiting", conclusion=None)
    report(desk, folder, run)
    return run


def ended(desk: Desk, folder: Path, run: Json, example: str | None = None, conclusion: str = "success") -> None:
    """The run ends; without an example it has measured nothing."""
    run |= {"status": "completed", "conclusion": conclusion}
    desk.github.add_job(run, "plan / plan", "success")
    if example:
        desk.github.add_job(run, MEASURED, conclusion)
        desk.github.add_artifact(run, "kernelgate-record-l4", {"run.json": named(example)})
    report(desk, folder, run)


def named_ours(desk: Desk) -> list[dict[str, Any]]:
    return [check for _, check in sorted(desk.github.checks.items()) if check["name"] == CHECK_NAME]


def latest(desk: Desk) -> tuple[str, str | None]:
    """What a required check goes by."""
    check = named_ours(desk)[-1]
    return check["status"], check["conclusion"] if check["status"] == "completed" else None


def nothing_waits(desk: Desk) -> bool:
    return all(check["status"] == "completed" for check in named_ours(desk))


@pytest.fixture
def passed(desk: Desk, tmp_path: Path) -> None:
    """The pull request passed, against an old and slow base."""
    ended(desk, tmp_path, begun(desk, tmp_path), "faster")
    assert latest(desk) == ("completed", "success")
    assert desk.github.pulls[1].labels == ["performance: improved"]


@pytest.fixture
def failed(desk: Desk, tmp_path: Path) -> None:
    ended(desk, tmp_path, begun(desk, tmp_path), "slower")
    assert latest(desk) == ("completed", "failure")


@pytest.mark.usefixtures("passed")
@pytest.mark.parametrize("waits", ["waiting", "action_required"])
def test_a_retargeted_pull_request_does_not_merge_on_its_old_success(desk: Desk, tmp_path: Path, waits: str) -> None:
    """GitHub calls a fork's run completed that waits for the approval of an outsider."""
    desk.github.pulls[1].base_ref = "main"
    if waits == "waiting":
        begun(desk, tmp_path)
    else:
        report(desk, tmp_path, desk.github.add_run(desk.github.pulls[1], conclusion=waits))
    assert latest(desk) == ("in_progress", None)
    assert desk.github.pulls[1].labels == []


def test_a_fork_is_told_who_approves_it_and_how(desk: Desk, tmp_path: Path) -> None:
    pull = desk.github.pulls[1]
    pull.head_repository = "mallory/kernels"
    run = desk.github.add_run(pull, conclusion="action_required")
    report(desk, tmp_path, run)
    [check] = named_ours(desk)
    assert latest(desk) == ("in_progress", None)
    assert check["output"]["title"] == "Not judged yet: waits for a maintainer to approve this fork's run"
    assert "“Approve workflows to run”" in check["output"]["summary"]
    assert "holds no longer" not in check["output"]["summary"]

    # Somebody approved it, and it is requested once more.
    run |= {"status": "queued", "conclusion": None}
    report(desk, tmp_path, run)
    [check] = named_ours(desk)
    assert check["output"]["title"] == "Not judged yet: a maintainer approves a fork's measurement"
    assert "environment `kernelgate-forks`" in check["output"]["summary"]
    assert f"[the run]({run['html_url']})" in check["output"]["summary"]
    assert "Approve workflows" not in check["output"]["summary"]

    ended(desk, tmp_path, run, "equivalent")
    assert latest(desk) == ("completed", "success")


def test_the_report_starts_when_a_run_is_requested() -> None:
    """Here, and in the repositories that call it."""
    for file in (".github/workflows/report.yml", "docs/caller/report.yml"):
        triggers = yaml.safe_load((ROOT / file).read_text("utf-8"))[True]
        assert triggers["workflow_run"]["types"] == ["requested", "in_progress", "completed"]


@pytest.mark.usefixtures("passed")
@pytest.mark.parametrize(("example", "conclusion"), [("slower", "failure"), ("faster", "success")])
def test_the_verdict_of_the_new_run_ends_the_waiting(desk: Desk, tmp_path: Path, example: str, conclusion: str) -> None:
    ended(desk, tmp_path, begun(desk, tmp_path), example)
    assert latest(desk) == ("completed", conclusion)
    assert len(named_ours(desk)) == 2
    assert nothing_waits(desk)


@pytest.mark.usefixtures("failed")
@pytest.mark.parametrize("how", ["nothing measured", "uncertain", "cancelled"])
def test_the_waiting_lifts_no_failure(desk: Desk, tmp_path: Path, how: str) -> None:
    run = begun(desk, tmp_path)
    assert latest(desk) == ("in_progress", None)
    if how == "nothing measured":
        desk.github.pulls[1].base_sha = "d" * 40
        ended(desk, tmp_path, run)
    elif how == "uncertain":
        ended(desk, tmp_path, run, "cannot_tell_throttled")
    else:
        desk.github.add_job(run, MEASURED, "cancelled")
        ended(desk, tmp_path, run, conclusion="cancelled")
    assert latest(desk) == ("completed", "failure")
    assert named_ours(desk)[-1]["output"]["title"].startswith("❌ Blocks: 1 of 9 cases 4.90% slower ")
    assert nothing_waits(desk)


@pytest.mark.usefixtures("passed")
def test_a_run_that_another_replaced_does_not_wait_for_ever(desk: Desk, tmp_path: Path) -> None:
    old = begun(desk, tmp_path)
    new = begun(desk, tmp_path)
    assert [check["status"] for check in named_ours(desk)] == ["completed", "completed", "in_progress"]
    desk.github.add_job(old, MEASURED, "cancelled")
    ended(desk, tmp_path, old, conclusion="cancelled")
    assert latest(desk) == ("in_progress", None)
    ended(desk, tmp_path, new, "equivalent")
    assert latest(desk) == ("completed", "success")
    assert nothing_waits(desk)


@pytest.mark.usefixtures("failed")
def test_a_replaced_run_hides_no_failure_from_the_next(desk: Desk, tmp_path: Path) -> None:
    begun(desk, tmp_path)
    ended(desk, tmp_path, begun(desk, tmp_path), "cannot_tell_throttled")
    assert latest(desk) == ("completed", "failure")


def test_what_was_never_measured_neither_waits_nor_passes(desk: Desk, tmp_path: Path) -> None:
    """A description that is edited before the first measurement."""
    ended(desk, tmp_path, begun(desk, tmp_path))
    assert latest(desk) == ("completed", "action_required")


@pytest.mark.parametrize("how", ["closed", "deleted branch"])
def test_what_is_gone_waits_for_nothing(desk: Desk, tmp_path: Path, how: str) -> None:
    run = begun(desk, tmp_path)
    if how == "closed":
        desk.github.pulls[1].state = "closed"
    else:
        desk.github.pulls.clear()
    ended(desk, tmp_path, run, "faster")
    assert latest(desk) == ("completed", "action_required")


def test_an_edit_while_it_is_measured_waits_for_the_measurement(desk: Desk, tmp_path: Path) -> None:
    measuring = begun(desk, tmp_path)
    ended(desk, tmp_path, begun(desk, tmp_path))
    assert latest(desk) == ("in_progress", None)
    ended(desk, tmp_path, measuring, "slower")
    assert latest(desk) == ("completed", "failure")
    assert nothing_waits(desk)


@pytest.mark.usefixtures("passed")
def test_a_commands_result_is_newer_than_an_edited_description(desk: Desk, tmp_path: Path) -> None:
    """The command began first, and ends last; what was judged again in between is older than it."""
    command = desk.github.add_run(event="issue_comment", head_sha="c" * 40, status="in_progress", conclusion=None)
    ended(desk, tmp_path, begun(desk, tmp_path))
    command |= {"status": "completed", "conclusion": "success"}
    desk.github.add_artifact(command, "kernelgate-record-l4", l4("slower")["kernelgate-record-l4"])
    asked = record.Run(head_sha=HEAD_SHA, base_sha=BASE_SHA, pull_request=1)
    fetch(desk.bot, command["id"], tmp_path / "command", asked)
    assert post(desk.bot, tmp_path / "command", POLICY) == 0
    assert latest(desk) == ("completed", "failure")
    assert desk.github.pulls[1].labels == ["performance: regressed"]


def test_a_beginning_that_is_told_late_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    run = desk.github.add_run(desk.github.pulls[1], status="queued", conclusion=None)
    early = dict(run)
    ended(desk, tmp_path, run, "faster")
    desk.github.runs[run["id"]] = early
    report(desk, tmp_path, early)
    assert latest(desk) == ("completed", "success")


def test_two_reports_at_once_leave_one_check_run(desk: Desk) -> None:
    """GitHub deletes no check run, so one of the two loses its name."""
    both = threading.Barrier(2, timeout=120)
    for _ in range(2):
        desk.github.fault("POST", "/check-runs", before=both.wait)
    bots = [connect(desk.bot.step, sleep=desk.slept.append, pause_s=0) for _ in range(2)]
    check, stamp = CheckRun("failure", "Slower", "Why."), Stamp(HEAD_SHA, 5, 1)
    threads = [threading.Thread(target=put_check, args=(bot, check, stamp)) for bot in bots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for bot in bots:
        bot.repository.requester.close()
    assert len(desk.github.checks) == 2, "they were not at once"
    [shown] = named_ours(desk)
    assert shown["id"] == max(desk.github.checks)
    assert (shown["status"], shown["conclusion"], shown["output"]["title"]) == ("completed", "failure", "Slower")
