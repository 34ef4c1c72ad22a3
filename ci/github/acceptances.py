"""What somebody accepted, kept where nobody but the bot can write: as a check run of the commit that it is about.

Whoever could forge one could forge the verdict itself. GitHub ties a check run to its commit, so that nothing is left
of it after the next push. The comment that asked for it must still stand as it was: deleting or editing it takes it
back.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Annotated, Literal

from github import UnknownObjectException
from github.CheckRun import CheckRun
from github.PullRequest import PullRequest
from pydantic import ConfigDict, Field, ValidationError

from kernelgate.bench.record import CaseKey, Model, RunRecord
from kernelgate.ci.document import formatting, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Link
from kernelgate.ci.github.client import Bot, GitHubError, patiently, until_done
from kernelgate.ci.github.plan import merge_base
from kernelgate.ci.github.post_check_run import is_ours
from kernelgate.ci.github.upsert import Posted
from kernelgate.ci.judge.case import CaseVerdict, RecordVerdict, Status
from kernelgate.ci.judge.gate import Acceptance, Label
from kernelgate.ci.report import remarks

NAME = "kernelgate accepted"
MAX_KEPT = 20
"""Of a commit: the newest. Each costs a call to GitHub in every report."""


class KeptAcceptance(Model):
    """What one comment accepted."""

    schema_: Annotated[Literal["kernelgate.accepted/1"], Field(alias="schema")] = "kernelgate.accepted/1"
    comment: int
    digest: str
    """SHA-256 of the comment."""
    by: str
    reason: str
    base_sha: str
    """What the commit was compared with."""
    cases: tuple[CaseKey, ...]
    """One without an id is all cases of its card together."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_by_name=True, validate_by_alias=True)

    def of(self, head_sha: str) -> tuple[Acceptance, ...]:
        """For the gate, of the commit that the check run belongs to."""
        return tuple(Acceptance(key, self.by, self.reason, head_sha, self.base_sha) for key in self.cases)


def digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def keep(bot: Bot, kept: KeptAcceptance, head_sha: str) -> None:
    """The commit has a check run that says so."""
    mark = f"{NAME}:{kept.comment}"
    readable = kept.model_dump_json(by_alias=True).replace("`", "\\u0060")

    def step() -> Posted | None:
        if any(run.external_id == mark for run in _runs(bot, head_sha)):
            return Posted("there")
        bot.repository.create_check_run(
            NAME,
            head_sha,
            external_id=mark,
            status="completed",
            conclusion="neutral",
            output={
                "title": visible(f"{formatting.counted(len(kept.cases), 'regression')} accepted by {kept.by}", 200),
                "summary": _summary(kept),
                "text": f"```json\n{readable}\n```",
            },
        )
        return None

    bot.step.log(f"acceptance: {until_done('acceptance', step, bot).outcome}")


def standing(bot: Bot, number: int, head_sha: str) -> tuple[KeptAcceptance, ...]:
    """What was accepted of this commit, as far as its comments still stand as they were, the oldest first."""
    runs = patiently("acceptances", lambda: _runs(bot, head_sha), bot)
    standing = []
    for kept in filter(None, map(_read, runs[-MAX_KEPT:])):
        body = patiently("comment", partial(comment_body, bot, number, kept.comment, kept.by), bot)
        if body is not None and digest(body) == kept.digest:
            standing.append(kept)
        else:
            gone = f"the comment {kept.comment} of {kept.by} is gone or was edited, so it counts no more"
            bot.step.log(f"acceptance: {gone}")
    return tuple(standing)


def comment_body(bot: Bot, number: int, comment: int, by: str) -> str | None:
    """The comment as it is now; None where it is gone, or another one's."""
    try:
        found = bot.repository.get_issue(number).get_comment(comment)
        body, user = found.body, found.user
    except UnknownObjectException:
        return None
    return (body or "") if user is not None and user.login == by else None


def _runs(bot: Bot, head_sha: str) -> list[CheckRun]:
    """The commit's acceptances, the oldest first."""
    runs = bot.repository.get_commit(head_sha).get_check_runs(check_name=NAME, filter="all")
    return sorted((run for run in runs if is_ours(bot, run)), key=lambda run: run.id)


