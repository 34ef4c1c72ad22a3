"""What a record says of its cards: which have one library on both sides, and whose own word judged them."""

from __future__ import annotations

from collections.abc import Collection

from kernelgate.bench.record import Build, CaseKey, Environment, Note, Process, RunRecord, TimedCase, timed_cases

NO_CARD_ON_BASE = "no_card_on_base"
CARD_CHANGED = "card_changed"
CARD_GONE = "card_gone"
HEAD_ALONE = "head_alone"
SAME_LIBRARY = "same_library"
SAME_CODE = "same_machine_code"
HOST_CHANGED = "host_changed"
NO_CASES = "no_cases"
MEASURED_BEFORE = "measured_before"


def same_library(record: RunRecord) -> frozenset[str]:
    """The cards whose base and head are one library, called in one way."""

    def are_one(base: Build, head: Build) -> bool:
        if head.call_hash is None or base.call_hash != head.call_hash or base.python != head.python:
            return False
        pairs = ((base.key, head.key), (base.library_sha256, head.library_sha256))
        return head.same_call(base) or any(was is not None and was == now for was, now in pairs)

    return frozenset(card for card, (base, head) in _both(record).items() if are_one(base, head))


def same_code(record: RunRecord) -> frozenset[CaseKey]:
    """The cases, planned or held, whose calls launch the same machine code from the same host: they need no times."""
    sides = _both(record)
    every = {case.key for case in (*record.cases, *(record.expected.cases if record.expected else ()))}
    return frozenset(
        key for key in every if key.card in sides and sides[key.card][1].same_call(sides[key.card][0], key.id)
    )


def _both(record: RunRecord) -> dict[str, tuple[Build, Build]]:
    bases, heads = ({one.card: one for one in record.builds if one.side == side} for side in ("base", "head"))
    return {card: (bases[card], head) for card, head in heads.items() if card in bases}


def pythons(record: RunRecord) -> tuple[Environment, Environment] | None:
    """Where base and head ran, where that was not in one Python."""
    known = {one.interpreter: one for one in record.environments if one.interpreter}
    pairs = {(base.python, head.python) for base, head in _both(record).values() if base.python != head.python}
    ordered = sorted(pairs, key=str)
    return next(((known[old], known[new]) for old, new in ordered if old in known and new in known), None)


def nothing_differs(record: RunRecord) -> bool:
    """Whether every card of the record has the same library on both sides, or the same machine code in every case."""
    alike, every = same_code(record), {case.key for case in record.cases}
    same = same_library(record) | {key.card for key in alike} - {key.card for key in every - alike}
    return bool(known(record)) and known(record) == same


def known(record: RunRecord) -> frozenset[str]:
    """Every card that the record names anywhere; "" for what names none."""
    builds, cases = (build.card for build in record.builds), (case.card for case in record.cases)
    return frozenset((*builds, *cases, *(card.name for card in record.cards)))


def called(record: RunRecord, key: CaseKey) -> str:
    """How a line names a case: CARD/ID where the record, or its plan, has several cards."""
    planned = {case.card for case in record.expected.cases} if record.expected else set()
    return f"{key.card}/{key.id}" if key.card and len((known(record) | planned) - {""}) > 1 else key.id


def compared(record: RunRecord) -> tuple[TimedCase, ...]:
    """The cases that a judgement is about: all but those that were rightly not timed, since nothing of them differs."""
    same, alike = same_library(record), same_code(record)
    rightly = {case.key for case in record.cases if case.card in same or case.key in alike}
    return tuple(case for case in timed_cases(record) if case.processes or case.key not in rightly)


def of_head(record: RunRecord) -> frozenset[str]:
    """The cards that the head itself brought: a change cannot be its own judge."""
    own = {card.name for card in record.cards if card.source == "head"}
    noted = {note.card or "" for note in notes(record, NO_CARD_ON_BASE)}
    if "" in noted:
        noted |= known(record) - {card.name for card in record.cards if card.source == "default branch"}
    return frozenset((own | noted) & known(record))


def notes(record: RunRecord, code: str, card: str | None = None) -> tuple[Note, ...]:
    """Those of this kind; of a `card`, those that are about it or about all."""
    return tuple(note for note in record.notes if note.code == code and (card is None or note.card in (None, card)))


def without(record: RunRecord, left_out: Collection[str]) -> RunRecord:
    """The record as if these cards were not in it, as far as correctness and the compiler's facts go."""

    def kept(of: RunRecord | Process, *parts: str) -> dict[str, object]:
        return {part: tuple(one for one in getattr(of, part) if one.card not in left_out) for part in parts}

    processes = tuple(one.model_copy(update=kept(one, "timings")) for one in record.processes)
    return record.model_copy(update={**kept(record, "builds", "checks", "cases"), "processes": processes})
