"""What a pull request shows besides the comment, as plain data: the check run, its remarks beside lines, the label."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Level = Literal["notice", "warning", "failure"]
Conclusion = Literal["success", "failure", "neutral", "action_required"]
"""A required check passes with success and with neutral."""


@dataclass(frozen=True)
class Annotation:
    """A remark beside lines of a changed file."""

    path: str
    start_line: int
    end_line: int
    level: Level
    title: str
    message: str


@dataclass(frozen=True)
class CheckRun:
    """The verdict as a check run."""

    conclusion: Conclusion
    title: str
    summary: str
    annotations: tuple[Annotation, ...] = ()
    details_url: str | None = None
    judged: bool = True
    """False where nothing of the change was judged: that takes back no failure, not even its own run's."""


class Label(StrEnum):
    IMPROVED = "performance: improved"
    REGRESSED = "performance: regressed"
    UNCHANGED = "performance: unchanged"


LABELS = {
    Label.IMPROVED: ("0e8a16", "kernelgate measured this change to be faster"),
    Label.REGRESSED: ("b60205", "kernelgate measured this change to be slower"),
    Label.UNCHANGED: ("c5def5", "kernelgate measured this change to make no difference"),
}
