"""What is to be known of a measurement, a line for each thing."""

from __future__ import annotations

from kernelgate.bench.record import Calls, Note, RunRecord, TimedProcess
from kernelgate.ci.document import render
from kernelgate.ci.report import machine
from tests import runs
from tests.runs import process, run_record


def timed(made: int | None = 800, repeated: int | None = None, pause_us: float | None = None) -> TimedProcess:
    calls = {"base": Calls(made=made, repeated=repeated), "head": Calls(made=made, repeated=repeated)}
    return process({"base": [1.0], "head": [1.0]}, calls=calls, pause_us=pause_us)


def record(*timings: TimedProcess, notes: tuple[Note, ...] = ()) -> RunRecord:
    return run_record([runs.case(f"case {n}", [one]) for n, one in enumerate(timings)], notes=notes)


def said(*timings: TimedProcess, notes: tuple[Note, ...] = ()) -> list[str]:
    return [render.plain_line(line) for line in machine.how_measured(record(*timings, notes=notes))]


FEWER = Note(code="fewer_inputs", text="Only 12 GiB of memory were free.")
LATER = Note(code="fewer_inputs", text="Only 9 GiB of memory were free.")


def test_inputs_that_were_read_again_are_counted_in_one_line() -> None:
    assert said(timed(repeated=200), timed(), notes=(FEWER, LATER)) == [
        "400 of 3,200 calls read inputs that an earlier call had read: there, a kept result would have been right."
    ]
    assert said(timed(), notes=(FEWER,)) == [FEWER.text]


def test_of_many_notes_of_one_code_the_first_stands_for_all() -> None:
    notes = tuple(Note(code="compared_in_part", text=f"case {n}: 3% of it was looked at") for n in range(4))
    other = Note(text="Seed 3.")
    assert said(timed(), notes=(*notes[:2], other, *notes[2:])) == [
        "case 0: 3% of it was looked at (and 3 more such notes in the record)",
        other.text,
    ]
    assert said(timed(), notes=notes[:3]) == [note.text for note in notes[:3]]
