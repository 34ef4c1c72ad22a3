"""The required check: lint, types, tests, template and compile, executed for good and for faulty pull requests."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.github_server import Json, Pull
from tests.workflows.project import DESCRIPTION, Project, touch_kernel
from tests.workflows.runner import WorkflowRun

EVERY = ("lint", "types", "test", "template", "compile")
SHARDS = tuple(f"test ({number}/6)" for number in range(1, 7))
"""The jobs of `test`."""


@dataclass
class ChecksJob:
    project: Project

    def run(self, opened: tuple[Pull, Json, str], only: Collection[str] = (*EVERY, "checks")) -> WorkflowRun:
        pull, payload, merge = opened
        ref = f"refs/pull/{pull.number}/merge"
        platform = self.project.platform
        return platform.start(
            "check.yml", "pull_request", payload, sha=merge, ref=ref, head_sha=pull.head_sha, only=only
        )

    def refused(self, opened: tuple[Pull, Json, str], job: str) -> str:
        """What the job says that must refuse this pull request. The check fails although all others succeed."""
        run = self.run(opened, (job, "checks"))
        tried = {name: each for name, each in run.jobs.items() if name != "checks"}
        assert tried.keys() == set(SHARDS if job == "test" else (job,))
        refusing = [each for each in tried.values() if each.conclusion == "failure"]
        assert (bool(refusing), run.jobs["checks"].conclusion) == (True, "failure")
        return "\n".join(step.log for each in refusing for step in each.steps)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the runs of this file share: what mypy knows of torch, and compiled kernels; none from before it."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture
def checks(project: Project, kept: Path) -> ChecksJob:
    project.platform.machine |= {
        "KERNELGATE_CACHE": str(kept / "libraries"),
        "MYPY_CACHE_DIR": str(kept / "mypy"),
        # One file of quick tests stands for all: these run this one again, which would never end.
        "PYTEST_ADDOPTS": "tests/ci/document/test_formatting.py",
    }
    return ChecksJob(project)


@pytest.mark.slow
def test_a_good_pull_request_passes_every_job(checks: ChecksJob) -> None:
    run = checks.run(checks.project.pull(touch_kernel))
    every = {*EVERY, *SHARDS, "checks"} - {"test"}
    assert {name: job.conclusion for name, job in run.jobs.items()} == dict.fromkeys(every, "success"), run.log
    skipped = [step.name for job in run.jobs.values() for step in job.steps if step.conclusion == "skipped"]
    assert skipped == []
    assert "All checks passed!" in run.log, "ruff"
    assert "Success: no issues found" in run.log, "mypy"
    assert re.search(r"=+ \d+ passed in", run.log), "pytest"
    assert "for sm_80, sm_89, sm_90, sm_90a: compiled" in run.log
    assert "occupancy on the H100" in run.log
    assert all(set(job.permissions.values()) <= {"read"} for job in run.jobs.values())


def test_a_pull_request_that_changes_the_template_check_is_held_to_the_one_that_was_merged(checks: ChecksJob) -> None:
    def excuse_itself(tree: Path) -> None:
        touch_kernel(tree)
        for name in ("ci/github/description.py", ".github/actions/setup/action.yml"):
            (tree / name).write_text("raise SystemExit(0)\n", encoding="utf-8")

    opened = checks.project.pull(excuse_itself, body=DESCRIPTION.replace("One line more does nothing.", ""))
    assert "“Intent and hypothesis” is empty" in checks.refused(opened, "template")
