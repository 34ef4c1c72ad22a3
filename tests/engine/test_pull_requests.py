"""Pull requests from their opening to what stands on them, in act."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.kernel import cards
from tests.engine.log import WorkflowRun
from tests.engine.project import (
    DESCRIPTION,
    HEADER,
    MEASURE,
    MEASURED,
    Project,
    appends,
    break_kernel,
    edit_docs,
    replaces,
    touch_kernel,
    touch_kernel_again,
)
from tests.fakes.github_server import Json
from tests.workflows.documents import ROOT

pytestmark = pytest.mark.nightly
STRANGER = "stranger/kernelgate"


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
    assert set(run.jobs) == {"plan / plan", *MEASURED}
    assert project.server.writes() == [], "the run of a pull request wrote something"
    report = project.report(run.id)
    headline, conclusion, labels = verdict(project)
    assert re.match(r"### ❌ Blocks: [\d.]+% slower on the L4$", headline)
    assert (conclusion, labels) == ("failure", ["performance: regressed"])
    [comment] = project.server.bodies(1)
    assert "contradicted" in comment, "the author claimed the opposite"

    # Of a card that is made up, the profiles are real ones.
    case = cards.read(ROOT / cards.FOLDER)["attention"].target.id
    kept = project.artifacts[run.id]
    profiled = record.read(kept["kernelgate-record-l4"] / "run.json").profile
    reports = {side: f"attention.{case}.{side}.ncu-rep" for side in ("base", "head")}
    assert {(one.case, one.side, one.report) for one in profiled} == {(case, *one) for one in reports.items()}
    files = {file.name for file in kept["kernelgate-files-l4"].iterdir()}
    assert {"profile.csv", "profile.json", *reports.values()} <= files
    assert (
        "20.9% slower under the profiler, at equal clocks and with cold caches, but 5.0% slower as measured" in comment
    )
    assert "| achieved occupancy | 12.0% | 6.2% | −47.8% |" in comment

    page = (project.artifacts[report.id]["kernelgate.html"] / "kernelgate.html").read_text("utf-8")
    assert "<h1>" in page
    assert "is contradicted" in page
    [address] = re.findall(r"\[The page\]\((.+?)\)", comment)
    assert address.startswith(f"https://github.com/{project.server.repository}/actions/runs/{report.id}/artifacts/")


def test_what_was_accepted_passes_the_merge_queue(project: Project) -> None:
    pull, payload, merge = project.pull(touch_kernel)
    run = project.measure((pull, payload, merge))
    project.report(run.id)
    before = deepcopy((project.server.comments, project.server.checks, pull.labels))
    project.report(run.id)
    assert (project.server.comments, project.server.checks, pull.labels) == before, "the second time changed it"

    # The description is edited: judged again without measuring.
    pull.body = DESCRIPTION.replace("10% faster", "5% slower")
    payload |= {"action": "edited", "changes": {"body": {"from": DESCRIPTION}}}
    edited = project.measure((pull, payload, merge))
    assert set(edited.jobs) == {"plan / plan"}, edited.log
    project.report(edited.id)
    [comment] = project.server.bodies(1)
    assert "slower" in comment.splitlines()[0]
    assert "claim `s512_b32_h8_d64_fp16: 5% slower` is supported" in comment

    # A maintainer accepts it: nothing is built or measured, and a case that does not block is refused.
    project.server.collaborators["maintainer"] = "write"
    assert project.comment(pull, "/kernelgate accept nothing because so", "maintainer").conclusion == "success"
    assert [body for body in project.server.bodies(1) if "topic=verdict" in body] == [comment]
    accepted = project.comment(pull, "/kernelgate accept all because $(touch owned) rounding is exact", "maintainer")
    assert set(accepted.jobs) == {"authorise", "accept / report"}, accepted.log
    [comment] = [body for body in project.server.bodies(1) if "topic=verdict" in body]
    assert "Accepted by `@maintainer`, until the next push: " in comment
    assert "rounding is exact" in comment
    assert "[The page](" in comment
    checks = {check["name"]: check["conclusion"] for check in project.server.checks.values()}
    assert checks == {"kernelgate verdict": "neutral", "kernelgate accepted": "neutral"}
    assert sorted(pull.labels) == ["performance: accepted", "performance: regressed"]

    # The group is the machine code that was measured, until somebody else's kernel is merged.
    group, check = queued(project)
    assert group.jobs[MEASURE].steps["take what was measured before"] == "success"
    assert not {"doctor", "fuzz", "bench"} & set(group.jobs[MEASURE].steps), group.log
    assert check["conclusion"] == "neutral"
    assert "are the same machine code as measured in" in check["output"]["summary"]
    assert "#1" in check["output"]["summary"]
    assert "Accepted by `@maintainer`" in check["output"]["summary"]
    project.repository.change_main(
        appends("csrc/attention/numeric.cuh", "[[gnu::used]] static const int another_number = 2;")
    )
    before = deepcopy(project.server.comments)
    group, check = queued(project)
    assert set(group.jobs) == {"plan / plan", *MEASURED}, group.log
    assert "the base of attention is not what was measured in #1" in group.log
    assert group.jobs[MEASURE].steps["bench"] == "success"
    assert check["conclusion"] == "failure", "it was accepted of other code"
    assert project.server.comments == before


def queued(project: Project) -> tuple[WorkflowRun, Json]:
    """A merge group's run, and the check of its commit."""
    group = project.queue(project.server.pulls[1])
    project.report(group.id)
    check = project.server.checks[max(project.server.checks)]
    assert check["head_sha"] == group.sha != project.server.pulls[1].head_sha
    return group, check


