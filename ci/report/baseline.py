"""The stored baseline beside a record: what it is, how old, whether the two can be compared, and what it shows.

It blocks nothing. Where it shows something, that is a line; everything else about it is folded, and said once.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kernelgate.bench.record import CaseKey, Environment, Run, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Bullets, Code, Line, Mark, Section
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import Outcome, RecordVerdict
from kernelgate.ci.judge.policy import Gates
from kernelgate.ci.report import headline
from kernelgate.ci.report.gpu import Baseline, judged

MONTH_DAYS = 30.4
SHOWS = (Outcome.IMPROVED, Outcome.REGRESSED, Outcome.SLOWER, Outcome.FASTER, Outcome.EQUIVALENT)


def of_record(verdict: RecordVerdict, stored: RunRecord) -> Baseline:
    return Baseline(verdict, stored.run, stored.environment)


def is_of(stored: RunRecord, measured: RunRecord) -> bool:
    """Whether the stored baseline has a case of this record; else it is of another kernel, and not worth a word."""
    # A baseline of run/1 names no card.
    keys = {key for case in measured.cases for key in (case.key, CaseKey("", case.id))}
    return not keys.isdisjoint(case.key for case in stored.cases)


def shows(stored: Baseline) -> bool:
    """Whether it can tell anything useful."""
    return stored.verdict.refused is None and stored.verdict.verdict in SHOWS and bool(stored.verdict.cases)


def line(record: RunRecord, stored: Baseline, gates: Gates) -> tuple[Line, ...]:
    """What it shows, with its age and with what else may explain a difference; nothing where it shows nothing."""
    if not shows(stored):
        return ()
    words = headline.of_verdict(stored.verdict, judged(record, stored.verdict), (), gates)
    mark = Mark.SLIGHT if words.mark is Mark.SLOWER else words.mark
    changed = [name for name, _, _ in _differs(record.environment, stored.environment)]
    also = f"; {' and '.join(changed)} changed since, too" if changed else ""
    age = _age(record.run, stored.run)
    return ((mark, f" against the stored baseline, {age}: ", *headline.uncapped(words.text), also),)


def section(record: RunRecord, stored: Baseline) -> Section:
    """Everything about it, folded; its title says whether it is worth opening."""
    facts: list[Line] = [
        (Code(stored.verdict.against), ", ", _age(record.run, stored.run), ", of ", _commit(stored.run)),
        *(
            (f"{name}: ", Code(was), " then, ", Code(now), " now")
            for name, was, now in _differs(record.environment, stored.environment)
        ),
    ]
    if stored.verdict.refused is None:
        facts += [
            (one.name, ": ", formatting.sentence(one.case.sentence))
            for one in judged(record, stored.verdict)
            if one.case.sentence
        ]
    else:
        facts.append((stored.verdict.refused,))
    return Section(f"Stored baseline: {_gist(stored)}", (Bullets(tuple(facts)),), worth=35)


def _gist(stored: Baseline) -> str:
    if stored.verdict.refused is not None:
        return "not comparable"
    if shows(stored):
        return "what it shows"
    seen = [case.minimum_detectable_pct for case in stored.verdict.cases if case.minimum_detectable_pct is not None]
    return f"shows nothing: {sentences.unseen(min(seen))}" if seen else "shows nothing"


def _commit(run: Run) -> Code | str:
    return Code(run.head_sha[:7]) if run.head_sha and formatting.is_commit(run.head_sha) else "an unnamed commit"


def _age(now: Run, then: Run) -> str:
    """ "13 months older", by the dates of both records."""
    taken, made = _date(then.created_at), _date(now.created_at)
    if taken is None:
        return "of unknown age"
    if made is None or made < taken:
        return f"of {taken:%Y-%m-%d}"
    days = (made - taken).days
    if days < 2:
        return f"of {taken:%Y-%m-%d}"
    return (
        f"{formatting.counted(days, 'day')} old" if days < 2 * MONTH_DAYS else f"{round(days / MONTH_DAYS)} months old"
    )


def _date(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None) if text else None
    except ValueError:
        return None


def _differs(now: Environment, then: Environment) -> Iterator[tuple[str, str, str]]:
    """What is not as it was, by name: then, now. What one of them does not say is not known to differ."""
    pairs = (
        ("GPU", then.device.name, now.device.name),
        ("driver", then.device.driver, now.device.driver),
        ("torch", then.torch, now.torch),
        ("CUDA", then.cuda, now.cuda),
    )
    yield from ((name, was, is_) for name, was, is_ in pairs if was and is_ and was != is_)
