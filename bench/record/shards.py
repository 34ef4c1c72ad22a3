"""Which shard measures which cases, the same on every machine, so that each shard finds its own part alone; and one
record from those of all shards, as if one machine had measured every case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean

from kernelgate.bench.core.errors import RecordError
from kernelgate.bench.record.findings import Check, Note, summed
from kernelgate.bench.record.run_record import RunRecord
from kernelgate.bench.record.subjects import Build, CaseKey, CheckKind, Environment, Expected, Shard

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


@dataclass(frozen=True)
class ShardFile:
    """A record and the name of its file."""

    name: str
    record: RunRecord
    shard: Shard


def shard_file(name: str, record: RunRecord) -> ShardFile:
    """Raises RecordError for what is no shard."""
    if record.run.shard is None or record.expected is None:
        raise RecordError(f"{name} is no shard: measure each part with `kernelgate bench --shard NUMBER/COUNT`")
    return ShardFile(name, record, record.run.shard)


def merged(files: Sequence[ShardFile]) -> RunRecord:
    """The record of all cases. Those of a shard that is not given are in it, not measured, and a note names them.

    Raises RecordError for shards that are not of one measurement, naming two files and what differs.
    """
    ordered = sorted(files, key=lambda one: one.shard.number)
    first = ordered[0]
    for one, other in pairwise(ordered):
        if one.shard.number == other.shard.number:
            raise RecordError(f"{one.name} and {other.name} are both shard {one.shard}: give one of them")
    for other in ordered[1:]:
        for what, was, now in _apart(first, other):
            raise RecordError(
                f"{first.name} and {other.name} are not of one measurement: the {what} is {was} in the first and {now} "
                "in the second; merge the shards of one measurement only"
            )
    records = [one.record for one in ordered]
    environments, renamed = _environments(records)
    absent = sorted(set(range(1, first.shard.of + 1)) - {one.shard.number for one in ordered})
    checks = {kind for record in records if record.expected for kind in record.expected.checks}
    checks |= set(CHECKS_OF_FIRST if 1 in absent else ())
    expected = (first.record.expected or Expected()).model_copy(update={"checks": tuple(sorted(checks))})
    ended = min((record.run.ended for record in records), key=ENDINGS.index) or "cancelled"
    began = min((record.run.created_at for record in records if record.run.created_at), default=None)
    of_all = {"shard": None, "ended": ended, "created_at": began, "resumed_from": None}
    notes = {(note.code, note.card, note.text): note for record in records for note in record.notes}
    return RunRecord(
        run=first.record.run.model_copy(update=of_all),
        expected=expected,
        environments=environments,
        cards=first.record.cards,
        builds=first.record.builds,
        cases=expected.cases,
        processes=tuple(
            process.model_copy(
                update={
                    "id": f"{one.shard.number}-{process.id}",
                    "environment": names.get(process.environment, process.environment),
                }
            )
            for one, names in zip(ordered, renamed, strict=True)
            for process in one.record.processes
        ),
        checks=_checks(records),
        profile=tuple(profile for record in records for profile in record.profile),
        costs=summed(cost for record in records for cost in record.costs),
        notes=(*_shard_notes(first.shard, expected, records, absent), *notes.values()),
    )


def _apart(one: ShardFile, other: ShardFile) -> Iterator[tuple[str, object, object]]:
    """What must be the same and is not, with both values."""
    there = _facts(other)
    yield from ((what, was, there[what]) for what, was in _facts(one).items() if was != there[what])
    for what, mine, theirs in (
        ("plan", _planned(one.record), _planned(other.record)),
        ("set of compiled libraries", _libraries(one.record.builds), _libraries(other.record.builds)),
    ):
        if mine != theirs:
            differing = sorted(key for key in mine | theirs if mine.get(key) != theirs.get(key))
            yield what, mine.get(differing[0], "another"), f"{theirs.get(differing[0], 'another')} ({differing[0]})"


def _facts(one: ShardFile) -> dict[str, object]:
    run, machine = one.record.run, one.record.environment
    return {
        "number of shards": one.shard.of,
        "base commit": run.base_sha,
        "head commit": run.head_sha,
        "repository": run.repository,
        "policy": one.shard.policy,
        "seed": one.shard.seed,
        "kind of GPU": machine.device.name,
        "label of the GPU": run.gpu,
        "driver": machine.device.driver,
        "version of torch": machine.torch,
        "numerics": machine.numerics and machine.numerics.words,
    }


def _planned(record: RunRecord) -> dict[str, str]:
    """The cards and cases that were asked for, each with what decides about it."""
    expected = record.expected or Expected()
    cards = {f"card {card.name}": card.hash or "no hash" for card in expected.cards}
    cases = {f"case {case.card}/{case.id}": case.model_dump_json() for case in expected.cases}
    return {**cards, **cases, "processes": str(expected.processes)}


def _libraries(builds: Iterable[Build]) -> dict[str, str]:
    return {f"the {one.side} of {one.card}": one.library_sha256 or "unknown" for one in builds}


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
