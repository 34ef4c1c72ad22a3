"""What is in doubt is measured again by itself, twice at most, and nothing passes until then."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench.record import Run
from kernelgate.ci.github.fetch import fetch
from kernelgate.ci.github.publish import post
from kernelgate.ci.policy.policy import Policy
from tests.ci.desk import Desk
from tests.ci.github.test_publish import latest, named, note, the_pull
from tests.ci.report_examples import BASE_SHA, HEAD_SHA
from tests.engine.stand_in import HOSTED_TOOLS
from tests.fakes.github_server import Json
from tests.workflows.documents import workflows
from tests.workflows.language import Language

POLICY = Policy()
DOUBTFUL, JOB = "cannot_tell_throttled", "measure (l4) / measure"
JOBS = workflows()["report"].jobs


@pytest.fixture(scope="module")
def language() -> Iterator[Language]:
    with Language() as running:
        yield running


@pytest.fixture
def run(desk: Desk) -> Json:
    """A run of a pull request, at its first attempt."""
    return desk.github.add_run(the_pull(desk), status="queued", conclusion=None)


def report(desk: Desk, folder: Path, run: Json, policy: Policy = POLICY, asked: Run | None = None) -> bool:
    """What report.yml does for the run as it is now; whether it has it measured again."""
    desk.outputs_file.unlink(missing_ok=True)
    fetch(desk.bot, run["id"], folder / "in", asked)
    assert post(desk.bot, folder / "in", policy) == 0
    again = desk.outputs.get("again")
    assert again in (None, str(run["id"]))
    return again is not None


def ends(desk: Desk, run: Json, example: str | None, conclusion: str = "success", **subject: Any) -> None:
    """The jobs of this attempt end; with a record, unless there is no example."""
    run |= {"status": "completed", "conclusion": conclusion}
    desk.github.jobs[run["id"]] = []
    desk.github.add_job(run, "plan / plan", "success")
    desk.github.add_job(run, JOB, conclusion)
    if example:
        of = {"run_attempt": run["run_attempt"]} | subject
        desk.github.add_artifact(run, "kernelgate-record-l4", {"run.json": named(example, **of)})


def begins_again(run: Json) -> None:
    run |= {"status": "in_progress", "conclusion": None, "run_attempt": run["run_attempt"] + 1}


@pytest.mark.parametrize(
    ("example", "at_last", "says"),
    [
        (DOUBTFUL, "neutral", "tries again"),
        (None, "action_required", "measures it again"),
        ("wrong_result", "failure", "repeat it"),
        ("faster", "success", "Does not block"),
    ],
)
def test_what_is_in_doubt_is_measured_again_twice_and_no_more(
    desk: Desk, tmp_path: Path, run: Json, example: str | None, at_last: str, says: str
) -> None:
    """Whoever caused the doubt, nothing passes until then: the check waits while it is measured."""
    doubtful = example in (DOUBTFUL, None)
    for attempt in (1, 2, 3):
        ends(desk, run, example, "success" if example else "cancelled")
        again = report(desk, tmp_path, run)
        assert again == (doubtful and attempt < 3)
        [comment] = desk.github.bodies(1)
        assert latest(desk)["conclusion"] == ("action_required" if again else at_last)
        assert ("it is measured again by itself" if again else says) in comment
        if not again:
            break
        begins_again(run)
        assert not report(desk, tmp_path, run)
        assert latest(desk)["status"] == "in_progress"
        assert latest(desk)["output"]["title"] == f"Not judged yet: it is measured again, attempt {attempt + 1}"
        assert desk.github.pulls[1].labels == []
    assert all(check["status"] == "completed" for check in desk.github.checks.values())


@pytest.mark.parametrize("planted", ["record", "check", "note"])
def test_no_attempt_is_won_by_a_forged_count(desk: Desk, tmp_path: Path, run: Json, planted: str) -> None:
    """The count is GitHub's own of the run: neither what a head uploads nor another App's check changes it."""
    run["run_attempt"] = 3
    ends(desk, run, DOUBTFUL, **({"run_attempt": 1} if planted == "record" else {}))
    if planted == "note":
        lost = note(fault="runner", message="lost", run_attempt=1)
        desk.github.add_artifact(run, "kernelgate-record-h100", lost)
    if planted == "check":
        desk.github.login = "mallory[bot]"
        mark = {"name": "kernelgate verdict", "head_sha": HEAD_SHA, "external_id": f"kernelgate:{run['id']}.1:held"}
        desk.bot.repository.create_check_run(**mark, status="in_progress")
        desk.github.login = desk.bot.login
    assert not report(desk, tmp_path, run)
    assert latest(desk)["conclusion"] in ("neutral", "action_required")


@pytest.mark.parametrize("by", ["a fork", "a command", "the policy"])
def test_nobody_else_has_it_measured_again(desk: Desk, tmp_path: Path, run: Json, by: str) -> None:
    """A fork's run needs an approval each time, and who asked by hand can ask again."""
    ends(desk, run, DOUBTFUL)
    policy, asked = POLICY, None
    if by == "a fork":
        desk.github.pulls[1].head_repository = "mallory/kernels"
        run["head_repository"] = desk.github.add_run(desk.github.pulls[1])["head_repository"]
    elif by == "a command":
        run["event"], asked = "issue_comment", Run(head_sha=HEAD_SHA, base_sha=BASE_SHA, pull_request=1)
    else:
        policy = Policy.model_validate({"gates": {"doubt": "pass"}})
    assert not report(desk, tmp_path, run, policy, asked)
    assert latest(desk)["conclusion"] == "neutral"


