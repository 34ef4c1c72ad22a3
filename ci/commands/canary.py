"""`kernelgate canary`: comparisons whose answer is known, which tell of the machine."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

import click

from kernelgate.bench import record
from kernelgate.bench.timing import canary as canaries
from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import OUTPUT, Answered, answers
from kernelgate.ci.commands.pair import lines
from kernelgate.ci.judge import verdict
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.policy.policy import Policy


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
    variables, number = os.environ, os.environ.get("GITHUB_RUN_ID", "")
    identity = record.Run(
        id=token_hex(8),
        producer="kernelgate",
        event=variables.get("GITHUB_EVENT_NAME"),
        repository=variables.get("GITHUB_REPOSITORY"),
        base_sha=commit,
        head_sha=commit,
        run_id=int(number) if number.isdecimal() else None,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    made = canaries.run(
        rules.processes.limit, lambda so_far: verdict.undecided(so_far, rules), identity, canaries.in_process
    )
    found = verdict.judge(made, rules, name=str(output))
    return Answered(verdict.as_json(found), "\n".join(lines(found)), files={output: record.to_json(made)})
