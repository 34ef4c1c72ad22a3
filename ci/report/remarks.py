"""What must be known before the table is read: what somebody accepted, which cards were not compared and whose card
judged them, and what limits precision; and what compilers warn of, folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kernelgate.bench.record import CaseKey, CompilerWarning, Note, RunRecord, TimedProcess, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.model import Bullets, Code, Line, Mark, Paragraph, Piece, Section
from kernelgate.ci.judge import cards, static
from kernelgate.ci.judge.case import Outcome, RecordVerdict, Status
from kernelgate.ci.judge.gate import Decision
from kernelgate.ci.report.gpu import GpuReport

MAX_NAMED = 5


def accepted(gpus: Sequence[GpuReport], decision: Decision) -> tuple[Line, ...]:
    """A line for each person and reason, and one for what nobody accepted."""
    names: dict[CaseKey, Piece] = {}
    for gpu in gpus:
        names |= formatting.names(gpu.record.cases, gpu.record.cards)
    everywhere = " on every GPU" if len(gpus) > 1 else ""
    lines: list[Line] = []
    for by, reason in dict.fromkeys((one.by, one.reason) for one in decision.accepted):
        cases = [one.case for one in decision.accepted if (one.by, one.reason) == (by, reason)]
        who: Line = (Mark.SLIGHT, " Accepted by ", Code(f"@{by}"), f"{everywhere}, until the next push: ")
        lines.append((*who, *listed(cases, names), ". Reason: ", visible(reason)))
    left = list(dict.fromkeys(one.case for one in decision.regressions if not one.accepted))
    if lines and left:
        lines.append((Mark.SLOWER, " Not accepted, so this blocks: ", *listed(left, names)))
    return tuple(lines)


def listed(cases: Iterable[CaseKey], names: Mapping[CaseKey, Piece]) -> Line:
    """ "`a`, `b` and 3 more": each as the table has it, else as people write it in a command."""

    def named(case: CaseKey) -> Line:
        if case.id:
            return (names.get(case) or Code(f"{case.card}/{case.id}" if case.card else case.id),)
        return ("all cases together", *((" of ", Code(case.card)) if case.card else ()))

    every = list(cases)
    line = formatting.separated(map(named, every[:MAX_NAMED]))
    return (*line, f" and {len(every) - MAX_NAMED} more") if len(every) > MAX_NAMED else line


def of_cards(record: RunRecord, verdict: RecordVerdict | None) -> Iterator[Line]:
    """Which cards were not compared and why, and whose own card judged them: in the order in which readers need it."""
    if both := cards.pythons(record):
        # Such as "torch 2.13.0 → 2.14.0", of all that differs.
        versions = [(name, *(getattr(one, name) for one in both)) for name in ("python", "torch", "cuda", "triton")]
        found = [f"{name} {old or 'none'} → {new or 'none'}" for name, old, new in versions if old != new]
        changed = visible(", ".join(found) or "with the same versions of all that is known of them")
        yield (Mark.NONE, " Base and head ran in two environments: ", changed, ".")
    timed = {case.case.card for case in cards.compared(record) if case.processes}
    if timed:  # where nothing at all was compared, the first line of the report says it
        noted = {note.card for note in cards.notes(record, cards.SAME_CODE)}
        same = sorted(_name(record, card) for card in cards.same_library(record) - timed - noted)
        if same:
            words = "base and head are the same library, not measured."
            yield (Mark.NONE, f" {', '.join(same)}: {words}")
    for note in (*cards.notes(record, cards.CARD_GONE), *cards.notes(record, cards.MEASURED_BEFORE)):
        mark = Mark.SLIGHT if note.code == cards.CARD_GONE else Mark.NONE
        yield (mark, f" {formatting.sentence(visible(note.text))}.")
    for note in (*cards.notes(record, cards.SAME_CODE), *cards.notes(record, cards.HOST_CHANGED)):
        yield (Mark.NONE, _of(record, note.card or "", f"{visible(note.text)}."))
    libraries = {(build.card, build.side): build.library_sha256 for build in record.builds if build.library_sha256}
    for card, side in sorted(libraries):
        if side == "head" and card in timed and not both and libraries[card, side] == libraries.get((card, "base")):
            words = "base and head compile to the same library, which was timed against itself."
            yield (Mark.SAME, _of(record, card, words))
    yield from _alone(record, verdict)
    yield from _own_card(record)
    for note in cards.notes(record, cards.CARD_CHANGED):
        named = _name(record, note.card or "")
        what = f"the card of {named}" if named else "a card"
        words = "it was measured by the card of the default branch; the new one counts after the merge."
        yield (Mark.NONE, f" This pull request changes {what}: {words}")


def said(record: RunRecord) -> frozenset[Note]:
    """The notes that `of_cards` puts into words of its own."""
    codes = {cards.NO_CARD_ON_BASE, cards.CARD_CHANGED, cards.HEAD_ALONE, cards.SAME_CODE, cards.HOST_CHANGED}
    codes |= {cards.MEASURED_BEFORE, cards.CARD_GONE, *((cards.SAME_LIBRARY,) if cards.same_library(record) else ())}
    return frozenset(note for note in record.notes if note.code in codes)


def _alone(record: RunRecord, verdict: RecordVerdict | None) -> Iterator[Line]:
    lacking = {case.card for case in verdict.cases if case.status is Status.ALONE} if verdict else set()
    whys = [(note.card or "", formatting.sentence(note.text)) for note in cards.notes(record, cards.HEAD_ALONE)]
    noted = {card for card, _ in whys}
    if "" not in noted:
        whys += [(card, "the record has no times of a base") for card in sorted(lacking - noted)]
    for card, why in whys:
        named = _name(record, card)
        lacks = f"{named} has nothing to be compared with" if named else "There is nothing to compare with"
        yield (Mark.NONE, f" {lacks}: ", why, ".")


def _own_card(record: RunRecord) -> Iterator[Line]:
    own, noted = cards.of_head(record), {note.card for note in cards.notes(record, cards.NO_CARD_ON_BASE)}
    can_block = "nothing here can block" if own >= cards.known(record) else "nothing of it can block"
    for card in sorted(own):
        named = _name(record, card)
        of = f" of {named}" if named else ""
        subject = f"The default branch has no card{of} yet: it" if noted & {card, None} else named
        yield (Mark.NONE, f" {subject} was judged by the card of this pull request, so {can_block}.")


def _name(record: RunRecord, card: str) -> str:
    """What people call a card, also where a note leaves out the only one that there is."""
    known = sorted(cards.known(record) - {""})
    name = card or (known[0] if len(known) == 1 else "")
    return formatting.card_names(record.cards).get(name, name)


def _of(record: RunRecord, card: str, words: str) -> str:
    """The sentence behind the card's name, or by itself where no card has one."""
    named = _name(record, card)
    return f" {named}: {words}" if named else f" {words[0].upper()}{words[1:]}"


