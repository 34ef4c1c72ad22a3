"""Which of the compilers' warnings are news: those that the head has and the base has not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kernelgate.bench.record import MAX_WARNINGS, Build, CompilerWarning, RunRecord

_LINE = re.compile(r"\bline \d+")


@dataclass(frozen=True)
class NewWarnings:
    """Of one card's head."""

    card: str
    warnings: tuple[CompilerWarning, ...]
    against_base: bool
    """Whether the base's are left out; else it is not known which of them it has."""


def of_record(record: RunRecord, changed: Collection[str] | None) -> tuple[NewWarnings, ...]:
    """Of each card whose head was compiled where somebody looked. `changed`: the only files that count, where known."""
    bases = {build.card: build for build in record.builds if build.side == "base"}
    return tuple(
        _of_card(build, build.warnings, bases.get(build.card), changed)
        for build in record.builds
        if build.side == "head" and build.warnings is not None
    )


def _of_card(
    head: Build, warnings: Sequence[CompilerWarning], base: Build | None, changed: Collection[str] | None
) -> NewWarnings:
    # A list that is full may lack what the base has, too.
    known = base is not None and base.warnings is not None and len(base.warnings) < MAX_WARNINGS
    news = _beyond(warnings, (base and base.warnings) or ()) if known else tuple(warnings)
    return NewWarnings(head.card, tuple(one for one in news if changed is None or one.file in changed), known)


def _beyond(head: Sequence[CompilerWarning], base: Sequence[CompilerWarning]) -> tuple[CompilerWarning, ...]:
    """Lines move as a file changes: a warning is known where the base has as many of its text in its file. Of several
    alike, those at the base's very lines are the known ones first."""
    there = {(one.file, one.line, one.text) for one in base}
    left = Counter(map(_alike, base))
    fresh = []
    for one in sorted(head, key=lambda one: (one.file, one.line, one.text) not in there):
        if left[_alike(one)]:
            left[_alike(one)] -= 1
        else:
            fresh.append(one)
    return tuple(sorted(fresh, key=lambda one: (one.file, one.line or 0, one.text)))


def _alike(one: CompilerWarning) -> tuple[str, str]:
    return one.file, _LINE.sub("line", one.text)
