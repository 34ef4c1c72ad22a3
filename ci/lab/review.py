"""Experts review a session on GitHub: how they are asked, and what their answers become.

`kernelgate session submit` posts the report and its questions, as an issue of its own or a comment on a pull request.
A comment `/kernelgate pattern NAME: what to do, and when` becomes a pull request with docs/patterns/NAME.md. Nothing
reaches the default branch by itself. What a reviewer writes is untrusted text, and read by people with write access.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from github import UnknownObjectException

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import git
from kernelgate.ci.document import escape
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import command, upsert
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, GitHubError, as_its_owner, connect, default_branch, patiently
from kernelgate.ci.github.command import REVIEW_FORM, NotDoneError, Requester
from kernelgate.ci.github.propose import Offer, blob_sha, file_sha, put
from kernelgate.ci.github.upsert import WantedIssue
from kernelgate.ci.lab import folder, log, patterns, report
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.policy.policy import Policy

LABEL = "kernelgate: session"
MAX_TEXT = escape.MAX_CHARACTERS
"""Characters of an answer: none is shown in part."""
DONE = "taken"
MISSING = ("when", "command", "cookbook")
"""Of a pattern's front matter what only a person can give. They stay empty: whoever reads patterns then names them."""
_PATTERN = re.compile(rf"(?i:/kernelgate[ \t]+pattern)[ \t]+({folder.NAME.pattern})[ \t]*:[ \t]*(\S.*)", re.DOTALL)
_HELD = (
    "GitHub holds the checks of a pull request that a workflow's token opened: approve them, or close and reopen it."
)


# ---- how experts are asked -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SessionForReview:
    """What experts are given."""

    name: str
    objective: str
    report: str
    commit: str
    files: Mapping[str, bytes]
    """Log and drawings, by their path in the checkout."""


def gathered(root: Path, session: Session, rules: Policy) -> SessionForReview:
    """Of a checkout. Raises UsageError for a folder that no session's is called."""
    name = session.folder.name
    if not folder.NAME.fullmatch(name):
        raise UsageError(f"{session.folder}: the folder's name is no session's: lower case letters, digits and dashes")
    paths = [session.folder / one for one in (log.FILE, report.GAINS)]
    return SessionForReview(
        name=name,
        objective=session.opened.objective,
        report=report.posted(session.events, rules, folder.now()),
        commit=git.resolve(root, "HEAD"),
        files={path.relative_to(root).as_posix(): path.read_bytes() for path in paths if path.exists()},
    )


def post(step: Step, session: SessionForReview, pull_request: int | None) -> str:
    """Submits with the token of the environment, in the name of whom it belongs to. Raises UsageError without one."""
    if not step.token or not step.repository:
        lacks = "GITHUB_REPOSITORY, such as owner/name," if step.token else "GITHUB_TOKEN"
        raise UsageError(f"{lacks} is not set: set it to submit {session.name}, or print the report with --dry-run")
    return submit(as_its_owner(connect(step)), session, pull_request)


def submit(bot: Bot, session: SessionForReview, pull_request: int | None) -> str:
    """There is one issue of the bot for the session, open, with this report; or one comment on the pull request.

    Its address. Raises GitHubError, also where a person closed the issue.
    """
    server = bot.step.environment.get("GITHUB_SERVER_URL") or "https://github.com"
    home = f"{server}/{bot.step.repository}"
    body = f"{session.report}\n{_files(bot, session, home)}"
    subject = f"session name={session.name}"
    if pull_request is not None:
        upsert.put_answer(bot, pull_request, body, f"<!-- kernelgate-{subject} -->")
        return f"{home}/pull/{pull_request}"
    title = f"Review of the session {session.name}: {session.objective}"
    posted = upsert.put_issue(bot, WantedIssue(LABEL, subject, title, body))
    if posted.left:
        raise GitHubError(f"{posted.outcome}; open it again to submit {session.name} once more")
    bot.step.log(f"{posted.outcome} in {bot.step.repository}")
    return f"{home}/issues/{posted.issue}"


def _files(bot: Bot, session: SessionForReview, home: str) -> str:
    """Links to what is on GitHub as it is here; where something is not, that it is left out."""
    there = all(
        patiently("file", partial(file_sha, bot, path, session.commit), bot) == blob_sha(content)
        for path, content in session.files.items()
    )
    if not there:
        return (
            "Its log and its drawings are left out: what GitHub has of them is not what this was submitted from. Once "
            "they are committed and pushed, submit it again.\n"
        )
    links = (escape.link(path.rsplit("/", 1)[-1], f"{home}/blob/{session.commit}/{path}") for path in session.files)
    return f"Its log and its drawings: {', '.join(links)}\n"


# ---- what an answer becomes ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PatternAnswer:
    name: str
    text: str


