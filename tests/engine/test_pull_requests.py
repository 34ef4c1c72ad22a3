"""Pull requests from their opening to what stands on them, in act."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from tests.engine.engine import Engine
from tests.workflows.project import (
    DESCRIPTION,
    HEADER,
    Project,
    break_kernel,
    edit_docs,
    touch_kernel,
    touch_kernel_again,
)
from tests.workflows.runner import WorkflowRun
from tests.workflows.test_end_to_end import STRANGER, Approvals

pytestmark = pytest.mark.nightly
MEASURE = "measure (l4) / measure"
CLAIM = "- s512_b32_h8_d64_fp16: 10% faster"


def verdict(project: Project) -> tuple[str, str, list[str]]:
    """The comment's first line, the check's conclusion and the labels of the one pull request."""
    [comment] = project.server.bodies(1)
    [check] = project.server.checks.values()
    [pull] = project.server.pulls.values()
    assert check["head_sha"] == pull.head_sha
    return comment.splitlines()[0], check["conclusion"], pull.labels


def test_slower(project: Project) -> None:
    run = project.measure(project.pull(touch_kernel))
    assert run.conclusion == "success", run.log
    assert set(run.jobs) == {"plan / plan", "build / base", "build / head", MEASURE}
    assert project.server.writes() == [], "the run of a pull request wrote something"
    report = project.report(run)
    assert report.conclusion == "success", report.log
    headline, conclusion, labels = verdict(project)
    assert headline.startswith("### ❌ Blocks: ")
    assert (conclusion, labels) == ("failure", ["performance: regressed"])


@pytest.mark.parametrize(
    ("factor", "claim", "said", "label"),
    [
        ("0.7", "- s512_b32_h8_d64_fp16: 30% faster", "% faster on the L4", "performance: improved"),
        ("1.0", "None.", "no change", "performance: unchanged"),
    ],
    ids=["faster", "equal"],
)
def test_it_does_not_block(project: Project, factor: str, claim: str, said: str, label: str) -> None:
    project.platform.machine["GPU_SLOWER"] = factor
    run = project.measure(project.pull(touch_kernel, body=DESCRIPTION.replace(CLAIM, claim)))
    assert run.conclusion == "success", run.log
    report = project.report(run)
    assert report.conclusion == "success", report.log
    headline, conclusion, labels = verdict(project)
    assert said in headline, project.server.bodies(1)
    assert (conclusion, labels) == ("success", [label])


def test_likely(project: Project) -> None:
    project.platform.machine["GPU_PROCESSES"] = "2"
    run = project.measure(project.pull(touch_kernel))
    report = project.report(run)
    assert report.conclusion == "success", report.log
    headline, conclusion, labels = verdict(project)
    assert headline.startswith("### ⚠️ Held: very likely 5.0% slower")
    assert (conclusion, labels) == ("action_required", [])
    assert project.server.reruns == [run.id], "it is measured again"


def test_a_push_while_it_is_measured(project: Project) -> None:
    """The older run may not have the GPU any more, and when it is reported late, the newer one's verdict stands."""
    opened, pushed = project.pull(touch_kernel), []
    # The plan asks for the pull request first, then what admits it to the GPU.
    project.server.fault(
        "GET", "/pulls/1", skip=1, before=lambda: pushed.append(project.push(opened, touch_kernel_again))
    )
    older = project.measure(opened)
    steps = {step.name: step.conclusion for step in older.jobs[MEASURE].steps}
    assert steps["admit"] == "failure", older.log
    assert not {"fetch the libraries", "doctor", "fuzz", "bench"} & set(steps)
    [now] = pushed
    newer = project.measure(now)
    assert newer.conclusion == "success", newer.log
    assert project.report(newer).conclusion == "success"
    before = deepcopy((project.server.comments, project.server.checks, now[0].labels))
    assert project.report(older).conclusion == "success"
    assert (project.server.comments, project.server.checks, now[0].labels) == before
    assert verdict(project)[1:] == ("failure", ["performance: regressed"]), "of the commit that is head now"


def failed_at(project: Project, step: str, gpu: str) -> tuple[WorkflowRun, tuple[str, str, list[str]]]:
    """The run in which such a GPU fails this step, before anything is timed; and the verdict on it."""
    project.platform.machine["GPU_IS"] = gpu
    run = project.measure(project.pull(touch_kernel))
    steps = {one.name: one.conclusion for one in run.jobs[MEASURE].steps}
    assert steps[step] == "failure", run.log
    assert "bench" not in steps, "after a failure"
    assert project.report(run).conclusion == "success"
    return run, verdict(project)


def test_a_runner_is_lost_and_its_job_is_run_again(project: Project) -> None:
    """That job alone: the plan and the libraries are those of the first attempt."""
    run, (headline, conclusion, labels) = failed_at(project, "doctor", "lost")
    assert "not your fault" in headline
    assert (conclusion, labels) == ("action_required", [])
    assert project.server.reruns == [run.id], "what the runner lost is measured again"

    del project.platform.machine["GPU_IS"]
    assert isinstance(project.platform, Engine)
    built = run.jobs["build / head"]
    project.platform.run_failed_again(run)
    assert run.conclusion == "success", run.log
    assert run.jobs["build / head"] is built
    report = project.report(run)
    assert report.conclusion == "success", report.log
    [comment] = project.server.bodies(1)
    assert "slower on the L4" in comment.splitlines()[0]
    assert [check["conclusion"] for check in project.server.checks.values()] == ["action_required", "failure"]
    assert project.server.pulls[1].labels == ["performance: regressed"]


