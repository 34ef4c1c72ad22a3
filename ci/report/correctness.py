"""The words for correct and wrong results: of the fuzz list, and of the outputs of the timed calls."""

from __future__ import annotations

from kernelgate.bench.record import Check, FuzzResult, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import shell
from kernelgate.ci.document.model import Block, Code, Column, Line, Mark, Paragraph, Piece, Section, Table, Verbatim
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.outputs import fuzz_checks, fuzz_failures, wrong_outputs

MAX_FAILURES = 20
"""Failing cases listed; the record holds them all."""
MAX_COMMAND = 500
"""Characters of a command that is worth showing: a longer one cannot be meant for a person."""


def headline(record: RunRecord) -> Line:
    """The first line where a result is wrong: how many cases, and which kind."""
    failed = fuzz_failures(record)
    if failed:
        wrong_cards, named = {card for card, _ in failed}, titles(record)
        checks = [check for check in fuzz_checks(record) if check.card in wrong_cards]
        total = formatting.counted(sum(len(check.results) for check in checks), "fuzz case")
        of = f" of {named[failed[0][0]]}" if len(wrong_cards) == 1 and named.get(failed[0][0]) else ""
        return (f"Wrong result in {len(failed)} of {total}{of}",)
    wrong = wrong_outputs(record)
    if wrong:
        names = formatting.names(record.cases, record.cards)
        which = names[next(iter(wrong))] if len(wrong) == 1 else formatting.counted(len(wrong), "case")
        return ("Wrong result in timed calls of ", which)
    return ("Wrong result: the fuzz run failed",)


def titles(record: RunRecord) -> dict[str, str]:
    """What to call the cards of the record, where there are several."""
    return formatting.titles_of((*(case.card for case in record.cases), *_fuzzed(record)), record.cards)


def argument(record: RunRecord, card: str, id_: str) -> str:
    """How a command names a case: CARD/ID where the record has several cards."""
    return f"{card}/{id_}" if card and titles(record) else id_


def first_failure(record: RunRecord) -> Line:
    """ "First: S=513 …: error 0.41 at row 512. ", else how many timed calls were wrong and where; empty for neither."""
    for card, result in fuzz_failures(record):
        return ("First: ", *_case(record, card, result), ": ", _fault(result), ". ")
    wrong = wrong_outputs(record)
    for key, finding in wrong.items():
        if len(wrong) == 1:
            return (f"{finding.message[0].upper()}{finding.message[1:]}. ",)
        return ("First: ", formatting.names(record.cases, record.cards)[key], f": {finding.message}. ")
    return ()


def command(record: RunRecord) -> str | None:
    """Runs the first failure again; None where no fuzz case failed."""
    return next((repeat(record, *one) for one in fuzz_failures(record)), None)


def lines(record: RunRecord, beside_wrong: bool = False) -> tuple[Line, ...]:
    """What was checked of each card, a line each. A card with one library on both sides needs no check.

    `beside_wrong`: a result is wrong on this GPU or another, so nothing here is called correct.
    """
    checks = {check.card: check for check in fuzz_checks(record)}
    if cards.nothing_differs(record) and not checks:
        return ()
    named = titles(record)
    listed = dict.fromkeys([*checks, *(case.case.card for case in cards.compared(record))])
    if not named or "" in checks or not listed:
        known = [line(record, check, beside_wrong) for check in checks.values()]
        return tuple(known) or (line(record, None),)
    return tuple(of_card(named[card], line(record, checks.get(card), beside_wrong)) for card in listed)


def of_card(title: str, said: Line) -> Line:
    """The line with its card named, behind the mark, where there are several."""
    return (said[0], f" {title}:", *said[1:]) if title else said


def _fuzzed(record: RunRecord) -> tuple[str, ...]:
    return tuple(check.card for check in fuzz_checks(record))


def line(record: RunRecord, fuzz: Check | None, beside_wrong: bool = False) -> Line:
    """One line on correctness, for under the table."""
    if fuzz is None:
        return (Mark.UNKNOWN, f" correctness: {formatting.NOT_MEASURED}")
    if fuzz.status == "skipped":
        reason: Line = (", ", formatting.sentence(fuzz.reason)) if fuzz.reason else ()
        return (Mark.UNKNOWN, " correctness: not checked", *reason)
    passed = sum(result.passed for result in fuzz.results)
    total = formatting.counted(len(fuzz.results), "fuzz case")
    untried: Line = ("; ", formatting.sentence(fuzz.reason)) if fuzz.reason else ()
    if fuzz.status == "failed":
        return (Mark.WRONG, f" wrong: {len(fuzz.results) - passed} of {total} fail")
    ran, asked = len(fuzz.results), fuzz.asked or 0
    if not ran:
        return (Mark.UNKNOWN, " correctness: no fuzz case ran", *untried)
    if asked > ran:
        why: Line = (", ", formatting.sentence(fuzz.reason)) if fuzz.reason else ()
        return (Mark.UNKNOWN, f" correctness: only {ran} of {formatting.counted(asked, 'fuzz case')} ran", *why)
    if beside_wrong:
        return (Mark.NONE, f" {passed} of {total} passed")
    return (Mark.PASSED, f" correct: {passed} of {total}", *_nearest(record, fuzz), _unrepeatable(fuzz), *untried)


