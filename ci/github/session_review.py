"""A reviewer's answer to a session's report, in a comment on a pull request, made a pull request of its own.

    /kernelgate pattern NAME: what to do, and when
    /kernelgate correct SESSION/TRY action=NAME bottleneck=NAME: why

The first proposes docs/patterns/NAME.md, the second a label in the session's log, from which advice is learnt. Nothing
reaches the default branch by itself. What a reviewer writes is untrusted text, and read by people with write access.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC

from github import UnknownObjectException
from pydantic import ValidationError

from kernelgate.ci.document import escape
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import command
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, patiently
from kernelgate.ci.github.command import MAY_WRITE, Refusal, Requester
from kernelgate.ci.github.post_comment import put_comment
from kernelgate.ci.github.propose import Offer, put
from kernelgate.ci.github.stamp import Stamp
from kernelgate.ci.sessions import log
from kernelgate.ci.sessions.log import Corrected, TriedChange

MAX_TEXT = 1000
"""Characters of an answer."""
PATTERNS, SESSIONS = "docs/patterns", ".ci/sessions"
DONE = "taken"
_NAME = r"[a-z0-9][a-z0-9-]{0,63}"
_LABEL = r"[a-z0-9][a-z0-9_-]{0,63}"
_PATTERN = re.compile(rf"/kernelgate[ \t]+pattern[ \t]+({_NAME})[ \t]*:[ \t]*(\S.*)", re.DOTALL)
_CORRECT = re.compile(
    rf"/kernelgate[ \t]+correct[ \t]+({_NAME})/([1-9][0-9]{{0,3}})((?:[ \t]+(?:action|bottleneck)={_LABEL}){{1,2}})"
    r"[ \t]*:[ \t]*(\S.*)",
    re.DOTALL,
)
_BEGINS = re.compile(r"/kernelgate[ \t]+(pattern|correct)\b")
_FORMS = "write /kernelgate pattern NAME: TEXT, or /kernelgate correct SESSION/TRY action=NAME bottleneck=NAME: WHY"


@dataclass(frozen=True)
class PatternAnswer:
    name: str
    text: str


@dataclass(frozen=True)
class CorrectionAnswer:
    session: str
    number: int
    action: str | None
    bottleneck: str | None
    why: str


def parse(body: str) -> PatternAnswer | CorrectionAnswer | Refusal | None:
    """The answer that a comment is; None where it is none; why, where it cannot be read."""
    text = body.strip()
    if _BEGINS.match(text) is None:
        return None
    if len(text) > MAX_TEXT:
        return Refusal(f"it has {len(text)} characters; at most {MAX_TEXT}", DONE)
    if found := _PATTERN.fullmatch(text):
        return PatternAnswer(found[1], _one_line(found[2]))
    if found := _CORRECT.fullmatch(text):
        labels = dict(pair.split("=") for pair in found[3].split())
        why = _one_line(found[4])
        return CorrectionAnswer(found[1], int(found[2]), labels.get("action"), labels.get("bottleneck"), why)
    return Refusal(_FORMS, DONE)


def answer(step: Step, bot: Bot) -> int | None:
    """Reads the event's comment, and opens the pull request that it asks for: its number, or None.

    For people with write access only.
    """
    event = step.event()
    asked, found = command.requester(event), parse(command.body_of(event))
    if asked is None or found is None:
        step.log("the comment is no answer to a session")
        return None
    if patiently("permission", lambda: command.permission(bot, asked.login), bot) not in MAY_WRITE:
        command.refuse(bot, asked, Refusal("only people with write access answer sessions", DONE))
        return None
    default = patiently("repository", lambda: bot.repository.default_branch, bot)
    commit = patiently("default branch", lambda: bot.repository.get_git_ref(f"heads/{default}").object.sha, bot)
    made = found if isinstance(found, Refusal) else offer(found, asked, commit, lambda path: _file(bot, path, commit))
    if isinstance(made, Refusal):
        command.refuse(bot, asked, made)
        return None
    number = put(bot, made)
    command.reply(bot, asked, f"#{number} proposes what {escape.code(asked.login)} answered.")
    return number


def submit(bot: Bot, number: int, text: str) -> None:
    """The pull request has the report as a comment of the bot's, in place of an earlier one."""
    head = patiently("pull request", lambda: bot.repository.get_pull(number).head.sha, bot)
    run = bot.step.environment.get("GITHUB_RUN_ID", "")
    attempt = bot.step.environment.get("GITHUB_RUN_ATTEMPT", "")
    stamp = Stamp(head, int(run or 0), int(attempt or 1))
    bot.step.log(f"comment: {put_comment(bot, number, (text,), stamp, 'session').outcome}")


