"""What compute-sanitizer found in the head: which of it blocks, and which cards were looked at as was asked."""

from __future__ import annotations

from kernelgate.bench.record import Check, CheckFinding, RunRecord
from kernelgate.ci.document.formatting import counted


def checks(record: RunRecord) -> tuple[Check, ...]:
    """One for each card that was looked at, or was to be."""
    return tuple(check for check in record.checks if check.kind == "sanitizer")


def new_findings(record: RunRecord) -> tuple[CheckFinding, ...]:
    """Those that are the author's: what the base is known to have, too, is not."""
    return tuple(one for check in checks(record) for one in findings(check) if not one.on_base)


def findings(check: Check) -> tuple[CheckFinding, ...]:
    """The author's first. What a failed check does not list is not known to be the base's."""
    return tuple(sorted((*check.findings, *_unlisted(check)), key=lambda one: one.on_base is True))


def _unlisted(check: Check) -> tuple[CheckFinding, ...]:
    more = max(check.failed or 0, int(check.status == "failed")) - len(check.findings)
    return (CheckFinding(text=f"{counted(more, 'finding')} that the record does not list"),) if more > 0 else ()


def is_whole(check: Check) -> bool:
    """Whether every tool came to the end of every case. One that found something may have stopped there."""
    return check.status != "skipped" and (check.run or 0) >= max(check.asked or 0, 1)
