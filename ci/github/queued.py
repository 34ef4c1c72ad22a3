"""What a merge queue is about to merge: the pull request of a group, and what was measured of it."""

from __future__ import annotations

from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import Run, RunRecord
from kernelgate.ci.github.client import Bot, merge_base, patiently, read_pull
from kernelgate.ci.github.fetch import fetch, read_run
from kernelgate.ci.github.plan import queued_pull
from kernelgate.ci.github.upsert import shown_stamp


class NoRecordError(KernelgateError):
    """Nothing that was measured of the queued pull request can be used."""


def record_of(bot: Bot, gpu: str, into: Path) -> tuple[int, RunRecord]:
    """The pull request of this run's group, and its record on this GPU, of the run that the bot's comment is about: as
    trustworthy as it was for the pull request's check. `into`: a folder to fetch it to.
    """
    group = bot.step.event().merge_group
    number = queued_pull(group.head_ref) if group else None
    if number is None:
        raise NoRecordError("no pull request is queued")
    stamp = patiently("comment", lambda: shown_stamp(bot, number), bot)
    pull = read_pull(bot, number)
    if stamp is None or stamp.head_sha != pull.head.sha:
        raise NoRecordError(f"#{number} has no verdict on its last commit")
    run = patiently("run", lambda: read_run(bot, stamp.run_id), bot)
    base = merge_base(bot, pull.base.sha, stamp.head_sha)
    commanded = Run(head_sha=stamp.head_sha, base_sha=base, pull_request=number)
    asked = None if run.event.startswith("pull_request") else commanded
    info = fetch(bot, run.id, into, asked, acceptances=False)
    file = into / f"{gpu}.run.json"
    if info.under_way or info.changes_judges or info.refused or info.failed or not file.exists():
        raise NoRecordError(f"the run of #{number} left no record that holds for it alone")
    return number, record.read(file)