def offer(
    found: PatternAnswer | CorrectionAnswer, asked: Requester, commit: str, read: Callable[[str], str | None]
) -> Offer | Refusal:
    """What is proposed. `read`: a file of the default branch; None where it is not there."""
    made = _pattern(found, asked, read) if isinstance(found, PatternAnswer) else _correction(found, asked, read)
    if isinstance(made, Refusal):
        return made
    path, content, title = made
    said = found.text if isinstance(found, PatternAnswer) else found.why
    body = f"{escape.code(asked.login)} answered in #{asked.number}: {escape.prose(said)}\n"
    branch = f"kernelgate/review-{asked.comment_id}"
    because = f"As {asked.login} answered in #{asked.number}."
    return Offer(branch, ((path, content.encode()),), title, body, commit, because)


def _pattern(
    found: PatternAnswer, asked: Requester, read: Callable[[str], str | None]
) -> tuple[str, str, str] | Refusal:
    path = f"{PATTERNS}/{found.name}.md"
    said = f"{escape.prose(found.text)} ({escape.code(asked.login)}, in #{asked.number})"
    before = read(path)
    if before is not None:
        return path, f"{before.rstrip()}\n\n{said}\n", f"Add to the pattern {found.name} what a reviewer says"
    title = found.name.replace("-", " ").capitalize()
    # The rest of the front matter only a person can give; the check of the pull request asks for it.
    front = {"name": found.name, "title": title, "do": found.text, "evidence": f"{asked.login}, in #{asked.number}"}
    lines = [f"{key}: {json.dumps(value)}" for key, value in front.items()]
    content = "\n".join(["---", *lines, "---", "", f"# {title}", "", said, ""])
    return path, content, f"Propose the pattern {found.name}"


def _correction(
    found: CorrectionAnswer, asked: Requester, read: Callable[[str], str | None]
) -> tuple[str, str, str] | Refusal:
    path = f"{SESSIONS}/{found.session}/{log.FILE}"
    before = read(path)
    if before is None:
        return Refusal(f"the default branch has no session {found.session}", DONE)
    try:
        events = [log.event_of(line) for line in before.splitlines() if line.strip()]
    except ValidationError:
        return Refusal(f"the log of {found.session} is broken", DONE)
    tried = sorted(event.number for event in events if isinstance(event, TriedChange))
    if found.number not in tried:
        return Refusal(f"the session {found.session} has no try {found.number}; it has {len(tried)}", DONE)
    event = Corrected(
        at=asked.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        number=found.number,
        action=found.action,
        bottleneck=found.bottleneck,
        by=asked.login,
        why=found.why,
    )
    whole = before if before.endswith("\n") else f"{before}\n"
    return path, whole + log.line(event), f"Correct the label of try {found.number} in {found.session}"


def _file(bot: Bot, path: str, commit: str) -> str | None:
    def step() -> str | None:
        try:
            found = bot.repository.get_contents(path, ref=commit)
        except UnknownObjectException:
            return None
        return None if isinstance(found, list) else found.decoded_content.decode("utf-8", "replace")

    return patiently("file", step, bot)


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()), MAX_TEXT)
