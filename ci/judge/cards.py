"""What a record says of its cards: which have one library on both sides, and whose own word judged them."""

from __future__ import annotations

from collections.abc import Collection

from kernelgate.bench.record import Build, CaseKey, Note, RunRecord, TimedCase, timed_cases

NO_CARD_ON_BASE = "no_card_on_base"
CARD_CHANGED = "card_changed"
HEAD_ALONE = "head_alone"
SAME_LIBRARY = "same_library"
NO_CASES = "no_cases"


def same_library(record: RunRecord) -> frozenset[str]:
    """The cards whose base and head are one library, called in one way: a comparison of them could show nothing.

    One library is of the same sources, or of others, such as with another comment, that compile to the same bytes.
    """
    sides = {(build.card, build.side): build for build in record.builds}
    return frozenset(
        card for (card, side), head in sides.items() if side == "head" and _are_one(sides.get((card, "base")), head)
    )


def _are_one(base: Build | None, head: Build) -> bool:
    if base is None or head.call_hash is None or base.call_hash != head.call_hash:
        return False
    pairs = ((base.key, head.key), (base.library_sha256, head.library_sha256))
    return any(was is not None and was == now for was, now in pairs)


def nothing_differs(record: RunRecord) -> bool:
    """Whether every card of the record has the same library on both sides."""
    return bool(known(record)) and known(record) == same_library(record)


def known(record: RunRecord) -> frozenset[str]:
    """Every card that the record names anywhere; "" for what names none."""
    builds, cases = (build.card for build in record.builds), (case.card for case in record.cases)
    return frozenset((*builds, *cases, *(card.name for card in record.cards)))


def called(record: RunRecord, key: CaseKey) -> str:
    """How a line names a case: CARD/ID where the record, or its plan, has several cards."""
    planned = {case.card for case in record.expected.cases} if record.expected else set()
    return f"{key.card}/{key.id}" if key.card and len((known(record) | planned) - {""}) > 1 else key.id


def compared(record: RunRecord) -> tuple[TimedCase, ...]:
    """The cases that a judgement is about: all but those that were rightly not timed, since their library is one."""
    same = same_library(record)
    return tuple(case for case in timed_cases(record) if case.processes or case.case.card not in same)


def of_head(record: RunRecord) -> frozenset[str]:
    """The cards that the head itself brought. What they say decides nothing: a change cannot be its own judge."""
    own = {card.name for card in record.cards if card.source == "head"}
    noted = {note.card or "" for note in notes(record, NO_CARD_ON_BASE)}
    if "" in noted:
        noted |= known(record) - {card.name for card in record.cards if card.source == "default branch"}
    return frozenset((own | noted) & known(record))


def notes(record: RunRecord, code: str) -> tuple[Note, ...]:
    return tuple(note for note in record.notes if note.code == code)


def without(record: RunRecord, left_out: Collection[str]) -> RunRecord:
    """The record as if these cards were not in it, as far as correctness and the compiler's facts go."""
    if not left_out:
        return record
    return record.model_copy(
        update={
            "builds": tuple(build for build in record.builds if build.card not in left_out),
            "checks": tuple(check for check in record.checks if check.card not in left_out),
            "cases": tuple(case for case in record.cases if case.card not in left_out),
            "processes": tuple(
                process.model_copy(
                    update={"timings": tuple(one for one in process.timings if one.card not in left_out)}
                )
                for process in record.processes
            ),
        }
    )
