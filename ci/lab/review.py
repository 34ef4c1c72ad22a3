"""A reviewer's answer to a session's report, in a comment on an issue or a pull request, made a pull request itself.

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
from functools import partial

from github import UnknownObjectException
from pydantic import ValidationError

from kernelgate.bench.core.errors import UsageError
from kernelgate.ci.document import escape
from kernelgate.ci.document.escape import visible
from kernelgate.ci.explain.diagnosis import Bottleneck
from kernelgate.ci.explain.recommend import CATALOGUE
from kernelgate.ci.github import command, upsert
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot, GitHubError, patiently
from kernelgate.ci.github.command import MAY_WRITE, REVIEW_FORMS, Refusal, Requester
from kernelgate.ci.github.propose import Offer, put
from kernelgate.ci.lab import folder, labels, log, pattern
from kernelgate.ci.lab.log import Corrected, TriedChange

MAX_TEXT = escape.MAX_CHARACTERS
"""Characters of an answer: none is shown in part."""
DONE = "taken"
MISSING = ("when", "command", "cookbook")
"""Of a pattern's front matter what only a person can give. They stay empty: whoever reads patterns then names them."""
_NAME = folder.NAME.pattern
_LABEL = r"[a-z0-9][a-z0-9_-]{0,63}"
_PATTERN = re.compile(rf"(?i:/kernelgate[ \t]+pattern)[ \t]+({_NAME})[ \t]*:[ \t]*(\S.*)", re.DOTALL)
_CORRECT = re.compile(
    rf"(?i:/kernelgate[ \t]+correct)[ \t]+({_NAME})/([1-9][0-9]{{0,3}})"
    rf"((?:[ \t]+(?:action|bottleneck)={_LABEL}){{1,2}})[ \t]*:[ \t]*(\S.*)",
    re.DOTALL,
)
_HELD = (
    "GitHub holds the checks of a pull request that a workflow's token opened: approve them, or close and reopen it."
)


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


@dataclass(frozen=True)
class _ProposedFile:
    """One file as it is proposed."""

    path: str
    content: str
    title: str
    remark: str = ""
    """What is left to people before the merge."""


def parse(body: str) -> PatternAnswer | CorrectionAnswer | Refusal | None:
    """The answer that a comment is; None where it is none; why, where it cannot be read."""
    if not command.is_review(body):
        return None
    text = body.strip()
    if len(text) > MAX_TEXT:
        return Refusal(f"it has {len(text)} characters; at most {MAX_TEXT}", DONE)
    if found := _PATTERN.fullmatch(text):
        return PatternAnswer(found[1], _one_line(found[2]))
    if found := _CORRECT.fullmatch(text):
        named = dict(pair.split("=") for pair in found[3].split())
        why = _one_line(found[4])
        return CorrectionAnswer(found[1], int(found[2]), named.get("action"), named.get("bottleneck"), why)
    return Refusal(f"write {REVIEW_FORMS}", DONE)


def answer(step: Step, bot: Bot, propose: bool) -> int | None:
    """Reads the event's comment; with `propose` opens the pull request that it asks for, and returns its number.

    For people with write access only. What cannot be taken is refused in a sentence. Without `propose` the output
    `propose` says whether there is something to propose, for the job whose token may.
    """
    event = step.event()
    asked, found = command.requester(event, anywhere=True), parse(command.body_of(event))
    if asked is None or found is None:
        step.output(propose="false")
        step.log("the comment is no answer to a session")
        return None
    made = _decide(bot, asked, found)
    if isinstance(made, Refusal):
        step.output(propose="false")
        return None
    if not propose:
        step.output(propose="true")
        step.log(f"{asked.login} asks for: {made.title}")
        return None
    try:
        number = put(bot, made)
    except GitHubError as error:
        _refuse(bot, asked, Refusal(str(error), "proposed"), of=asked.comment_id)
        raise
    _say(bot, asked, f"#{number} proposes what {escape.code(asked.login)} answered.")
    return number


def _decide(bot: Bot, asked: Requester, found: PatternAnswer | CorrectionAnswer | Refusal) -> Offer | Refusal:
    """What is proposed; where nothing is, that was said. Permission is checked first."""
    if patiently("permission", lambda: command.permission(bot, asked.login), bot) not in MAY_WRITE:
        stranger = Refusal("only people with write access answer sessions", DONE)
        _refuse(bot, asked, stranger, of=0)
        return stranger
    default = patiently("repository", lambda: bot.repository.default_branch, bot)
    commit = patiently("default branch", lambda: bot.repository.get_git_ref(f"heads/{default}").object.sha, bot)
    made: Offer | Refusal
    try:
        made = found if isinstance(found, Refusal) else offer(found, asked, commit, partial(_file, bot, commit))
    except UsageError as error:
        made = Refusal(str(error), DONE)
    if isinstance(made, Refusal):
        _refuse(bot, asked, made, of=asked.comment_id)
    return made


def _refuse(bot: Bot, asked: Requester, why: Refusal, of: int) -> None:
    command.react(bot, asked, "confused")
    _say(bot, asked, command.refusal(asked, why), of)
    bot.step.log(f"refused: {why.why}")


def _say(bot: Bot, asked: Requester, text: str, of: int | None = None) -> None:
    """One comment for each answer of people with write access, by its number; one for all others, of 0."""
    number = asked.comment_id if of is None else of
    upsert.say(bot, asked.number, text, f"<!-- kernelgate-review comment={number} -->")


