"""Five questions to what a phone shows first of a comment, answered by meaning: another wording passes, another number,
side, consequence, cause or command does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import click

from kernelgate.ci.github import command
from tests import docs_code

Sure = Literal["certain", "likely", "unknown"]
Blocks = Literal["blocks", "held", "passes"]


class Amount(NamedTuple):
    """How much slower or faster, in percent; "same": no change, "unknown": nothing can be or is said of speed."""

    side: Literal["slower", "faster", "same", "unknown"]
    low: float = 0.0
    high: float = 0.0


def slower(percent: float) -> Amount:
    return Amount("slower", percent * 0.96 - 0.1, percent * 1.04 + 0.1)


def faster(percent: float) -> Amount:
    return Amount("faster", percent * 0.96 - 0.1, percent * 1.04 + 0.1)


SAME, UNKNOWN = Amount("same"), Amount("unknown")


@dataclass(frozen=True)
class Answers:
    """What is true of a situation."""

    much: tuple[Amount, ...]
    """Every side that must be told, each with the numbers that may be said of it."""
    sure: tuple[Sure, ...]
    """More than one where both are honest, such as of two processes."""
    why: str | tuple[str, ...]
    """Of a profiled change the words of its cause, of which what "Why" begins with has one; else what must be said
    anywhere, as a pattern. Empty where nothing is to be explained."""
    blocks: tuple[Blocks, ...]
    now: str
    """What the next step must match."""
    refuses: frozenset[str] = frozenset()
    """Commands that are refused here."""


def screen(comment: str, characters: int = 1100) -> str:
    """What stands above table and folded parts, as far as a phone's first screen reaches."""
    top = re.split(r"(?m)^\||<details|<!--|^> ", comment, maxsplit=1)[0]
    read = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", top).replace("**", "")
    return re.sub(r"\n{2,}", "\n", read.replace("\u2212", "-"))[:characters].strip()


# How much ------------------------------------------------------------------------------------------------------------

_NUMBER = r"(?P<n>\d[\d,]*(?:\.\d+)?)\s?(?P<unit>%|times|×)"
_BETWEEN = re.compile(r"between (?P<low>\d[\d,.]*)% and (?P<high>\d[\d,.]*)% (?P<side>slower|faster)")
_SIZES = (
    re.compile(rf"{_NUMBER}(?: as)? (?P<side>slower|faster)"),
    re.compile(rf"(?P<side>slower|faster)\b[^.;,%\n]{{0,60}}?\bby {_NUMBER}", re.IGNORECASE),
    re.compile(rf"(?P<side>slower|faster)\b[^.;%\n]{{0,40}}?\({_NUMBER}", re.IGNORECASE),
)
_NOTHING = re.compile(
    r"not (yet )?(judged|measured|compared|verified|known)|cannot (tell|be judged|judge)|no case was|nothing to compare"
    r"|wrong result|not compile|no interval|was not timed",
    re.IGNORECASE,
)


def amounts(text: str) -> list[Amount]:
    """Every size with its side that the text states, in whatever form."""
    found = [_amount(one["side"], one["low"], one["high"]) for one in _BETWEEN.finditer(text)]
    sizes = (one for pattern in _SIZES for one in pattern.finditer(_BETWEEN.sub("", text)))
    return [*found, *(_amount(one["side"], one["n"], one["n"], one["unit"] != "%") for one in sizes)]


def _amount(side: str, low: str, high: str, ratio: bool = False) -> Amount:
    bounds = (float(one.replace(",", "")) for one in (low, high))
    small, large = (100 * (one - 1) if ratio else one for one in bounds)
    return Amount("slower" if side.lower() == "slower" else "faster", small, large)


def how_much(text: str, truth: Answers) -> str:
    first, _, rest = text.partition("\n")
    told = [one for one in truth.much if one.side in ("slower", "faster")]
    said = amounts(first) or amounts(rest.partition("\n")[0])
    if told:
        for one in told:
            if not any(one.side == of.side and of.low <= one.high and one.low <= of.high for of in said):
                return f"{one.side} by {one.low:.1f} to {one.high:.1f}% is not said, but {said}"
        # A smaller one may stand beside it: of another case, or of all.
        wrong = [one for one in said if not any(one.side == of.side and one.low <= of.high for of in told)]
        return f"{wrong} is not so" if wrong else ""
    if amounts(first):
        return f"{amounts(first)} of what is {truth.much[0].side}"
    if SAME in truth.much and re.search(r"no change|same library|unchanged", first, re.IGNORECASE):
        return ""
    if UNKNOWN in truth.much and _NOTHING.search(text):
        return ""
    return f"it is not said that speed is {truth.much[0].side}"


