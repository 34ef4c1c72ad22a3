"""The words for right and wrong results: of the fuzz list, of outputs of timed calls, and of compute-sanitizer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from kernelgate.bench.record import CaseKey, Check, CheckFinding, FaultKind, FuzzResult, RunRecord
from kernelgate.bench.record.rates import percentile
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import shell
from kernelgate.ci.document.formatting import counted, sentence
from kernelgate.ci.document.model import Block, Bullets, Code, Line, Mark, Paragraph, Piece, Section, Verbatim, table
from kernelgate.ci.judge import cards, correctness
from kernelgate.ci.judge.correctness import fuzz_failures, shared, wrong_outputs
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.links import MAX_COMMAND, same_here

MAX_FAILURES = 20
DID: dict[FaultKind | None, str] = {"refused": "Refuses", "crashed": "Crashes in", "hung": "Hangs in"}


def headline(record: RunRecord, where: Line = ()) -> Line:
    """The first line where a result is wrong: how many cases, `where`, and which kind."""
    failed = fuzz_failures(record)
    if failed:
        wrong_cards, named = {card for card, _ in failed}, titles(record)
        every = [
            one for check in correctness.checks(record, "fuzz") if check.card in wrong_cards for one in check.results
        ]
        of = common = ""
        if len(wrong_cards) == 1:  # what its failing cases share, and none that passed
            of = f" of {named[failed[0][0]]}" if named.get(failed[0][0]) else ""
            common = _common([one for _, one in failed], [one for one in every if one.passed and not one.kind])
        said = f"{_did(result.kind for _, result in failed)} {len(failed)} of {counted(len(every), 'fuzz case')}{of}"
        return (said, *where, common)
    if wrong := wrong_outputs(record):
        names = formatting.names(record.cases, record.cards)
        which = names[next(iter(wrong))] if len(wrong) == 1 else counted(len(wrong), "case")
        return (f"{_did(one.kind for one in wrong.values())} timed calls of ", which, *where)
    return ("Wrong result", *where, ": the fuzz run failed")


def _common(failed: Sequence[FuzzResult], passed: Sequence[FuzzResult]) -> str:
    """What failing cases share, and no passed one: all of them, else those that are called in no other way."""
    plain = [one for one in failed if not _in_another_way(one)]
    for some, words in ((failed, "all"), (plain, f"{len(plain)} of them")):
        if common := shared([one.axes for one in some], [one.axes for one in passed]):
            return f", {words} with {common}"
    return ""


def _in_another_way(result: FuzzResult) -> bool:
    """Such as with inputs that have gaps between their rows."""
    return result.axes.get("way", "plain") != "plain"


def _did(kinds: Iterable[FaultKind | None]) -> str:
    return DID.get(only(kinds), "Wrong result in")


def only(kinds: Iterable[FaultKind | None]) -> FaultKind | None:
    found = set(kinds)
    return found.pop() if len(found) == 1 else None


def titles(record: RunRecord) -> dict[str, str]:
    named = cards.known(record) | {check.card for check in correctness.checks(record, "fuzz")}
    return formatting.titles_of(named, record.cards)


def _smallest(failed: Sequence[tuple[str, FuzzResult]]) -> tuple[str, FuzzResult] | None:
    """The failure that has the smallest case, a plain call before any other; None where no fuzz case failed."""

    def size(one: tuple[str, FuzzResult]) -> tuple[bool, float]:
        axes = one[1].smallest_axes or one[1].axes
        sizes = [value for value in axes.values() if not isinstance(value, bool | str)]
        return _in_another_way(one[1]), math.prod(sizes) if sizes else math.inf

    return min(failed, key=size, default=None)


def first_failure(record: RunRecord) -> Line:
    """ "Smallest: S=513 …: error 0.41 at row 512. ", else how many timed calls were wrong and where."""
    if found := _smallest(fuzz_failures(record)):
        card, result = found
        if result.smallest_axes:
            smaller = {"id": result.smallest, "axes": result.smallest_axes, "message": result.smallest_message}
            result = result.model_copy(update=smaller)
        said = f"{_beside_base(result)}{_too_strict(record, card)}"
        return ("Smallest: ", *_case(record, card, result), ": ", _fault(result), ". ", said)
    if not (wrong := wrong_outputs(record)):
        return ()
    key, finding = next(iter(wrong.items()))
    alike = "The base fails there, too. " if key in wrong_outputs(record, "base") else ""
    if len(wrong) == 1:
        return (f"{finding.message[0].upper()}{finding.message[1:]}. {alike}",)
    return ("First: ", formatting.names(record.cases, record.cards)[key], f": {finding.message}. {alike}")


def _beside_base(result: FuzzResult) -> str:
    """What the base did there, in a sentence; empty where that is not known."""
    if (base := result.base) is None:
        return ""
    if base.kind is None:
        return "The base is right there. "
    if base.kind == "refused" and result.kind != "refused":
        return f"The base refuses it: {base.message or 'by an error'}. "
    if base.kind == result.kind and result.timed:
        return "The base fails in the same way, but a timed shape must be right. "
    return "The base fails there, too, but in another way or by less. "


OFTEN = 0.2
"""Of a card's fuzz cases: where base and head are beyond the tolerance in more, the card may be what is wrong."""


