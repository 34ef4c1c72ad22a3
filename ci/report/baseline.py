"""The stored baseline beside a record: what it is, how old, whether the two can be compared, and what it shows.

It blocks nothing. Where it shows something, that is a line; everything else about it is folded, and said once.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kernelgate.bench.record import CaseKey, Run, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Bullets, Code, Line, Mark, Section
from kernelgate.ci.judge import ratchet, sentences
from kernelgate.ci.judge.case import Outcome, RecordVerdict
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import headline
from kernelgate.ci.report.gpu import Baseline, Yardstick, judged

MONTH_DAYS = 30.4
SHOWS = (Outcome.IMPROVED, Outcome.REGRESSED, Outcome.SLOWER, Outcome.FASTER, Outcome.EQUIVALENT)


RENEW = "gh workflow run baseline --field force=true"


def of_record(verdict: RecordVerdict, stored: RunRecord, made: str | None = None) -> Baseline:
    """`made`: when the record was."""
    return Baseline(verdict, stored.run, stored.environment, ratchet.age_days(stored, made))


def is_of(stored: RunRecord, measured: RunRecord) -> bool:
    """Whether the stored baseline has a case of this record; else it is of another kernel, and not worth a word."""
    # A baseline may name no card.
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
    changed = [one.name for one in ratchet.changed(record.environment, stored.environment)]
    also = f"; {' and '.join(changed)} changed since, too" if changed else ""
    age = age_of(record.run, stored.run)
    return ((mark, f" against the stored baseline, {age}: ", *headline.uncapped(words.text), also),)


def stale(record: RunRecord, stored: Baseline, policy: Policy) -> tuple[str, ...]:
    """Why it says little of today, in words."""
    if stored.verdict.refused is not None:
        return ()
    other = [one.name for one in ratchet.changed(record.environment, stored.environment)]
    limit, days = policy.baseline.stale_days, stored.age_days
    why = [f"of another {' and '.join(other)}"] if other else []
    return (*why, *([f"{days} days old, more than {limit}"] if days is not None and days > limit else ()))


def section(record: RunRecord, stored: Baseline, policy: Policy, beside: Sequence[Yardstick] = ()) -> Section:
    """Everything about it, folded; its title says whether it is worth opening."""
    old = stale(record, stored, policy)
    facts: list[Line] = [
        (Code(stored.verdict.against), ", ", age_of(record.run, stored.run), ", of ", _commit(stored.run)),
        *(
            (f"{one.name}: ", Code(one.was), " then, ", Code(one.now), " now")
            for one in ratchet.changed(record.environment, stored.environment)
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
        if any(one.name == "GPU" for one in ratchet.changed(record.environment, stored.environment)):
            facts.append(("where the runner has another GPU for good, ", Code(RENEW), " offers a new one"))
    if old:
        renew: Line = (
            "stale, since it is ",
            " and ".join(old),
            ": ",
            Code(RENEW),
            " offers a new one, with its evidence",
        )
        facts.insert(0, renew)
    facts += [(one.since, ": ", _commit(one.held.run), ", ", one.held.verdict.reason) for one in beside]
    return Section(f"Stored baseline{' (stale)' if old else ''}: {_gist(stored)}", (Bullets(tuple(facts)),), worth=35)


def _gist(stored: Baseline) -> str:
    if stored.verdict.refused is not None:
        return "not comparable"
    if shows(stored):
        return "what it shows"
    seen = [case.minimum_detectable_pct for case in stored.verdict.cases if case.minimum_detectable_pct is not None]
    return f"shows nothing: {sentences.unseen(min(seen))}" if seen else "shows nothing"


def _commit(run: Run) -> Code | str:
    return Code(run.head_sha[:7]) if run.head_sha and formatting.is_commit(run.head_sha) else "an unnamed commit"


def age_of(now: Run, then: Run) -> str:
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
