"""Holds a record against what the plan asked for: what is missing keeps a verdict open, what contradicts refuses it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import Final

from kernelgate.bench.record import (
    COMPARED,
    Calls,
    Case,
    Check,
    CheckKind,
    Expected,
    Role,
    RunRecord,
    TimedCase,
    TimedProcess,
    Timing,
    timed_cases,
)
from kernelgate.ci.document import formatting
from kernelgate.ci.document.formatting import counted, sentence, spread
from kernelgate.ci.document.model import Code, Line, Piece
from kernelgate.ci.judge import cards, correctness, validity, witness
from kernelgate.ci.policy.policy import Processes

SIDES = ("base", "head")
NO_WITNESS = "no_witness"
NO_REFERENCE, REFERENCE_FAILS = "no_reference", "reference_fails"
COMPARED_IN_PART = "compared_in_part"
LEAST_COMPARED: Final = 0.01
"""Of the calls of a case in a process. A quarter is compared, and where comparing takes long an eighth of that: the
fewest in any kept record are 2.6%."""
MAX_NAMED: Final = 3
"""Cases that a sentence names; of more it gives the number."""
SPARE_CASES: Final = 32
"""More than a plan has: a command may name some, and a change may bring cards of its own."""
REPLANNED: Line = ("the cards of the default branch changed between plan and report, so this must be measured again",)


@dataclass(frozen=True)
class Completeness:
    """Sentences for people; both empty where the record is what was asked for, or where nothing says what was."""

    missing: tuple[Line, ...] = ()
    by_machine: bool = False
    """No head causes what is missing: a tool or a reference that the machine lacks, or cards that changed."""
    contrary: tuple[Line, ...] = ()
    """The record is of something else than what was asked for, and proves nothing."""


def against_plan(record: RunRecord, label: str) -> Completeness:
    """`label`: of the GPU that was to be measured, or "". A record that does not say what was expected is complete; one
    that was planned by other cards has to be made again."""
    expected = record.expected
    if expected is None:
        return Completeness()
    contrary = tuple(_contradictions(record, expected, label))
    if None not in (record.run.plan_hash, expected.hash) and record.run.plan_hash != expected.hash:
        return Completeness((REPLANNED,), contrary=contrary)
    lacks = sorted(_missing(record, expected), key=itemgetter(0))
    # What the head itself brought decides nothing, so it may be there.
    asked, own = {case.key for case in expected.cases}, cards.of_head(record)
    if asked and (extra := [case for case in record.cases if case.key not in asked and case.card not in own]):
        contrary += (("it holds ", *_named(record, extra), ", which the plan did not ask for"),)
    by_machine = bool(lacks) and all(unable for unable, _ in lacks)
    return Completeness(tuple(line for _, line in lacks), by_machine, contrary)


MEANT = "if that is meant, an administrator merges past the check"
"""A card that is taken away can never be measured: what the author, and who merges, are told to do."""
SUPPLIES: Final = ("evidence", "correctness", "benchmark")


def supplied(record: RunRecord, as_planned: bool) -> frozenset[str]:
    """Which of `SUPPLIES` the record holds in full, for every card whose libraries differ. `as_planned`: else somebody
    asked for some of the cases."""
    same, expected = cards.same_library(record), record.expected or Expected()
    planned = expected.cases if expected.cases and as_planned else record.cases
    about = Expected(cards=record.cards, cases=planned, processes=expected.processes)
    timings = (timing for process in record.processes if process.role in COMPARED for timing in process.timings)
    timed = {(timing.card, side) for timing in timings for side in SIDES if timing.samples_us.get(side)}
    benchmark = not any(_untimed(record, about, same)) and (bool(timed) or cards.nothing_differs(record))
    fuzz = not any(_unchecked(record, about, "fuzz", same)) and not correctness.is_wrong(record)
    profiled = {(one.card, one.side) for one in record.profile if one.metrics}
    evidence = benchmark and (formatting.on_cpu(record.environment.device) or profiled >= timed)
    held = zip(SUPPLIES, (evidence, fuzz, benchmark), strict=True)
    return frozenset(part for part, is_held in held if is_held and record.run.ended in (None, "complete"))


def too_large(record: RunRecord, expected: Expected, rules: Processes) -> Line:
    """Why judging the record would take longer than any measurement of this plan; empty where it would not."""
    if len(record.cases) > len(expected.cases) + SPARE_CASES:
        planned = counted(len(expected.cases), "case")
        return (f"it has {len(record.cases)} cases; the plan has {planned}, and at most {SPARE_CASES} may be added",)
    for case in timed_cases(record):
        if (made := len(case.processes)) > rules.limit:
            return ("it has ", Code(case.id), f" in {made} processes; the policy has no more than {rules.limit}")
    return ()


Lack = tuple[bool, Line]
"""Whether the machine alone may be why, and what is missing."""


def _missing(record: RunRecord, expected: Expected) -> Iterator[Lack]:
    # Of the devices that timed something, or of the first where nothing was timed.
    known_devices = {one.id: one.device.compute_capability for one in record.environments}
    used = {known_devices.get(process.environment) for process in record.processes if process.timings}
    if expected.target is not None and None in (used or {record.environment.device.compute_capability}):
        unknown = "it is not known on which compute capability it was measured; the plan asked for "
        yield False, (unknown, Code(expected.target))
    # Cards of the plan that were judged by the head's own all the same.
    if own := sorted(cards.of_head(record) & {card.name for card in expected.cards if card.source != "head"}):
        yield False, (*_listed(own), f" {_were(own)} judged by the card of this pull request, not by that of the plan")
    known = cards.known(record)
    gone = sorted({case.card for case in expected.cases} - known) if known and "" not in known else []
    if gone:
        said = f", which the head may have deleted or renamed: {MEANT}"
        yield False, ("nothing was measured of the card ", *_listed(gone), said)
    exempt = cards.same_library(record) | {*own, *gone}
    yield from _untimed(record, expected, exempt)
    for kind in expected.checks:
        if kind == "witness":
            yield from _unwitnessed(record, expected, exempt)
        else:
            yield from _unchecked(record, expected, kind, exempt)
    checked = timed_cases(record, correctness.CHECKED)
    yield from _unverified(record, [case for case in checked if case.case.card not in exempt])
    yield from _without_reference(record, expected, exempt)
    if record.run.ended not in (None, "complete"):
        yield False, (f"the run ended early: {record.run.ended}",)


def _untimed(record: RunRecord, expected: Expected, exempt: Collection[str]) -> Iterator[Lack]:
    counts = {case.key: sum(bool(one.samples_us.get("head")) for one in case.processes) for case in timed_cases(record)}
    held = {case.key: counts.get(case.key, 0) for case in expected.cases}
    least = expected.processes or 1
    alike = cards.same_code(record)  # and what crashes or hangs, which is a finding of its own
    for side in ("base", "head"):
        alike |= {key for key, one in correctness.wrong_outputs(record, side).items() if one.kind != "wrong"}
    untimed = [one for one in expected.cases if not held[one.key] and one.card not in exempt and one.key not in alike]
    yield from _said(record, untimed, "not timed")
    short = [case for case in expected.cases if 0 < held[case.key] < least and case.key not in alike]
    yield from _said(record, short, f"timed in {spread(held[case.key] for case in short)} of {least} processes")


def _unchecked(record: RunRecord, expected: Expected, kind: CheckKind, exempt: Collection[str]) -> Iterator[Lack]:
    """The cards for which a check did not run to its end: the machine may have no compute-sanitizer."""
    made = {check.card: check for check in record.checks if check.kind == kind}
    asked = {card.name for card in expected.cards} | {case.card for case in expected.cases}
    by_words: dict[tuple[bool, str], list[str]] = {}
    for card in sorted(asked - set(exempt)):
        unable = kind == "sanitizer" and card in made and made[card].status == "skipped" and not made[card].run
        if why_not := _why_not(made.get(card)):
            by_words.setdefault((unable, why_not), []).append(card)
    for (unable, words), names in by_words.items():
        of: Line = () if len(names) == len(asked) else (" for ", *_listed(names))
        did, _, why = words.partition(": ")
        yield unable, (f"the {kind} check {did}", *of, *((": ", why) if why else ()))


def _why_not(check: Check | None) -> str:
    """What is to be said of a check that did not come to its end, as "did not run: the tool is missing"; else empty."""
    if check is None:
        return "did not run"
    sanitizer = check.kind == "sanitizer"
    whole = check.status == "passed" and len(check.results) >= max(check.asked or 0, 1)
    ended = correctness.sanitized(check) if sanitizer else whole or check.status == "failed"
    if ended:
        return ""
    ran = len(check.results) or (check.run or 0 if sanitizer else 0)
    did = f"ran only {ran} of {check.asked}" if ran and check.asked else "did not run"
    return f"{did}: {sentence(check.reason)}" if check.reason else did


def _unverified(record: RunRecord, timed: Sequence[TimedCase]) -> Iterator[Lack]:
    """The cases that some process timed without comparing outputs of what it timed, or next to none."""

    def with_share(below: float, roles: Collection[Role]) -> list[Case]:
        shares = ((case.case, one) for case in timed for one in case.processes if one.role in roles)
        return list({case.key: case for case, one in shares if _share(one.timing) <= below}.values())

    if silent := with_share(0.0, correctness.CHECKED):
        yield False, ("the outputs of ", *_named(record, silent), " were not compared in every process")
    if few := [case for case in with_share(LEAST_COMPARED, COMPARED) if case not in silent]:
        slow = ", and more are once the card's oracle takes less time" if cards.notes(record, COMPARED_IN_PART) else ""
        said = f" less than {100 * LEAST_COMPARED:g}% were compared: they are not verified{slow}"
        yield False, ("of the calls of ", *_named(record, few), said)


def _share(timing: Timing) -> float:
    calls = [timing.calls.get(side, Calls()) for side in SIDES if timing.samples_us.get(side)]
    return min(((one.compared or 0) / max(1, one.made or one.compared or 1) for one in calls), default=1.0)


def _contradictions(record: RunRecord, expected: Expected, label: str) -> Iterator[Line]:
    """Another GPU, and numbers of calls that exclude each other: no measurement gives them. The first is enough."""
    if label and expected.label not in (None, label):
        yield ("it was planned for the GPU ", Code(expected.label or ""), ", not for ", Code(label))
    capabilities = {one.device.compute_capability for one in record.environments} - {None}
    if expected.target is not None and capabilities - {expected.target}:
        measured = ", ".join(sorted(filter(None, capabilities)))
        yield ("it was measured on compute capability ", Code(measured), "; the plan asked for ", Code(expected.target))
    for case in timed_cases(record, correctness.CHECKED):
        for said in chain.from_iterable(map(_impossible, case.processes)):
            yield ("it contradicts itself: of ", Code(case.id), f" {said}")
            return


def _impossible(one: TimedProcess) -> Iterator[str]:
    timing, process, repeats = one.timing, one.process, one.timing.inner_repeats or 1
    if process.exit:
        yield f"a process ended with {process.exit}, and has times"
    for side in SIDES:
        times, starts = timing.samples_us.get(side, ()), timing.started_us.get(side, ())
        if times and process.loaded and side not in process.loaded:
            yield f"the {side} was timed in a process that had not loaded it"
        if process.wall_seconds is not None and sum(times) * repeats > process.wall_seconds * 1e6:
            yield f"calls of the {side} took longer than their process ran"
        ordered = all(earlier < later for earlier, later in pairwise(starts))
        if starts and not (ordered and starts[-1] - starts[0] >= sum(times[:-1]) * repeats):
            yield f"samples of the {side} began before the ones before them had ended"
    every_made = every_repeated = 0
    for side, calls in timing.calls.items():
        if (made := calls.made) is None:
            continue
        timed, compared = len(timing.samples_us.get(side, ())) * repeats, calls.compared or 0
        if made < timed:
            yield f"{timed} calls of the {side} were timed, and {made} were made"
        if made < compared:
            yield f"{compared} calls of the {side} were compared, and {made} were made"
        every_made, every_repeated = every_made + made, every_repeated + (calls.repeated or 0)
    if every_repeated >= max(1, every_made):
        yield "every call read inputs that an earlier one had read"


def _without_reference(record: RunRecord, expected: Expected, exempt: Collection[str]) -> Iterator[Lack]:
    """The cases whose card has a reference that was not timed: the machine's fault where a note says why. One that
    could not be is excused where no code of base or head had a part in that, or the device's limits are known."""
    referring = {card.name for card in expected.cards if card.reference is not None} - set(exempt)
    asked = {case.key for case in expected.cases if case.card in referring}
    lacking: dict[bool, list[Case]] = {}
    for case in timed_cases(record):
        sides = {side for process in case.processes for side, times in process.samples_us.items() if times}
        if case.key in asked and "head" in sides and "reference" not in sides:
            noted = bool(cards.notes(record, NO_REFERENCE, case.case.card))
            fails = cards.notes(record, REFERENCE_FAILS, case.case.card)
            failed = any(note.text.startswith(f"{case.case.id}: ") for note in fails)
            if not failed and not (noted and validity.floors_us(case.case, record.environment.device)):
                lacking.setdefault(noted, []).append(case.case)
    why_not = " was not timed, so how plausible the times are is not known"
    for noted, cases in lacking.items():
        yield noted, ("the reference of ", *_named(record, cases), why_not)


