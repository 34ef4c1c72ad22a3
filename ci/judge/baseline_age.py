"""What lies between a stored baseline and a record beside the code: the machine, and time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final

from kernelgate.bench.record import Environment, RunRecord
from kernelgate.ci.document.escape import visible
from kernelgate.ci.judge.case import Differs
from kernelgate.ci.judge.prior import BASELINE_APART_PCT

DAY = len("2026-11-22")
STALE_DAYS: Final = 90
"""A stored baseline that is older is called stale, as is one of another GPU, driver, torch, CUDA or clock policy: the
comment says so, and how to renew it (docs/history.md)."""
YEAR_DAYS: Final = 365
"""Nobody knows what became of a machine in more."""


def changed(now: Environment, then: Environment) -> tuple[Differs, ...]:
    """What times depend on beside the code. What one of them does not say is not known to differ."""
    names = ("GPU", "driver", "torch", "CUDA", "clocks")
    sides = ((one.device.name, one.device.driver, one.torch, one.cuda, one.clock_policy) for one in (then, now))
    return tuple(
        Differs(name, was, is_) for name, was, is_ in zip(names, *sides, strict=True) if was and is_ and was != is_
    )


def oldest(stored: RunRecord) -> str | None:
    """The day on which the oldest of its cases was measured, as in 2026-11-22."""
    held = stored.summary.cases.values() if stored.summary else ()
    days = [day for one in held if (day := one.measured)] or [stored.run.created_at or ""]
    return min(days)[:DAY] or None


def age_days(stored: RunRecord, now: str | None) -> int | None:
    """How many days before `now` the oldest of its cases was measured; None where either is not known."""
    taken, made = day(oldest(stored)), day(now)
    return (made - taken).days if taken and made else None


def day(text: str | None) -> date | None:
    try:
        return date.fromisoformat((text or "")[:DAY])
    except ValueError:
        return None


def between(record: RunRecord, stored: RunRecord) -> tuple[Differs, ...]:
    """Why their times differ by more than from day to day, even of the same code."""
    found, made = changed(record.environment, stored.environment), record.run.created_at
    if (age_days(stored, made) or 0) > YEAR_DAYS:
        found += (Differs("year", str(day(oldest(stored))), str(day(made))),)
    return found


def named(differs: Iterable[Differs]) -> str:
    return "; ".join(f"{one.name} {visible(one.was, 40)} then, {visible(one.now, 40)} now" for one in differs)


def words(differs: Iterable[Differs]) -> str:
    assumed = f"what times change by that alone is not known, and assumed (sd {BASELINE_APART_PCT:g}%)"
    return f"the baseline was measured otherwise ({named(differs)}): {assumed}"