def offer(
    found: PatternAnswer | CorrectionAnswer, asked: Requester, commit: str, read: Callable[[str], str | None]
) -> Offer | Refusal:
    """What is proposed. `read`: a file of the default branch; None where it is not there."""
    made = _pattern(found, asked, read) if isinstance(found, PatternAnswer) else _correction(found, asked, read)
    if isinstance(made, Refusal):
        return made
    said = found.text if isinstance(found, PatternAnswer) else found.why
    parts = [f"{escape.code(asked.login)} answered in #{asked.number}: {escape.prose(said)}", made.remark, _HELD]
    body = "\n\n".join(part for part in parts if part) + "\n"
    branch = f"kernelgate/review-{asked.comment_id}"
    because = f"As {asked.login} answered in #{asked.number}."
    return Offer(branch, ((made.path, made.content.encode()),), made.title, body, commit, because)


def _pattern(found: PatternAnswer, asked: Requester, read: Callable[[str], str | None]) -> _ProposedFile:
    path = f"{pattern.FOLDER.as_posix()}/{found.name}.md"
    text = escape.prose(found.text)
    said = f"{text} ({escape.code(asked.login)}, in #{asked.number})"
    before = read(path)
    if before is not None:
        title = f"Add to the pattern {found.name} what a reviewer says"
        return _ProposedFile(path, f"{before.rstrip()}\n\n{said}\n", title)
    title = found.name.replace("-", " ").capitalize()
    # Texts of a pattern are Markdown on its page. JSON's texts are YAML's, too.
    known: dict[str, object] = {
        "name": found.name,
        "title": title,
        "when": None,
        "signals": [],
        "do": text,
        "command": None,
        "evidence": f"{asked.login}, in #{asked.number}",
        "measured_minutes": None,
        "cookbook": None,
    }
    front = [f"{key}: {json.dumps(value, ensure_ascii=False)}{_to_fill(key)}" for key, value in known.items()]
    content = "\n".join(["---", *front, "---", "", f"# {title}", "", said, ""])
    return _ProposedFile(path, content, f"Propose the pattern {found.name}", _left(read))


def _to_fill(key: str) -> str:
    return " # fill in before the merge" if key in MISSING else ""


def _left(read: Callable[[str], str | None]) -> str:
    lines = ", ".join(map(escape.code, MISSING))
    index = f"{pattern.FOLDER.as_posix()}/{pattern.INDEX}"
    row = f" Its row in {escape.code(index)} is missing, too." if read(index) is not None else ""
    return (
        f"Before the merge, fill in what only a person can give: the lines {lines} of the front matter, as in the "
        f"other patterns. Until then {escape.code('kernelgate patterns')} refuses the file and names these lines.{row}"
    )


def _correction(
    found: CorrectionAnswer, asked: Requester, read: Callable[[str], str | None]
) -> _ProposedFile | Refusal:
    path = f"{folder.FOLDER.as_posix()}/{found.session}/{log.FILE}"
    before = read(path)
    if before is None:
        return Refusal(f"the default branch has no session {found.session}; merge its folder first", DONE)
    try:
        events = [log.event_of(line) for line in before.split("\n") if line.strip()]
    except ValidationError:
        return Refusal(f"the log of {found.session} is broken", DONE)
    wrong = _wrong_labels(found, labels.corrected(events))
    if wrong is not None:
        return Refusal(wrong, DONE)
    event = Corrected(
        at=asked.at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        number=found.number,
        action=found.action,
        bottleneck=found.bottleneck,
        by=asked.login,
        why=found.why,
    )
    whole = before if before.endswith("\n") else f"{before}\n"
    title = f"Correct the label of try {found.number} in {found.session}"
    return _ProposedFile(path, whole + log.line(event), title)


def _wrong_labels(found: CorrectionAnswer, tries: tuple[TriedChange, ...]) -> str | None:
    """What keeps these labels from being those of the try; None where nothing does."""
    tried = next((one for one in tries if one.number == found.number), None)
    if tried is None:
        return f"the session {found.session} has no try {found.number}; it has {len(tries)}"
    known = {*CATALOGUE, *(one.action for one in tries)}
    if found.action is not None and found.action not in known:
        return f"no action is called {found.action}; `kernelgate recommend` and ci/explain/recommend.py name them"
    if found.bottleneck is not None and found.bottleneck not in set(Bottleneck):
        return f"no bottleneck is called {found.bottleneck}; there are {', '.join(Bottleneck)}"
    now = (found.action or tried.action, found.bottleneck or tried.bottleneck)
    return f"try {found.number} is labelled so already" if now == (tried.action, tried.bottleneck) else None


def _file(bot: Bot, commit: str, path: str) -> str | None:
    """Raises UsageError where GitHub does not hand out what is there."""

    def step() -> str | None:
        try:
            found = bot.repository.get_contents(path, ref=commit)
        except UnknownObjectException:
            return None
        if isinstance(found, list) or found.encoding != "base64":
            raise UsageError(f"{path} is no file of less than a megabyte: change it by a pull request of your own")
        return found.decoded_content.decode("utf-8", "replace")

    return patiently("file", step, bot)


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()), MAX_TEXT)
