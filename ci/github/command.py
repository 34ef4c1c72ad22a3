"""`/kernelgate bench|profile|fuzz [case…]` and `accept` in a comment on a pull request: who may, and of which commit;
`/kernelgate bisect` there or in an issue.

Only people with write access may use the runner. What is measured is the commit that was head when they asked. What
they accept is recorded in a job that may change the check run: there the last measurement is judged once more, so that
nothing can be accepted but what blocks by its speed, and what was shown when they asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from github.PullRequest import PullRequest

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.record import CaseKey, Run
from kernelgate.ci.document import escape, render
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line
from kernelgate.ci.github import bisect, check_run
from kernelgate.ci.github.actions import Event, Step
from kernelgate.ci.github.assemble import Posting, Trusted, assemble
from kernelgate.ci.github.bisect import BISECT, BisectRequest, put_search
from kernelgate.ci.github.check_run import KeptAcceptance
from kernelgate.ci.github.client import Bot, GitHubError, changed_names, merge_base, patiently, read_pull, unless_gone
from kernelgate.ci.github.fetch import RunInfo, fetch, read_run, write_run_info
from kernelgate.ci.github.plan import NO_CARD, case_fault, gpu_outputs, skipped, watches_no_kernel
from kernelgate.ci.github.upsert import Posted, Stamp, put_comment, put_labels, say
from kernelgate.ci.judge.gate import BlockCode, Label
from kernelgate.ci.policy.policy import Measure, Policy
from kernelgate.ci.report import remarks
from kernelgate.ci.report.headline import cause

ACCEPT = "accept"
VERBS = ("bench", "profile", "fuzz", BISECT, ACCEPT)
ALL = "all"
"""In place of the cases to accept: everything that blocks by its speed."""
MAX_REASON = 200
_COMMAND = re.compile(r"/kernelgate(?:[ \t]+(?P<words>[^\r\n]*))?[ \t]*", re.IGNORECASE | re.ASCII)
_WORD = re.compile(r"[^ \t]+")
_BECAUSE = re.compile(r"(?:^|[ \t])because(?=[ \t]|$)", re.IGNORECASE)


class NotDoneError(KernelgateError):
    """Why nothing is done, for the one who asked."""


@dataclass(frozen=True)
class Command:
    verb: str
    cases: tuple[str, ...] = ()
    reason: str = ""
    """Of `accept` alone; untrusted text."""
    bisect: BisectRequest | None = None
    """Of `bisect` alone."""
    fault: str = ""
    """Why it is none that can be done; empty where it can."""


@dataclass(frozen=True)
class Requester:
    """A comment that asks for something: who, where and when."""

    comment_id: int
    number: int
    login: str
    at: datetime
    in_pull: bool = True
    body: str = ""
    """As it was when the event happened."""


def parse(body: str) -> Command | None:
    """The command on the first line of a comment; None where the comment is none."""
    # Only what a keyboard makes separates lines and words: anything else is part of a word, which then is no case.
    first = next((line for line in re.split(r"\r\n|\r|\n", body) if line.strip()), "")
    found = _COMMAND.fullmatch(first.strip(" \t"))
    if found is None:
        return None
    line = found["words"] or ""
    words = _WORD.findall(line)
    verb = words[0].lower() if words and words[0].isascii() else ""
    if verb not in VERBS:
        usage = "write /kernelgate and then bench, profile or fuzz, optionally followed by case ids; "
        usage += f"{bisect.USAGE}; or /kernelgate accept CASE because REASON"
        return Command("", fault=usage)
    if verb == BISECT:
        asked = bisect.parsed(words[1:])
        return Command(verb, fault=asked) if isinstance(asked, str) else Command(verb, bisect=asked)
    named, *given = _BECAUSE.split(line, maxsplit=1) if verb == ACCEPT else [line]
    cases, reason = _WORD.findall(named)[1:], "".join(given).strip(" \t")
    return Command(verb, tuple(dict.fromkeys(cases)), reason, fault=_fault(verb, cases, reason))


def _fault(verb: str, cases: Sequence[str], reason: str) -> str:
    """What is wrong with the words of a command; empty where nothing is."""
    if verb == ACCEPT and not (cases and reason):
        return f"the {'case' if reason else 'reason'} is missing: /kernelgate accept CASE because REASON"
    if verb == ACCEPT and ALL in cases and len(cases) > 1:
        return f"name the cases, or write {ALL} in place of them, not both"
    if len(reason) > MAX_REASON:
        return f"the reason has {len(reason)} characters; at most {MAX_REASON}, on one line"
    return case_fault(cases)


def answer(step: Step, bot: Bot, rules: Measure) -> None:
    """Reads the event's comment and answers it; what is to be run goes to the outputs, `run=false` where nothing is."""
    asked = requester(step.event())
    wanted = parse(asked.body) if asked else None
    if asked is None or wanted is None or not (asked.in_pull or wanted.verb == BISECT):
        step.output(run="false")
        step.log("the comment is not a command")
        return
    try:
        pull = decide(bot, asked, wanted, rules)
        if wanted.bisect is not None:
            # What they looked at, whatever is pushed while this goes on.
            bad = wanted.bisect.bad or (pull.head.sha if pull else "")
            _search(bot, asked, replace(wanted.bisect, bad=bad), rules)
    except (NotDoneError, UsageError) as error:
        step.output(run="false")
        refuse(bot, asked, str(error), wanted)
        return
    if pull is None or wanted.bisect is not None:
        return
    head = pull.head.sha
    base = merge_base(bot, pull.base.sha, head)
    subject = {"pull_request": str(asked.number), "head_sha": head, "base_sha": base}
    if wanted.verb == ACCEPT:
        step.output(run="false", accept="true", **subject)
        step.log(f"{asked.login} may accept what {head} costs")
        return
    step.output(
        run="true",
        verb=wanted.verb,
        **subject,
        head_repository=pull.head.repo.full_name if pull.head.repo else "",
        cases=" ".join(wanted.cases),
        **gpu_outputs(rules.gpus),
    )
    react(bot, asked, "rocket")
    does = escape.code(" ".join([wanted.verb, *wanted.cases]))
    reply(bot, asked, f"[This run]({step.run_url}) does {does} of {escape.code(head[:7])}.")
    step.log(f"{wanted.verb} of {head} for {asked.login}")


