"""`/kernelgate bench|profile|fuzz [case…]` and `accept` in a comment on a pull request: who may, and of which commit;
`/kernelgate bisect` there or in an issue.

Only people with write access may use the runner. What is measured is the commit that was head when they asked: they
looked at that one, and nothing that was pushed afterwards is covered by their approval. What they accept is recorded by
accept.py, in a job that may change the check run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from github import UnknownObjectException
from github.PullRequest import PullRequest

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.document import escape
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import bisect_request
from kernelgate.ci.github.actions import Event, Step
from kernelgate.ci.github.bisect_answer import put_search
from kernelgate.ci.github.bisect_request import BISECT, BisectRequest
from kernelgate.ci.github.client import Bot, GitHubError, changed_names, patiently
from kernelgate.ci.github.plan import (
    CASE,
    MAX_CASES,
    NO_CARD,
    gpus_json,
    merge_base,
    skipped,
    targets,
    watches_no_kernel,
)
from kernelgate.ci.github.upsert import Stamp, put_comment
from kernelgate.ci.policy.pull_request_rules import Measure

ACCEPT = "accept"
VERBS = ("bench", "profile", "fuzz", BISECT, ACCEPT)
REVIEW = "pattern"
"""An answer to a session's report, which ci/lab/review.py takes."""
REVIEW_FORM = "/kernelgate pattern NAME: TEXT"
ALL = "all"
"""In place of the cases to accept: everything that blocks by its speed."""
ACCEPTED = "accepted"
SEARCHED = "searched"
MAX_REASON = 200
"""Characters of the reason for accepting."""
MAY_WRITE = ("admin", "maintain", "write")
_COMMAND = re.compile(r"/kernelgate(?:[ \t]+(?P<words>[^\r\n]*))?[ \t]*", re.IGNORECASE)


@dataclass(frozen=True)
class Command:
    verb: str
    cases: tuple[str, ...] = ()
    reason: str = ""
    """Of `accept` alone; untrusted text."""
    bisect: BisectRequest | None = None
    """Of `bisect` alone."""


@dataclass(frozen=True)
class Requester:
    """A comment that asks for something: who, where and when."""

    comment_id: int
    number: int
    login: str
    at: datetime
    in_pull: bool = True
    """Else in an issue."""


@dataclass(frozen=True)
class Refusal:
    """Why nothing is done, for the one who asked."""

    why: str
    done: str = "run"
    """What was asked for."""


def parse(body: str) -> Command | Refusal | None:
    """The command on the first line of a comment; None where the comment is none; why, where it cannot be read."""
    line = _after_kernelgate(body)
    if line is None or is_review(body):
        return None
    words = _words(line)
    if not words or words[0].casefold() not in VERBS:
        return Refusal(
            "write /kernelgate and then bench, profile or fuzz, optionally followed by case ids; "
            f"{bisect_request.USAGE}; or /kernelgate accept CASE because REASON; of a session {REVIEW_FORM}"
        )
    if words[0].casefold() == BISECT:
        asked = bisect_request.parsed(words[1:])
        return Refusal(asked, SEARCHED) if isinstance(asked, str) else Command(BISECT, bisect=asked)
    reason, done = "", "run"
    if words[0].casefold() == ACCEPT:
        done = ACCEPTED
        named, *given = _BECAUSE.split(line, maxsplit=1)
        words, reason = re.split(r"[ \t]+", named.strip(" \t")), "".join(given).strip(" \t")
        if (lacks := _lack(words[1:], reason)) is not None:
            return Refusal(lacks, done)
    odd = next((word for word in words[1:] if not CASE.fullmatch(word)), None)
    if odd is not None:
        return Refusal(f"not a case id: {visible(odd, 60)}", done)
    if len(words) - 1 > MAX_CASES:
        return Refusal(f"at most {MAX_CASES} cases at once; these are {len(words) - 1}", done)
    return Command(words[0].casefold(), tuple(dict.fromkeys(words[1:])), reason)


def is_review(body: str) -> bool:
    """Whether a comment answers a session: then ci/lab/review.py says what becomes of it, and nobody else."""
    return [word.casefold() for word in _words(_after_kernelgate(body) or "")[:1]] == [REVIEW]


