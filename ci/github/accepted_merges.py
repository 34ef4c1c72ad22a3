"""Which regressions came to the default branch with somebody's consent since the stored baseline was measured."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from github.PullRequest import PullRequest

from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Link
from kernelgate.ci.github import acceptances
from kernelgate.ci.github.client import Bot, GitHubError, patiently
from kernelgate.ci.github.plan import merge_base
from kernelgate.ci.judge.case import CaseVerdict, RecordVerdict, Status
from kernelgate.ci.judge.gate import Acceptance, Label
from kernelgate.ci.report import accepted

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
            *accepted.listed(self.cases, {}),
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
        found = [
            one for pull in _accepting(bot) if _is_between(bot, pull, known, head) for one in _of(bot, pull, slower)
        ]
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

    def step() -> list[PullRequest]:
        closed = bot.repository.get_pulls(state="closed", sort="updated", direction="desc")
        return [
            pull
            for pull in islice(closed, MAX_PULLS)
            if pull.merged_at is not None and Label.ACCEPTED in (label.name for label in pull.labels)
        ]

    return patiently("closed pull requests", step, bot)


def _is_between(bot: Bot, pull: PullRequest, known: str, head: str) -> bool:
    """Whether the default branch got it after the one commit, and by the other."""
    merged = pull.merge_commit_sha or ""
    return bool(merged) and merge_base(bot, merged, head) == merged and merge_base(bot, merged, known) != merged


def _of(bot: Bot, pull: PullRequest, slower: Iterable[CaseVerdict]) -> list[AcceptedMerge]:
    """What was accepted of the commit that was merged, as far as these cases go."""
    every = [one for kept in acceptances.standing(bot, pull.number, pull.head.sha) for one in kept.of(pull.head.sha)]
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
