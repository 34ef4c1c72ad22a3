"""Whose result something on the pull request holds, and whether a result may still change it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from github.PullRequest import PullRequest

from kernelgate.bench.record import Run


@dataclass(frozen=True)
class Stamp:
    """The part of a run's identity that the comment and the check run keep."""

    head_sha: str
    run_id: int
    run_attempt: int

    @classmethod
    def of(cls, run: Run) -> Stamp:
        """Of a run that GitHub names; it has all three."""
        return cls(run.head_sha or "", run.run_id or 0, run.run_attempt or 1)

    @property
    def order(self) -> tuple[int, int]:
        return self.run_id, self.run_attempt


@dataclass(frozen=True)
class Posted:
    """What a step found or did; `left`: this result was not to change anything, and why."""

    outcome: str
    left: bool = False
    outdated: bool = False
    """It was left because it is about an older commit, or about a pull request that is closed."""
    comments: int | None = None
    """How many the pull request has: where one was begun, if nobody else began one at the same time."""
    issue: int | None = None
    """The number of the issue that this is about."""


def outdated(pull: PullRequest, stamp: Stamp) -> Posted | None:
    """Why this result may not change what the pull request shows; None where it may."""
    if pull.state != "open":
        return Posted("left alone: the pull request is closed", left=True, outdated=True)
    if pull.head.sha != stamp.head_sha:
        why = f"the result is for {stamp.head_sha[:7]}, and the head is {pull.head.sha[:7]} by now"
        return Posted(f"left alone: {why}", left=True, outdated=True)
    return None


_UPLOADED = re.compile(r"/actions/runs/\d{1,18}/artifacts/\d{1,18}\b")


def same_text(one: str | None, other: str) -> bool:
    """Equal as far as GitHub keeps what it is given: it may change line ends and the space around.

    The page that an earlier attempt uploaded is as good as the one of this attempt.
    """
    kept, new = (_UPLOADED.sub("", text.replace("\r\n", "\n").strip()) for text in (one or "", other))
    return kept == new
