"""`/kernelgate accept CASE because REASON`: records it, or says in one sentence why there is nothing to accept.

command.py has checked who asks, and that the commit was head when they did. Here the last measurement of the commit is
judged once more, so that nothing can be accepted but what blocks by its speed, and what was shown when they asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.record import CaseKey, Run
from kernelgate.ci.document import render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.github import check_run, command
from kernelgate.ci.github.assemble import Posting, Trusted, assemble
from kernelgate.ci.github.check_run import KeptAcceptance, shown_verdict
from kernelgate.ci.github.client import Bot, unless_gone
from kernelgate.ci.github.command import ACCEPT, ALL, Command, NotDoneError, Requester
from kernelgate.ci.github.fetch import RunInfo, fetch, read_run, write_run_info
from kernelgate.ci.github.upsert import Stamp, put_labels
from kernelgate.ci.judge.gate import BlockCode, Label
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import remarks
from kernelgate.ci.report.headline import cause


def accept(bot: Bot, subject: Run, into: Path, rules: Policy, trusted: Trusted) -> bool:
    """Whether the event's comment was accepted; then the folder has what `report --from` posts.

    `subject`: commits and pull request, as `step command` found them. Raises UsageError where the event holds no such
    comment.
    """
    event = bot.step.event()
    asked, wanted = command.requester(event), command.parse(command.body_of(event))
    if asked is None or wanted is None or wanted.verb != ACCEPT:
        raise UsageError("the event is not a comment that accepts a regression")
    judge = partial(assemble, into, policy=rules, trusted=trusted)
    try:
        kept, info = _decided(bot, asked, wanted, subject, into, judge)
    except NotDoneError as error:
        command.refuse(bot, asked, str(error), wanted.done)
        return False
    check_run.keep(bot, kept, info.head_sha)
    standing = check_run.standing(bot, asked.number, info.head_sha)
    info = info.model_copy(update={"accepted": standing})
    write_run_info(info, into)
    # Later reports ask GitHub what was accepted where this label stands.
    put_labels(bot, asked.number, {Label.ACCEPTED}, Stamp.of(info.run), among=(Label.ACCEPTED,))
    command.react(bot, asked, "rocket")
    command.reply(bot, asked, render.markdown_line(_answer(kept, judge(info))))
    return True


def _decided(
    bot: Bot, asked: Requester, wanted: Command, subject: Run, into: Path, judge: Callable[[RunInfo], Posting]
) -> tuple[KeptAcceptance, RunInfo]:
    head, base = subject.head_sha or "", subject.base_sha or ""
    body = check_run.comment_body(bot, asked.number, asked.comment_id, asked.login)
    if body is None or command.parse(body) != wanted:
        raise NotDoneError("the comment was edited or deleted since; write a new one")
    shown = shown_verdict(bot, head)
    if shown is None or shown.waits:
        raise NotDoneError(f"{head[:7]} has no verdict yet; look at it and then write this again")
    if shown.run.completed_at is None or shown.run.completed_at >= asked.at:
        raise NotDoneError("the verdict came after your comment; look at it and then write this again")
    run = unless_gone("run", lambda: read_run(bot, shown.told[0]), bot)
    if run is None:
        raise NotDoneError(_GONE)
    info = fetch(bot, run.id, into, None if run.event.startswith("pull_request") else subject)
    if info.under_way or (info.head_sha, info.run.base_sha, info.pull_request) != (head, base, asked.number):
        anew = f"{head[:7]} is being measured anew; look at that and write this again"
        raise NotDoneError(info.no_pull_request or anew)
    cases = chosen(wanted, judge(info))
    kept = KeptAcceptance(
        comment=asked.comment_id,
        digest=check_run.digest(body),
        by=asked.login,
        reason=visible(wanted.reason),
        base_sha=base,
        cases=tuple(cases),
    )
    return kept, info


_GONE = "what was measured is gone, or cannot be used; /kernelgate bench measures it again, then write this again"


def chosen(wanted: Command, posting: Posting) -> list[CaseKey]:
    """What is accepted, of what blocks by its speed. Raises NotDoneError."""
    blocking = list(dict.fromkeys(one.case for one in posting.decision.regressions))
    if not blocking:
        raise NotDoneError(_nothing(posting))
    if wanted.cases == (ALL,):
        return blocking
    measured = {case.key for gpu in posting.gpus if gpu.record for case in gpu.record.cases}
    found = []
    for word in wanted.cases:
        named = sorted((key for key in measured if word in (key.id, f"{key.card}/{key.id}")), key=lambda key: key.card)
        if len(named) > 1 and len(which := [key for key in named if key in blocking]) != 1:
            several = " or ".join(f"{key.card}/{key.id}" for key in which or named)
            raise NotDoneError(f"{word} is a case of several cards; write {several}")
        key = next((key for key in named if key in blocking), None)
        if key is None:
            why = "was measured and does not block" if named else "is no case that was measured"
            listed = render.plain_line(remarks.listed(blocking, {}))
            raise NotDoneError(f"{word} {why}; what blocks by its speed is {listed}")
        found.append(key)
    return list(dict.fromkeys(found))


def _nothing(posting: Posting) -> str:
    certain = [one for one in posting.decision.blockers if one.code is not BlockCode.DESCRIPTION]
    if not certain and not any(gpu.record for gpu in posting.gpus):
        return _GONE
    if posting.decision.blockers:
        causes = "; ".join(
            render.plain_line(cause(one, len(posting.gpus) > 1)) for one in posting.decision.blockers[:3]
        )
        return f"only speed can be accepted, and what blocks is {causes}"
    return "nothing blocks by its speed"


def _answer(kept: KeptAcceptance, posting: Posting) -> Line:
    """What was accepted, until when, and what blocks all the same."""
    everywhere = " on every GPU" if len(posting.gpus) > 1 else ""
    head = posting.gpus[0].run.head_sha or ""
    line: Line = (Code(f"@{kept.by}"), " accepted of ", Code(head[:7]), f"{everywhere}: ")
    line = (*line, *remarks.listed(kept.cases, {}), ". This ends with the next push, or with another base. ")
    left = dict.fromkeys(one.case for one in posting.decision.regressions if not one.accepted)
    others = [one for one in posting.decision.blockers if one.code is not BlockCode.SLOWER]
    if left:
        line = (*line, "Not accepted, so this blocks: ", *remarks.listed(left, {}), ". ")
    if others:
        line = (*line, "It is still blocked by ", *cause(others[0], len(posting.gpus) > 1), ".")
    return line
