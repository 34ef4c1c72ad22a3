"""The commands of a measurement that several machines share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.bench import record
from kernelgate.bench.record import merging
from kernelgate.bench.system import progress
from kernelgate.ci.commands.options import OUTPUT, PATH, Answered, answers, argument


@dataclass(frozen=True)
class MergeAnswer:
    record: str
    """The file."""
    shards: int
    missing: str
    """Which shards were not given, and the cases that were not measured for it; "" where all were."""
    next: str
    """The command that judges it."""


@click.command()
@argument("records", nargs=-1, required=True, type=PATH, about="The shards' run records")
@click.option("-o", "--output", type=OUTPUT, required=True, help="The run record of all cases.")
@answers(MergeAnswer, "Print one JSON object: where the record is, and which shards are `missing`.")
def merge(records: tuple[Path, ...], output: Path) -> Answered:
    """Make one run record of those that `kernelgate bench --shard` wrote, which is judged as one.

    The shards must be of the same commits, policy, cards, seed and kind of GPU. The cases of one that is not given
    count as not measured, and hold the check.

    Exit codes: 0 merged, 3 they are not of one measurement, 64 usage.
    """
    made = merging.merged([merging.shard_file(str(path), record.read(path)) for path in records])
    missing = next((note.text for note in made.notes if note.code == merging.SHARD_MISSING), "")
    if missing:
        progress.say(missing)
    told = MergeAnswer(str(output), len(records), missing, f"kernelgate compare {output}")
    return Answered(told, str(output), files={output: record.to_json(made)})