def parse(body: str) -> PatternAnswer:
    """The answer that a comment is. Raises NotDoneError where it cannot be read."""
    text = body.strip()
    if len(text) > MAX_TEXT:
        raise NotDoneError(f"it has {len(text)} characters; at most {MAX_TEXT}")
    if match := _PATTERN.fullmatch(text):
        return PatternAnswer(match[1], visible(" ".join(match[2].split()), MAX_TEXT))
    raise NotDoneError(f"write {REVIEW_FORM}")


def answer(step: Step, bot: Bot, propose: bool) -> int | None:
    """Reads the event's comment; with `propose` opens the pull request that it asks for, and returns its number.

    For people with write access only. What cannot be taken is refused in a sentence. Without `propose` the output
    `propose` says whether there is something to propose, for the job whose token may.
    """
    asked = command.requester(step.event())
    if asked is None or not command.is_review(asked.body):
        step.output(propose="false")
        step.log("the comment is no answer to a session")
        return None
    new = _decide(bot, asked)
    if new is None or not propose:
        step.output(propose="true" if new else "false")
        step.log(f"{asked.login} asks for: {new.title}" if new else "nothing is proposed")
        return None
    try:
        number = put(bot, new)
    except GitHubError as error:
        _refuse(bot, asked, str(error), "proposed", of=asked.comment_id)
        raise
    _say(bot, asked, f"#{number} proposes what {escape.code(asked.login)} answered.", asked.comment_id)
    return number


def _decide(bot: Bot, asked: Requester) -> Offer | None:
    """What is proposed; where nothing is, why not was said. Permission is checked first."""
    if not command.may_write(bot, asked.login):
        _refuse(bot, asked, "only people with write access answer sessions", DONE, of=0)
        return None
    try:
        answered = parse(asked.body)
        default = default_branch(bot)
        commit = patiently("default branch", lambda: bot.repository.get_git_ref(f"heads/{default}").object.sha, bot)
        return offer(answered, asked, commit, partial(_file, bot, commit))
    except (NotDoneError, UsageError) as error:
        _refuse(bot, asked, str(error), DONE, of=asked.comment_id)
        return None


def _refuse(bot: Bot, asked: Requester, why: str, done: str, of: int) -> None:
    command.react(bot, asked, "confused")
    _say(bot, asked, command.refusal(asked, why, done), of)
    bot.step.log(f"refused: {why}")


def _say(bot: Bot, asked: Requester, text: str, of: int) -> None:
    """One comment for each answer of people with write access, by its number; one for all others, of 0."""
    upsert.say(bot, asked.number, text, f"<!-- kernelgate-review comment={of} -->")


def offer(answered: PatternAnswer, asked: Requester, commit: str, read: Callable[[str], str | None]) -> Offer:
    """The pattern's file, or what is added to it. `read`: a file of the default branch; None where it is not there."""
    path = f"{patterns.FOLDER.as_posix()}/{answered.name}.md"
    text = escape.prose(answered.text)
    signed = f"{text} ({escape.code(asked.login)}, in #{asked.number})"
    before, remark = read(path), ""
    if before is not None:
        title, content = f"Add to the pattern {answered.name} what a reviewer says", f"{before.rstrip()}\n\n{signed}\n"
    else:
        title, content = f"Propose the pattern {answered.name}", _new_pattern(answered.name, text, asked, signed)
        index = f"{patterns.FOLDER.as_posix()}/{patterns.INDEX}"
        row = f" Its row in {escape.code(index)} is missing, too." if read(index) is not None else ""
        remark = (
            f"Before the merge, fill in what only a person can give: the lines {', '.join(map(escape.code, MISSING))} "
            f"of the front matter, as in the other patterns. Until then {escape.code('kernelgate patterns')} refuses "
            f"the file and names these lines.{row}\n\n"
        )
    body = f"{escape.code(asked.login)} answered in #{asked.number}: {text}\n\n{remark}{_HELD}\n"
    branch, because = f"kernelgate/review-{asked.comment_id}", f"As {asked.login} answered in #{asked.number}."
    return Offer(branch, ((path, content.encode()),), title, body, commit, because)


def _new_pattern(name: str, text: str, asked: Requester, signed: str) -> str:
    title = name.replace("-", " ").capitalize()
    # Texts of a pattern are Markdown on its page. JSON's texts are YAML's, too.
    known = {"name": name, "title": title, "signals": [], "do": text, "evidence": f"{asked.login}, in #{asked.number}"}
    front = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in known.items()]
    front += [f"{key}: null # fill in before the merge" for key in MISSING]
    return "\n".join(["---", *front, "---", "", f"# {title}", "", signed, ""])


def _file(bot: Bot, commit: str, path: str) -> str | None:
    """Raises UsageError where GitHub does not hand out what is there."""

    def step() -> str | None:
        try:
            there = bot.repository.get_contents(path, ref=commit)
        except UnknownObjectException:
            return None
        if isinstance(there, list) or there.encoding != "base64":
            raise UsageError(f"{path} is no file of less than a megabyte: change it by a pull request of your own")
        return there.decoded_content.decode("utf-8", "replace")

    return patiently("file", step, bot)
