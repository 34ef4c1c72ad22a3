"""Whether a run may use the GPU: asked on the runner, before anything that the run brought along is touched.

GitHub has by then held a fork's run until somebody approved it. Between the approval and the runner the pull request
may have got another commit, and an environment that nobody protected lets everybody pass; both are seen here.
"""

from __future__ import annotations

from typing import Any

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, patiently

FORK_ENVIRONMENT = "kernelgate-forks"
"""The environment of .github/workflows/measure.yml whose reviewers approve the runs of forks."""
OURS = ("push", "schedule", "workflow_dispatch", "issue_comment")
"""Events of the default branch, or of people with write access; a comment's author was checked before."""


class NotAdmittedError(KernelgateError):
    """The run may not use the GPU."""


def admit(bot: Bot, step: Step, head_sha: str) -> str:
    """Why the run may measure `head_sha`, in a sentence. Raises NotAdmittedError where it may not."""
    name, run = step.environment.get("GITHUB_EVENT_NAME", ""), step.environment.get("GITHUB_RUN_ID", "")
    if name in OURS:
        return f"admitted: {name} is an internal event"
    if not name.startswith("pull_request"):
        raise NotAdmittedError(f"runs started by {name or 'nothing that is known'} are not measured")
    number, approved, fork = _asked(step.event(), bot.repository.full_name)
    pull = patiently("pull request", lambda: _pull(bot, number), bot)
    if approved != head_sha:
        raise NotAdmittedError(f"the run is about commit {approved[:12]}, and was asked to measure {head_sha[:12]}")
    if pull["head"]["sha"] != head_sha:
        raise NotAdmittedError(f"the pull request has moved on to {pull['head']['sha'][:12]}: its newer run applies")
    if not fork:
        return f"admitted: {head_sha[:12]} is the head of pull request {number}, a branch of this repository"
    names = patiently("approvals", lambda: _approved_by(bot, run), bot)
    if not names:
        raise NotAdmittedError(
            f"this run of a fork was not approved: give the environment {FORK_ENVIRONMENT} required reviewers, "
            "as docs/install.md says"
        )
    return f"admitted: {head_sha[:12]} is the head of pull request {number}, approved by {', '.join(names)}"


def _asked(event: dict[str, Any], repository: str) -> tuple[int, str, bool]:
    """Number, head commit and whether it is a fork's, from GitHub's event."""
    try:
        pull = event["pull_request"]
        source = (pull["head"]["repo"] or {}).get("full_name")
        return int(pull["number"]), str(pull["head"]["sha"]), source != repository
    except (KeyError, TypeError, ValueError):
        raise NotAdmittedError("the event names no pull request") from None


def _pull(bot: Bot, number: int) -> Any:
    return bot.repository.get_pull(number).raw_data


def _approved_by(bot: Bot, run: str) -> list[str]:
    """Who approved the run for the forks' environment."""
    # PyGithub has no method for a run's approvals.
    _, reviews = bot.repository.requester.requestJsonAndCheck(
        "GET", f"{bot.repository.url}/actions/runs/{run}/approvals"
    )
    return [
        review["user"]["login"]
        for review in reviews
        if review["state"] == "approved" and FORK_ENVIRONMENT in [each["name"] for each in review["environments"]]
    ]
