"""The verdict as a check run of the commit, with a remark beside each changed line that it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from github.GithubObject import NotSet

from kernelgate.ci.document.escape import visible
from kernelgate.ci.github.client import Bot, until_done
from kernelgate.ci.github.stamp import Posted, Stamp, same_text
from kernelgate.ci.judge.gate import Conclusion

CHECK_NAME = "kernelgate verdict"
CHECK_LIMIT = 65_535
"""Characters of a check run's summary and of its text."""
ANNOTATIONS_A_REQUEST = 50

Level = Literal["notice", "warning", "failure"]


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


_EXTERNAL = re.compile(r"kernelgate:(\d{1,18})\.(\d{1,6})")


def put_check(bot: Bot, check: CheckRun, stamp: Stamp) -> Posted:
    """The commit has one check run of this run with the verdict and every annotation, none of them twice."""
    external = f"kernelgate:{stamp.run_id}.{stamp.run_attempt}"
    summary = check.summary if len(check.summary) <= CHECK_LIMIT else check.summary[: CHECK_LIMIT - 1] + "…"
    output: dict[str, Any] = {"title": visible(check.title, 200), "summary": summary}
    notes = [_annotation(note) for note in check.annotations]
    outcome = "unchanged"

    def step() -> Posted | None:
        nonlocal outcome
        runs = list(bot.repository.get_commit(stamp.head_sha).get_check_runs(check_name=CHECK_NAME, filter="all"))
        shown = {
            (int(m[1]), int(m[2])): run.conclusion for run in runs if (m := _EXTERNAL.fullmatch(run.external_id or ""))
        }
        if any(order > stamp.order for order in shown):
            return Posted("left alone: a newer run of the same commit has its own", left=True)
        if check.conclusion == "neutral" and _stands(shown, check, stamp):
            return Posted("left alone: what an earlier run of the same commit found blocks still", left=True)
        own = min((run for run in runs if run.external_id == external), key=lambda run: run.id, default=None)
        if own is None:
            outcome = "created"
            bot.repository.create_check_run(
                CHECK_NAME,
                stamp.head_sha,
                external_id=external,
                status="completed",
                conclusion=check.conclusion,
                output=output | {"annotations": notes[:ANNOTATIONS_A_REQUEST]},
                details_url=check.details_url if check.details_url else NotSet,
            )
            return None
        has = (own.status, own.conclusion, own.output.title)
        sent = own.output.annotations_count
        if has != ("completed", check.conclusion, output["title"]) or not same_text(own.output.summary, summary):
            outcome = outcome if outcome == "created" else "edited"
            own.edit(status="completed", conclusion=check.conclusion, output=output)
        elif sent < len(notes):
            # Annotations are added to those that are there: how many GitHub has says where to go on.
            outcome = outcome if outcome == "created" else "edited"
            own.edit(output=output | {"annotations": notes[sent : sent + ANNOTATIONS_A_REQUEST]})
        else:
            return Posted(outcome)
        return None

    return until_done("check run", step, bot)


def _stands(shown: Mapping[tuple[int, int], str | None], check: CheckRun, stamp: Stamp) -> bool:
    """Whether the latest verdict among these check runs is a failure that `check`, which passes, may not hide.

    What has no verdict took none back: neither a run that is under way, nor one that waits for somebody.

    A measurement can always be made to end without a verdict: by closing and opening the pull request again, by another
    base, by a kernel that hangs the second time.
    """
    earlier = [order for order in shown if order < stamp.order or not check.judged]
    verdicts = [order for order in earlier if shown[order] in ("success", "failure")]
    return bool(verdicts) and shown[max(verdicts)] == "failure"


def _annotation(note: Annotation) -> dict[str, str | int]:
    return {
        "path": note.path,
        "start_line": note.start_line,
        "end_line": note.end_line,
        "annotation_level": note.level,
        "title": visible(note.title, 200),
        "message": visible(note.message, 2000),
    }