def _too_strict(record: RunRecord, card: str) -> str:
    """A hint where base and head have errors beyond the tolerance alike in many cases; else empty."""
    results = [one for check in correctness.checks(record, "fuzz") if check.card == card for one in check.results]
    alike = [one.error_ratio for one in results if not one.passed and one.on_base and one.error_ratio]
    if len(alike) < OFTEN * len(results):
        return ""
    times = formatting.significant(percentile(alike, 50), 2)
    return (
        f"Base and head are both beyond the tolerance in {len(alike)} more, by {times} times at the median: "
        "do the card's oracle and tolerance fit? "
    )


def command(record: RunRecord) -> str | None:
    return _repeat(record, *found) if (found := _smallest(fuzz_failures(record))) else None


def lines(record: RunRecord, beside_wrong: bool) -> tuple[Line, ...]:
    """What was checked of each card. `beside_wrong`: a result is wrong on some GPU, so nothing is called correct."""
    checks = {check.card: check for check in correctness.checks(record, "fuzz")}
    if cards.nothing_differs(record) and not checks:
        return ()
    named = titles(record)
    listed = dict.fromkeys([*checks, *(case.case.card for case in cards.compared(record))])
    if not named or "" in checks:
        listed, named = dict.fromkeys(checks), {}
    return tuple(of_card(named.get(card, ""), line(record, checks.get(card), beside_wrong)) for card in listed or ("",))


def of_card(title: str, said: Line) -> Line:
    """The line with its card named, behind the mark, where there are several."""
    return (said[0], f" {title}:", *said[1:]) if title else said


def line(record: RunRecord, fuzz: Check | None, beside_wrong: bool = False) -> Line:
    if fuzz is None:
        return (Mark.UNKNOWN, f" correctness: {formatting.NOT_MEASURED}")
    why: Line = ("; ", sentence(fuzz.reason)) if fuzz.reason else ()
    if fuzz.status == "skipped":
        return (Mark.UNKNOWN, " correctness: not checked", *why)
    passed, ran, asked = sum(result.passed for result in fuzz.results), len(fuzz.results), fuzz.asked or 0
    total = counted(ran, "fuzz case")
    if fuzz.status == "failed":
        alike = sum(not result.passed and result.on_base for result in fuzz.results)
        beside = f"; {alike} more, which the base fails alike" if alike else ""
        return (Mark.WRONG, f" wrong: {ran - passed - alike} of {total} fail{beside}")
    if not ran or asked > ran:
        return (Mark.UNKNOWN, f" correctness: only {ran} of {counted(asked, 'fuzz case')} ran", *why)
    if beside_wrong:
        return (Mark.NONE, f" {passed} of {total} passed")
    if passed < ran:
        beside = f"the base does the same in the other {ran - passed}, which does not block"
        return (Mark.SLIGHT, f" correct in {passed} of {total}; {beside}", *why)
    # No test of equality survives calls that differ on the same inputs.
    differs = any(result.repeatable is False for result in fuzz.results)
    bits = "; calls on the same inputs differ in their last bits" if differs else ""
    refused = sum(result.kind == "refused" and result.base is not None for result in fuzz.results)
    bits += f"; {refused} refused by an error, as the base does" if refused else ""
    return (Mark.PASSED, f" correct: {passed} of {total}", *_nearest(record, fuzz), bits, *why)