def test_likely(project: Project) -> None:
    project.machine["GPU_PROCESSES"] = "2"
    run = project.measure(project.pull(touch_kernel))
    project.report(run.id)
    headline, conclusion, labels = verdict(project)
    assert headline.startswith("### ⚠️ Held: very likely 5.0% slower")
    assert (conclusion, labels) == ("action_required", [])
    assert project.server.reruns == [run.id], "it is measured again"


def test_a_push_while_it_is_measured(project: Project) -> None:
    """The older run may not have the GPU any more, and when it is reported late, the newer one's verdict stands."""
    opened = project.pull(touch_kernel)
    pushed: list[Any] = []
    # The plan asks for the pull request first, then what admits it to the GPU.
    project.server.fault(
        "GET", "/pulls/1", skip=1, before=lambda: pushed.append(project.push(opened[0], touch_kernel_again))
    )
    older = project.measure(opened)
    is_not_admitted(older)
    [now] = pushed
    newer = project.measure(now)
    assert newer.conclusion == "success", newer.log
    project.report(newer.id)
    before = deepcopy((project.server.comments, project.server.checks, now[0].labels))
    project.report(older.id)
    assert (project.server.comments, project.server.checks, now[0].labels) == before
    assert verdict(project)[1:] == ("failure", ["performance: regressed"]), "of the commit that is head now"


def is_not_admitted(run: WorkflowRun) -> None:
    steps = run.jobs[MEASURE].steps
    assert steps["admit"] == "failure", run.log
    assert not {"fetch the libraries", "doctor", "fuzz", "bench"} & set(steps)


def test_a_runner_is_lost_and_its_job_is_run_again(project: Project) -> None:
    """That job alone: the plan and the libraries are those of the first attempt."""
    project.machine["GPU_IS"] = "lost"
    run = project.measure(project.pull(touch_kernel))
    assert run.jobs[MEASURE].steps["doctor"] == "failure", run.log
    assert "bench" not in run.jobs[MEASURE].steps
    project.report(run.id)
    headline, conclusion, labels = verdict(project)
    assert "not your fault" in headline
    assert (conclusion, labels) == ("action_required", [])
    assert project.server.reruns == [run.id], "what the runner lost is measured again"

    del project.machine["GPU_IS"]
    built = run.jobs["build / head"]
    project.run_failed_again(run)
    assert run.conclusion == "success", run.log
    assert run.jobs["build / head"] is built
    project.report(run.id)
    [comment] = project.server.bodies(1)
    assert "slower on the L4" in comment.splitlines()[0]
    assert [check["conclusion"] for check in project.server.checks.values()] == ["action_required", "failure"]
    assert project.server.pulls[1].labels == ["performance: regressed"]


