"""Which cases of a record a claim is about: by id, by axes, by the card's name, as people write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernelgate.bench.core import dtypes
from kernelgate.bench.record import Axes, Case, CaseKey, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.github.description import PARAM, Claim, named_axes

MAX_NAME = formatting.MAX_LABEL
"""Characters of a card or axis that is looked for in a text; one letter alone is too common a word."""


@dataclass(frozen=True)
class ClaimedCases:
    """What a claim is about; none of `cases` where it names axes that there are not."""

    cases: frozenset[CaseKey]
    strange: tuple[str, ...] = ()
    """Axes of the claim that no case has, …"""
    known: tuple[str, ...] = ()
    """… and all that there are."""


@dataclass(frozen=True)
class Vocabulary:
    """What a claim may name of one card, in lower case."""

    card: str
    titles: frozenset[str]
    """What people call the card."""
    axes: Mapping[str, str]
    """Each axis as the card writes it."""
    switches: frozenset[str]
    """The axes that are true or false; a case that leaves one out means false."""


def cases_of(claim: Claim, record: RunRecord) -> ClaimedCases:
    """By the id where the claim has one, else every case that fits all axes and cards that it names."""
    cards = tuple(_vocabularies(record))
    if claim.case is not None and not _is_word(claim.case, record, cards):
        return ClaimedCases(frozenset(case.key for case in record.cases if claim.case.casefold() in _ids(case)))
    params = dict(claim.params if claim.case is None else named_axes(claim.text))
    strange = tuple(axis for axis in params if not any(axis in one.axes for one in cards))
    if strange:
        known = tuple(dict.fromkeys(written for one in cards for written in one.axes.values()))
        return ClaimedCases(frozenset(), strange, known)
    asked = params | _bare_switches(claim.text, cards, params)
    switches = {one.card: one.switches for one in _meant(claim.text, cards)}
    fitting = (case for case in record.cases if case.card in switches and _fits(case.axes, asked, switches[case.card]))
    return ClaimedCases(frozenset(case.key for case in fitting))


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


def _ids(case: Case) -> tuple[str, str]:
    return case.id.casefold(), f"{case.card}/{case.id}".casefold()


def _is_word(text: str, record: RunRecord, cards: Sequence[Vocabulary]) -> bool:
    """Whether what looks like an id is the name of a card or of a switch, such as rms_norm."""
    if any(text.casefold() in _ids(case) for case in record.cases):
        return False
    return any(text.casefold() in one.titles | one.switches for one in cards)


def _meant(text: str, cards: Sequence[Vocabulary]) -> Sequence[Vocabulary]:
    """The cards that a claim names by what they are called; all where it names none."""
    titles = sorted({(title, one.card) for one in cards for title in one.titles}, key=lambda one: -len(one[0]))
    prose, meant = text.casefold(), set()
    for title, card in titles:
        # The longest first, and each once: "norm" is no part of "rms norm".
        pattern = rf"(?<!\w){re.escape(title)}(?!\w)"
        if re.search(pattern, prose):
            prose = re.sub(pattern, " ", prose)
            meant.add(card)
    return [one for one in cards if one.card in meant] or cards


def _bare_switches(text: str, cards: Sequence[Vocabulary], params: Mapping[str, str]) -> dict[str, str]:
    """The switches that stand in the text by themselves: "transposed", "non-transposed", "without bias"."""
    prose, found = PARAM.sub(" ", text), {}
    for axis in frozenset().union(*(one.switches for one in cards)) - params.keys():
        pattern = rf"(?<![\w-])(?P<off>non-?\s?|not?\s|without\s)?{re.escape(axis)}(?!\w)"
        if 1 < len(axis) <= MAX_NAME and (match := re.search(pattern, prose, re.IGNORECASE)):
            found[axis] = "false" if match["off"] else "true"
    return found


def _fits(axes: Axes, asked: Mapping[str, str], switches: frozenset[str]) -> bool:
    has = {axis.casefold(): value for axis, value in axes.items()}
    return all(_is(has.get(axis), value, axis in switches) for axis, value in asked.items())


_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _is(value: bool | float | str | None, claimed: str, switch: bool) -> bool:
    if switch:
        return _TRUTH.get(claimed) is bool(value)
    if value is None or isinstance(value, str):
        return value is not None and _word(value) == _word(claimed)
    try:
        return float(claimed) == value
    except ValueError:
        return False


def _word(text: str) -> str:
    return dtypes.canonical(text) or text.casefold()
