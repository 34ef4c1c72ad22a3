"""Which shard measures which cases, the same on every machine, so that each shard finds its own part alone; and one
record from those of all shards, as if one machine had measured every case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from statistics import fmean

from kernelgate.bench.core.errors import RecordError
from kernelgate.bench.record.findings import Check, Note, summed
from kernelgate.bench.record.run_record import RunRecord
from kernelgate.bench.record.subjects import CaseKey, CheckKind, Environment, Expected, Shard

SHARD_MISSING, MEASURED_IN_SHARDS = "shard_missing", "measured_in_shards"
CHECKS_OF_FIRST: tuple[CheckKind, ...] = ("fuzz",)
"""What a measurement has once, and the first shard does. Where that is lost, so are they."""
ENDINGS = ("failed", "cancelled", None, "preempted", "complete")
"""How the whole ended: as the shard that ended worst. None is one that was killed."""


def assigned(
    cases: Sequence[CaseKey], seconds: Mapping[CaseKey, float], shards: int
) -> tuple[tuple[CaseKey, ...], ...]:
    """The cases of each shard: the longest first, onto the shard that has the least to do (LPT, Graham 1969).

    A case without `seconds` counts as the mean of the others. Ties go to the first case and the first shard; within a
    shard, cases keep their order.
    """
    usual = fmean(known) if (known := [seconds[key] for key in cases if key in seconds]) else 1.0
    loads, owners = [0.0] * shards, dict[CaseKey, int]()
    for key in sorted(cases, key=lambda one: -seconds.get(one, usual)):
        least = loads.index(min(loads))
        loads[least] += seconds.get(key, usual)
        owners[key] = least
    return tuple(tuple(key for key in cases if owners[key] == shard) for shard in range(shards))


def measured_seconds(record: RunRecord) -> dict[CaseKey, float]:
    """What each case of a record took, over all its processes."""
    spent: dict[CaseKey, float] = {}
    for process in record.processes:
        for timing in process.timings:
            sampled = sum(map(sum, timing.samples_us.values()))
            condensed = sum(one.count * one.location_us for one in timing.condensed.values())
            seconds = (sampled + condensed) * (timing.inner_repeats or 1) / 1e6
            spent[timing.key] = spent.get(timing.key, 0.0) + seconds
    return {key: seconds for key, seconds in spent.items() if seconds > 0}


# ---- Merging ---------------------------------------------------------------------------------------------------------


def merged(files: Mapping[str, RunRecord]) -> RunRecord:
    """The record of all cases, from shards by the names of their files. Those of a shard that is not given are in it,
    not measured, and a note names them.

    Raises RecordError for what is no shard, and for shards that are not of one measurement, naming two files and what
    differs.
    """
    shards: dict[int, str] = {}
    for name, one in files.items():
        if one.run.shard is None or one.expected is None:
            raise RecordError(f"{name} is no shard: measure each part with `kernelgate bench --shard NUMBER/COUNT`")
        if (other := shards.setdefault(one.run.shard.number, name)) != name:
            raise RecordError(f"{other} and {name} are both shard {one.run.shard}: give one of them")
    names = [shards[number] for number in sorted(shards)]
    for name in names[1:]:
        facts, others = (_facts(files[one]) for one in (names[0], name))
        if differing := [what for what in facts | others if facts.get(what) != others.get(what)]:
            was, now = (of.get(differing[0], "missing") for of in (facts, others))
            raise RecordError(
                f"{names[0]} and {name} are not of one measurement: the {differing[0]} is {was} in the first and {now} "
                "in the second; merge the shards of one measurement only"
            )
    records = [files[name] for name in names]
    first, shard = records[0], records[0].run.shard or Shard(number=1, of=1, seed=0)
    environments, renamed = _environments(records)
    absent = sorted(set(range(1, shard.of + 1)) - shards.keys())
    checks = {kind for record in records if record.expected for kind in record.expected.checks}
    checks |= set(CHECKS_OF_FIRST if 1 in absent else ())
    expected = (first.expected or Expected()).model_copy(update={"checks": tuple(sorted(checks))})
    ended = min((record.run.ended for record in records), key=ENDINGS.index) or "cancelled"
    began = min((record.run.created_at for record in records if record.run.created_at), default=None)
    of_all = {"shard": None, "ended": ended, "created_at": began, "resumed_from": None}
    notes = {(note.code, note.card, note.text): note for record in records for note in record.notes}
    return RunRecord(
        run=first.run.model_copy(update=of_all),
        expected=expected,
        environments=environments,
        cards=first.cards,
        builds=first.builds,
        cases=expected.cases,
        processes=tuple(
            process.model_copy(
                update={
                    "id": f"{number}-{process.id}",
                    "environment": known.get(process.environment, process.environment),
                }
            )
            for number, one, known in zip(sorted(shards), records, renamed, strict=True)
            for process in one.processes
        ),
        checks=_checks(records),
        profile=tuple(profile for record in records for profile in record.profile),
        costs=summed(cost for record in records for cost in record.costs),
        notes=(*_shard_notes(shard, expected, records, absent), *notes.values()),
    )


def _facts(one: RunRecord) -> dict[str, object]:
    """What all shards of a measurement have in common, by what it is called."""
    run, machine, plan = one.run, one.environment, one.expected or Expected()
    shard = run.shard or Shard(number=1, of=1, seed=0)
    return {
        "number of shards": shard.of,
        "base commit": run.base_sha,
        "head commit": run.head_sha,
        "repository": run.repository,
        "policy": shard.policy,
        "seed": shard.seed,
        "kind of GPU": machine.device.name,
        "label of the GPU": run.gpu,
        "driver": machine.device.driver,
        "version of torch": machine.torch,
        "numerics": machine.numerics and machine.numerics.words,
        "number of processes": plan.processes,
        **{f"plan of card {card.name}": card.hash for card in plan.cards},
        **{f"plan of case {case.card}/{case.id}": case.model_dump_json() for case in plan.cases},
        **{f"library of the {build.side} of {build.card}": build.library_sha256 for build in one.builds},
    }


def _environments(records: Sequence[RunRecord]) -> tuple[tuple[Environment, ...], list[dict[str, str]]]:
    """Each machine once, and for each record the new names of its machines."""
    known: list[Environment] = []
    renamed: list[dict[str, str]] = []
    for record in records:
        names: dict[str, str] = {}
        for one in record.environments:
            same = next((old for old in known if old.model_copy(update={"id": one.id}) == one), None)
            if same is None:
                same = one.model_copy(update={"id": str(len(known))})
                known.append(same)
            names[one.id] = same.id
        renamed.append(names)
    return tuple(known), renamed


def _checks(records: Sequence[RunRecord]) -> tuple[Check, ...]:
    """Those of single shards as they are; the accuracies of a card's cases in one check."""
    every = [check for record in records for check in record.checks]
    whole = tuple(check for check in every if check.kind != "accuracy")
    parts = sorted((check for check in every if check.kind == "accuracy"), key=lambda check: check.card)
    return (*whole, *(_accuracy(list(of_card)) for _, of_card in groupby(parts, lambda check: check.card)))


def _accuracy(parts: Sequence[Check]) -> Check:
    accuracies = tuple(one for part in parts for one in part.accuracies)
    return parts[0].model_copy(
        update={
            "status": "passed" if accuracies else "skipped",
            "reason": "; ".join(dict.fromkeys(part.reason for part in parts if part.reason)) or None,
            "asked": sum(part.asked or 0 for part in parts),
            "run": sum(part.run or 0 for part in parts),
            "accuracies": accuracies,
        }
    )


def _shard_notes(
    shard: Shard, expected: Expected, records: Sequence[RunRecord], absent: Sequence[int]
) -> Iterator[Note]:
    yield Note(code=MEASURED_IN_SHARDS, text=f"measured in {shard.of} shards, which are judged together")
    if absent:
        held = {case.key for record in records for case in record.cases}
        lost = ", ".join(f"{case.card}/{case.id}".lstrip("/") for case in expected.cases if case.key not in held)
        which = "shard " + ", ".join(f"{number}/{shard.of}" for number in absent)
        yield Note(
            code=SHARD_MISSING,
            text=f"{which} {'is' if len(absent) == 1 else 'are'} missing: not measured: {lost or 'no case'}",
        )
