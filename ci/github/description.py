"""Reads a pull request's description: is it complete, and what does it claim? `kernelgate template` says it.

Headings are found whatever their level, case, order, emphasis or links.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.ci.document import escape
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.claims import BOX, BULLET, FILLER, Claim, plain, read_claims
from kernelgate.ci.github.client import changed_names, connect, patiently, touches
from kernelgate.ci.judge.completeness import SUPPLIES
from kernelgate.ci.policy.policy import Template


class Part(Enum):
    """A section of the template: its title, and how to add it; of one that nothing asks for not that."""

    HYPOTHESIS = ("Intent and hypothesis", "say what should become faster and why")
    CHANGE = ("What was changed", "")
    CLAIMS = ("Claimed effect", "")
    BENCHMARK = ("Statistical results", "give the times of base and head")
    EVIDENCE = ("Profiler evidence", "give numbers from before and after")
    CORRECTNESS = ("Correctness", "tick what you checked")
    TESTING = ("Testing done", "name the commands and the machine")

    def __init__(self, title: str, how: str) -> None:
        self.heading, self.how = f"## {title}", how

    @property
    def key(self) -> str:
        """As what a measurement supplies is called."""
        return self.name.lower()


PARTS = {part.heading.lstrip("# ").casefold(): part for part in Part}
ASKED = (Part.HYPOTHESIS, Part.EVIDENCE, Part.CORRECTNESS, Part.BENCHMARK, Part.TESTING)


@dataclass(frozen=True)
class Missing:
    part: Part
    why: str
    blocks: bool
    unmeasured: str = ""
    """Why the measurement does not supply it, which is not its author's to mend, and what to do."""


@dataclass(frozen=True)
class Description:
    missing: tuple[Missing, ...] = ()
    claims: tuple[Claim, ...] = ()
    unread: tuple[str, ...] = ()
    """Lines of the section on claims that hold a number and were not understood."""
    excused: str | None = None
    filled: tuple[str, ...] = ()
    """What its author left out and the measurement supplies: keys of the policy."""

    @property
    def blocking(self) -> tuple[str, ...]:
        return tuple(missing.part.heading for missing in self.missing if missing.blocks)

    def filled_by(self, supplied: Collection[str]) -> Description:
        """What a measurement supplies need not be written."""
        taken = [one for one in self.missing if one.part.key in supplied]
        rest = tuple(one for one in self.missing if one not in taken)
        return replace(self, missing=rest, filled=tuple(one.part.key for one in taken))


def describe(
    body: str | None, policy: Template, changed: Sequence[str] | None = None, by_bot: bool = False
) -> Description:
    """Reads a description. `changed`: the files of the pull request; None where they are not known. Where no kernel is
    touched, or a bot wrote it, nothing is missing; claims are read all the same."""
    sections = split(body or "")
    claims, unread = ((), ()) if policy.claims == "ignore" else read_claims(sections.get(Part.CLAIMS, ""))
    if by_bot or not touches(changed, policy.kernel_paths):
        return Description(claims=claims, excused="a bot opened it" if by_bot else "it touches no kernel")
    asked = ASKED if policy.sections != "ignore" else ()
    empty = [part for part in asked if _is_empty(part, sections.get(part, ""))]
    blocks = policy.sections == "block"
    missing = (Missing(one, f"is {'empty' if one in sections else 'missing'}", blocks) for one in empty)
    return Description(tuple(missing), claims, unread)


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}#{1,6}(?=[\s*_\[A-Za-z])(.*)$")


def split(body: str) -> dict[Part, str]:
    """The text under each section's heading, of all that have it, without comments and what the bot wrote."""
    text = _COMMENT.sub("", without(body).replace("\r\n", "\n").replace("\r", "\n"))
    found: dict[Part, list[str]] = {}
    current: list[str] = []
    fence = ""
    for line in text.split("\n"):
        marks = _FENCE.match(line)
        if marks and (not fence or (marks[1].startswith(fence) and not line.strip(" `~"))):
            fence = "" if fence else marks[1]
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            current.append(line)
        else:
            part = PARTS.get(plain(heading[1]).casefold())
            current = found.setdefault(part, []) if part else []
    return {part: "\n".join(lines).strip() for part, lines in found.items()}


