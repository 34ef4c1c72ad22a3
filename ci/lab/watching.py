"""Runs a command of a session: passes on what it says, reports in between, and ends it when it falls silent.

Silence is an error: whoever waits hears at least every `report_s` seconds what is done, for how long, and how long it
is expected to take.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kernelgate.bench.system import lock, supervise
from kernelgate.bench.system.interpreter import ROOT
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.supervise import MAX_LAST, TimeLimits
from kernelgate.ci.lab import log
from kernelgate.ci.lab.folder import Session
from kernelgate.ci.lab.log import GateName, TriedChange
from kernelgate.ci.lab.state import is_timed

REPORT_S: Final = 30.0
"""How often at the latest long work says what it does."""
SESSION_SILENT_S: Final = 180.0
"""After so much silence it is ended."""


@dataclass(frozen=True)
class Watch:
    """How a command is watched: `what` it is, such as "gate build", and its limits."""

    what: str
    total_s: float
    expected_s: float | None = None
    """By earlier runs; None where there was none."""
    report_s: float = REPORT_S
    silent_s: float = SESSION_SILENT_S


@dataclass(frozen=True)
class Watched:
    """How a command ended: `code` is None where it was ended, for silence or for its time."""

    code: int | None
    why: str
    """It was ended, else its last line."""
    seconds: float
    silent_s: float | None = None
    """The longest time in which it printed nothing, to the step in which it is looked at; None where it was less."""
    device_s: float = 0.0
    """For how long it held a device."""


def run(module: str, words: Sequence[str], cwd: Path, watch: Watch) -> Watched:
    """Runs `python -m MODULE WORDS…` of this very copy of kernelgate until it ends, or is ended."""
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    begun = reported = time.monotonic()
    last, longest_s, waited_s, waiting_s = "", 0.0, 0.0, 0.0

    def taken_s() -> float:
        """So far, without the wait for a device that another process measures: that is no work of this one."""
        return time.monotonic() - begun - waited_s - waiting_s

    def report(every_s: float) -> None:
        nonlocal reported
        now = time.monotonic()
        if now - reported >= every_s:
            reported = now
            of = f" of about {watch.expected_s:.0f} s" if watch.expected_s else "; no earlier one to expect from"
            say(f"{watch.what}: {taken_s():.0f} s{of}, at most {watch.total_s:.0f} s")
        if taken_s() >= watch.total_s:
            raise TimeoutError("over")

    def heard(line: str) -> None:
        nonlocal last, waited_s, waiting_s
        last = line.strip() or last
        say(f"  {line}")
        if (wait := lock.waited_s(line)) is not None:
            waited_s, waiting_s = (waited_s + wait[0], 0.0) if wait[1] else (waited_s, wait[0])
        report(watch.report_s)

    def silent(seconds: float) -> None:
        nonlocal longest_s
        longest_s = max(longest_s, seconds)
        if seconds >= watch.silent_s:
            raise TimeoutError(f"silent for {seconds:.0f} s")
        report(watch.report_s)

    report(0.0)
    code = None
    with lock.device_log() as device:
        try:
            code = supervise.run(
                [sys.executable, "-P", "-m", module, *words],
                cwd=cwd,
                env={**os.environ, **device.variables, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1"},
                limits=TimeLimits(min(watch.report_s, watch.silent_s) / 2, watch.total_s + lock.WAIT_S),
                on_line=heard,
                on_silence=silent,
            )
            why = last.removeprefix("kernelgate: ") or "it printed nothing"
        except TimeoutError as error:
            silence = str(error).startswith("silent")
            reason = str(error) if silence else f"its {watch.total_s / 60:.3g} minutes were over"
            why = f"ended: {reason}; {f'last line: {last[:MAX_LAST]}' if last else 'it had printed nothing'}"
        held_s = device.held_s()
    return Watched(code, why, taken_s(), round(longest_s, 1) or None, round(held_s, 3))


# ---- how long it is expected to take ---------------------------------------------------------------------------------

# Sessions of the checkout say it. Run records do not: their costs are seconds of kernel calls, without the compiler and
# the start of processes. Nor do sessions that people recorded, nor searches of scripts, which try many at once.


def expected_seconds(what: GateName | None, session: Session, sessions: Iterable[Session]) -> float | None:
    """The median of the times of a gate that was passed (None: of tries that did not fail), of the same kernel on the
    same device; None where there is none before."""
    like, took = session.opened, list[float]()
    for one in sessions:
        alike = (one.opened.card, one.opened.gpu, one.opened.source) == (like.card, like.gpu, like.source)
        if alike and (one.name == session.name or any(map(is_timed, one.events))):
            tries = (event for event in one.events if isinstance(event, TriedChange) and event.failed is None)
            attempts = (event for event in log.gates(one.events, what) if event.passed) if what else tries
            took += [event.seconds for event in attempts if event.seconds]
    return statistics.median(took) if took else None
