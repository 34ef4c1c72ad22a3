"""Which times a stored baseline may take over: it improves by itself, case by case, and worsens only where that was
accepted. docs/history.md has the rules, and what `best` and `release` beside it are.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain, count
from pathlib import PurePosixPath
from typing import Literal

from kernelgate.bench.record import BaselineSummary, CaseKey, Process, RunRecord
from kernelgate.ci.document import formatting
from kernelgate.ci.judge.baseline_age import DAY, changed, oldest
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.prior import History
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy, Processes


def beside(baseline: str, kind: Literal["best", "release"]) -> str:
    """Where the yardstick of this kind lies: ".ci/best_l4.json" beside ".ci/baseline_l4.json"."""
    path = PurePosixPath(baseline)
    return str(path.with_name(f"{kind}_{path.name.removeprefix('baseline_')}"))


def faster(verdict: RecordVerdict, rules: Processes) -> frozenset[CaseKey]:
    """The cases that certainly became faster, in as many processes as a regression takes to block."""
    certain = (case for case in verdict.cases if case.status.is_faster)
    return frozenset(case.key for case in certain if case.processes >= rules.to_block)


def moved(held: RunRecord, new: RunRecord, keys: Collection[CaseKey]) -> RunRecord:
    """`held` with the times of these cases from `new`, also of cases that it lacks. Both are baselines."""
    # A baseline may name no card.
    out = {*keys, *(CaseKey("", key.id) for key in keys)}
    stay = frozenset(case.key for case in held.cases if case.key not in out)
    come = frozenset(case.key for case in new.cases if case.key in keys)
    if not come:
        return held
    if not stay:
        return _only(new, come)
    kept, taken = _only(held, stay), _apart(_only(new, come), held)
    whole = RunRecord(
        run=new.run,
        environments=tuple({one.id: one for one in (*kept.environments, *taken.environments)}.values()),
        cards=tuple({card.name: card for card in (*kept.cards, *taken.cards)}.values()),
        cases=(*kept.cases, *taken.cases),
        processes=(*kept.processes, *taken.processes),
        notes=new.notes,
    )
    return _with_summary(whole, _summaries(kept) | _summaries(taken), new)


def _only(record: RunRecord, keys: Collection[CaseKey]) -> RunRecord:
    cases = tuple(case for case in record.cases if case.key in keys)
    if len(cases) == len(record.cases):
        return record
    timed = ((process, tuple(one for one in process.timings if one.key in keys)) for process in record.processes)
    processes = tuple(process.model_copy(update={"timings": timings}) for process, timings in timed if timings)
    return _with_summary(record.model_copy(update={"cases": cases, "processes": processes}), _summaries(record), record)


def _apart(new: RunRecord, held: RunRecord) -> RunRecord:
    """`new` with names of processes and environments that `held` does not use for others."""
    day = (new.run.created_at or "")[:DAY]
    names: dict[str, str] = {}
    for one in new.environments:
        alike = (known.id for known in held.environments if known == one.model_copy(update={"id": known.id}))
        used = {known.id for known in held.environments} | set(names.values())
        names[one.id] = next(alike, None) or _free(one.id, used, day)
    processes: list[Process] = []
    for process in new.processes:
        name = _free(process.id, {one.id for one in (*held.processes, *processes)}, day)
        environment = names.get(process.environment, process.environment)
        processes.append(process.model_copy(update={"id": name, "environment": environment}))
    environments = tuple(one.model_copy(update={"id": names[one.id]}) for one in new.environments)
    return new.model_copy(update={"environments": environments, "processes": tuple(processes)})


def _free(name: str, used: Collection[str], day: str) -> str:
    names = chain((name, f"{day}-{name}"), (f"{day}-{name}-{number}" for number in count(2)))
    return next(free for free in names if free not in used)


def _summaries(record: RunRecord) -> dict[CaseKey, BaselineSummary]:
    found, run = {}, record.run
    for key, name in formatting.ids(case.key for case in record.cases).items():
        held = record.summary.cases.get(name.text) if record.summary else None
        if held is not None:
            measured = held.measured or (run.created_at or "")[:DAY] or None
            found[key] = held.model_copy(update={"measured": measured, "commit": held.commit or run.head_sha})
    return found


def _with_summary(record: RunRecord, cases: dict[CaseKey, BaselineSummary], source: RunRecord) -> RunRecord:
    if source.summary is None:
        return record
    short = formatting.ids(case.key for case in record.cases)
    named = {short[key].text: one for key, one in cases.items() if key in short}
    return record.model_copy(update={"summary": source.summary.model_copy(update={"cases": named})})


def best(held: RunRecord | None, stored: RunRecord, new: RunRecord, policy: Policy, known: History) -> RunRecord | None:
    """The best that was ever measured, where `new` and the `stored` baseline change it; else None. A case's best moves
    where two days show it, each certainly faster than the best so far, and the slower of the two is taken. On another
    machine than that of the best, none is made."""
    if any(changed(new.environment, one.environment) for one in (stored, held or stored)) or oldest(new) is None:
        return None
    tonight = judge(new, policy, held or stored, history=known)
    before: dict[CaseKey, float] = {}
    if held:
        earlier = judge(stored, policy, held, history=known)
        keys = faster(tonight, policy.processes) & faster(earlier, policy.processes)
        before = {case.key: case.change_pct or 0.0 for case in earlier.cases}
    else:
        keys = frozenset(case.key for case in tonight.cases if case.believed and not case.status.is_slower)
    then, today = _summaries(stored), (new.run.created_at or "")[:DAY]
    keys = frozenset(key for key in keys if key in then and then[key].measured not in (None, today))
    if not keys:
        return None
    of_new = {case.key for case in tonight.cases if (case.change_pct or 0.0) >= before.get(case.key, 0.0)} & keys
    whole = moved(held, stored, keys - of_new) if held else _only(stored, keys)
    return moved(whole, new, of_new)
