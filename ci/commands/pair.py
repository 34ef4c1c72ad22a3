"""The command that compares two commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.measure.run import new_seed, run_of
from kernelgate.bench.timing import canary as canaries
from kernelgate.bench.timing import command_pair
from kernelgate.bench.timing.command_pair import TO_US, CommandPair
from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import MORE_THAN_0, OUTPUT, Answered, GrowingRecord, answers
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.formatting import durations
from kernelgate.ci.judge import stopping, verdict
from kernelgate.ci.judge.case import RecordVerdict, worst_first
from kernelgate.ci.judge.sentences import mark
from kernelgate.ci.policy.policy import Policy

MAX_NAME = 60


@click.command()
@click.argument("base", metavar="CMD_A")
@click.argument("head", metavar="CMD_B")
@click.option("--unit", type=click.Choice(list(TO_US)), default="us", show_default=True, help="Of printed numbers.")
@click.option("--wall", is_flag=True, help="Ignore what they print: compare how long they run.")
@click.option("--timeout", type=MORE_THAN_0, default=600.0, show_default=True, help="Seconds of one run.")
@options.seed
@click.option("--output", "-o", type=OUTPUT, help="Keep the run record, which grows with each process.")
@options.with_rules(presets=True)
@answers(RecordVerdict)
def pair(
    base: str, head: str, timeout: float, seed: int | None, output: Path | None, rules: Policy, **printed: Any
) -> Answered:
    """Run two commands in turn, and say whether B is slower or faster than A, and how sure that is.

    \b
    kernelgate pair "./bench_old --json {out}" "./bench_new --json {out}"
    kernelgate pair "python bench.py --impl a" "python bench.py --impl b" --unit ms
    kernelgate pair "./old input" "./new input" --wall

    Each is a command line of the shell. What it prints, or writes to the file that {out} stands for, gives its times:
    nvbench's JSON (with --jsonbin its samples), or a JSON object of a number, or a list of numbers, by case. Of
    commands that print none, the duration counts. They alternate in random order until the verdict is certain, at most
    as often as `[processes] limit` of the policy says. Nothing is checked for correctness.

    Exit codes: as `kernelgate compare`.
    """
    if not base.strip() or not head.strip():
        raise UsageError("name two commands: kernelgate pair CMD_A CMD_B")
    seed = new_seed() if seed is None else seed
    commands = CommandPair(base, head, timeout_s=timeout, processes=rules.processes.limit, seed=seed, **printed)
    keep = GrowingRecord(output)
    made = command_pair.run(commands, lambda so_far: stopping.undecided(so_far, rules), keep)
    found = verdict.judge(made, rules, name=str(output or "pair"))
    return Answered(verdict.as_json(found), "\n".join(lines(found)), verdict.exit_code(found), keep.files)


def lines(found: RecordVerdict) -> Iterator[str]:
    """A line for each case, the worst first: the times of A and B, and how B changes them."""
    if found.refused:
        yield f"Cannot be judged: {found.refused}"
    width = max((len(visible(case.id, MAX_NAME)) for case in found.cases), default=0)
    for case in worst_first(found.cases):
        times = " → ".join(durations(case.base_us, case.head_us))
        yield f"{mark(case.status).glyph} {visible(case.id, MAX_NAME):<{width}}  {times}: {case.sentence}"


@click.command()
@click.option("--commit", help="Under which the history keeps it: the default branch's.")
@click.option("-o", "--output", type=OUTPUT, required=True, help="The run record.")
@answers(RecordVerdict)
@options.with_rules()
def canary(commit: str | None, output: Path, rules: Policy) -> Answered:
    """Time two functions that are equal, and one that does 2% more, in fresh processes; for each night on each GPU.

    The history counts false alarms and detections, and `kernelgate doctor --gpu` compares GPUs of one kind by it.

    Exit codes: 0 measured, 3 could not run, 64 usage.
    """
    identity = run_of(commit, commit)
    made = canaries.run(
        rules.processes.limit, lambda so_far: stopping.undecided(so_far, rules), identity, canaries.in_process
    )
    found = verdict.judge(made, rules, name=str(output))
    return Answered(verdict.as_json(found), "\n".join(lines(found)), files={output: record.to_json(made)})
