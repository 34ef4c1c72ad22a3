"""Reads a pull request's description: is it complete, and what does it claim?

Descriptions are informal prose. Headings are found whatever their level, case, order, emphasis or
links; only what is really missing is named, with how to add it. Claims are read from their own section, one a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from kernelgate.bench.core import dtypes
from kernelgate.ci.document.escape import visible
from kernelgate.ci.github import results_block
from kernelgate.ci.policy.pull_request_rules import Template

MAX_CLAIMS = 20
"""More than a comment can set beside measurements."""
MAX_BODY = 262_144
"""Characters read of a description; GitHub keeps 65,536."""


class Part(Enum):
    """A section of the template: the words that name it, and how to add it."""

    HYPOTHESIS = (r"\bintent|\bhypothes[ie]s", "## Intent and hypothesis", "say what should become faster and why")
    CHANGE = (
        r"\bwhat (?:was |is |has )?changed?\b|^changes?$",
        "## What was changed",
        "name the one variable you changed",
    )
    CLAIMS = (
        r"\bclaim",
        "## Claimed effect",
        'write a line such as "- m4096_n1024_fp16: 10% faster", or "none"',
    )
    EVIDENCE = (r"\bprofil|\bevidence", "## Profiler evidence", "give numbers from before and after")
    CORRECTNESS = (r"\bcorrectness", "## Correctness", "tick what you checked")
    TESTING = (r"\btest(?:s|ing|ed)?\b", "## Testing done", "name the commands and the machine")

    @property
    def pattern(self) -> str:
        return self.value[0]

    @property
    def heading(self) -> str:
        return self.value[1]

    @property
    def how(self) -> str:
        return self.value[2]


class Effect(Enum):
    FASTER = "faster"
    SLOWER = "slower"
    SAME = "no change"


@dataclass(frozen=True)
class Claim:
    """One line of the section on claims."""

    text: str
    """As it was written, for showing; not escaped."""
    case: str | None
    """A case id, with its card or without; None where axes or nothing choose the cases."""
    params: tuple[tuple[str, str], ...]
    """Axes in lower case, such as (("m", "4096"), ("dtype", "fp16")); all of them must fit. Whether the text names axes
    that are true or false is seen where the cases are known."""
    effect: Effect
    change_pct: float
    """The claimed change of time: negative is faster, 0 for no change."""


@dataclass(frozen=True)
class Missing:
    part: Part
    why: str
    """ "is missing" or "is empty"."""
    blocks: bool

    @property
    def sentence(self) -> str:
        return (
            f"“{self.part.heading.lstrip('# ')}” {self.why}: under the heading “{self.part.heading}”, {self.part.how}."
        )


@dataclass(frozen=True)
class Description:
    """What a description holds."""

    missing: tuple[Missing, ...]
    claims: tuple[Claim, ...]
    unread: tuple[str, ...]
    """Lines of the section on claims that hold a number and were not understood."""
    excused: str | None = None
    """Why nothing is asked of this pull request."""

    @property
    def blocking(self) -> tuple[str, ...]:
        """The headings of the sections without which nothing is merged."""
        return tuple(missing.part.heading for missing in self.missing if missing.blocks)

    @property
    def blocks(self) -> bool:
        return bool(self.blocking)


def describe(
    body: str | None, policy: Template, changed: Sequence[str] | None = None, by_bot: bool = False
) -> Description:
    """Reads a description. `changed`: the files of the pull request; None where they are not known.

    Where no kernel is touched, or a bot wrote it, nothing is missing; claims are read all the same.
    """
    sections = split(body or "")
    claims, unread = read_claims(sections.get(Part.CLAIMS, ""))
    excused = None
    if by_bot:
        excused = "a bot opened it"
    elif changed is not None and not any(path.startswith(policy.kernel_paths) for path in changed):
        excused = "it touches no kernel"
    if excused is not None:
        return Description((), claims, (), excused)
    missing = tuple(
        Missing(part, "is empty" if part in sections else "is missing", _blocks(part, policy))
        for part in Part
        if _is_empty(part, sections.get(part, ""))
    )
    return Description(missing, claims, unread)


def _blocks(part: Part, policy: Template) -> bool:
    return part is Part.HYPOTHESIS and policy.block_empty_hypothesis


# Sections ------------------------------------------------------------------------------------------------------------


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"^ {0,3}#{1,6}(?=[\s*_\[A-Za-z])(.*)$")
_BOLD_LINE = re.compile(r"^\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:\*\*|__)(.+?)(?:\*\*|__)\s*:?\s*(.*)$")
_UNDERLINE = re.compile(r"^ {0,3}(?:=+|-{2,})\s*$")


def split(body: str) -> dict[Part, str]:
    """The text under each section's heading, without comments and what the bot wrote. A section that stands twice is
    joined."""
    text = _COMMENT.sub("", results_block.without(body[:MAX_BODY]).replace("\r\n", "\n").replace("\r", "\n"))
    found: dict[Part, list[str]] = {}
    current: list[str] = []
    for line, heading, rest in _lines(text):
        part = _part(heading) if heading is not None else None
        if part is not None:
            current = found.setdefault(part, [])
            current += [rest] if rest else []
        elif heading is not None and line.lstrip().startswith("#"):
            # Another heading ends the section; bold words inside it do not.
            current = []
        else:
            current.append(line)
    return {part: "\n".join(lines).strip() for part, lines in found.items()}


def _lines(text: str) -> Iterator[tuple[str, str | None, str]]:
    """Every line, with the heading that it is and what follows on the same line; nothing in a fence is a heading."""
    fence = ""
    lines = text.split("\n")
    for index, line in enumerate(lines):
        marks = _FENCE.match(line)
        if fence:
            fence = "" if marks and marks[1].startswith(fence) and not line.strip(" `~") else fence
            yield line, None, ""
        elif marks:
            fence = marks[1]
            yield line, None, ""
        elif found := _HEADING.match(line):
            # Stripped here: a pattern that does it takes hours over a line of spaces.
            yield line, found[1].strip().rstrip("#").rstrip(), ""
        elif bold := _BOLD_LINE.match(line):
            yield line, bold[1], bold[2]
        elif line.strip() and index + 1 < len(lines) and _UNDERLINE.match(lines[index + 1]):
            yield f"# {line}", line, ""
        elif not _UNDERLINE.match(line):
            yield line, None, ""


def _part(heading: str) -> Part | None:
    """The section that a heading names, by the first of its words that names one."""
    words = plain(heading).casefold()
    if len(words) > 80:
        return None
    found = [(match.start(), part.name, part) for part in Part if (match := re.search(part.pattern, words))]
    return min(found)[2] if found else None


def plain(markdown: str) -> str:
    """The words without links, images, emphasis, code marks and tags."""
    text = re.sub(r"!?\[([^\[\]]{0,500})\](?:\([^()]{0,2000}\)|\[[^\[\]]{0,200}\])?", r"\1", markdown)
    text = re.sub(r"<[^<>]{0,300}>", " ", text)
    text = re.sub(r"[*`~#]|(?<![A-Za-z0-9])_+|_+(?![A-Za-z0-9])", "", text)
    return " ".join(text.replace("\u2212", "-").split())


_FILLER = re.compile(
    r"(?:before|after|todo|tbd|n/?a|none|nothing|no|-|\.\.|…|x|\?|to be filled(?: in)?|_no response_|no response)"
    r"[\s:.!]*",
    re.IGNORECASE,
)
_BOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s*\[([ xX])\]")
_BULLET = re.compile(r"^\s*(?:[-*+>]|\d+[.)])\s+")


def _is_empty(part: Part, text: str) -> bool:
    lines = [line for line in text.split("\n") if line.strip()]
    boxes = [box for line in lines if (box := _BOX.match(line))]
    if part is Part.CORRECTNESS and boxes:
        return not any(box[1] in "xX" for box in boxes)
    texts = [plain(_BULLET.sub("", line)) for line in lines]
    if part is Part.CLAIMS:
        # "none" is an answer here.
        return not any(texts)
    return not any(words and not _FILLER.fullmatch(words) for words in texts)


# Claims --------------------------------------------------------------------------------------------------------------


_NUMBER = r"(?P<sign>[+-]?)\s*(?P<number>\d{1,4}(?:[.,]\d{1,4})?)\s*"
_PERCENT = re.compile(_NUMBER + r"(?:%|percent\b|per cent\b)", re.IGNORECASE)
_RANGE = re.compile(r"\b(\d{1,3}(?:\.\d{1,3})?)\s*%?\s*(?:-|–|to)\s*(\d{1,3}(?:\.\d{1,3})?)\s*%")
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
        words = plain(_BOX.sub("", _BULLET.sub("", line)))
        if not words or _FILLER.fullmatch(words) or set(words) <= set("|:- "):
            continue
        claim = _claim(words)
        if claim is not None and len(claims) < MAX_CLAIMS:
            claims.append(claim)
        elif _PERCENT.search(words) or _FACTOR.search(words) or claim is not None:
            unread.append(visible(words, 200))
    return tuple(claims), tuple(unread[:MAX_CLAIMS])


def _claim(words: str) -> Claim | None:
    effect = _effect(words)
    if effect is None:
        return None
    found = _ID.search(words)
    case = found[0].rstrip(".-") if found else None
    return Claim(visible(words, 200), case, () if case else named_axes(words), *effect)


def _effect(line: str) -> tuple[Effect, float] | None:
    """The claimed effect and change of time in percent; None where the line says none that is clear."""
    # Of a range its smaller end is claimed.
    words = _RANGE.sub(lambda found: f"{min(found[1], found[2], key=float)}%", line)
    percents = list(_PERCENT.finditer(words))
    factors = list(_FACTOR.finditer(words))
    faster, slower = bool(_FASTER.search(words)), bool(_SLOWER.search(words))
    if _SAME.search(words):
        return (Effect.SAME, 0.0)
    if len(percents) == 1 and not factors:
        size = _value(percents[0])
        signed = percents[0]["sign"]
        if faster != slower:
            change = -size if faster else size
        elif signed and not faster:
            # A sign alone is of the time, as in the bot's table: −10% is faster.
            change = -size if signed == "-" else size
        else:
            return None
        if change <= -100:
            return None
        return _sided(change)
    if len(factors) == 1 and not percents and not slower:
        factor = _value(factors[0])
        return _sided(100 / factor - 100) if factor > 0 else None
    return None


def _sided(change: float) -> tuple[Effect, float]:
    if change == 0:
        return Effect.SAME, 0.0
    return (Effect.FASTER if change < 0 else Effect.SLOWER), change


def _value(found: re.Match[str]) -> float:
    return float(found["number"].replace(",", "."))


def named_axes(words: str) -> tuple[tuple[str, str], ...]:
    """Every `axis=value`, and the dtype also where it stands alone."""
    chosen = {found["key"].casefold(): found["value"].casefold() for found in PARAM.finditer(words)}
    if "dtype" not in chosen and (dtype := _DTYPE.search(PARAM.sub("", words))):
        chosen["dtype"] = dtype[1].casefold()
    if "dtype" in chosen:
        chosen["dtype"] = dtypes.canonical(chosen["dtype"]) or chosen["dtype"]
    return tuple(sorted(chosen.items()))


# What the author reads -----------------------------------------------------------------------------------------------


def as_text(described: Description) -> str:
    """The review for a terminal; the job summary shows it as it is."""
    if described.excused:
        return f"This pull request needs no description: {described.excused}.\n"
    lines = list(_review(described))
    return "\n".join(lines) + "\n"


def _review(described: Description) -> Iterable[str]:
    if not described.missing:
        yield "The description is complete."
    for missing in sorted(described.missing, key=lambda one: not one.blocks):
        yield f"{'must be added' if missing.blocks else 'please add'}: {missing.sentence}"
    for claim in described.claims:
        yield f"claim read: {claim.text} ({_read(claim)})"
    for line in described.unread:
        yield f"claim not understood: {line}: write it as “case: 10% faster”, with one number a line."


def _read(claim: Claim) -> str:
    where = claim.case or " ".join(f"{key}={value}" for key, value in claim.params) or "every case that fits"
    if claim.effect is Effect.SAME:
        return f"{where}: no change"
    return f"{where}: time {claim.change_pct:+.3g}%"
