"""The words for right and wrong results: of the fuzz list, of outputs of timed calls, and of compute-sanitizer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from statistics import geometric_mean

from kernelgate.bench.record import CaseKey, Check, CheckFinding, FaultKind, FuzzResult, RunRecord
from kernelgate.bench.record.rates import percentile
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import shell
from kernelgate.ci.document.formatting import counted, sentence
from kernelgate.ci.document.model import Block, Code, Line, Mark, Paragraph, Piece, Section, Verbatim, table
from kernelgate.ci.judge import cards, correctness, reference
from kernelgate.ci.judge.correctness import fuzz_failures, shared, wrong_outputs
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report.gpu import GpuReport
from kernelgate.ci.report.links import same_here

MAX_FAILURES = 20
"""Failing cases listed; the record holds them all."""
MAX_COMMAND = 500
"""Characters of a command that is worth showing: a longer one cannot be meant for a person."""
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
    """What all of them are; None where they differ."""
    found = set(kinds)
    return found.pop() if len(found) == 1 else None


def titles(record: RunRecord) -> dict[str, str]:
    """What to call the cards of the record, where there are several."""
    named = cards.known(record) | {check.card for check in correctness.checks(record, "fuzz")}
    return formatting.titles_of(named, record.cards)


def _smallest(failed: Sequence[tuple[str, FuzzResult]]) -> tuple[str, FuzzResult] | None:
    """The failure that has the smallest case, or was made the smallest; None where no fuzz case failed. What fails in
    a plain call comes first: everybody calls it so."""

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
        return ("Smallest: ", *_case(record, card, result), ": ", _fault(result), ". ", _beside_base(result))
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
        return f"The base refuses it: {base.message}. " if base.message else "The base refuses it by an error. "
    if base.kind != result.kind:
        return "The base fails there, too, in another way. "
    if result.timed:
        return "The base fails in the same way, but a timed shape must be right. "
    return "The base is wrong there, too, but by less. "


def command(record: RunRecord) -> str | None:
    """Runs the smallest failure again; None where no fuzz case failed."""
    return _repeat(record, *found) if (found := _smallest(fuzz_failures(record))) else None


def lines(record: RunRecord, beside_wrong: bool = False) -> tuple[Line, ...]:
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
    """One line on correctness, for under the table."""
    if fuzz is None:
        return (Mark.UNKNOWN, f" correctness: {formatting.NOT_MEASURED}")
    reason = sentence(fuzz.reason) if fuzz.reason else ""
    why: Line = (", ", reason) if reason else ()
    if fuzz.status == "skipped":
        return (Mark.UNKNOWN, " correctness: not checked", *why)
    passed, ran, asked = sum(result.passed for result in fuzz.results), len(fuzz.results), fuzz.asked or 0
    total = counted(ran, "fuzz case")
    if fuzz.status == "failed":
        alike = sum(not result.passed and result.on_base for result in fuzz.results)
        beside = f"; {alike} more, which the base fails alike" if alike else ""
        return (Mark.WRONG, f" wrong: {ran - passed - alike} of {total} fail{beside}")
    untried: Line = ("; ", reason) if reason else ()
    if not ran:
        return (Mark.UNKNOWN, " correctness: no fuzz case ran", *untried)
    if asked > ran:
        return (Mark.UNKNOWN, f" correctness: only {ran} of {counted(asked, 'fuzz case')} ran", *why)
    if beside_wrong:
        return (Mark.NONE, f" {passed} of {total} passed")
    if passed < ran:
        others = "the other one, so that it does" if ran - passed == 1 else f"the other {ran - passed}, so that they do"
        beside = f"the base does the same in {others} not block"
        return (Mark.SLIGHT, f" correct in {passed} of {total}; {beside}", *untried)
    # No test of equality survives calls that differ on the same inputs.
    differs = any(result.repeatable is False for result in fuzz.results)
    bits = "; calls on the same inputs differ in their last bits" if differs else ""
    refused = sum(result.kind == "refused" and result.base is not None for result in fuzz.results)
    bits += f"; {refused} refused by an error, as the base does" if refused else ""
    return (Mark.PASSED, f" correct: {passed} of {total}", *_nearest(record, fuzz), bits, *untried)


def beside_wrong(record: RunRecord) -> tuple[Line, ...]:
    """What stands under a wrong result: which cards passed, or that the fuzz list alone would not have shown it."""
    if record.fuzz is not None and record.fuzz.status == "passed":
        results = record.fuzz.results
        passed = counted(len(results), "fuzz case")
        if alike := sum(not one.passed for one in results):
            return ((Mark.SLIGHT, f" {len(results) - alike} of {passed} passed; the base fails {alike} alike"),)
        kind = only(one.kind for one in wrong_outputs(record).values())
        did = kind if kind in ("crashed", "hung") else "were wrong"
        return ((Mark.SLIGHT, f" only timed calls {did}: {passed} passed"),)
    failed = {card for card, _ in fuzz_failures(record)}
    if not failed:
        return ()
    return tuple(
        of_card(titles(record).get(check.card, ""), line(record, check, beside_wrong=True))
        for check in correctness.checks(record, "fuzz")
        if check.card not in failed
    )


def failures(record: RunRecord) -> Iterator[Section]:
    """What fails and blocks; then what does not, since it fails in the base, too."""
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
            others = ("; without ", Code("--case"), " all run, and each that fails gets its command")
            blocks += [Paragraph(("The smallest", *(others if len(failed) > 1 else ()), ":")), Verbatim((again,))]
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
    """ "; nearest to its limit: S=513 bf16 at 35% of it": of all results the one nearest to what its dtype allows."""
    measured = [result for result in fuzz.results if result.max_abs_error is not None]
    if not measured:
        return (", errors not measured",)
    worst = max(measured, key=lambda result: result.error_ratio or 0.0)
    if worst.error_ratio is None:
        largest = max(result.max_abs_error or 0.0 for result in measured)
        return (f", no error above {formatting.significant(largest, 2)}",)
    if worst.error_ratio == 0:
        return (", without any error",)
    again = _repeat(record, fuzz.card, worst)
    shown: Line = (" · ", Code(again, most=MAX_COMMAND)) if len(again) <= MAX_COMMAND else ()
    share = f" at {100 * worst.error_ratio:.0f}% of it"
    return ("; nearest to its limit: ", _label(record, fuzz.card, worst), share, *shown)


# The fuzz list in short: how near errors come to the tolerance, and how fast the kernel is ----------------------------


def error_shares(check: Check) -> tuple[tuple[str, str, str], FuzzResult] | None:
    """Median, 90th percentile and worst error as shares of what its dtype's tolerance allows, and which result has the
    worst; None where no error was measured, as of what crashed or holds NaN."""
    known = [(result.error_ratio, result) for result in check.results if result.error_ratio is not None]
    if not known:
        return None
    shares, (largest, worst) = [share for share, _ in known], max(known, key=lambda one: one[0])
    return (_share(percentile(shares, 50)), _share(percentile(shares, 90)), _share(largest)), worst


def pass_rate(check: Check) -> str:
    """Rounded down, so that 100% is all of them."""
    return f"{math.floor(1000 * sum(one.passed for one in check.results) / len(check.results)) / 10:g}%"


def in_words(record: RunRecord, check: Check) -> Line:
    """ "pass rate 97.3%; errors in % of the tolerance: median 12%, …"; nothing where nothing ran."""
    if not check.results:
        return ()
    found = error_shares(check)
    if found is None:
        return (f"pass rate {pass_rate(check)}; errors not measured",)
    (half, most, largest), worst = found
    count = sum(result.error_ratio is not None for result in check.results)
    some = f" (of {count} that have one)" if count < len(check.results) else ""
    where: Line = (" in ", Code(worst.id), " (", _label(record, check.card, worst), ")") if worst.error_ratio else ()
    spread = f"median {half}, 90th percentile {most}, worst "
    return (f"pass rate {pass_rate(check)}; error in % of the tolerance{some}: {spread}", largest, *where)


def fuzzing(gpu: GpuReport) -> Section | None:
    """Folded: a row for each card, with the speed of its cases that were timed beside the reference."""
    checks = [check for check in correctness.checks(gpu.record, "fuzz") if check.results]
    if not checks:
        return None
    named, speeds = titles(gpu.record), _speeds(gpu)
    beside = f"× {formatting.reference(gpu.record.cards)}"
    figures = ("#passed", "#rate", "#median error", "#90th percentile", "#worst", "worst in")
    titles_ = (*(("kernel",) if named else ()), *figures, *((f"#{beside}",) if speeds else ()))
    rows = (
        (
            *((named.get(check.card, check.card),) if named else ()),
            *_figures(gpu.record, check),
            *((speeds.get(check.card, formatting.MISSING),) if speeds else ()),
        )
        for check in checks
    )
    note = "An error is the largest of all elements of a case, in percent of what the tolerance allows there."
    if speeds:
        note += f" “{beside}” is the geometric mean of the timed cases, which are not the fuzzed ones, and its range."
    passed = sum(result.passed for check in checks for result in check.results)
    total, asked = sum(len(check.results) for check in checks), sum(check.asked or 0 for check in checks)
    missing = f"; {asked} were asked for" if asked > total else ""
    title = f"Fuzzing: {passed} of {counted(total, 'case')} passed{missing}"
    return Section(title, (table(titles_, rows), Paragraph((note,))), worth=25)


def _figures(record: RunRecord, check: Check) -> tuple[Piece | Line, ...]:
    """An exact kernel has no worst case."""
    passed, found = sum(result.passed for result in check.results), error_shares(check)
    counts = (f"{passed} of {len(check.results)}", pass_rate(check))
    if found is None:
        return (*counts, *((formatting.MISSING,) * 4))
    shares, worst = found
    return (*counts, *shares, _label(record, check.card, worst) if worst.error_ratio else formatting.MISSING)


def _speeds(gpu: GpuReport) -> dict[str, str]:
    """By card, such as "1.00 (0.50 to 2.00)": the geometric mean of the timed cases beside the reference, and range."""
    ratios: defaultdict[str, list[float]] = defaultdict(list)
    for one in gpu.cases:
        if (ratio := reference.times(one.case)) is not None:
            ratios[one.case.card].append(ratio)
    ranges = {card: f" ({min(all_):.2f} to {max(all_):.2f})" if len(all_) > 1 else "" for card, all_ in ratios.items()}
    return {card: f"{geometric_mean(all_):.2f}{ranges[card]}" for card, all_ in ratios.items()}


def _share(ratio: float) -> str:
    """Of the tolerance: rounded up beyond it, so that what fails is never called 100%."""
    if ratio > 10:
        return f"{formatting.significant(ratio, 3)}×"
    return f"{math.ceil(100 * ratio)}%" if ratio > 1 else f"{formatting.significant(100 * ratio, 2)}%"


MAX_FINDINGS = 5
"""Lines of one card; the record holds more."""


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