def _after_kernelgate(body: str) -> str | None:
    """The rest of the first line, where that is a command."""
    # Only what a keyboard makes separates lines and words: anything else is part of a word, which then is no case.
    first = next((line for line in re.split(r"\r\n|\r|\n", body) if line.strip()), "")
    found = _COMMAND.fullmatch(first.strip(" \t"))
    return (found["words"] or "") if found else None


def _words(line: str) -> list[str]:
    return [word for word in re.split(r"[ \t]+", line) if word]


_BECAUSE = re.compile(r"(?:^|[ \t])because(?=[ \t]|$)", re.IGNORECASE)


def _lack(cases: Sequence[str], reason: str) -> str | None:
    """What is wrong with a command that is to accept something; None where nothing is."""
    if not cases or not reason:
        return f"the {'case' if reason else 'reason'} is missing: /kernelgate accept CASE because REASON"
    if ALL in cases and len(cases) > 1:
        return f"name the cases, or write {ALL} in place of them, not both"
    if len(reason) > MAX_REASON:
        return f"the reason has {len(reason)} characters; at most {MAX_REASON}, on one line"
    return None


def answer(step: Step, bot: Bot, rules: Measure) -> None:
    """Reads the event's comment and answers it; what is to be run goes to the outputs, `run=false` where nothing is."""
    event = step.event()
    command = parse(body_of(event))
    asked = requester(event, anywhere=_searches(command))
    if asked is None or command is None:
        step.output(run="false")
        step.log("the comment is not a command")
        return
    decided = _decide(bot, asked, command, rules)
    if isinstance(decided, Refusal):
        step.output(run="false")
        refuse(bot, asked, decided)
        return
    if isinstance(decided, BisectRequest):
        _search(bot, asked, decided, rules)
        return
    verb, pull = decided
    head = pull.head.sha
    base = merge_base(bot, pull.base.sha, head)
    if verb.verb == ACCEPT:
        step.output(run="false", accept="true", pull_request=str(asked.number), head_sha=head, base_sha=base)
        step.log(f"{asked.login} may accept what {head} costs")
        return
    step.output(
        run="true",
        verb=verb.verb,
        pull_request=str(asked.number),
        head_sha=head,
        base_sha=base,
        head_repository=pull.head.repo.full_name if pull.head.repo else "",
        cases=" ".join(verb.cases),
        gpus=gpus_json(rules.gpus),
        targets=targets(rules.gpus),
    )
    react(bot, asked, "rocket")
    link = f"[This run]({step.run_url})" if step.run_url else "A run"
    reply(bot, asked, f"{link} does {escape.code(' '.join([verb.verb, *verb.cases]))} of {escape.code(head[:7])}.")
    step.log(f"{verb.verb} of {head} for {asked.login}")


def body_of(event: Event) -> str:
    """The comment's text, as it was when the event happened."""
    return (event.comment.body if event.comment else None) or ""


def _searches(command: Command | Refusal | None) -> bool:
    """Whether it asks for what an issue may ask for, too."""
    if isinstance(command, Refusal):
        return command.done == SEARCHED
    return command is not None and command.verb == BISECT


def requester(event: Event, anywhere: bool = False) -> Requester | None:
    """Who asked, where a new comment on a pull request was written by a person, and by no App in their name.

    `anywhere`: also in an issue.
    """
    comment, issue = event.comment, event.issue
    if event.action != "created" or comment is None or issue is None:
        return None
    in_pull, user = bool(issue.pull_request), comment.user
    if not (in_pull or anywhere) or user is None or user.type != "User" or comment.performed_via_github_app:
        return None
    return Requester(comment.id, issue.number, user.login, comment.created_at, in_pull)


