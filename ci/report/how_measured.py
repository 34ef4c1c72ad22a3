"""How a record was measured, as far as a reader must know it: a line for each thing that was not as usual."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kernelgate.bench.record import Note, RunRecord, Timing
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Line
from kernelgate.ci.judge import cards
from kernelgate.ci.judge.outputs import CHECKED
from kernelgate.ci.report import card_remarks

FEWER_INPUTS = "fewer_inputs"
VERIFIED_IN_PROCESS = "verified_in_process"
PAUSED = "paused"
OF_ITS_OWN = Note.model_fields["code"].default
"""The code of notes that have none, and are not alike."""
MAX_ALIKE = 3
"""Notes of one code that are listed; of more the first stands for all."""


def lines(record: RunRecord) -> tuple[Line, ...]:
    """What stands in several notes, or in the timings, in one line of its own words; every other note as it is."""
    own = {FEWER_INPUTS: _repeated(record), VERIFIED_IN_PROCESS: _in_process(record), PAUSED: _paused(record)}
    spoken = card_remarks.said(record)
    rest = [note for note in record.notes if note not in spoken and not own.get(note.code)]
    return (*((text,) for text in own.values() if text), *((text,) for text in _few(rest)))


def _few(notes: Sequence[Note]) -> Iterator[str]:
    """The texts; of many with one code the first, and how many there are."""
    counts = Counter(note.code for note in notes if note.code != OF_ITS_OWN)
    many = {code for code, count in counts.items() if count > MAX_ALIKE}
    alike = {code: [note.text for note in notes if note.code == code] for code in many}
    for note in notes:
        if note.code not in many:
            yield note.text
        elif texts := alike.pop(note.code, None):
            yield f"{texts[0]} (and {len(texts) - 1} more such notes in the record)"


def _repeated(record: RunRecord) -> str:
    calls = [calls for timing in _timings(record) for side, calls in timing.calls.items() if side in ("base", "head")]
    repeated, made = (sum(getattr(one, name) or 0 for one in calls) for name in ("repeated", "made"))
    if not repeated:
        return ""
    share = f"{repeated:,} of {made:,} calls" if made >= repeated else f"{repeated:,} calls"
    return f"{share} read inputs that an earlier call had read: there, a kept result would have been right."


def _in_process(record: RunRecord) -> str:
    found = cards.notes(record, VERIFIED_IN_PROCESS)
    if not found:
        return ""
    why = formatting.sentence(found[0].text)
    return f"Outputs were compared in the measured process, where the measured code can reach: {why}."


def _paused(record: RunRecord) -> str:
    timings = list(_timings(record))
    paused = [timing for timing in timings if timing.pause_us]
    if not paused:
        return ""
    every, some = ({timing.key for timing in which} for which in (timings, paused))
    pauses = formatting.spread(round(timing.pause_us or 0.0) for timing in paused)
    where = "" if some == every else f" of {len(some)} of {formatting.counted(len(every), 'case')}"
    return f"Before each sample{where} the GPU idled for {pauses} µs, so that its clock stayed up at the power limit."


def _timings(record: RunRecord) -> Iterator[Timing]:
    return (timing for process in record.processes if process.role in CHECKED for timing in process.timings)