# How sure ------------------------------------------------------------------------------------------------------------

_UNSURE = re.compile(
    r"cannot (tell|be judged|judge)|not (measured|judged|verified)|not your fault|nothing to compare", re.I
)
_LIKELY = re.compile(r"\b(very )?likely\b", re.IGNORECASE)
_CERTAIN = re.compile(
    r"\bsure:|\bcertain|would have been seen\.|lies within|wrong result|not compile|same library|accepted|blocked by"
    r"|\bfinds?\b",
    re.I,
)
_BOUNDS = re.compile(r"\d%? (to|and|–) -?\d|±\s?\d|below \d|change of \d|\[[-+]?\d", re.IGNORECASE)


def how_sure(text: str, truth: Answers) -> str:
    first = text.partition("\n")[0]
    asked = (
        *(("unknown", _UNSURE, first), ("likely", _LIKELY, first), ("certain", _CERTAIN, text)),
        *(("likely", _LIKELY, text), ("unknown", _UNSURE, text)),
    )
    said = next((level for level, words, where in asked if words.search(where)), None)
    if said not in truth.sure:
        return f"{said}, where {' or '.join(truth.sure)} is true"
    sized = said != "unknown" and any(one.side in ("slower", "faster") for one in truth.much)
    return "" if not sized or _BOUNDS.search(text) else "no interval and no smallest visible change"


# Why -----------------------------------------------------------------------------------------------------------------


def why(text: str, truth: Answers) -> str:
    if not truth.why:
        return ""
    if isinstance(truth.why, str):
        return "" if re.search(truth.why, text, re.IGNORECASE) else f"not said: {truth.why}"
    line = next((one for one in text.split("\n") if re.match(r"\W*why\b", one, re.IGNORECASE)), "")
    begins = f" {line.partition(': ')[2].partition(';')[0]}"
    return "" if any(words in begins for words in truth.why) else f"{truth.why} does not begin it, but{begins[:60]}"


# Does it block, and what now -----------------------------------------------------------------------------------------

_CONSEQUENCES: Mapping[Blocks, str] = {
    "held": r"\bheld\b|until it is measured|until (somebody|measured)|waits for",
    "passes": r"(does not|nothing) block|can merge",
    "blocks": r"\bblock(s|ed)\b",
}


def blocks(text: str, truth: Answers) -> str:
    first = text.partition("\n")[0].lower()
    said = next((consequence for consequence, words in _CONSEQUENCES.items() if re.search(words, first)), None)
    return "" if said in truth.blocks else f"{said}, where {' or '.join(truth.blocks)} is true"


_NEXT = re.compile(r"\W*(now|to unblock|next)\b", re.IGNORECASE)
SPAN = re.compile(r"`+ ?([^`]+?) ?`+")


def fault(written: str, refuses: Collection[str] = ()) -> str:
    """Why a command cannot be copied and run here; empty where it can."""
    if "…" in written or "..." in written:
        return f"`{written}` is not whole"
    if written.startswith("/"):
        parsed = command.parse(written)
        if parsed is None or parsed.fault:
            return f"`{written}` is no command: {parsed.fault if parsed else ''}"
        return f"`{written}` is refused here" if parsed.verb in refuses else ""
    try:
        docs_code.parsed(written)
    except (click.UsageError, AssertionError) as error:
        return f"`{written}`: {error}"
    return ""


def now(text: str, truth: Answers) -> str:
    line = next((one for one in text.split("\n") if _NEXT.match(one)), "")
    if not line:
        return "no next step"
    commands = [one for one in SPAN.findall(line) if re.match(r"/?kernelgate\b", one)]
    for written in commands:
        if found := fault(written, truth.refuses):
            return found
    return "" if re.search(truth.now, line, re.IGNORECASE) else f"not the next step: {truth.now}"


ASKED: Mapping[str, Callable[[str, Answers], str]] = {
    "how much": how_much,
    "how sure": how_sure,
    "why": why,
    "blocks": blocks,
    "now": now,
}


def ask(comment: str, truth: Answers) -> dict[str, str]:
    """The questions that a comment does not answer truly, each with the reason."""
    read = screen(comment)
    return {question: wrong for question, asked in ASKED.items() if (wrong := asked(read, truth))}