def _is_empty(part: Part, text: str) -> bool:
    lines = text.split("\n")
    boxes = [box for line in lines if (box := BOX.match(line))]
    if part is Part.CORRECTNESS and boxes:
        return not any(box[1] in "xX" for box in boxes)
    texts = (plain(BULLET.sub("", line)) for line in lines)
    return not any(words and not FILLER.fullmatch(words) for words in texts)


def as_text(described: Description) -> str:
    """The review for a terminal; the job summary shows it as it is."""
    if described.excused:
        return f"This pull request needs no description: {described.excused}.\n"
    lines = [] if described.missing or described.filled else ["The description is complete."]
    if described.filled:
        lines.append(f"left to the measurement, and asked for where that is incomplete: {', '.join(described.filled)}")
    for missing in sorted(described.missing, key=lambda one: not one.blocks):
        part, must = missing.part, "must be added" if missing.blocks else "please add"
        where = f"under the heading “{part.heading}”, {part.how}."
        lines.append(f"{must}: “{part.heading.lstrip('# ')}” {missing.why}: {where}")
    for claim in described.claims:
        where = " ".join(claim.about) or "every case"
        change = f"time {claim.change_pct:+.3g}%" if claim.change_pct else "no change"
        lines.append(f"claim read: {claim.text} ({where}: {change})")
    for line in described.unread:
        lines.append(f"claim not understood: {line}: write it as “case: 10% faster”, with one number a line.")
    return "\n".join(lines) + "\n"


def tell(step: Step, described: Description) -> None:
    lines = tuple(as_text(described).splitlines())
    for line in lines:
        step.log(line)
    # The text quotes the author, so it goes into the summary as a block that it cannot end.
    step.summary("### The pull request's description\n\n" + escape.fence(lines, "text"))


def of_file_or_event(step: Step, rules: Template, body: Path | None) -> Description:
    """What stands in the file, else in the event's pull request; what a measurement can supply is left to it. Raises
    KernelgateError for a file that cannot be read."""
    if body:
        try:
            return describe(files.content(body).decode(errors="replace"), rules).filled_by(SUPPLIES)
        except OSError as error:
            raise KernelgateError(f"{body}: the description cannot be read: {error.strerror}") from None
    pull = step.event().pull_request
    if pull is None:
        return Description(excused="the event is of no pull request")
    changed = None
    if step.token is not None:
        bot = connect(step)
        changed = patiently("changed files", lambda: changed_names(bot.repository.get_pull(pull.number)), bot)
    return describe(pull.body, rules, changed, by_bot=pull.author_type == "Bot").filled_by(SUPPLIES)


BEGIN = "<!-- kernelgate-results -->"
MAX_KEPT = 65_536
"""Characters that GitHub keeps of a description."""

_END = re.compile(r"<!-- /kernelgate-results(?: ([0-9a-f]{16}))? -->")
"""With a digest of what stands before it. So words that somebody else wrote there are seen, and stay."""


def without(body: str) -> str:
    """The description as its author wrote it: what stands between the marks is no claim and no hypothesis."""
    for start, end, _, _ in reversed(list(_blocks(body))):
        body = body[:start] + body[end:]
    return body


def has_block(body: str | None) -> bool:
    return next(_blocks(body or ""), None) is not None


def filled(body: str, text: str) -> str | None:
    """The description with `text` in its first block; the same where it holds the text already. None where there is no
    block, somebody else wrote in it, or the whole would be too long."""
    found, text = next(_blocks(body), None), text.strip()
    if found is None:
        return None
    start, end, old, stated = found
    if old and stated != _digest(old):
        return None
    if old == text:
        return body
    made = f"{body[:start]}{BEGIN}\n\n{text}\n\n<!-- /kernelgate-results {_digest(text)} -->{body[end:]}"
    return made if len(made) <= MAX_KEPT else None


def _blocks(body: str) -> Iterator[tuple[int, int, str, str | None]]:
    """Where each stands, with its marks; the text between them, and the digest that the end mark states."""
    at = 0
    while (start := body.find(BEGIN, at)) >= 0 and (end := _END.search(body, start)):
        # GitHub may change line ends and the space around.
        text = body[start + len(BEGIN) : end.start()].replace("\r\n", "\n").strip()
        yield start, end.end(), text, end[1]
        at = end.end()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