def test_a_merge_group(project: Project) -> None:
    """act evaluates what starts the workflow, its environment and which job of report.yml runs."""
    pull, _, _ = project.pull(touch_kernel)
    run = project.queue(pull)
    assert set(run.jobs) == {"plan / plan", "build / base", "build / head", MEASURE}, run.log
    report = project.report(run)
    assert report.conclusion == "success", report.log
    [check] = project.server.checks.values()
    assert (check["head_sha"], check["conclusion"]) == (run.head_sha, "failure")
    assert run.head_sha != pull.head_sha
    assert project.server.bodies(pull.number) == []


def test_wrong(project: Project) -> None:
    _, (headline, conclusion, _) = failed_at(project, "fuzz", "wrong")
    assert "wrong result" in headline
    assert conclusion == "failure"
    assert project.server.reruns == []


def test_does_not_compile(project: Project) -> None:
    run = project.measure(project.pull(break_kernel))
    assert run.jobs["build / head"].conclusion == "failure"
    assert MEASURE not in run.jobs
    assert project.report(run).conclusion == "success"
    headline, conclusion, _ = verdict(project)
    assert "does not compile" in headline
    assert conclusion == "failure"
    assert HEADER in project.server.bodies(1)[0]


def test_fork_waits_for_its_approval(project: Project) -> None:
    opened = project.pull(touch_kernel, STRANGER)
    held = project.measure(opened)
    assert (held.jobs[MEASURE].conclusion, held.jobs[MEASURE].steps) == ("waiting", ())
    assert project.server.writes() == []
    project.platform.approved.add("kernelgate-forks")
    project.server.approvals = Approvals("maintainer")
    run = project.measure(opened)
    assert run.conclusion == "success", run.log
    assert project.report(run).conclusion == "success"
    assert verdict(project)[1:] == ("failure", ["performance: regressed"])


def test_fork_that_nobody_approved_is_not_admitted(project: Project) -> None:
    """GitHub makes a missing environment on first use, without reviewers: its jobs start at once."""
    project.platform.protected.clear()
    run = project.measure(project.pull(touch_kernel, STRANGER))
    steps = {step.name: step.conclusion for step in run.jobs[MEASURE].steps}
    assert steps["admit"] == "failure", run.log
    assert not {"fetch the libraries", "doctor", "fuzz", "bench"} & set(steps)


@pytest.mark.parametrize("bad_day", ["500", "rate limit", "secondary rate limit"])
def test_documentation_is_not_measured_while_github_has_a_bad_day(project: Project, bad_day: str) -> None:
    run = project.measure(project.pull(edit_docs))
    assert set(run.jobs) == {"plan / plan"}, run.log
    assert run.summary
    if bad_day == "500":
        broken = project.server.fault("POST", "/check-runs", status=500, times=2)
    else:
        broken = project.server.rate_limit("POST", "/check-runs", secondary="secondary" in bad_day, wait_s=2)
    report = project.report(run)
    assert report.conclusion == "success", report.log
    assert broken.times == 0, "it was asked until it answered"
    assert project.server.bodies(1) == []
    [check] = project.server.checks.values()
    assert check["conclusion"] in ("neutral", "skipped", "success")


def measured_without_artifacts(project: Project) -> WorkflowRun:
    pull, _, _ = project.pull(touch_kernel)
    shown = project.server.add_run(pull)
    project.server.add_job(shown, MEASURE, "success", ("bench", "success"))
    return WorkflowRun(shown["id"], shown["path"], "pull_request", pull.head_sha)


def test_artifact_is_missing(project: Project) -> None:
    """The measurement says that it succeeded, and has left nothing."""
    run = measured_without_artifacts(project)
    report = project.report(run)
    assert set(report.jobs) == {"report", "again"}, report.log
    headline, conclusion, labels = verdict(project)
    assert "not your fault" in headline
    assert "left no record" in project.server.bodies(1)[0]
    assert (conclusion, labels) == ("action_required", [])
    assert project.server.reruns == [run.id]


def test_a_job_may_not_do_what_its_file_does_not_ask_for(project: Project) -> None:
    """As the scene above, from a report.yml that asks to read checks alone."""

    def only_read(tree: Path) -> None:
        file = tree / ".github/workflows/report.yml"
        text = file.read_text("utf-8")
        assert "checks: write" in text
        file.write_text(text.replace("checks: write", "checks: read"), "utf-8")

    project.repository.change_main(only_read)
    report = project.report(measured_without_artifacts(project))
    assert "the check run is missing" in report.log
    assert "a token needs checks: write for it" in report.log
    assert project.server.checks == {}
