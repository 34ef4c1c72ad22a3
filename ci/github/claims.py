"""What a description claims, which cases of a record that is about, and what the measurement says of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
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
MAX_NAME = formatting.MAX_LABEL
"""Characters of a card or axis that is looked for in a text; one letter alone is too common a word."""
MAX_AXES = 12
CLAIM_TOLERANCE_PCT: Final = 1.0
"""Claims are rounded: a claim of 10% holds if 9.2% was measured. In percentage points."""


@dataclass(frozen=True)
class Claim:
    text: str
    """As it was written, for showing; not escaped."""
    case: str | None
    """A case id, with its card or without; None where axes or nothing choose the cases."""
    params: tuple[tuple[str, str], ...]
    """Axes in lower case, such as (("m", "4096"), ("dtype", "fp16")); all of them must fit. Whether the text names axes
    that are true or false is seen where the cases are known."""
    change_pct: float
    """The claimed change of time: negative is faster, 0 for no change."""
    of_speed: bool = False
    """Whether it may be meant of speed: "33% faster" is 33% less time to one author, 1.33 times as fast to another."""

    @property
    def least(self) -> float:
        """How large the claimed change is at least, in percent of the time."""
        size = abs(self.change_pct)
        return 100 * size / (100 + size) if self.of_speed else size


def plain(markdown: str) -> str:
    text = re.sub(r"!?\[([^\[\]]{0,500})\](?:\([^()]{0,2000}\)|\[[^\[\]]{0,200}\])?", r"\1", markdown)
    text = re.sub(r"<[^<>]{0,300}>", " ", text)
    text = re.sub(r"[*`~#]|(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])", "", text)
    return " ".join(text.replace("\u2212", "-").split())


FILLER = re.compile(
    r"(?:before|after|todo|tbd|n/?a|none|nothing|no|-|\.\.|…|x|\?|to be filled(?: in)?|_no response_|no response)"
    r"[\s:.!]*",
    re.IGNORECASE,
)
BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s*\[([ xX])\]")
BULLET = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")


_NUMBER = r"(?P<sign>[+-]?)\s*(?P<number>\d{1,4}(?:[.,]\d{1,4})?)\s*"
_PERCENT = re.compile(_NUMBER + r"(?:%|percent\b|per cent\b|pct\b)", re.IGNORECASE)
_IN_WORDS = (
    (re.compile(r"\btwice as fast\b", re.I), "2x faster"),
    (re.compile(r"\bhalf (?:of )?the (?:run)?time\b", re.I), "0.5x the time"),
    (
        re.compile(r"\bspeed-?\s?up (?:of |is |= ?|: ?)?(\d{1,3}\.\d{1,4})(?![\d.]|\s*(?:[%x×]|percent|pct))", re.I),
        r"\1x faster",
    ),
)
_RANGE = re.compile(
    r"\b(\d{1,3}(?:\.\d{1,3})?)\s*[%x×]?\s*(?:-|–|to|and)\s*(\d{1,3}(?:\.\d{1,3})?)\s*(%|percent\b|x\b|×)", re.I
)
_TIMES = re.compile(
    r"(?P<old>\d{1,9}(?:\.\d{1,9})?)\s*(?P<unit>[nuµμm]?s)\b\s*(?:to|-+>|=+>|→)\s*(?P<new>\d{1,9}(?:\.\d{1,9})?)\s*(?P=unit)\b"
)
"""Such as "from 52 µs to 46 µs"."""
_AT_MOST = re.compile(r"\bup to\b|\bat most\b|\bmaximum\b", re.I)
_SPEED = re.compile(r"\bfast|\bquick|\bspeed|\bslow", re.I)
_TIME = re.compile(r"\b(?:run)?time\b|\blatency\b|\bduration\b", re.I)
_RATE = re.compile(r"\bthroughput\b|\bbandwidth\b|\b(?:flops?|[tg]flops?|[gt]b|tokens?)\s?/\s?s\b|\bflops\b", re.I)
_OTHER = re.compile(
    r"\bregister|\bmemory\b|\bspill|\boccupanc|\bsmem\b|\binstruction|\btraffic\b|\bcompil|\bsize\b|\berrors?\b|\benergy\b",
    re.I,
)
"""What may be less or more besides time."""
_MORE = re.compile(r"\bincreas|\bimprov|\bgain|\bhigher\b|\bmore\b|\bbetter\b", re.I)
_FEWER = re.compile(r"\breduc|\bless\b|\blower|\bdrop|\bdecreas|\bworse\b|\bregress|\bloses?\b", re.I)
_FACTOR = re.compile(_NUMBER + r"(?:x\b|×|times\b)", re.IGNORECASE)
_FASTER = re.compile(
    r"\bfast|\bquick|\bspeed-?\s?ups?\b|\bimprov|\bsav(?:es?|ing)|\breduc|\bless\b|\blower\b|\bgain", re.I
)
_SLOWER = re.compile(r"\bslow|\bregress|\bworse|\bmore time\b|\blonger\b|\bincreas", re.I)
_SAME = re.compile(
    r"\bno (?:measurable |significant )?(?:change|difference|effect|regressions?|slowdown|impact)\b|\bunchanged\b"
    r"|\b(?:the )?same\b|\bneutral\b|\bnot? slower\b",
    re.I,
)
PARAM = re.compile(
    r"""\b(?P<key>[a-z_]\w{0,31})\s*=\s*
    (?![\d.,]+\s*[x×](?!\w))                                            # 1.25x is a factor
    (?P<value>(?>-?(?:\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?)(?![\w×])     # 4096, 0.5, 1e-6
      |(?>[a-z0-9]\w{0,31}(?:\.\w{1,32})?))                              # fp16, torch.float16, 16x16
    (?!\w|\s*(?:%|per\ ?cent))""",
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
"""An axis with its value. A number before a percent sign or an x is the effect, whatever stands before it."""
_DTYPE = re.compile(rf"\b({'|'.join(dtypes.PROSE)})\b", re.I)
_ID = re.compile(
    r"(?<![\w./=-])(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,79}/)?"
    r"(?=[A-Za-z0-9.-]*_)[A-Za-z0-9][A-Za-z0-9_.-]{2,79}(?![\w/=-]|\s*=)"
)


def read_claims(text: str) -> tuple[tuple[Claim, ...], tuple[str, ...]]:
    """The claims in a section's text, and the lines that look like claims and were not understood."""
    claims: list[Claim] = []
    unread: list[str] = []
    for line in text.split("\n"):
        words = plain(BOX.sub("", BULLET.sub("", line)))
        if not words or FILLER.fullmatch(words) or set(words) <= set("|:- "):
            continue
        change = _change_pct(words)
        if change is not None and len(claims) < MAX_CLAIMS:
            found = _ID.search(words)
            case = found[0].rstrip(".-") if found else None
            axes = () if case else named_axes(words)
            speed = change < 0 and bool(_PERCENT.search(words) and _SPEED.search(words) and not _TIME.search(words))
            claims.append(Claim(visible(words, 200), case, axes, change, speed))
        elif change is not None or any(one.search(words) for one in (_PERCENT, _FACTOR, _TIMES)):
            unread.append(visible(words, 200))
    return tuple(claims), tuple(unread[:MAX_CLAIMS])


def _change_pct(line: str) -> float | None:
    for pattern, figures in _IN_WORDS:
        line = pattern.sub(figures, line)
    # Of a range its smaller end is claimed.
    words = _RANGE.sub(lambda found: f"{min(found[1], found[2], key=float)}{found[3]}", line)
    percents, factors = list(_PERCENT.finditer(words)), list(_FACTOR.finditer(words))
    said = _SAME.sub(" ", words)  # "the same results, 7% faster" claims a change all the same
    faster, slower = bool(_FASTER.search(said)), bool(_SLOWER.search(said))
    if said != words and (faster == slower or len(percents) + len(factors) != 1):
        return 0.0
    if not percents and not factors and len(times := list(_TIMES.finditer(words))) == 1:
        old, new = (float(times[0][name]) for name in ("old", "new"))
        return 100 * new / old - 100 if old > 0 and new > 0 else None
    if len(percents) + len(factors) != 1 or _AT_MOST.search(words):
        return None
    [found] = percents or factors
    size = float(found["number"].replace(",", "."))
    speed = _SPEED.search(said)
    if not speed and _OTHER.search(said):
        return None
    rate = not speed and bool(_RATE.search(said))
    if factors and not (faster or slower or rate) and _TIME.search(said):
        return 100 * size - 100
    if factors:
        return 100 / size - 100 if size > 0 and not slower else None
    if rate:
        more, fewer = (bool(one.search(said)) for one in (_MORE, _FEWER))
        if more == fewer and (more or not found["sign"]):
            return None
        size = size if more or (not fewer and found["sign"] == "+") else -size
        return 100 / (1 + size / 100) - 100 if size > -100 else None
    # A sign alone is of the time, as in the bot's table: −10% is faster.
    if faster == slower and (faster or not found["sign"]):
        return None
    change = -size if faster or (not slower and found["sign"] == "-") else size
    return change if change > -100 else None


def named_axes(words: str) -> tuple[tuple[str, str], ...]:
    """Every `axis=value`, and the dtype also where it stands alone."""
    chosen = {found["key"].casefold(): found["value"].casefold() for found in PARAM.finditer(words)}
    if "dtype" not in chosen and (dtype := _DTYPE.search(PARAM.sub("", words))):
        chosen["dtype"] = dtype[1].casefold()
    if "dtype" in chosen:
        chosen["dtype"] = dtypes.canonical(chosen["dtype"]) or chosen["dtype"]
    return tuple(sorted(chosen.items()))


@dataclass(frozen=True)
class ClaimedCases:
    """What a claim is about; none of `cases` where it names axes that there are not."""

    cases: frozenset[CaseKey]
    strange: tuple[str, ...] = ()
    known: tuple[str, ...] = ()


@dataclass(frozen=True)
class Vocabulary:
    """What the cases of a card are called by."""

    card: str
    titles: frozenset[str]
    axes: Mapping[str, str]
    switches: frozenset[str]
    """The axes that are true or false; a case that leaves one out means false."""


def cases_of(claim: Claim, record: RunRecord) -> ClaimedCases:
    """By the id where the claim has one, else every case that fits all axes and cards that it names."""
    cards = tuple(_vocabularies(record))
    if claim.case is not None:
        name = claim.case.casefold()
        ids = {case.key: (case.id.casefold(), f"{case.card}/{case.id}".casefold()) for case in record.cases}
        named = frozenset(key for key, names in ids.items() if name in names)
        # Else what looks like an id may be the name of a card or of a switch, such as rms_norm.
        if named or not any(name in one.titles | one.switches for one in cards):
            return ClaimedCases(named)
    params = dict(claim.params if claim.case is None else named_axes(claim.text))
    strange = tuple(axis for axis in params if not any(axis in one.axes for one in cards))
    if strange:
        known = tuple(dict.fromkeys(written for one in cards for written in one.axes.values()))
        return ClaimedCases(frozenset(), strange, known)
    asked = params | _bare_switches(claim.text, cards, params)
    switches = {one.card: one.switches for one in _meant(claim.text, cards)}

    def fits(case: Case) -> bool:
        has = {axis.casefold(): value for axis, value in case.axes.items()}
        return all(_is(has.get(axis), value, axis in switches[case.card]) for axis, value in asked.items())

    return ClaimedCases(frozenset(case.key for case in record.cases if case.card in switches and fits(case)))


def _vocabularies(record: RunRecord) -> Iterator[Vocabulary]:
    labels = formatting.card_names(record.cards)
    for card in dict.fromkeys(case.card for case in record.cases):
        every = [case.axes for case in record.cases if case.card == card]
        yield Vocabulary(
            card,
            titles=frozenset(name.casefold() for name in (card, labels.get(card, "")) if 1 < len(name) <= MAX_NAME),
            axes={axis.casefold(): axis for axes in every for axis in axes},
            switches=frozenset(axis.casefold() for axis in formatting.flags(every)),
        )


def _meant(text: str, cards: Sequence[Vocabulary]) -> Sequence[Vocabulary]:
    """The cards that a claim names by what they are called; all where it names none."""
    # The longest first: "norm" is no part of "rms norm".
    titles = sorted({title for one in cards for title in one.titles}, key=lambda title: (-len(title), title))
    found = re.findall(rf"(?<!\w)(?:{'|'.join(map(re.escape, titles))})(?!\w)", text.casefold())
    return [one for one in cards if one.titles.intersection(found)] or cards


def _bare_switches(text: str, cards: Sequence[Vocabulary], params: Mapping[str, str]) -> dict[str, str]:
    """The switches that stand in the text by themselves: "transposed", "non-transposed", "without bias"."""
    prose, found = PARAM.sub(" ", text), {}
    for axis in frozenset().union(*(one.switches for one in cards)) - params.keys():
        pattern = rf"(?<![\w-])(?P<off>non-?\s?|not?\s|without\s)?{re.escape(axis)}(?!\w)"
        if 1 < len(axis) <= MAX_NAME and (match := re.search(pattern, prose, re.IGNORECASE)):
            found[axis] = "false" if match["off"] else "true"
    return found


_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _is(value: bool | float | str | None, claimed: str, switch: bool) -> bool:
    if switch:
        return _TRUTH.get(claimed) is bool(value)
    if isinstance(value, str):
        return (dtypes.canonical(value) or value.casefold()) == (dtypes.canonical(claimed) or claimed.casefold())
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
    """A claim with what was found; `case` is the one that decided, None where none was measured."""

    claim: Claim
    finding: Support
    case: CaseVerdict | None
    about: ClaimedCases
    name: str = ""
    """Of the case, with its kernel's where there are several."""

    @property
    def line(self) -> Line:
        mark, words = self.finding.value
        why: Line = (": its case could not be judged",)
        if self.about.strange:
            there_are = ("; there are ", *_listed(self.about.known, ", ")) if self.about.known else ()
            why = (": no case has an axis ", *_listed(self.about.strange, " or "), *there_are)
        elif self.case is None:
            why = (": no measured case fits it",)
        elif self.finding is not Support.NOT_MEASURED:
            change, interval = formatting.signed(self.case.change_pct, self.case.interval_pct)
            why = (": ", Code(self.name), f" {change} {interval}")
        return (mark, " claim ", Code(self.claim.text, most=120), f" {words}", *why)


def _listed(names: Sequence[str], separator: str) -> Line:
    return formatting.separated(((Code(name, 40),) for name in names[:MAX_AXES]), separator)


def assess(claims: Sequence[Claim], record: RunRecord, verdict: RecordVerdict, gates: Gates) -> tuple[Assessed, ...]:
    assessed = []
    for claim in claims:
        about = cases_of(claim, record)
        cases = [case for case in verdict.cases if case.key in about.cases]
        found = [Assessed(claim, _found(claim, case, gates), case, about, called(record, case.key)) for case in cases]
        none = Assessed(claim, Support.NOT_MEASURED, None, about)
        assessed.append(min(found, key=lambda one: list(Support).index(one.finding), default=none))
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
