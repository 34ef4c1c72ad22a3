"""Progress on standard error: a line every few seconds."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from kernelgate.bench.core.errors import one_line

LOG_INTERVAL_S = 5.0

COMMAND = re.compile(r"((?:\A|\n)\s*)::")

Advance = Callable[[str], None]
"""Call after each finished step, with what comes next (or "")."""


def say(message: str) -> None:
    """One line for the person who waits; standard output stays free for results."""
    from rich.console import Console  # a worker does without

    with suppress(OSError):  # such as a full disk: what is done counts for more than what is said of it
        Console(stderr=True, highlight=False, soft_wrap=True, markup=False).print(inert(message))


def inert(text: str, variables: Mapping[str, str] = os.environ) -> str:
    """Text that may be printed, whoever wrote it: nothing moves a terminal's cursor or turns a line round, and in a
    workflow the runner finds no command: it takes `##[` for one, and `::` where a line begins."""
    shown = one_line(text, kept="\n\t", instead="\N{REPLACEMENT CHARACTER}")
    if variables.get("GITHUB_ACTIONS") != "true":
        return shown
    return COMMAND.sub(r"\1: :", shown).replace("##[", "## [")


@contextmanager
def track(label: str, total: int, limit_s: float | None = None) -> Iterator[Advance]:
    """Says how many of `total` steps are done, every LOG_INTERVAL_S, whether steps end or not, and at the end.

    `limit_s`: after which all are ended.
    """
    start, done, current, ended = time.monotonic(), 0, "", threading.Event()
    say(f"{label}: {total} step{'' if total == 1 else 's'}")

    def line() -> None:
        most = f" of at most {limit_s:.0f} s" if limit_s and done < total else ""
        say(f"{label}: {done}/{total}, {time.monotonic() - start:.0f} s{most}{f', {current}' if current else ''}")

    def advance(step: str) -> None:
        nonlocal done, current
        done, current = done + 1, step
        if done == total:
            line()

    def repeat() -> None:
        while not ended.wait(LOG_INTERVAL_S):
            line()

    repeater = threading.Thread(target=repeat, name="progress", daemon=True)
    repeater.start()
    try:
        yield advance
    finally:
        ended.set()
        repeater.join()