def beside_wrong(record: RunRecord) -> tuple[Line, ...]:
    """What stands under a wrong result: how the cards without one did, of which nothing is called correct."""
    failed, named = {card for card, _ in fuzz_failures(record)}, titles(record)
    others = (check for check in correctness.checks(record, "fuzz") if check.card not in failed)
    return tuple(of_card(named.get(one.card, ""), line(record, one, beside_wrong=True)) for one in others)


def failures(record: RunRecord) -> Iterator[Section]:
    kinds = {"Failing fuzz cases": fuzz_failures(record)}
    kinds |= {"Fuzz cases that fail in the base, too": fuzz_failures(record, excused=True)}
    for title, failed in kinds.items():
        if not (smallest := _smallest(failed)):
            continue
        rows = ((_case(record, card, result), str(result.seed), _fault(result)) for card, result in failed)
        blocks: list[Block] = [table(("fuzz case", "#seed", "error"), islice(rows, MAX_FAILURES))]
        if len(failed) > MAX_FAILURES:
            blocks.append(Paragraph((f"{len(failed) - MAX_FAILURES} more are in the run record.",)))
        if len(again := _repeat(record, *smallest)) <= MAX_COMMAND:
            blocks += [Paragraph(("The smallest; without ", Code("--case"), " all run:")), Verbatim((again,))]
        yield Section(f"{title} ({len(failed)})", tuple(blocks), worth=90)


def _repeat(record: RunRecord, card: str, result: FuzzResult) -> str:
    """Runs a fuzz case again, or a smaller one that fails like it; a command in a record could be anybody's."""
    id_ = cards.called(record, CaseKey(card, result.smallest or result.id))
    return shell("kernelgate", "fuzz", "--seed", str(result.seed), "--case", id_, *same_here(record.run, "--ref"))


def _case(record: RunRecord, card: str, result: FuzzResult) -> Line:
    title = titles(record).get(card)
    return (*((f"{title}, ",) if title else ()), _label(record, card, result))


def _label(record: RunRecord, card: str, result: FuzzResult) -> Piece:
    """A fuzz case by its axes, where they are plainly words; else its id."""
    every = [one.axes for check in correctness.checks(record, "fuzz") if check.card == card for one in check.results]
    return formatting.label(result.axes, formatting.switched(every)) or Code(result.id)


def _fault(result: FuzzResult) -> str:
    """Why it failed, in the record's words, or else by its numbers."""
    if result.message:
        return sentence(result.message)
    if result.max_abs_error is None:
        return "the output holds NaN, Inf or an element that was never written"
    error, ratio = f"error {formatting.significant(result.max_abs_error, 2)}", result.error_ratio
    if ratio is None:
        return error
    times = f"{formatting.significant(ratio, 3)} times" if ratio > 1 else f"{100 * ratio:.0f}% of"
    return f"{error}, {times} its limit"


def _nearest(record: RunRecord, fuzz: Check) -> Line:
    """ "; nearest to its limit: S=513 bf16 at 35% of it": the result nearest to what its dtype allows."""
    worst = max(fuzz.results, key=lambda result: result.error_ratio or 0.0)
    if worst.error_ratio is None:
        return (", errors not measured",)
    if worst.error_ratio == 0:
        return (", without any error",)
    again = _repeat(record, fuzz.card, worst)
    shown: Line = (" · ", Code(again, most=MAX_COMMAND)) if len(again) <= MAX_COMMAND else ()
    share = f" at {100 * worst.error_ratio:.0f}% of it"
    return ("; nearest to its limit: ", _label(record, fuzz.card, worst), share, *shown)


# The fuzz list in short: how much of it passed, and how near errors come to the tolerance -----------------------------