def beside_wrong(record: RunRecord) -> tuple[Line, ...]:
    """What stands under a wrong result: which cards passed, or that the fuzz list alone would not have shown it."""
    if record.fuzz is not None and record.fuzz.status == "passed":
        passed = formatting.counted(len(record.fuzz.results), "fuzz case")
        return ((Mark.SLIGHT, f" only timed calls were wrong: {passed} passed"),)
    failed = {card for card, _ in fuzz_failures(record)}
    if not failed:
        return ()
    return tuple(
        of_card(titles(record).get(check.card, ""), line(record, check, beside_wrong=True))
        for check in fuzz_checks(record)
        if check.card not in failed
    )


def section(record: RunRecord) -> Section | None:
    """The failing cases, where there are any."""
    failed = fuzz_failures(record)
    if not failed:
        return None
    columns = (Column("fuzz case"), Column("seed", numeric=True), Column("error"))
    shown = failed[:MAX_FAILURES]
    rows = tuple((_case(record, card, result), (str(result.seed),), (_fault(result),)) for card, result in shown)
    repeats = tuple(command for one in shown if len(command := repeat(record, *one)) <= MAX_COMMAND)
    blocks: list[Block] = [Table(columns, rows), Verbatim(repeats)]
    if len(failed) > MAX_FAILURES:
        blocks.append(Paragraph((f"{len(failed) - MAX_FAILURES} more are in the run record.",)))
    return Section(f"Failing fuzz cases ({len(failed)})", tuple(blocks), worth=90)


def repeat(record: RunRecord, card: str, result: FuzzResult) -> str:
    """The one command that runs a fuzz case again, or a smaller one that fails like it: made here, since a command in a
    record could be anybody's."""
    id_ = argument(record, card, result.smallest or result.id)
    return shell("kernelgate", "fuzz", "--seed", str(result.seed), "--case", id_)


def _case(record: RunRecord, card: str, result: FuzzResult) -> tuple[Piece, ...]:
    title = titles(record).get(card)
    return (*((f"{title}, ",) if title else ()), *label(record, card, result))


def label(record: RunRecord, card: str, result: FuzzResult) -> tuple[Piece, ...]:
    """A fuzz case by its axes, where they are plainly words; else its id."""
    every = [one.axes for check in fuzz_checks(record) if check.card == card for one in check.results]
    return (formatting.label(result.axes, formatting.switched(every)) or Code(result.id),)


def _fault(result: FuzzResult) -> str:
    """Why it failed, in the record's words, or else by its numbers."""
    if result.message:
        return formatting.sentence(result.message)
    if result.max_abs_error is None:
        return "the output holds NaN, Inf or an element that was never written"
    return f"error {formatting.significant(result.max_abs_error, 2)}{_of_limit(result.error_ratio)}"


def _nearest(record: RunRecord, fuzz: Check) -> Line:
    """ "; nearest to its limit: S=513 bf16 at 35% of it": of all results the one nearest to what its dtype allows."""
    measured = [result for result in fuzz.results if result.max_abs_error is not None]
    if not measured:
        return (", errors not measured",)
    worst = max(measured, key=lambda result: result.error_ratio or 0.0)
    again = repeat(record, fuzz.card, worst)
    shown: Line = (" · ", Code(again, most=MAX_COMMAND)) if len(again) <= MAX_COMMAND else ()
    if worst.error_ratio is None:
        largest = max(result.max_abs_error or 0.0 for result in measured)
        return (f", no error above {formatting.significant(largest, 2)}",)
    if worst.error_ratio == 0:
        return (", without any error",)
    name = label(record, fuzz.card, worst)
    return ("; nearest to its limit: ", *name, f" at {100 * worst.error_ratio:.0f}% of it", *shown)


def _unrepeatable(fuzz: Check) -> str:
    """Said where calls on the same inputs gave different bits, which no test of equality survives."""
    differs = any(result.repeatable is False for result in fuzz.results)
    return "; calls on the same inputs differ in their last bits" if differs else ""


def _of_limit(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return (
        f", {formatting.significant(ratio, 3)} times its limit" if ratio > 1 else f", {100 * ratio:.0f}% of its limit"
    )