def requester(event: Event) -> Requester | None:
    """Who asked, where a new comment was written by a person, and by no App in their name."""
    comment, issue = event.comment, event.issue
    if event.action != "created" or comment is None or issue is None:
        return None
    if comment.author is None or comment.author_type != "User" or comment.performed_via_github_app:
        return None
    in_pull = bool(issue.pull_request)
    return Requester(comment.id, issue.number, comment.author, comment.created_at, in_pull, comment.body or "")


def decide(bot: Bot, asked: Requester, wanted: Command, rules: Measure) -> PullRequest | None:
    """The pull request whose head they looked at; None in an issue. Raises NotDoneError. Permission is checked first:
    without it nothing else is answered."""
    role = unless_gone("permission", lambda: bot.repository.get_collaborator_permission(asked.login), bot)
    if role not in ("admin", "maintain", "write"):
        accepts = "only people with write access accept a regression; one of them can do it for you"
        runs = "the GPU is for people with write access; one of them can ask for you"
        raise NotDoneError(accepts if wanted.verb == ACCEPT else runs)
    if wanted.fault:
        raise NotDoneError(wanted.fault)
    if not asked.in_pull:
        return None
    pull = read_pull(bot, asked.number)
    if pull.state != "open":
        raise NotDoneError("the pull request is closed")
    if not patiently("time of the push", lambda: _was_head(bot, pull, asked.at), bot):
        raise NotDoneError("something was pushed since you asked; look at it and ask again")
    if wanted.bisect is None and watches_no_kernel(rules):
        files = patiently("files", lambda: changed_names(pull), bot)
        if skipped(files, (), rules) == NO_CARD:
            raise NotDoneError(NO_CARD)
    return pull


