"""The words for what compute-sanitizer found, under the table."""

from __future__ import annotations

from collections.abc import Iterator

from kernelgate.bench.record import Check, CheckFinding, RunRecord
from kernelgate.ci.document.formatting import counted, sentence
from kernelgate.ci.document.model import Code, Line, Mark
from kernelgate.ci.judge import sanitizer
from kernelgate.ci.policy.policy import Gates
from kernelgate.ci.report import correctness

MAX_FINDINGS = 5
"""Lines of one card; the record holds more."""
MAX_KERNELS = 3
"""Kernels that a line names; more are counted."""


def lines(record: RunRecord, gates: Gates) -> tuple[Line, ...]:
    """What was found in each card; nothing where it was not looked for, which the gate says where it matters."""
    titles = correctness.titles(record)
    return tuple(
        correctness.of_card(titles.get(check.card, ""), line)
        for check in sanitizer.checks(record)
        for line in _of_check(check, gates)
    )


def finding(one: CheckFinding) -> Line:
    """ "racecheck: Race reported at a write in `kernel` at `csrc/kernel.cu:12` (3 times)"."""
    return (
        *((f"{one.tool}: ",) if one.tool else ()),
        sentence(one.text),
        *((" in ", Code(one.kernel)) if one.kernel else ()),
        *((" at ", Code(f"{one.file}:{one.line}")) if one.file and one.line else ()),
        f" ({one.times} times)" if one.times > 1 else "",
        "; the base has it, too" if one.on_base else "",
    )


def _of_check(check: Check, gates: Gates) -> Iterator[Line]:
    found = sanitizer.findings(check)
    for one in found[:MAX_FINDINGS]:
        blocks = gates.sanitizer == "fail" and not one.on_base
        yield (Mark.WRONG if blocks else Mark.SLIGHT, " compute-sanitizer: ", *finding(one))
    if len(found) > MAX_FINDINGS:
        more = counted(len(found) - MAX_FINDINGS, "other finding")
        yield (Mark.SLIGHT, f" compute-sanitizer: {more}, in the run record")
    if not sanitizer.is_whole(check):
        yield (Mark.UNKNOWN, " compute-sanitizer: ", *_short_of(check))
    elif not found:
        where = f" in {counted(len(check.cases), 'case')}" if check.cases else ""
        did = f"{' and '.join(check.tools) or 'it'} found nothing{where}"
        yield (Mark.PASSED, f" compute-sanitizer: {did}", *_beyond(check))


def _short_of(check: Check) -> Line:
    did = f"only {check.run} of {check.asked} runs came to their end" if check.run and check.asked else "not run"
    return (did, *((": ", sentence(check.reason)) if check.reason else ()))


def _beyond(check: Check) -> Line:
    """What finding nothing does not cover. Many kernels are those of another code path: their number is enough."""
    named = [piece for name in check.unreached for piece in (", ", Code(name))][1:]
    if len(check.unreached) > MAX_KERNELS:
        named = [f"{len(check.unreached)} kernels, which the run record names"]
    unreached: Line = ("; no case was seen to launch ", *named) if named else ()
    return (*unreached, *(("; ", sentence(check.reason)) if check.reason else ()))
