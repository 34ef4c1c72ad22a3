"""The GPU runner's door: who may measure what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import connect
from kernelgate.ci.github.plan import FORK_ENVIRONMENT, NotAdmittedError, admit
from tests.fakes.github_server import FakeGitHub, Pull

HEAD, NEWER = "a" * 40, "c" * 40


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as running:
        yield running


def asked(
    github: FakeGitHub, pull: Pull, folder: Path, *, event: str = "pull_request", run_id: int = 1, gone: bool = False
) -> str:
    """What `admit` says on the runner of a run that `pull` started at the commit HEAD; `gone`: its fork was deleted."""
    payload: dict[str, Any] = {"pull_request": github.show_pull(pull, whole=True)}
    payload["pull_request"]["head"]["sha"] = HEAD
    if gone:
        payload["pull_request"]["head"]["repo"] = None
    (folder / "event.json").write_text(json.dumps(payload))
    told = {"GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": str(folder / "event.json"), "GITHUB_RUN_ID": str(run_id)}
    step = Step({**github.environment, **told})
    return admit(connect(step, pause_s=0), step, HEAD)


def test_a_branch_of_the_repository_is_admitted(github: FakeGitHub, tmp_path: Path) -> None:
    assert "head of pull request 1" in asked(github, github.open_pull(head_sha=HEAD), tmp_path)


def test_an_approved_fork_is_admitted_and_its_approver_named(github: FakeGitHub, tmp_path: Path) -> None:
    pull = github.open_pull(head_sha=HEAD, head_repository="stranger/kernels")
    github.approvals[1] = {FORK_ENVIRONMENT: "maintainer"}
    assert "approved by maintainer" in asked(github, pull, tmp_path)


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("approvals", [{}, {"pages": "maintainer"}])
def test_a_fork_that_nobody_approved_is_not(
    gone: bool, approvals: dict[str, str], github: FakeGitHub, tmp_path: Path
) -> None:
    """Such as when the environment exists without reviewers, which lets everybody pass."""
    pull = github.open_pull(head_sha=HEAD, head_repository="stranger/kernels")
    github.approvals[1] = approvals
    with pytest.raises(NotAdmittedError, match="was not approved"):
        asked(github, pull, tmp_path, gone=gone)


@pytest.mark.parametrize("repository", ["octo-org/kernels", "stranger/kernels"])
def test_a_commit_pushed_after_the_approval_is_not(repository: str, github: FakeGitHub, tmp_path: Path) -> None:
    pull = github.open_pull(head_sha=NEWER, head_repository=repository)
    github.approvals[1] = {FORK_ENVIRONMENT: "maintainer"}
    with pytest.raises(NotAdmittedError, match="moved on to cccccccccccc"):
        asked(github, pull, tmp_path)


def test_another_commit_than_the_runs_is_not(github: FakeGitHub, tmp_path: Path) -> None:
    pull = github.open_pull(head_sha=NEWER)
    (tmp_path / "event.json").write_text(json.dumps({"pull_request": github.show_pull(pull, whole=True)}))
    told = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(tmp_path / "event.json")}
    step = Step({**github.environment, **told})
    with pytest.raises(NotAdmittedError, match="asked to measure aaaaaaaaaaaa"):
        admit(connect(step, pause_s=0), step, HEAD)


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch", "issue_comment"])
def test_our_own_events_are_admitted(event: str, github: FakeGitHub, tmp_path: Path) -> None:
    assert event in asked(github, github.open_pull(head_sha=HEAD), tmp_path, event=event)
    assert github.requests == []


@pytest.mark.parametrize("event", ["pull_request_review", "pull_request_review_comment"])
def test_events_that_a_forks_workflow_may_choose_are_asked_the_same(
    event: str, github: FakeGitHub, tmp_path: Path
) -> None:
    pull = github.open_pull(head_sha=HEAD, head_repository="stranger/kernels")
    with pytest.raises(NotAdmittedError, match="was not approved"):
        asked(github, pull, tmp_path, event=event)


@pytest.mark.parametrize("event", ["", "fork", "watch", "something_new"])
def test_unknown_events_are_not(event: str, github: FakeGitHub, tmp_path: Path) -> None:
    with pytest.raises(NotAdmittedError, match="not measured"):
        asked(github, github.open_pull(head_sha=HEAD), tmp_path, event=event)
