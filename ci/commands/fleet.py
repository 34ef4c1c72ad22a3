"""The commands of a measurement that several machines share."""

from __future__ import annotations

import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system import git, progress
from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import OUTPUT, OUTPUT_FOLDER, PATH, Answered, answers, argument
from kernelgate.ci.pipeline import slurm
from kernelgate.ci.policy import policy


@dataclass(frozen=True)
class MergeAnswer:
    record: str
    shards: int
    missing: str
    """Which shards were not given, and the cases that were not measured for it; "" where all were."""
    next: str


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
    made = record.merged({str(path): record.read(path) for path in records})
    missing = next((note.text for note in made.notes if note.code == record.SHARD_MISSING), "")
    if missing:
        progress.say(missing)
    told = MergeAnswer(str(output), len(records), missing, f"kernelgate compare {output}")
    return Answered(told, str(output), files={output: record.to_json(made)})


@dataclass(frozen=True)
class SubmitAnswer:
    output: str
    """The folder of the scripts, logs and records."""
    scripts: dict[str, str]
    array: int | None
    """The job that measures, a task a shard; null after --dry-run, …"""
    merge: int | None
    """… and so the one that merges, judges and writes the comment."""


@click.command()
@argument("base", about="The base commit")
@argument("head", about="The head commit")
@click.option(
    "--slurm", "by_slurm", is_flag=True, required=True, expose_value=False,
    help="Submit to the Slurm cluster of this machine.",
)  # fmt: skip
@click.option(
    "--shards", type=click.IntRange(1, 1000), default=1, show_default=True, help="How many machines share it."
)
@click.option("--gpu", help="The type of GPU, as Slurm names it: --gres=gpu:TYPE:1. Default: none is asked for.")
@click.option("--partition", help="Slurm's partition. Default: the cluster's.")
@options.from_cards
@click.option("--python", type=options.PYTHON, help="Run kernels in this Python. Default: the policy's.")
@options.seed
@click.option("-o", "--output", type=OUTPUT_FOLDER, help="A new folder that all nodes see. Default: out/slurm-HEAD.")
@click.option("--dry-run", is_flag=True, help="Print both scripts, and submit nothing.")
@answers(SubmitAnswer, "Print one JSON object: the folder, both `scripts`, and the jobs' numbers.")
def submit(
    base: str, head: str, gpu: str | None, seed: int | None, output: Path | None, dry_run: bool, **asked: Any
) -> Answered:
    """Measure two commits on a Slurm cluster, in shards; then merge, judge and write the comment.

    The checkout, --cards, Python and the output must be on a file system that all nodes see. A shard that is preempted
    is requeued, and goes on from its own record.

    Exit codes: 0 submitted, 3 Slurm or git refused (why), 64 usage.
    """
    repo = git.root(Path.cwd())
    base, head = git.resolve(repo, base), git.resolve(repo, head)
    folder = (output or Path("out") / f"slurm-{head[:12]}").absolute()
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} holds an earlier submission: name a new folder with --output")
    whole = slurm.Submission(
        kernelgate=(sys.executable, "-P", "-m", "kernelgate.ci.commands.cli"),
        repository=repo,
        output=folder,
        base=base,
        head=head,
        seed=secrets.randbelow(2**31) if seed is None else seed,
        gpu=gpu,
        times=options.stored_times(policy.load(), gpu, repo),
        **asked,
    )
    scripts = {slurm.ARRAY: whole.array_script(), slurm.MERGE: whole.merge_script()}
    if dry_run:
        return Answered(SubmitAnswer(str(folder), scripts, None, None), "\n".join(scripts.values()))
    files.try_folder(folder)
    array, merge = slurm.submit(folder, scripts)
    text = f"job {array} measures, job {merge} merges and judges: {folder}/comment.md"
    return Answered(SubmitAnswer(str(folder), scripts, array, merge), text)
