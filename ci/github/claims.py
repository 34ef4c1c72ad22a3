"""What a description claims, which cases of a record that is about, and what the measurement says of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kernelgate.bench.core import dtypes
from kernelgate.bench.record import Case, CaseKey, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Code, Line, Mark
from kernelgate.ci.judge.cards import called
from kernelgate.ci.judge.case import CaseVerdict, Direction, Outcome, RecordVerdict
from kernelgate.ci.policy.policy import Gates

MAX_CLAIMS = 20
"""More than a comment can set beside measurements."""
CLAIM_TOLERANCE_PCT: Final = 1.0
"""Claims are rounded: a claim of 10% holds if 9.2% was measured. In percentage points."""
EVERY_CASE = ("", "all", "all cases")


@dataclass(frozen=True)
class Claim:
    text: str
    """As it was written, for showing; not escaped."""
    about: tuple[str, ...]
    """Words in lower case, all of which a case must fit; none: every case does."""
    change_pct: float
    """The claimed change of time: negative is faster, 0 for no change."""
    of_speed: bool = False
    """Whether it may be meant of speed: "33% faster" is 33% less time to one author, 1.33 times as fast to another."""

    @property
    def least(self) -> float:
        """How large the claimed change is at least, in percent of the time."""
        size = abs(self.change_pct)
        return 100 * size / (100 + size) if self.of_speed else size


FILLER = re.compile(r"(?:before|after|todo|tbd|n/?a|none|nothing|no|no response|-|x)[\s:.!]*", re.IGNORECASE)
BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s*\[([ xX])\]")
BULLET = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")
_EFFECT = re.compile(
    r"(?P<same>no change|unchanged)"
    r"|(?P<factor>\d{1,4}(?:\.\d{1,4})?) ?x faster"
    r"|(?P<sign>[+-]) ?(?P<signed>\d{1,4}(?:\.\d{1,4})?) ?%"
    r"|(?P<size>\d{1,4}(?:\.\d{1,4})?) ?% (?P<how>faster|slower|less time|more time)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d ?(?:%|x\b|percent\b|times\b)", re.IGNORECASE)


def plain(markdown: str) -> str:
    text = re.sub(r"!?\[([^\[\]]{0,500})\](?:\([^()]{0,2000}\)|\[[^\[\]]{0,200}\])?", r"\1", markdown)
    text = re.sub(r"<[^<>]{0,300}>", " ", text)
    text = re.sub(r"[*`~#]|(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])", "", text)
    return " ".join(text.replace("\u2212", "-").split())


def read_claims(text: str) -> tuple[tuple[Claim, ...], tuple[str, ...]]:
    """The claims in a section's text, each a line `CASES: EFFECT`, and the lines with a number that are none."""
    claims: list[Claim] = []
    unread: list[str] = []
    for line in text.split("\n"):
        words = plain(BULLET.sub("", line)).rstrip(".")
        about, _, effect = words.rpartition(":")
        change = _change_pct(effect.strip())
        if change is not None and len(claims) < MAX_CLAIMS:
            asked = "" if about.strip().casefold() in EVERY_CASE else about.casefold()
            of_speed = effect.casefold().endswith("% faster")
            named = tuple(dict.fromkeys(asked.replace(",", " ").split()))
            claims.append(Claim(visible(words, 200), named, change, of_speed))
        elif change is not None or _NUMBER.search(words):
            unread.append(visible(words, 200))
    return tuple(claims), tuple(unread[:MAX_CLAIMS])


def _change_pct(effect: str) -> float | None:
    """Of the time; None where that is not what a claim ends with."""
    found = _EFFECT.fullmatch(effect)
    if found is None:
        return None
    if found["same"]:
        return 0.0
    if found["factor"]:
        factor = float(found["factor"])
        return 100 / factor - 100 if factor > 1 else None
    # A sign alone is of the time, as in the bot's table: −10% is faster.
    size, more = float(found["signed"] or found["size"]), found["sign"] == "+"
    change = size if more or (found["how"] or "").casefold() in ("slower", "more time") else -size
    return change if change > -100 else None


