"""Whether base and head compute what they should: the fuzz list, the outputs of the timed calls, compute-sanitizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Literal

from kernelgate.bench.record import (
    COMPARED,
    LARGEST,
    Axes,
    CaseKey,
    Check,
    CheckFinding,
    CheckKind,
    FaultKind,
    FuzzResult,
    Role,
    RunRecord,
    TimedCase,
    timed_cases,
)
from kernelgate.ci.document import formatting
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.judge.validity import Finding

CHECKED: tuple[Role, ...] = (*COMPARED, "witness")
"""The roles whose calls are compared with what is right."""
BASE_WRONG = "base_wrong"
MAX_CRASH = 600
"""Characters of how a process ended: what it printed last is in there, and may be anything."""


def checks(record: RunRecord, kind: CheckKind) -> tuple[Check, ...]:
    """One for each card that was checked so, or was to be."""
    return tuple(check for check in record.checks if check.kind == kind)


def fuzz_failures(record: RunRecord, excused: bool = False) -> tuple[tuple[str, FuzzResult], ...]:
    """Each with the card that it is of; none that the base excuses, or those alone."""
    failed = ((check.card, one) for check in checks(record, "fuzz") for one in check.results if not one.passed)
    return tuple((card, one) for card, one in failed if one.on_base is excused)


def wrong_outputs(record: RunRecord, side: Literal["base", "head"] = "head") -> dict[CaseKey, Finding]:
    """The cases where timed calls of this side gave wrong answers, with how many in the first such process."""
    code = "wrong_output" if side == "head" else BASE_WRONG
    return {
        case.key: Finding(code, f"the {side}{found[1]}", True, kind=found[0])
        for case in timed_cases(record, CHECKED)
        if (found := next(_wrong_calls(case, side), None))
    }


def _wrong_calls(case: TimedCase, side: Literal["base", "head"]) -> Iterator[tuple[FaultKind, str]]:
    """ "'s timed output is wrong in 12 of 200 compared calls of process 2 (largest error 0.25)", or how it crashes or
    hangs; for each process with a wrong answer."""
    number, lost = 0, "" if side == "head" else "nothing can be compared with it"
    for process in case.processes:
        number += process.role != "witness"
        calls, errors = process.timing.calls.get(side), process.timing.errors.get(side)
        if calls and calls.crashed:
            said = f"while it is timed{lost and f', so {lost}'}: {visible(calls.crashed, MAX_CRASH)}"
            yield ("hung", f" hangs {said}") if calls.hung else ("crashed", f" crashes {said}")
        elif calls and calls.failed:
            of = f"{calls.failed} of {counted(calls.compared, 'compared call')}" if calls.compared else ""
            where = f"process {number}" if process.role != "witness" else f"the process that holds the {side} alone"
            error = ""
            if errors is not None and errors.maximum is not None:
                # Errors are cut off at the largest number that a record has.
                size = f"over {LARGEST:.0e}" if errors.maximum >= LARGEST else f"{errors.maximum:.3g}"
                error = f" (largest error {size})"
            said = f"'s timed output is wrong in {of or counted(calls.failed, 'call')} of {where}{error}"
            yield "wrong", f"{said}: {lost}" if lost else said


def is_wrong(record: RunRecord) -> bool:
    return any(check.status == "failed" for check in checks(record, "fuzz")) or bool(wrong_outputs(record))


def new_sanitizer_findings(record: RunRecord) -> tuple[CheckFinding, ...]:
    """Those that are the author's: what the base is known to have, too, is not."""
    return tuple(one for check in checks(record, "sanitizer") for one in sanitizer_findings(check) if not one.on_base)


def sanitizer_findings(check: Check) -> tuple[CheckFinding, ...]:
    """The author's first. What a failed check does not list is not known to be the base's."""
    more = max(check.failed or 0, int(check.status == "failed")) - len(check.findings)
    unlisted = (CheckFinding(text=f"{counted(more, 'finding')} that the record does not list"),) if more > 0 else ()
    return tuple(sorted((*check.findings, *unlisted), key=lambda one: one.on_base is True))


def sanitized(check: Check) -> bool:
    """Whether every tool came to the end of every case. One that found something may have stopped there."""
    return check.status != "skipped" and (check.run or 0) >= max(check.asked or 0, 1)


# ---- what failing cases have in common and no passing one has: "odd N" -----------------------------------------------

POWERS = tuple(2**exponent for exponent in range(2, 13))


_Trait = tuple[str, Callable[[bool | float | str], bool]]
"""In words, and of which values of an axis it holds."""


def shared(failing: Sequence[Axes], passing: Sequence[Axes]) -> str | None:
    """In words, the plainest that all failing cases have and no passing one has, such as "odd N", or else two values,
    such as "bf16 and N=1"; None where there is none, and where nothing passed but what has no elements."""
    empty = (any(value == 0 and not isinstance(value, bool) for value in axes.values()) for axes in passing)
    if len(failing) < 2 or all(empty):
        return None
    for axis in failing[0]:
        if all(axis in one for one in failing):
            passed = [axes[axis] for axes in passing if axis in axes]
            for words, holds in _traits(axis, [axes[axis] for axes in failing], passed):
                if not any(map(holds, passed)):
                    return words
    alike = [one for one in failing[0].items() if all(one in axes.items() for axes in failing)]
    named = [(one, said) for one in alike if (said := formatting.label(dict([one])))]
    for (one, first), (other, second) in combinations(named, 2):
        if not any(one in axes.items() and other in axes.items() for axes in passing):
            return f"{first} and {second}"
    return None


def _traits(axis: str, values: Sequence[bool | float | str], passed: Sequence[bool | float | str]) -> Iterator[_Trait]:
    first = values[0]
    words = formatting.label({axis: first is False or first})
    if all(value == first for value in values) and words:
        yield f"no {words}" if first is False else words, lambda value: value == first
    numbers = [float(value) for value in values if not isinstance(value, bool | str)]
    known = [float(value) for value in passed if not isinstance(value, bool | str)]
    if len(numbers) < len(values) or len(known) < len(passed) or formatting.label({axis: 2}) is None:
        return
    if all(value.is_integer() for value in (*numbers, *known)):
        for divisor, no, yes in ((2, "odd", "even"), *((one, "not divisible by", "divisible by") for one in POWERS)):
            of = f"{{}} {axis}" if divisor == 2 else f"{axis} {{}} {divisor}"
            for words, wanted in ((no, False), (yes, True)):
                holds = _divisible(divisor, wanted)
                if all(map(holds, numbers)):
                    yield of.format(words), holds
    low, high = min(numbers), max(numbers)
    yield f"{axis} of {low:g} or more", lambda value: float(value) >= low
    yield f"{axis} of {high:g} or less", lambda value: float(value) <= high


def _divisible(by: int, wanted: bool) -> Callable[[bool | float | str], bool]:
    return lambda value: (float(value) % by == 0) == wanted
