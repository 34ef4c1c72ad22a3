"""Puts what assemble.py decided on the pull request and into the job summary, as far as the token allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.document import render
from kernelgate.ci.document.model import Code, Line, Mark
from kernelgate.ci.github import description, results_block
from kernelgate.ci.github.annotations import line_notes
from kernelgate.ci.github.assemble import (
    NOTHING_TRUSTED,
    Posting,
    PullRequestChange,
    Task,
    Trusted,
    assemble,
    places,
)
from kernelgate.ci.github.client import Bot, DeniedError, GitHubError, until_done
from kernelgate.ci.github.plan import skipped
from kernelgate.ci.github.post_check_run import CheckRun, begin_check, end_check, hand_over_check, put_check
from kernelgate.ci.github.run_info import RunInfo, read_run_info
from kernelgate.ci.github.upsert import VERDICTS, Posted, Stamp, comment_step, put_comment, put_labels, put_results
from kernelgate.ci.judge.gate import SHARED_COMMIT, UNTRUSTED, Label
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.build import BuiltReport
from kernelgate.ci.report.headline import cause, with_consequence
from kernelgate.ci.report.page import write as write_page
from kernelgate.ci.report.speed import results

PULLS, CHECKS = "pull-requests: write", "checks: write"
"""The permissions that posting needs."""
Ended = Posted | type[GitHubError]
"""What became of one of the things to post."""


@dataclass(frozen=True)
class Prepared:
    """Everything that is needed to post, and nothing posted yet."""

    info: RunInfo
    change: PullRequestChange | None
    """None where the run has no pull request."""
    posting: Posting


def prepare(folder: Path, rules: Policy, task: Task = "bench", trusted: Trusted = NOTHING_TRUSTED) -> Prepared:
    """What is to be posted of the folder."""
    info = read_run_info(folder)
    change = None
    if (pull := info.pull) is not None:
        described = description.describe(pull.body, rules.template, pull.names, by_bot=pull.by_bot)
        change = PullRequestChange(described, pull.names, skipped(pull.names, pull.labels, rules.measure))
    return Prepared(info, change, assemble(folder, info, rules, change, task, trusted))


def page_of(ready: Prepared, rules: Policy) -> str:
    """The page on the same, with the ways to the pull request, its commits and the run."""
    posting = ready.posting
    return write_page(BuiltReport(posting.report, posting.gpus), rules.gates, places(ready.info))


def post(
    bot: Bot,
    folder: Path,
    rules: Policy,
    task: Task = "bench",
    page: str | None = None,
    trusted: Trusted = NOTHING_TRUSTED,
) -> int:
    """Posts what the folder holds: comment, check run, label, job summary. 0 posted or rightly left out, 3 not posted.

    `page`: the address of the HTML page. What the token may not do is named in the job summary, which always has
    everything.
    """
    info = read_run_info(folder)
    if info.under_way:
        return _post_awaited(bot, info)
    if info.shared_head:
        return _post_shared(bot, info)
    ready = prepare(folder, rules, task, replace(trusted, page=page))
    if ready.posting.quiet and not info.changes_judges and ready.change and ready.change.skipped is None:
        # Such as an edited description where nothing was measured before. A check would pass for it.
        return _post_nothing(bot, info, "the commit was never measured; /kernelgate bench does it")
    posting = ready.posting
    bot.step.summary(render.comment(posting.report, render.COMMENT_LIMIT))
    if info.pull_request is None:
        return _post_nothing(bot, info, info.no_pull_request) if info.no_pull_request else 0
    texts = [render.comment(posting.report, limit) for limit in (render.COMMENT_LIMIT - 300, render.COMMENT_LIMIT // 4)]
    words = (bot, info.pull_request, texts, Stamp.of(info.run), posting.topic, not posting.quiet)
    # Only a measurement is about the merge.
    if posting.task != "bench":
        return _exit_code([_one(bot, "comment", PULLS, lambda: put_comment(*words))])
    look = comment_step(*words)
    # Where nothing was to be measured, the check run alone says so, and an older comment is corrected.
    written = _one(bot, "comment", PULLS, lambda: until_done("comment", look, bot))
    if isinstance(written, Posted) and written.outdated:
        return _post_nothing(bot, info, written.outcome.removeprefix("left alone: "))
    patches = info.pull.patches if info.pull else ()
    notes = line_notes(posting, patches, rules.template.kernel_paths)
    decision = posting.decision
    check = CheckRun(
        decision.conclusion, posting.title, texts[0], notes, info.run_url, posting.judged, decision.settled
    )
    ended = [written, *_post_verdict(bot, info, posting, check)]
    begun = written.comments if isinstance(written, Posted) else None
    if begun is not None and not (isinstance(ended[-1], Posted) and ended[-1].comments == begun):
        # What was posted last does not show that nobody else began a comment as well.
        ended.append(_one(bot, "comment", PULLS, lambda: until_done("comment", look, bot)))
    if isinstance(written, Posted) and not written.left:
        ended += _post_results(bot, info, posting)
    return _exit_code(ended)


def _post_results(bot: Bot, info: RunInfo, posting: Posting) -> list[Ended]:
    """The statistics in the description, where it has a place for them."""
    body = info.pull.body if info.pull else None
    made = render.blocks(results(posting.gpus, info.run))
    if not made or not results_block.is_there(body):
        return []
    number, stamp = info.pull_request or 0, Stamp.of(info.run)
    return [_one(bot, "block of results in the description", PULLS, lambda: put_results(bot, number, made, stamp))]


def _post_verdict(bot: Bot, info: RunInfo, posting: Posting, check: CheckRun) -> list[Ended]:
    """The check run, and the label unless something newer or worse stands."""
    stamp = Stamp.of(info.run)
    ended = [_one(bot, "check run", CHECKS, lambda: put_check(bot, check, stamp, info.told))]
    if not (isinstance(ended[0], Posted) and ended[0].left):
        number = info.pull_request or 0
        marks = (posting.decision.label, Label.ACCEPTED if info.accepted else None)
        labels = frozenset(filter(None, marks))
        ended.append(_one(bot, "label", PULLS, lambda: put_labels(bot, number, labels, stamp)))
    return ended


def _one(bot: Bot, what: str, permission: str, put: Callable[[], Posted]) -> Ended:
    """One of the things to post; one that fails does not keep the others."""
    try:
        done = put()
    except DeniedError as error:
        bot.step.warn(
            f"{error}: the token may lack `{permission}`, or the conversation is locked; "
            "see the job summary for the full report"
        )
        _tell(bot, f"the {what} is missing", f"{error}; a token needs {permission} for it")
        return DeniedError
    except GitHubError as error:
        bot.step.warn(str(error))
        _tell(bot, f"the {what} is missing", str(error))
        return GitHubError
    bot.step.log(f"{what}: {done.outcome}")
    return done


def _exit_code(ended: Sequence[Ended]) -> int:
    return KernelgateError.exit_code if GitHubError in ended else 0


# Where there is no verdict -------------------------------------------------------------------------------------------


def _post_awaited(bot: Bot, info: RunInfo) -> int:
    """What was found before holds no longer, such as for another base: nothing passes until the run has ended."""
    bot.step.log("nothing posted: the measurement is under way, or waits to be approved; its end is reported")
    stamp, told, number = Stamp.of(info.run), info.told, info.pull_request
    if told is not None and told != stamp.order:
        return _exit_code([_one(bot, "check run", CHECKS, lambda: hand_over_check(bot, stamp, told))])
    if not info.begun or number is None:
        return 0
    ended = [_one(bot, "check run", CHECKS, lambda: begin_check(bot, stamp, info.run_url))]
    if ended != [GitHubError]:
        ended.append(_one(bot, "label", PULLS, lambda: put_labels(bot, number, (), stamp, VERDICTS)))
    return _exit_code(ended)


def _post_nothing(bot: Bot, info: RunInfo, why: str) -> int:
    """Says why in the job summary. No check run goes on waiting for this run, and none passes for it."""
    _tell(bot, "nothing posted", why)
    title = render.plain_line(with_consequence(Mark.UNKNOWN, ("Not judged",), UNTRUSTED))
    check = CheckRun("action_required", title, render.markdown_line((f"{why}.",)), details_url=info.run_url)
    stamp = Stamp(info.head_sha, *(info.told or Stamp.of(info.run).order))
    return _exit_code([_one(bot, "check run", CHECKS, lambda: end_check(bot, check, stamp))])


def _post_shared(bot: Bot, info: RunInfo) -> int:
    """Several pull requests have the commit: its check run counts for each, so it can pass for none of them."""
    why = info.no_pull_request or ""
    _tell(bot, "nothing posted", why)
    check = CheckRun(
        SHARED_COMMIT.conclusion,
        render.plain_line((Mark.BLOCKED, " Blocked by ", *cause(SHARED_COMMIT.blockers[0], named_=False))),
        render.markdown_line(
            (
                f"{why}. A check run belongs to a commit, and what is slower than one base may be faster "
                "than another. Close all but one; then somebody with write access can have it measured: ",
                Code("/kernelgate bench"),
            )
        ),
        details_url=info.run_url,
        judged=False,
    )
    return _exit_code([_one(bot, "check run", CHECKS, lambda: put_check(bot, check, Stamp.of(info.run), info.told))])


def _tell(bot: Bot, what: str, why: str) -> None:
    bot.step.log(f"{what}: {why}")
    line: Line = (Mark.SLIGHT, f" {what}: ", bot.step.harmless(why))
    bot.step.summary(render.markdown_line(line))