def cases_of(claim: Claim, record: RunRecord) -> frozenset[CaseKey]:
    return frozenset(case.key for case in record.cases if all(_fits(word, case) for word in claim.about))


def _fits(word: str, case: Case) -> bool:
    """By its id or card, by `axis=value`, or by what stands for itself: a dtype, and an axis that is on."""
    axes = {axis.casefold(): value for axis, value in case.axes.items()}
    axis, equals, value = word.partition("=")
    if equals:
        return _is(axes.get(axis, False), value)  # a case that leaves a switch out means that it is off
    names = {case.id.casefold(), case.card.casefold(), f"{case.card}/{case.id}".casefold()}
    return word in names or _is(axes.get(word), "true") or _is(axes.get("dtype"), word)


def _is(value: bool | float | str | None, claimed: str) -> bool:
    if isinstance(value, str):
        return (dtypes.canonical(value) or value.casefold()) == (dtypes.canonical(claimed) or claimed)
    if claimed in ("true", "false"):
        return value in (0, 1) and bool(value) is (claimed == "true")  # old records have 0 and 1
    try:
        return value is not None and float(claimed) == value
    except ValueError:
        return False


class Support(Enum):
    """What the measurement says of a claim; of several cases the first counts."""

    CONTRADICTED = (Mark.SLIGHT, "is contradicted")
    NOT_SUPPORTED = (Mark.UNKNOWN, "is not supported")
    NOT_MEASURED = (Mark.UNKNOWN, "was not measured")
    SUPPORTED = (Mark.PASSED, "is supported")


@dataclass(frozen=True)
class Assessed:
    claim: Claim
    finding: Support
    line: Line


def assess(claims: Sequence[Claim], record: RunRecord, verdict: RecordVerdict, gates: Gates) -> tuple[Assessed, ...]:
    assessed = []
    for claim in claims:
        about = cases_of(claim, record)
        found = [(_found(claim, case, gates), case) for case in verdict.cases if case.key in about]
        finding, case = min(found, key=lambda one: list(Support).index(one[0]), default=(Support.NOT_MEASURED, None))
        why: Line = (": its case could not be judged",)
        if case is None:
            why = (": no measured case fits it",)
        elif finding is not Support.NOT_MEASURED:
            change, interval = formatting.signed(case.change_pct, case.interval_pct)
            why = (": ", Code(called(record, case.key)), f" {change} {interval}")
        mark, words = finding.value
        assessed.append(Assessed(claim, finding, (mark, " claim ", Code(claim.text, most=120), f" {words}", *why)))
    return tuple(assessed)


def _found(claim: Claim, case: CaseVerdict, gates: Gates) -> Support:
    """One claim, one case. Decided by the interval of the change and by whether a direction is certain at all."""
    if case.interval_pct is None or case.disqualifying:
        return Support.NOT_MEASURED
    low, high = case.interval_pct
    if claim.change_pct == 0:
        if case.verdict is Outcome.EQUIVALENT:
            return Support.SUPPORTED
        certain = case.direction is not Direction.NONE and (low > gates.margin_pct or high < -gates.margin_pct)
        return Support.CONTRADICTED if certain else Support.NOT_SUPPORTED
    # Turned so that the claimed direction is positive.
    sign, directed = (-1, Direction.FASTER) if claim.change_pct < 0 else (1, Direction.SLOWER)
    claimed, (least, most) = abs(claim.change_pct), sorted((sign * low, sign * high))
    same = case.verdict is Outcome.EQUIVALENT and claimed > gates.margin_pct + CLAIM_TOLERANCE_PCT
    if same or case.direction not in (directed, Direction.NONE):
        return Support.CONTRADICTED
    if case.direction is directed and most + CLAIM_TOLERANCE_PCT >= claim.least and least > 0:
        return Support.SUPPORTED
    return Support.NOT_SUPPORTED