def _unwitnessed(record: RunRecord, expected: Expected, exempt: Collection[str]) -> Iterator[Lack]:
    seen, timed = witness.log_ratios(record), timed_cases(record)
    both = {one.key for one in timed if any(all(map(process.samples_us.get, SIDES)) for process in one.processes)}
    lacking: dict[str, list[Case]] = {}
    for case in expected.cases:
        if case.card not in exempt and case.key in both and case.key not in seen:
            why = next((note.text for note in cards.notes(record, NO_WITNESS, case.card)), "")
            lacking.setdefault(why, []).append(case)
    for why, unseen in lacking.items():
        yield from _said(record, unseen, f"not timed by the witness{f': {sentence(why)}' if why else ''}")


def _said(record: RunRecord, cases: Sequence[Case], what: str) -> Iterator[Lack]:
    """ "x, y were not timed"; nothing of no case."""
    if cases:
        yield False, (*_named(record, cases), f" {_were(cases)} {what}")


def _named(record: RunRecord, cases: Sequence[Case]) -> tuple[Piece, ...]:
    if len(cases) > MAX_NAMED:
        return (counted(len(cases), "case"),)
    return _listed([cards.called(record, case.key) for case in cases])


def _listed(names: Sequence[str]) -> tuple[Piece, ...]:
    return formatting.separated((Code(name),) for name in names)


def _were(several: Sequence[object]) -> str:
    return "was" if len(several) == 1 else "were"
