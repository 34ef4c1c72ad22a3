"""The GPU runner's door: who may measure what."""

from __future__ import annotations

from typing import Any

import pytest

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.plan import FORK_ENVIRONMENT, admit
from tests.ci.desk import Desk

HEAD, NEWER, FORK = "a" * 40, "c" * 40, "stranger/kernels"
APPROVED = {FORK_ENVIRONMENT: "maintainer"}


def asked(
    desk: Desk,
    event: str = "pull_request",
    started_at: str = HEAD,
    approvals: dict[str, str] | None = None,
    gone: bool = False,
    **pull: Any,
) -> str:
    """What `admit` says of the commit HEAD on the runner of a run that a pull request started; `gone`: its fork was
    deleted."""
    opened = desk.github.open_pull(**{"head_sha": HEAD} | pull)
    desk.github.approvals[1] = approvals or {}
    shown = desk.github.show_pull(opened, whole=True)
    shown["head"]["sha"] = started_at
    shown["head"]["repo"] = None if gone else shown["head"]["repo"]
    desk.told({"pull_request": shown})
    step = Step({**desk.bot.step.environment, "GITHUB_EVENT_NAME": event, "GITHUB_RUN_ID": "1"})
    return admit(desk.bot, step, HEAD)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "head of pull request 1, a branch of this repository"),
        ({"head_repository": FORK, "approvals": APPROVED}, "approved by maintainer"),
        ({"event": "schedule"}, "schedule"),
    ],
)
def test_branches_of_the_repository_approved_forks_and_our_own_events_are_admitted(
    desk: Desk, facts: dict[str, Any], said: str
) -> None:
    assert said in asked(desk, **facts)
    assert bool(desk.github.requests) == ("event" not in facts)


REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "not approved": ("was not approved", {"head_repository": FORK}),
    "the approval of another environment": (
        "was not approved",
        {"head_repository": FORK, "approvals": {"pages": "maintainer"}},
    ),
    "a fork that is gone": ("was not approved", {"head_repository": FORK, "gone": True}),
    "pushed since": ("moved on to cccccccccccc", {"head_sha": NEWER}),
    "pushed after the approval": (
        "moved on to cccccccccccc",
        {"head_sha": NEWER, "approvals": APPROVED, "head_repository": FORK},
    ),
    "another commit than the run's": ("asked to measure aaaaaaaaaaaa", {"started_at": NEWER, "head_sha": NEWER}),
    "a review": ("was not approved", {"event": "pull_request_review", "head_repository": FORK}),
    "a review's comment": ("was not approved", {"event": "pull_request_review_comment", "head_repository": FORK}),
    "no event": ("not measured", {"event": ""}),
    "an event that nobody knows": ("not measured", {"event": "something_new"}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_nobody_approved_as_it_is_now_is_not(desk: Desk, what: str) -> None:
    """Such as when the environment exists without reviewers, which lets everybody pass; a fork's workflow may choose
    its events."""
    why, facts = REFUSED[what]
    with pytest.raises(KernelgateError, match=why):
        asked(desk, **facts)


def test_of_a_merge_queue_its_groups_head_alone_is_admitted(desk: Desk) -> None:
    shown = {"head_sha": HEAD, "base_sha": NEWER, "head_ref": "refs/heads/gh-readonly-queue/main/pr-7-" + NEWER}
    for payload, head in (({"merge_group": shown}, NEWER), ({}, HEAD)):
        desk.told(payload)
        step = Step({**desk.bot.step.environment, "GITHUB_EVENT_NAME": "merge_group"})
        with pytest.raises(KernelgateError, match="is not the head of the event's merge group"):
            admit(desk.bot, step, head)
    desk.told({"merge_group": shown})
    step = Step({**desk.bot.step.environment, "GITHUB_EVENT_NAME": "merge_group"})
    assert "is in the merge queue" in admit(desk.bot, step, HEAD)
