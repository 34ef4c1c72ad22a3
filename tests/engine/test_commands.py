"""`/kernelgate` in comments, and what a person dispatches, in act."""

from __future__ import annotations

import pytest

from tests.workflows.project import DESCRIPTION, Project, break_kernel, touch_kernel

CLAIM = "- s512_b32_h8_d64_fp16: 10% faster"
pytestmark = pytest.mark.nightly


def test_a_maintainer_measures_and_accepts(project: Project) -> None:
    pull, _, _ = project.pull(touch_kernel, body=DESCRIPTION.replace(CLAIM, "None."))
    project.server.collaborators["maintainer"] = "write"
    project.server.add_run(pull)  # what the push started
    run = project.comment(pull, "/kernelgate bench", "maintainer")
    assert run.conclusion == "success", run.log
    assert {"authorise", "build / base", "build / head", "measure (l4) / measure", "report / report"} == set(run.jobs)
    assert pull.labels == ["performance: regressed"]
    accepted = project.comment(pull, "/kernelgate accept all because $(touch owned) rounding is exact", "maintainer")
    assert set(accepted.jobs) == {"authorise", "accept / report"}, accepted.log
    [comment] = [body for body in project.server.bodies(pull.number) if "topic=verdict" in body]
    assert "Accepted by `@maintainer`, until the next push: " in comment
    assert {check["name"]: check["conclusion"] for check in project.server.checks.values()} == {
        "kernelgate verdict": "neutral",
        "kernelgate accepted": "neutral",
    }


@pytest.mark.parametrize(
    ("author", "command"),
    [("stranger", "bench"), ("stranger", "bisect HEAD~1"), ("some-app[bot]", "accept all because it says so")],
)
def test_who_may_not_write_starts_nothing(project: Project, author: str, command: str) -> None:
    pull, _, _ = project.pull(touch_kernel)
    run = project.comment(pull, f"/kernelgate {command}", author)
    assert set(run.jobs) == {"authorise"}, run.log
    assert project.server.checks == {}
    assert pull.labels == []
    assert not [body for body in project.server.bodies(pull.number) if "topic=verdict" in body]


@pytest.mark.parametrize("verb", ["profile", "fuzz"])
def test_a_maintainer_asks_for_a_part(project: Project, verb: str) -> None:
    """Such a part has a comment of its own, and neither a check nor a label."""
    pull, _, _ = project.pull(touch_kernel)
    project.server.collaborators["maintainer"] = "write"
    run = project.comment(pull, f"/kernelgate {verb}", "maintainer")
    assert run.conclusion == "success", run.log
    assert {"authorise", "build / base", "build / head", "measure (l4) / measure", "report / report"} == set(run.jobs)
    comment = project.server.bodies(pull.number)[-1]
    assert f"topic={verb}" in comment
    assert (project.server.checks, pull.labels) == ({}, [])


def test_what_is_no_command_is_answered(project: Project) -> None:
    pull, _, _ = project.pull(touch_kernel)
    project.server.collaborators["maintainer"] = "write"
    run = project.comment(pull, "/kernelgate pattern", "maintainer")
    assert set(run.jobs) == {"authorise"}, run.log
    said = "this was not run: write `/kernelgate` and then bench, profile or fuzz"
    assert said in project.server.bodies(pull.number)[-1]


def test_a_maintainer_searches_for_the_commit_that_broke_the_build(project: Project) -> None:
    pull, _, _ = project.pull(break_kernel)
    project.server.collaborators["maintainer"] = "write"
    run = project.comment(pull, f"/kernelgate bisect {pull.base_sha} --build", "maintainer")
    assert run.conclusion == "success", run.log
    said = project.server.bodies(pull.number)[-1]
    assert said.startswith("**Does not compile since** ["), run.log
    assert f"/commit/{pull.head_sha})" in said
    assert said.endswith(f"<!-- kernelgate-bisect run={run.id} -->")


def test_a_pull_request_is_profiled_by_hand(project: Project) -> None:
    pull, _, _ = project.pull(touch_kernel)
    run = project.dispatch("profile.yml", **{"pull-request": str(pull.number)})
    assert run.conclusion == "success", run.log
    assert set(run.jobs) == {"plan / plan", "build / base", "build / head", "measure (l4) / measure", "report / report"}
    [comment] = project.server.bodies(pull.number)
    assert comment.startswith("### ✅ Profiled: `s512_b32_h8_d64_fp16`")
    assert project.server.checks == {}, "a profile speaks of no merge"