def in_words(record: RunRecord, check: Check) -> Line:
    """ "pass rate 97.3%; errors as shares of the tolerance: median 12%, …"; nothing where nothing ran."""
    if not check.results:
        return ()
    # Rounded down, so that 100% is all of them.
    rate = f"{math.floor(1000 * sum(one.passed for one in check.results) / len(check.results)) / 10:g}%"
    known = [(result.error_ratio, result) for result in check.results if result.error_ratio is not None]
    if not known:
        return (f"pass rate {rate}; errors not measured",)
    shares, (largest, worst) = [share for share, _ in known], max(known, key=lambda one: one[0])
    some = f" (of {len(known)} that have one)" if len(known) < len(check.results) else ""
    where: Line = (" in ", _label(record, check.card, worst)) if largest else ()
    half, most = (_share(percentile(shares, share)) for share in (50, 90))
    spread = f"median {half}, 90th percentile {most}, worst {_share(largest)}"
    return (f"pass rate {rate}; errors as shares of the tolerance{some}: {spread}", *where)


def fuzzing(record: RunRecord) -> Section | None:
    checks = [check for check in correctness.checks(record, "fuzz") if check.results]
    if not checks:
        return None
    named = titles(record)
    lines = ((*((f"{named[one.card]}: ",) if one.card in named else ()), *in_words(record, one)) for one in checks)
    note = "An error is the largest of all elements of a case, in percent of what the tolerance allows there."
    passed = sum(result.passed for check in checks for result in check.results)
    total, asked = sum(len(check.results) for check in checks), sum(check.asked or 0 for check in checks)
    missing = f"; {asked} were asked for" if asked > total else ""
    title = f"Fuzzing: {passed} of {counted(total, 'case')} passed{missing}"
    return Section(title, (Bullets(tuple(lines)), Paragraph((note,))), worth=25)


def _share(ratio: float) -> str:
    """Of the tolerance: rounded up beyond it, so that what fails is never called 100%."""
    if ratio > 10:
        return f"{formatting.significant(ratio, 3)}×"
    return f"{math.ceil(100 * ratio)}%" if ratio > 1 else f"{formatting.significant(100 * ratio, 2)}%"


MAX_FINDINGS = 5


def sanitizer(record: RunRecord, gates: Gates) -> tuple[Line, ...]:
    """What was found in each card; nothing where it was not looked for, which the gate says where it matters."""
    named = titles(record)
    return tuple(
        of_card(named.get(check.card, ""), line)
        for check in correctness.checks(record, "sanitizer")
        for line in _sanitized(check, gates)
    )


def finding(one: CheckFinding) -> Line:
    """ "racecheck: Race reported at a write in `kernel` at `csrc/kernel.cu:12` (3 times)"."""
    return (
        f"{f'{one.tool}: ' if one.tool else ''}{sentence(one.text)}",
        *((" in ", Code(one.kernel)) if one.kernel else ()),
        *((" at ", Code(f"{one.file}:{one.line}")) if one.file and one.line else ()),
        f"{f' ({one.times} times)' if one.times > 1 else ''}{'; the base has it, too' if one.on_base else ''}",
    )


def _sanitized(check: Check, gates: Gates) -> Iterator[Line]:
    findings: Sequence[CheckFinding] = correctness.sanitizer_findings(check)
    for one in findings[:MAX_FINDINGS]:
        blocks = gates.sanitizer == "fail" and not one.on_base
        yield (Mark.WRONG if blocks else Mark.SLIGHT, " compute-sanitizer: ", *finding(one))
    if len(findings) > MAX_FINDINGS:
        more = counted(len(findings) - MAX_FINDINGS, "other finding")
        yield (Mark.SLIGHT, f" compute-sanitizer: {more}, in the run record")
    reason = sentence(check.reason) if check.reason else ""
    if not correctness.sanitized(check):
        did = f"only {check.run} of {check.asked} runs came to their end" if check.run and check.asked else "not run"
        yield (Mark.UNKNOWN, " compute-sanitizer: ", did, *((": ", reason) if reason else ()))
    elif not findings:
        where = f" in {counted(len(check.cases), 'case')}" if check.cases else ""
        did = f"{' and '.join(check.tools) or 'it'} found nothing{where}"
        yield (Mark.PASSED, f" compute-sanitizer: {did}", *(("; ", reason) if reason else ()))
