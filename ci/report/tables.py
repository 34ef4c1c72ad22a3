"""The table of cases: for one GPU with a column for each number, for several with a column for each GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from kernelgate.bench.record import CaseKey
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Column, Line, Strong, Table
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict, Status, severity
from kernelgate.ci.judge.policy import Gates
from kernelgate.ci.report.gpu import GpuReport, JudgedCase

MAX_UNCHANGED = 9
"""More unchanged cases than this are folded away, …"""
MAX_UNCHANGED_BESIDE_NEWS = 3
"""… and more than this where another case changed."""


def counts(cases: Sequence[JudgedCase]) -> str:
    """ "1 of 9 cases regressed, 8 unchanged", exact for any mix."""
    found = Counter(one.status for one in cases)
    parts = [(found[status], words) for status, (_, words) in sentences.STATUS.items() if found[status]]
    of_all = f"of {formatting.counted(len(cases), 'case')} "
    return ", ".join(f"{number} {of_all if first == 0 else ''}{words}" for first, (number, words) in enumerate(parts))


def tables(gpus: Sequence[GpuReport], gates: Gates) -> tuple[Table | None, Table | None]:
    """The open table and the folded one: what is unchanged on every GPU is folded where it is much."""
    rows = _rows(gpus)
    if not rows:
        return None, None
    quiet = [key for key, cases in rows.items() if all(one.status is Status.UNCHANGED for one in cases.values())]
    news = [key for key in rows if key not in quiet]
    if len(quiet) <= (MAX_UNCHANGED_BESIDE_NEWS if news else MAX_UNCHANGED):
        return _table(rows, list(rows), gpus, gates), None
    return (_table(rows, news, gpus, gates) if news else None), _table(rows, quiet, gpus, gates)


Rows = Mapping[CaseKey, Mapping[str, JudgedCase]]
"""By case, and for each the GPUs that judged it by their label."""


def _rows(gpus: Sequence[GpuReport]) -> Rows:
    """The worst case on any GPU first."""
    found: dict[CaseKey, dict[str, JudgedCase]] = {}
    for gpu in gpus:
        for one in gpu.cases:
            found.setdefault(one.case.key, {})[gpu.label] = one
    worst = {key: min(severity(one.case) for one in cases.values()) for key, cases in found.items()}
    return {key: found[key] for key in sorted(found, key=lambda key: worst[key])}


def _table(rows: Rows, keys: Sequence[CaseKey], gpus: Sequence[GpuReport], gates: Gates) -> Table:
    if len(gpus) == 1:
        return _of_one(tuple(rows[key][gpus[0].label] for key in keys), reference(gpus), gates)
    columns = (Column("case"), *(Column(gpu.label, numeric=True) for gpu in gpus))
    return Table(columns, tuple(_row_of_several(rows[key], gpus) for key in keys))


def reference(gpus: Sequence[GpuReport]) -> str:
    """What is timed beside, by the name that the cards give it."""
    return formatting.reference(card for gpu in gpus if gpu.record for card in gpu.record.cards)


def _of_one(cases: Sequence[JudgedCase], beside: str, gates: Gates) -> Table:
    if all(one.status is Status.ALONE for one in cases):
        return _of_heads(cases, beside)
    columns = (
        Column("case"),
        Column("base", numeric=True),
        Column("head", numeric=True),
        Column("change", numeric=True),
        Column(f"× {beside}", numeric=True),
        Column("verdict"),
    )
    return Table(columns, tuple(_row_of_one(one, gates) for one in cases))


def _of_heads(cases: Sequence[JudgedCase], beside: str) -> Table:
    """Where there is no base: the head's times beside the reference's."""
    titles = ("case", "head", beside, f"× {beside}")
    columns = tuple(Column(title, numeric=number > 0) for number, title in enumerate(titles))

    def row(one: JudgedCase) -> tuple[Line, ...]:
        head, other = formatting.durations(one.case.head_us, one.case.reference_us)
        return (_name(one, news=False), (head,), (other,), (_against_reference(one.case),))

    return Table(columns, tuple(map(row, cases)))


def _row_of_one(one: JudgedCase, gates: Gates) -> tuple[Line, ...]:
    case = one.case
    base, head = formatting.durations(case.base_us, case.head_us)
    return (
        _name(one, one.status.is_news),
        (base,),
        (head,),
        _change(one),
        (_against_reference(case),),
        (sentences.mark(one.status), " ", sentences.in_table(case, gates)),
    )


def _row_of_several(cases: Mapping[str, JudgedCase], gpus: Sequence[GpuReport]) -> tuple[Line, ...]:
    first = next(iter(cases.values()))
    news = any(one.status.is_news for one in cases.values())
    cells = (_cell(cases[gpu.label]) if gpu.label in cases else (formatting.NOT_MEASURED,) for gpu in gpus)
    return (_name(first, news), *cells)


def _cell(one: JudgedCase) -> Line:
    """A case on one GPU: mark, change, and the times that it is made of."""
    base, head = formatting.durations(one.case.base_us, one.case.head_us)
    if one.status is Status.ALONE:
        return (sentences.mark(one.status), f" {head}, no base")
    times = f", {base} → {head}" if one.case.base_us is not None else ""
    return (sentences.mark(one.status), " ", *_change(one), times)


def _name(one: JudgedCase, news: bool) -> Line:
    return (Strong(one.name) if news and isinstance(one.name, str) else one.name,)


def _change(one: JudgedCase) -> Line:
    change, interval = formatting.signed(one.case.change_pct, one.case.interval_pct)
    return (Strong(change) if one.status.is_news else change, f" {interval}" if interval else "")


def _against_reference(case: CaseVerdict) -> str:
    """How many times as fast as the reference, base → head; from medians of one run."""
    if case.reference_us is None:
        return formatting.MISSING
    times = (case.head_us,) if case.status is Status.ALONE else (case.base_us, case.head_us)
    return " → ".join(f"{case.reference_us / side:.2f}" if side else formatting.MISSING for side in times)
