"""Progress on standard error: a bar in a terminal, a line every few seconds in a log."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LOG_INTERVAL_S = 5.0

COMMAND = re.compile(r"((?:\A|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029])\s*)::")

Advance = Callable[[str], None]
"""Call after each finished step, with what comes next (or "")."""


def say(message: str) -> None:
    """One line for the person who waits; standard output stays free for results."""
    Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(inert(message))


def inert(text: str, variables: Mapping[str, str] = os.environ) -> str:
    """Text that may be printed in a workflow: the runner takes `##[` for a command, and `::` where a line begins."""
    if variables.get("GITHUB_ACTIONS") != "true":
        return text
    return COMMAND.sub(r"\1: :", text).replace("##[", "## [")


@contextmanager
def track(label: str, total: int) -> Iterator[Advance]:
    """Shows how many of `total` steps are done until the block ends."""
    with _bar(label, total) if sys.stderr.isatty() else _lines(label, total) as advance:
        yield advance


@contextmanager
def _bar(label: str, total: int) -> Iterator[Advance]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[step]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=total, step="")
        yield lambda step: progress.update(task, advance=1, step=step)


@contextmanager
def _lines(label: str, total: int) -> Iterator[Advance]:
    """A line every LOG_INTERVAL_S, whether steps end or not, and one at the end."""
    start = time.monotonic()
    last = start
    done = 0
    current = ""
    ended = threading.Event()
    say(f"{label}: {total} step{'' if total == 1 else 's'}")

    def line() -> None:
        nonlocal last
        last = time.monotonic()
        say(f"{label}: {done}/{total}, {last - start:.0f} s{f', {current}' if current else ''}")

    def advance(step: str) -> None:
        nonlocal done, current
        done += 1
        current = step
        if done == total or time.monotonic() - last >= LOG_INTERVAL_S:
            line()

    def fill_silence() -> None:
        while not ended.wait(max(0.0, last + LOG_INTERVAL_S - time.monotonic())):
            if time.monotonic() - last >= LOG_INTERVAL_S:
                line()

    filler = threading.Thread(target=fill_silence, name="progress", daemon=True)
    filler.start()
    try:
        yield advance
    finally:
        ended.set()
        filler.join()