# What the check run says ----------------------------------------------------------------------------------------------


_WRITTEN = re.compile(r"```json\n(?P<json>[^`]*)\n```")


def _summary(kept: KeptAcceptance) -> str:
    who: Line = (Code(f"@{kept.by}"), " accepts, compared with ", Code(kept.base_sha[:7]), ": ")
    return render.markdown_line((*who, *remarks.listed(kept.cases, {}), ". Reason: ", visible(kept.reason)))


def _read(run: CheckRun) -> KeptAcceptance | None:
    found = _WRITTEN.fullmatch((run.output.text or "").replace("\r\n", "\n").strip())
    try:
        return KeptAcceptance.model_validate_json(found["json"]) if found else None
    except ValidationError:
        return None


MAX_PULLS = 100
"""Closed pull requests that are looked through: those that changed last."""
_NOT_SLOWER = (Status.UNCHANGED, Status.FASTER, Status.IMPROVED)


@dataclass(frozen=True)
class AcceptedMerge:
    """What one pull request brought that was accepted."""

    pull: Link
    by: str
    reason: str
    cases: tuple[CaseKey, ...]

    @property
    def line(self) -> Line:
        return (
            *remarks.listed(self.cases, {}),
            ": accepted in ",
            self.pull,
            " by ",
            Code(f"@{self.by}"),
            ". Reason: ",
            visible(self.reason),
        )


def since(bot: Bot, stored: RunRecord, head: str, verdict: RecordVerdict) -> tuple[AcceptedMerge, ...]:
    """What was accepted between the stored baseline's commit and `head`, and may be slower than it, the newest first.

    Nothing where anything else is slower than the baseline: that must not pass into a new one unseen.
    """
    known = stored.run.head_sha
    slower = [case for case in verdict.cases if case.status not in _NOT_SLOWER]
    if known is None or verdict.refused is not None or not slower:
        return ()
    try:
        pulls = patiently("closed pull requests", lambda: _accepting(bot), bot)
        found = [one for pull in pulls if _is_between(bot, pull, known, head) for one in _of(bot, pull, slower)]
    except GitHubError as error:
        bot.step.warn(f"what was accepted since the baseline is not known, so it counts as not accepted: {error}")
        return ()
    taken = {case for one in found for case in one.cases}
    left = [case.key for case in slower if case.status.is_slower and case.key not in taken]
    # What was accepted makes the mean of its card slower, too.
    together = {mean.card for mean in verdict.means if mean.status.is_slower} - {case.card for case in taken}
    return () if left or together else tuple(found)


def _accepting(bot: Bot) -> list[PullRequest]:
    """The merged pull requests that bear the label."""
    closed = bot.repository.get_pulls(state="closed", sort="updated", direction="desc")
    return [
        pull
        for pull in islice(closed, MAX_PULLS)
        if pull.merged_at is not None and Label.ACCEPTED in (label.name for label in pull.labels)
    ]


def _is_between(bot: Bot, pull: PullRequest, known: str, head: str) -> bool:
    """Whether the default branch got it after the one commit, and by the other."""
    merged = pull.merge_commit_sha or ""
    return bool(merged) and merge_base(bot, merged, head) == merged and merge_base(bot, merged, known) != merged


def _of(bot: Bot, pull: PullRequest, slower: Iterable[CaseVerdict]) -> list[AcceptedMerge]:
    """What was accepted of the commit that was merged, as far as these cases go."""
    every = [one for kept in standing(bot, pull.number, pull.head.sha) for one in kept.of(pull.head.sha)]
    by_words: dict[tuple[str, str], list[Acceptance]] = {}
    for one in every:
        by_words.setdefault((one.by, one.reason), []).append(one)
    found = []
    for (by, reason), alike in by_words.items():
        named = {one.case for one in alike}
        cards = {case.card for case in named if not case.id}
        cases = tuple(case.key for case in slower if case.key in named or case.card in cards)
        if cases:
            found.append(AcceptedMerge(Link(f"pull request {pull.number}", pull.html_url), by, reason, cases))
    return found
