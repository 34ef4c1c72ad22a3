"""`/kernelgate` in comments, and what a person dispatches, in act."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.project import MEASURED, Project, break_kernel, touch_kernel

pytestmark = pytest.mark.nightly


def test_who_may_not_write_starts_nothing(project: Project) -> None:
    pull, _, _ = project.pull(touch_kernel)
    commands = {"stranger": ("bench", "bisect HEAD~1", "pattern"), "some-app[bot]": ("accept all because it says so",)}
    for author, command in ((author, each) for author, several in commands.items() for each in several):
        run = project.comment(pull, f"/kernelgate {command}", author)
        assert set(run.jobs) == {"authorise"}, run.log
    assert (project.server.checks, pull.labels) == ({}, [])
    assert not [body for body in project.server.bodies(1) if "topic=verdict" in body]


def test_a_maintainer_asks_for_a_part(project: Project) -> None:
    """Such a part has a comment of its own, and neither a check nor a label; what is no command is answered."""
    pull, _, _ = project.pull(touch_kernel)
    project.server.collaborators["maintainer"] = "write"
    run = project.comment(pull, "/kernelgate pattern", "maintainer")
    assert set(run.jobs) == {"authorise"}, run.log
    assert "this was not run: write `/kernelgate` and then bench, profile or fuzz" in project.server.bodies(1)[-1]
    for verb in ("profile", "fuzz"):
        run = project.comment(pull, f"/kernelgate {verb}", "maintainer")
        assert run.conclusion == "success", run.log
        assert set(run.jobs) == {"authorise", *MEASURED, "report / report"}
        assert f"topic={verb}" in project.server.bodies(1)[-1]
        assert (project.server.checks, pull.labels) == ({}, [])


def test_a_maintainer_searches_for_the_commit_that_broke_the_build(project: Project) -> None:
    pull, _, _ = project.pull(break_kernel)
    project.server.collaborators["maintainer"] = "write"
    run = project.comment(pull, f"/kernelgate bisect {pull.base_sha} --build", "maintainer")
    assert run.conclusion == "success", run.log
    said = project.server.bodies(1)[-1]
    assert said.startswith("**Does not compile since** ["), run.log
    assert f"/commit/{pull.head_sha})" in said
    assert said.endswith(f"<!-- kernelgate-bisect run={run.id} -->")


def test_shell_text_in_an_input_of_a_search_is_never_run(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "owned"
    inputs = dict.fromkeys(("good", "bad", "case", "gpu", "number"), f"$(touch {file})")
    run = project.dispatch("bisect.yml", **inputs)
    assert not file.exists(), run.log
    assert {name: job.conclusion for name, job in run.jobs.items()} == {"ends": "failure"}, run.log
    assert "Traceback" not in run.log
