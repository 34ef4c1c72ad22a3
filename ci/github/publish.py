"""Puts what assemble.py decided on the pull request and into the job summary, as far as the token allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from github.File import File

from kernelgate.bench.errors import KernelgateError
from kernelgate.ci.document import render
from kernelgate.ci.document.model import Code, Line, Mark
from kernelgate.ci.github import description
from kernelgate.ci.github.annotations import line_notes
from kernelgate.ci.github.assemble import (
    NOTHING_TRUSTED,
    Posting,
    PullRequestChange,
    Task,
    Trusted,
    assemble,
    with_addresses,
)
from kernelgate.ci.github.client import Bot, DeniedError, GitHubError, changed_names, patiently
from kernelgate.ci.github.plan import skipped
from kernelgate.ci.github.post_check_run import CheckRun, put_check
from kernelgate.ci.github.post_comment import put_comment
from kernelgate.ci.github.post_label import put_label
from kernelgate.ci.github.run_info import RunInfo, read_run_info
from kernelgate.ci.github.stamp import Posted, Stamp, outdated
from kernelgate.ci.judge.gate import SHARED_COMMIT
from kernelgate.ci.judge.policy import Policy

PULLS, CHECKS = "pull-requests: write", "checks: write"
"""The permissions that posting needs."""


@dataclass(frozen=True)
class Pulled:
    """What the API says of the pull request when something is to be posted."""

    change: PullRequestChange
    files: tuple[tuple[str, str], ...]
    """Path and patch of each file that GitHub lists."""
    outdated: str | None


def pulled(bot: Bot, info: RunInfo, rules: Policy) -> Pulled | None:
    """The pull request as it is now; None where the run has none."""
    if info.pull_request is None:
        return None
    number, stamp = info.pull_request, Stamp.of(info.run)

    def step() -> Pulled:
        pull = bot.repository.get_pull(number)
        files: list[File] = list(pull.get_files())
        names, labels = changed_names(pull, files), {label.name for label in pull.labels}
        described = description.describe(pull.body, rules.template, names, by_bot=pull.user.type == "Bot")
        patches = tuple((file.filename, file.patch or "") for file in files)
        change = PullRequestChange(
            described, None if names is None else tuple(names), skipped(names, labels, rules.measure)
        )
        return Pulled(change, patches, outdated(pull, stamp))

    return patiently("pull request", step, bot)


@dataclass(frozen=True)
class Prepared:
    """Everything that is needed to post, and nothing posted yet. `now`: None where the run has no pull request."""

    info: RunInfo
    now: Pulled | None
    posting: Posting


def prepare(
    bot: Bot | None, folder: Path, rules: Policy, task: Task = "bench", trusted: Trusted = NOTHING_TRUSTED
) -> Prepared:
    """What is to be posted of the folder. Without a bot nothing is known of the pull request's description."""
    info = read_run_info(folder)
    now = pulled(bot, info, rules) if bot else None
    return Prepared(info, now, assemble(folder, info, rules, now.change if now else None, task, trusted))


def post(
    bot: Bot,
    folder: Path,
    rules: Policy,
    task: Task = "bench",
    page: str | None = None,
    trusted: Trusted = NOTHING_TRUSTED,
) -> int:
    """Posts what the folder holds: comment, check run, label, job summary. 0 posted or rightly left out, 3 not posted.

    `page`: the address of the HTML page. What the token may not do is named
    in the job summary, which always has everything.
    """
    info = read_run_info(folder)
    if info.under_way:
        bot.step.log("nothing posted: the measurement is under way, or waits to be approved; its end is reported")
        return 0
    if info.shared_head:
        return _post_shared(bot, info)
    ready = prepare(bot, folder, rules, task, trusted)
    if _is_unexplained(ready):
        # Such as an edited description where nothing was measured before. A check would pass for it.
        _tell(bot, "nothing posted", "the commit was never measured; /kernelgate bench does it")
        return 0
    now, number = ready.now, info.pull_request
    posting = with_addresses(ready.posting, page, info.run_url)
    texts = [render.comment(posting.report, limit) for limit in (render.COMMENT_LIMIT - 300, render.COMMENT_LIMIT // 4)]
    stamp = Stamp.of(info.run)
    bot.step.summary(render.comment(posting.report, render.COMMENT_LIMIT))
    why = info.no_pull_request if now is None else now.outdated
    if why is not None:
        _tell(bot, "nothing posted", why)
    if now is None or number is None or why is not None:
        return 0
    check = CheckRun(
        posting.decision.conclusion,
        posting.title,
        texts[0],
        line_notes(posting, now.files, rules.template.kernel_paths),
        info.run_url,
        posting.judged,
    )
    # Where nothing was to be measured, the check run alone says so, and an older comment is corrected.
    begin = not posting.quiet
    ended = [_one(bot, "comment", PULLS, lambda: put_comment(bot, number, texts, stamp, posting.topic, begin))]
    # Only a measurement is about the merge.
    if posting.task == "bench":
        ended.append(_one(bot, "check run", CHECKS, lambda: put_check(bot, check, stamp)))
        if not (isinstance(ended[-1], Posted) and ended[-1].left):
            ended.append(_one(bot, "label", PULLS, lambda: put_label(bot, number, posting.decision.label, stamp)))
    return _exit_code(ended)


def _is_unexplained(ready: Prepared) -> bool:
    """Whether nothing was measured of an up-to-date change that asks for it."""
    if not ready.posting.quiet or ready.info.changes_judges or ready.now is None:
        return False
    return ready.now.change.skipped is None and ready.now.outdated is None


def _one(bot: Bot, what: str, permission: str, put: Callable[[], Posted]) -> Posted | type[GitHubError]:
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


def _exit_code(ended: Sequence[Posted | type[GitHubError]]) -> int:
    return KernelgateError.exit_code if GitHubError in ended else 0


def _post_shared(bot: Bot, info: RunInfo) -> int:
    """Several pull requests have the commit: its check run counts for each, so it can pass for none of them."""
    why = info.no_pull_request or ""
    _tell(bot, "nothing posted", why)
    check = CheckRun(
        SHARED_COMMIT.conclusion,
        "Several pull requests have this commit",
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
    return _exit_code([_one(bot, "check run", CHECKS, lambda: put_check(bot, check, Stamp.of(info.run)))])


def _tell(bot: Bot, what: str, why: str) -> None:
    bot.step.log(f"{what}: {why}")
    line: Line = (Mark.SLIGHT, f" {what}: ", bot.step.harmless(why))
    bot.step.summary(render.markdown_line(line))