def precision(record: RunRecord) -> tuple[Line, ...]:
    roles = {process.role for case in timed_cases(record) for process in case.processes if has_both(process)}
    ways = ["base and head took turns in separate processes"] if "alternating" in roles else []
    ways += ["base and head were timed one after the other"] if "block" in roles else []
    if not ways:
        return ()
    return ((Mark.SLIGHT, f" Lower precision: {' or '.join(ways)}, not in interleaved rounds of one process."),)


def autotuned(record: RunRecord, verdict: RecordVerdict | None) -> Iterator[Line]:
    """A remark where @triton.autotune gives a case several speeds, and nothing is certain of it."""
    left = {case.key for case in verdict.cases if case.status.outcome is Outcome.INCONCLUSIVE} if verdict else set()
    names = formatting.names(record.cases, record.cards)
    for case in (one for one in timed_cases(record) if one.key in left):
        for side in ("head", "base"):
            each = [one.timing.autotuned[side].split("; ") for one in case.processes if side in one.timing.autotuned]
            for kernels in zip(*each, strict=False):
                if len(chosen := Counter(kernels)) > 1:
                    found = formatting.separated((Code(one), f" in {count}") for one, count in chosen.most_common())
                    pin = "each with a speed of its own. Pin one configuration to compare."
                    said = (f" of {len(kernels)} processes, {pin}",)
                    yield (Mark.SLIGHT, " ", names[case.key], f": the autotuner of {side} chose ", *found, *said)
                    return


def has_both(process: TimedProcess) -> bool:
    return {"base", "head"} <= process.samples_us.keys()


# What compilers warn of in the files that a pull request changes, and did not of the base -----------------------------

MAX_LISTED = 20


def compiler_warnings(gpus: Sequence[GpuReport]) -> tuple[CompilerWarning, ...]:
    """Of all GPUs, each once: mostly all measure one and the same build."""
    return tuple(dict.fromkeys(warning for warnings, _ in _new_warnings(gpus) for warning in warnings))


def compiler_warning_sections(gpus: Sequence[GpuReport]) -> tuple[Section, ...]:
    warnings = compiler_warnings(gpus)
    if not warnings:
        return ()
    lines: list[Line] = [
        (Code(f"{one.file}:{one.line}" if one.line else one.file, most=200), ": ", Code(one.text, most=300))
        for one in warnings[:MAX_LISTED]
    ]
    if len(warnings) > MAX_LISTED:
        lines.append((f"{len(warnings) - MAX_LISTED} more are in the run record.",))
    known = all(against_base for news, against_base in _new_warnings(gpus) if news)
    note = "The base does not have these." if known else "Whether the base has these, too, is not known."
    title = f"{'New compiler warnings' if known else 'Compiler warnings'} ({len(warnings)})"
    return (Section(title, (Bullets(tuple(lines)), Paragraph((note,))), worth=70),)


def _new_warnings(gpus: Sequence[GpuReport]) -> Iterator[tuple[tuple[CompilerWarning, ...], bool]]:
    return (news for gpu in gpus for news in static.new_warnings(gpu.record, gpu.changed))