def _decide(
    bot: Bot, asked: Requester, command: Command | Refusal, rules: Measure
) -> tuple[Command, PullRequest] | BisectRequest | Refusal:
    """Permission is checked first: without it nothing else is answered."""
    if patiently("permission", lambda: permission(bot, asked.login), bot) not in MAY_WRITE:
        accepts = isinstance(command, Command) and command.verb == ACCEPT
        if accepts:
            return Refusal("only people with write access accept a regression; one of them can do it for you", ACCEPTED)
        done = SEARCHED if _searches(command) else "run"
        return Refusal("the GPU is for people with write access; one of them can ask for you", done)
    if isinstance(command, Refusal):
        return command
    if not asked.in_pull and command.bisect:
        return command.bisect

    def look() -> PullRequest:
        pull = bot.repository.get_pull(asked.number)
        pull.update()
        return pull

    pull = patiently("pull request", look, bot)
    if pull.state != "open":
        return Refusal("the pull request is closed")
    if not patiently("time of the push", lambda: _was_head(bot, pull, asked.at), bot):
        return Refusal("something was pushed since you asked; look at it and ask again")
    if command.bisect:  # what they looked at, whatever is pushed while this goes on
        return replace(command.bisect, bad=command.bisect.bad or pull.head.sha)
    if watches_no_kernel(rules):
        files = patiently("files", lambda: changed_names(pull, list(pull.get_files())), bot)
        if skipped(files, (), rules) == NO_CARD:
            return Refusal(NO_CARD)
    return command, pull


def _search(bot: Bot, asked: Requester, wanted: BisectRequest, rules: Measure) -> None:
    """Hands on which commits are searched, as GitHub names them; nothing of the comment but a case id and a label."""
    step = bot.step
    step.output(run="false")
    try:
        found = bisect_request.ends(bot, wanted, asked.number, rules)
    except UsageError as error:
        refuse(bot, asked, Refusal(str(error), SEARCHED))
        return
    step.output(bisect="true", number=str(asked.number), good=found.good, bad=found.bad)
    step.output(case=wanted.case, kind=wanted.kind, gpu=found.gpu.label)
    react(bot, asked, "rocket")
    link = f"[This run]({step.run_url})" if step.run_url else "A run"
    between = f"after {escape.code(found.good[:12])} up to {escape.code(found.bad[:12])}"
    put_search(bot, asked.number, f"{link} searches the commits {between}. The answer comes here.")
    step.log(f"bisect {found.good} {found.bad} for {asked.login}")


def permission(bot: Bot, login: str) -> str:
    """Of a login in the repository: such as "write"; "none" of somebody unknown."""
    try:
        return bot.repository.get_collaborator_permission(login)
    except UnknownObjectException:
        return "none"


def _was_head(bot: Bot, pull: PullRequest, at: datetime) -> bool:
    """Whether the head was pushed before `at`, by GitHub's own clock: the times inside a commit are its author's.

    Shown by the repository that it comes from having had no push since. In our own, where others push all the time and
    everybody who does may write, an older workflow run of the commit shows it too. A fork's owner could have pushed the
    commit before, put a harmless one in its place, and put it back once somebody has asked.
    """
    repository = pull.head.repo
    if repository is not None and repository.pushed_at is not None and _utc(repository.pushed_at) < at:
        return True
    ours = repository is not None and repository.full_name == bot.repository.full_name
    started = (run.created_at for run in bot.repository.get_workflow_runs(head_sha=pull.head.sha)) if ours else ()
    return any(_utc(moment) < at for moment in started)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def refuse(bot: Bot, asked: Requester, why: Refusal) -> None:
    """Says in one sentence what was not done, and why."""
    react(bot, asked, "confused")
    reply(bot, asked, refusal(asked, why))
    bot.step.log(f"refused: {why.why}")


def refusal(asked: Requester, why: Refusal) -> str:
    return f"{escape.code(asked.login)}, this was not {why.done}: {escape.prose(why.why)}."


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
    try:
        head = patiently("pull request", lambda: bot.repository.get_pull(asked.number).head.sha, bot)
        run, attempt = (bot.step.environment.get(name, "") for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"))
        stamp = Stamp(head, int(run or 0), int(attempt or 1))
        bot.step.log(f"comment: {put_comment(bot, asked.number, (text,), stamp, 'command').outcome}")
    except GitHubError as error:
        bot.step.warn(str(error))
    bot.step.summary(text)