def test_a_preempted_runner_hands_on_to_another_one(project: Project) -> None:
    """It times one process of each case and is taken away; a GPU of the same kind times the rest."""
    project.machine["GPU_IS"] = "preempted"
    run = project.measure(project.pull(touch_kernel))
    resumed = run.jobs["measure (l4) / resume"]
    assert run.conclusion == "success", run.log
    assert not {"resources", "sanitize", "profile"} & set(run.jobs[MEASURE].steps), "the machine was gone"
    assert "fuzz" not in resumed.steps, "the record that was handed on has its results"
    assert {"admit", "bench", "resources", "sanitize", "profile"} <= set(resumed.steps)
    project.report(run.id)
    assert verdict(project)[1:] == ("failure", ["performance: regressed"])
    [comment] = project.server.bodies(1)
    assert "resumed after preemption on another NVIDIA L4, from process 2 on" in comment
    assert "Incomplete" not in comment


def test_does_not_compile(project: Project) -> None:
    run = project.measure(project.pull(break_kernel))
    assert run.jobs["build / head"].conclusion == "failure"
    assert MEASURE not in run.jobs
    project.report(run.id)
    headline, conclusion, _ = verdict(project)
    assert "does not compile" in headline
    assert conclusion == "failure"
    assert HEADER in project.server.bodies(1)[0]


def rewrite_the_judge(tree: Path) -> None:
    touch_kernel(tree)
    for file in ("bench/core/errors.py", "ci/commands/cli.py"):
        (tree / file).write_text("raise SystemExit('owned')\n")


def test_a_forks_changes_to_the_judge_do_not_judge(project: Project) -> None:
    """Its run waits until it is approved; and its kernelgate is never run with a GPU: what measures is main's. Two
    GPUs share one library and one comment."""
    project.repository.change_main(appends(".ci/kernelgate.toml", '[[measure.gpus]]\nlabel = "other"\ntarget = "8.9"'))
    opened = project.pull(rewrite_the_judge, STRANGER)
    held = project.measure(opened)
    assert (held.jobs[MEASURE].conclusion, held.jobs[MEASURE].steps) == ("waiting", {})
    assert project.server.writes() == []
    project.held.clear()
    project.approver = "maintainer"
    run = project.measure(opened)
    assert {name: job.conclusion for name, job in run.jobs.items()} == dict.fromkeys(
        ("plan / plan", *MEASURED, "measure (other) / measure"), "success"
    ), run.log
    assert "owned" not in run.log
    project.report(run.id)
    [comment] = project.server.bodies(1)
    assert all(said in comment for said in ("after the merge", "l4", "other"))
    assert verdict(project)[1:] == ("failure", ["performance: regressed"])


def test_fork_that_nobody_approved_is_not_admitted(project: Project) -> None:
    """GitHub makes a missing environment on first use, without reviewers: its jobs start at once."""
    project.held.clear()
    is_not_admitted(project.measure(project.pull(touch_kernel, STRANGER)))


def test_documentation_is_not_measured_while_github_has_a_bad_day(project: Project) -> None:
    run = project.measure(project.pull(edit_docs))
    assert set(run.jobs) == {"plan / plan"}, run.log
    assert run.summary
    limited = project.server.rate_limit("POST", "/check-runs", secondary=True, wait_s=2)
    broken = project.server.fault("GET", f"/actions/runs/{run.id}", status=500)
    project.report(run.id)
    assert limited.times == broken.times == 0, "it was asked until it answered"
    assert project.server.bodies(1) == []
    [check] = project.server.checks.values()
    assert check["conclusion"] in ("neutral", "skipped", "success")


def measured_without_artifacts(project: Project) -> int:
    pull, _, _ = project.pull(touch_kernel)
    shown = project.server.add_run(pull)
    project.server.add_job(shown, MEASURE, "success", ("bench", "success"))
    return int(shown["id"])


def test_artifact_is_missing(project: Project) -> None:
    """The measurement says that it succeeded, and has left nothing."""
    run = measured_without_artifacts(project)
    report = project.report(run)
    assert set(report.jobs) == {"report", "again"}, report.log
    headline, conclusion, labels = verdict(project)
    assert "not your fault" in headline
    assert "left no record" in project.server.bodies(1)[0]
    assert (conclusion, labels) == ("action_required", [])
    assert project.server.reruns == [run]


def test_a_job_may_not_do_what_its_file_does_not_ask_for(project: Project) -> None:
    """As the scene above, from a report.yml that asks to read checks alone."""
    project.repository.change_main(replaces(".github/workflows/report.yml", "checks: write", "checks: read"))
    report = project.report(measured_without_artifacts(project))
    assert "the check run is missing" in report.log
    assert "a token needs checks: write for it" in report.log
    assert project.server.checks == {}
