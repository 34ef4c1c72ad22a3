"""What must be said of a record's cards: which were not compared and why, and whose own card judged them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelgate.bench.record import Note, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Line, Mark
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.case import RecordVerdict, Status

NO_BASE = "the record has no times of a base"


def remarks(record: RunRecord, verdict: RecordVerdict | None) -> tuple[Line, ...]:
    """Each with its mark, in the order in which a reader needs them."""
    return (
        *_one_library(record),
        *_alone(record, verdict),
        *_own_card(record),
        *_changed_card(record),
    )


def said(record: RunRecord) -> frozenset[Note]:
    """The notes that `remarks` puts into words of its own."""
    codes = {cards.NO_CARD_ON_BASE, cards.CARD_CHANGED, cards.HEAD_ALONE}
    if cards.same_library(record):
        codes.add(cards.SAME_LIBRARY)
    return frozenset(note for note in record.notes if note.code in codes)


def _one_library(record: RunRecord) -> Iterator[Line]:
    """Cards of which base and head are one library: then no difference could be found."""
    timed = {case.case.card for case in cards.compared(record) if case.processes}
    # Where nothing at all was compared, the first line of the report says it.
    if timed:
        for card in sorted(cards.same_library(record) - timed):
            yield (Mark.NONE, _of(record, card, "base and head are the same library, not measured."))
    libraries = {(build.card, build.side): build.library_sha256 for build in record.builds if build.library_sha256}
    twins = sorted(card for card, side in libraries if side == "head" and _is_one(libraries, card) and card in timed)
    for card in twins:
        words = "base and head compile to the same library, which was timed against itself."
        yield (Mark.SAME, _of(record, card, words))


def _is_one(libraries: Mapping[tuple[str, str], str], card: str) -> bool:
    return libraries.get((card, "base")) == libraries.get((card, "head"))


def _alone(record: RunRecord, verdict: RecordVerdict | None) -> Iterator[Line]:
    """Cards of which the head alone was measured, and why."""
    lacking = {case.card for case in verdict.cases if case.status is Status.ALONE} if verdict else set()
    whys = [(note.card or "", formatting.sentence(note.text)) for note in cards.notes(record, cards.HEAD_ALONE)]
    noted = {card for card, _ in whys}
    if "" not in noted:
        whys += [(card, NO_BASE) for card in sorted(lacking - noted)]
    for card, why in whys:
        named = _name(record, card)
        lacks = f"{named} has nothing to be compared with" if named else "There is nothing to compare with"
        yield (Mark.NONE, f" {lacks}: ", why, ".")


def _own_card(record: RunRecord) -> Iterator[Line]:
    own, noted = cards.of_head(record), {note.card for note in cards.notes(record, cards.NO_CARD_ON_BASE)}
    can_block = "nothing here can block" if own >= cards.known(record) else "nothing of it can block"
    for card in sorted(own):
        named = _name(record, card)
        if noted & {card, None}:
            of = f" of {named}" if named else ""
            words = f"it was judged by the card of this pull request, so {can_block}."
            yield (Mark.NONE, f" The default branch has no card{of} yet: {words}")
        else:
            yield (Mark.NONE, f" {named} was judged by the card of this pull request, so {can_block}.")


def _changed_card(record: RunRecord) -> Iterator[Line]:
    for note in cards.notes(record, cards.CARD_CHANGED):
        named = _name(record, note.card or "")
        what = f"the card of {named}" if named else "a card"
        words = "it was measured by the card of the default branch; the new one counts after the merge."
        yield (Mark.NONE, f" This pull request changes {what}: {words}")


def _name(record: RunRecord, card: str) -> str:
    """What people call a card, also where a note leaves out the only one that there is."""
    known = sorted(cards.known(record) - {""})
    name = card or (known[0] if len(known) == 1 else "")
    return formatting.card_names(record.cards).get(name, name)


def _of(record: RunRecord, card: str, words: str) -> str:
    """The sentence behind the card's name, or by itself where no card has one."""
    named = _name(record, card)
    return f" {named}: {words}" if named else f" {words[0].upper()}{words[1:]}"