def _search(bot: Bot, asked: Requester, wanted: BisectRequest, rules: Measure) -> None:
    """Hands on which commits are searched, as GitHub names them; nothing of the comment but a case id and a label.
    Raises UsageError where they are not to be searched."""
    good, bad, gpu = bisect.ends(bot, wanted, asked.number, rules)
    step = bot.step
    step.output(run="false", bisect="true", number=str(asked.number), good=good, bad=bad)
    step.output(case=wanted.case, kind=wanted.kind, gpu=gpu.label)
    react(bot, asked, "rocket")
    between = f"after {escape.code(good[:12])} up to {escape.code(bad[:12])}"
    put_search(bot, asked.number, f"[This run]({step.run_url}) searches the commits {between}. The answer comes here.")
    step.log(f"bisect {good} {bad} for {asked.login}")


def _was_head(bot: Bot, pull: PullRequest, at: datetime) -> bool:
    """Whether the head was pushed before `at`, by GitHub's own clock: the times inside a commit are its author's. Its
    repository had no push since. In our own an older workflow run of the commit shows it, too; a fork's owner could
    have pushed it before, and put it back once somebody has asked."""
    repository = pull.head.repo
    if repository is not None and repository.pushed_at is not None and repository.pushed_at < at:
        return True
    ours = repository is not None and repository.full_name == bot.repository.full_name
    started = (run.created_at for run in bot.repository.get_workflow_runs(head_sha=pull.head.sha)) if ours else ()
    return any(moment < at for moment in started)


def refuse(bot: Bot, asked: Requester, why: str, wanted: Command) -> None:
    done = {ACCEPT: "accepted", BISECT: "searched"}.get(wanted.verb, "run")
    react(bot, asked, "confused")
    reply(bot, asked, f"{escape.code(asked.login)}, this was not {done}: {escape.prose(why)}.")
    bot.step.log(f"refused: {why}")


def react(bot: Bot, asked: Requester, content: str) -> None:
    """A reaction is optional: where it fails, the log says so and the rest continues."""

    def step() -> object:
        # GitHub gives the same reaction back where it is there already, so this may be repeated.
        return bot.repository.get_issue(asked.number).get_comment(asked.comment_id).create_reaction(content)

    try:
        patiently("reaction", step, bot)
    except GitHubError as error:
        bot.step.warn(str(error))


def reply(bot: Bot, asked: Requester, text: str) -> None:
    """One comment for all commands of a pull request, edited in place; in an issue, one for all refusals."""
    if not asked.in_pull:
        put_search(bot, asked.number, text, refused=True)
        return

    def put() -> Posted:
        attempt = int(bot.step.environment.get("GITHUB_RUN_ATTEMPT") or 1)
        stamp = Stamp(read_pull(bot, asked.number).head.sha, bot.step.run_id, attempt)
        return put_comment(bot, asked.number, (text,), stamp, "command")

    say(bot, text, put)


def accept(bot: Bot, subject: Run, into: Path, rules: Policy, trusted: Trusted) -> bool:
    """Whether what the event's comment accepts was accepted; then the folder has what `report --from` posts. `subject`:
    commits and pull request, as `step command` found them. Raises UsageError without such a comment."""
    asked = requester(bot.step.event())
    wanted = parse(asked.body) if asked and asked.in_pull else None
    if asked is None or wanted is None or wanted.verb != ACCEPT:
        raise UsageError("the event is not a comment that accepts a regression")
    try:
        body, info = _verdict_they_saw(bot, asked, wanted, subject, into)
        cases = chosen(wanted, assemble(into, info, rules, trusted=trusted))
    except NotDoneError as error:
        refuse(bot, asked, str(error), wanted)
        return False
    kept = KeptAcceptance(
        comment=asked.comment_id,
        digest=check_run.digest(body),
        by=asked.login,
        reason=visible(wanted.reason),
        base_sha=subject.base_sha or "",
        cases=tuple(cases),
    )
    check_run.keep(bot, kept, info.head_sha)
    standing = check_run.standing(bot, asked.number, info.head_sha)
    info = info.model_copy(update={"accepted": standing})
    write_run_info(info, into)
    # Later reports ask GitHub what was accepted where this label stands.
    put_labels(bot, asked.number, {Label.ACCEPTED}, Stamp.of(info.run), among=(Label.ACCEPTED,))
    react(bot, asked, "rocket")
    reply(bot, asked, render.markdown_line(_words_on(kept, assemble(into, info, rules, trusted=trusted))))
    return True


