"""The required check, in act: a pull request is held to the template check that was merged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.log import WorkflowRun
from tests.engine.project import DESCRIPTION, OpenedPull, Project, touch_kernel
from tests.engine.stand_in import INSTALLED

pytestmark = pytest.mark.skipif(not (INSTALLED / "act").exists(), reason="PyPI has no act for this machine")


def checked(project: Project, opened: OpenedPull, *jobs: str) -> WorkflowRun:
    pull, payload, merge = opened
    ref = f"refs/pull/{pull.number}/merge"
    return project.start("check.yml", "pull_request", payload, sha=merge, ref=ref, only=(*jobs, "checks"))


@pytest.mark.nightly
def test_a_good_pull_request_passes(project: Project) -> None:
    run = checked(project, project.pull(touch_kernel), "template")
    assert run.conclusion == "success", run.log


@pytest.mark.slow
@pytest.mark.guards(".github/", "ci/github/", "tests/engine/")
def test_a_pull_request_that_changes_the_template_check_is_held_to_the_one_that_was_merged(project: Project) -> None:
    def excuse_itself(tree: Path) -> None:
        touch_kernel(tree)
        (tree / "ci/github/description.py").write_text("raise SystemExit(0)\n", "utf-8")
        (tree / ".github/actions/setup/action.yml").write_text("runs: {using: composite, steps: []}\n", "utf-8")

    opened = project.pull(excuse_itself, body=DESCRIPTION.replace("One line more does nothing.", ""))
    run = checked(project, opened, "template")
    assert "“Intent and hypothesis” is empty" in run.jobs["template"].logs["template"]
    assert (run.jobs["template"].conclusion, run.jobs["checks"].conclusion) == ("failure", "failure")