def test_an_edited_description_ends_no_waiting(desk: Desk, tmp_path: Path, run: Json) -> None:
    """What is judged again is the run before, which is measured again, unless that is under way."""
    ends(desk, run, DOUBTFUL)
    assert report(desk, tmp_path, run)
    edited = desk.github.add_run(desk.github.pulls[1])
    desk.github.add_job(edited, "plan / plan", "success")
    fetch(desk.bot, edited["id"], tmp_path / "edited")
    desk.outputs_file.unlink()
    post(desk.bot, tmp_path / "edited", POLICY)
    assert (latest(desk)["conclusion"], desk.outputs["again"]) == ("action_required", str(run["id"]))
    begins_again(run)
    assert not report(desk, tmp_path, edited)
    assert latest(desk)["conclusion"] == "action_required"


def test_a_push_ends_what_is_measured_again_and_begins_anew(desk: Desk, tmp_path: Path, run: Json) -> None:
    ends(desk, run, DOUBTFUL)
    assert report(desk, tmp_path, run)
    begins_again(run)
    report(desk, tmp_path, run)
    old, pull = max(desk.github.checks), desk.github.pulls[1]
    pull.head_sha = "f" * 40
    new = desk.github.add_run(pull)
    ends(desk, run, None, "cancelled")
    assert not report(desk, tmp_path, run)
    assert desk.github.checks[old]["conclusion"] == "action_required", "the old commit's check waits for nothing"
    ends(desk, new, DOUBTFUL, head_sha=pull.head_sha)
    assert report(desk, tmp_path, new), "the first attempt of the new head"


def test_one_job_made_again_by_hand_counts_as_an_attempt(desk: Desk, tmp_path: Path, run: Json) -> None:
    """The jobs that were not, and what they left, are those of the attempt before."""
    ends(desk, run, DOUBTFUL)
    assert report(desk, tmp_path, run)
    for attempt, again in ((2, True), (3, False)):
        run |= {"run_attempt": attempt}
        desk.github.jobs[run["id"]][-1] |= {"run_attempt": attempt}
        assert report(desk, tmp_path, run) is again


@pytest.mark.parametrize(
    ("action", "attempt", "event_", "reports", "again"),
    [
        ("requested", 1, "pull_request", True, False),
        ("in_progress", 1, "pull_request", False, False),
        ("in_progress", 2, "pull_request", True, False),
        ("completed", 1, "pull_request", True, True),
        ("completed", 1, "push", False, False),
    ],
)
def test_each_beginning_and_end_is_reported_and_an_end_alone_starts_again(
    action: str, attempt: int, event_: str, reports: bool, again: bool, language: Language
) -> None:
    payload = {"action": action, "workflow_run": {"event": event_, "run_attempt": attempt}}
    contexts = {"github": {"event_name": "workflow_run", "event": payload}, "inputs": {"head-sha": ""}}
    needs = {"needs": {"report": {"outputs": {"again": "7"}, "result": "success"}}}
    assert language.holds(JOBS["report"]["if"], contexts, {"success": True}) is reports
    assert language.holds(JOBS["again"]["if"], contexts | needs, {"success": reports}) is again
    called = {"github": {"event_name": "issue_comment", "event": {}}, "inputs": {"head-sha": HEAD_SHA}}
    assert not language.holds(JOBS["again"]["if"], called | needs, {"success": True})


@pytest.mark.parametrize(("head", "started"), [(HEAD_SHA, True), ("f" * 40, False)])
def test_a_head_that_moved_is_not_measured_again(desk: Desk, run: Json, head: str, started: bool) -> None:
    desk.github.pulls[1].head_sha = head
    desk.github.permissions = dict(JOBS["again"]["permissions"])
    [step] = JOBS["again"]["steps"]
    given = {"GH_TOKEN": desk.github.token, "GH_REPO": desk.github.repository, "HEAD_SHA": HEAD_SHA}
    given |= {"PULL_REQUEST": "1", "RUN_ID": str(run["id"]), "GITHUB_API_URL": desk.github.url}
    assert given.keys() - {"GITHUB_API_URL"} == step["env"].keys()
    path = f"{HOSTED_TOOLS}:{os.environ['PATH']}"
    subprocess.run(["bash", "-e", "-c", step["run"]], env={**os.environ, **given, "PATH": path}, check=True)
    assert desk.github.reruns == ([run["id"]] if started else [])