def _verdict_they_saw(bot: Bot, asked: Requester, wanted: Command, subject: Run, into: Path) -> tuple[str, RunInfo]:
    """The comment as it still stands, and the run whose verdict they saw, fetched. Raises NotDoneError."""
    head, base = subject.head_sha or "", subject.base_sha or ""
    body = check_run.comment_body(bot, asked.number, asked.comment_id, asked.login)
    if body is None or parse(body) != wanted:
        raise NotDoneError("the comment was edited or deleted since; write a new one")
    shown = check_run.shown_verdict(bot, head)
    if shown is None or shown.waits:
        raise NotDoneError(f"{head[:7]} has no verdict yet; look at it and then write this again")
    if shown.run.completed_at is None or shown.run.completed_at >= asked.at:
        raise NotDoneError("the verdict came after your comment; look at it and then write this again")
    run = unless_gone("run", lambda: read_run(bot, shown.told[0]), bot)
    if run is None:
        raise NotDoneError(_GONE)
    info = fetch(bot, run.id, into, None if run.event.startswith("pull_request") else subject)
    if info.under_way or (info.head_sha, info.run.base_sha, info.run.pull_request) != (head, base, asked.number):
        anew = f"{head[:7]} is being measured anew; look at that and write this again"
        raise NotDoneError(info.no_pull_request or anew)
    return body, info


_GONE = "what was measured is gone, or cannot be used; /kernelgate bench measures it again, then write this again"


def chosen(wanted: Command, posting: Posting) -> list[CaseKey]:
    """What is accepted, of what blocks by its speed. Raises NotDoneError."""
    decision, several = posting.decision, len(posting.gpus) > 1
    blocking = list(dict.fromkeys(one.case for one in decision.regressions))
    measured = {case.key for gpu in posting.gpus for case in gpu.record.cases}
    if not blocking:
        certain = any(one.code is not BlockCode.DESCRIPTION for one in decision.blockers)
        if not certain and all(gpu.failure for gpu in posting.gpus):
            raise NotDoneError(_GONE)
        causes = "; ".join(render.plain_line(cause(one, several)) for one in decision.blockers[:3])
        only = f"only speed can be accepted, and what blocks is {causes}"
        raise NotDoneError(only if causes else "nothing blocks by its speed")
    if wanted.cases == (ALL,):
        return blocking
    found = []
    for word in wanted.cases:
        named = sorted((key for key in measured if word in (key.id, f"{key.card}/{key.id}")), key=lambda key: key.card)
        which = [key for key in named if key in blocking]
        if len(named) > 1 and len(which) != 1:
            written = " or ".join(f"{key.card}/{key.id}" for key in which or named)
            raise NotDoneError(f"{word} is a case of several cards; write {written}")
        if not which:
            why = "was measured and does not block" if named else "is no case that was measured"
            listed = render.plain_line(remarks.listed(blocking, {}))
            raise NotDoneError(f"{word} {why}; what blocks by its speed is {listed}")
        found += which
    return list(dict.fromkeys(found))


def _words_on(kept: KeptAcceptance, posting: Posting) -> Line:
    several = len(posting.gpus) > 1
    head = posting.gpus[0].run.head_sha or ""
    where, until = " on every GPU: " if several else ": ", ". This ends with the next push, or with another base. "
    line: Line = (Code(f"@{kept.by}"), " accepted of ", Code(head[:7]), where, *remarks.listed(kept.cases, {}), until)
    left = dict.fromkeys(one.case for one in posting.decision.regressions if not one.accepted)
    others = [one for one in posting.decision.blockers if one.code is not BlockCode.SLOWER]
    if left:
        line = (*line, "Not accepted, so this blocks: ", *remarks.listed(left, {}), ". ")
    return (*line, "It is still blocked by ", *cause(others[0], several), ".") if others else line
