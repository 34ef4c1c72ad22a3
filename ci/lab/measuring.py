"""The process that measures one try: builds both sides, fuzzes, times and profiles them, into one run record.

`python -m kernelgate.ci.lab.measuring FOLDER` reads FOLDER/asked.json and leaves FOLDER/run.json, or
FOLDER/failure.json where there is nothing to judge. Its parent ends it when it falls silent, and loses nothing then.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final, Literal

from kernelgate.bench import record
from kernelgate.bench.core import files
from kernelgate.bench.core.errors import BuildError, CannotCompileError, KernelgateError
from kernelgate.bench.record import Model
from kernelgate.bench.system.progress import say
from kernelgate.ci.pipeline import local, prior
from kernelgate.ci.policy import policy

ASKED, RECORD, FAILURE = "asked.json", "run.json", "failure.json"
SESSION_FUZZ_S: Final = 10.0
"""Of a try, for its fuzz trials, the riskiest first. Before a merge they are run in full."""


class MeasuringRequest(Model):
    """What is measured."""

    repo: Path
    base: str
    head: str
    """Commits, or snapshots of working trees."""
    card: str
    cases: tuple[str, ...]
    """Of the card; none: as the device has it."""


class MeasuringFailure(Model):
    """Why there is no record, or none that can be judged."""

    kind: Literal["build", "measurement"]
    said: str


def measure(asked: MeasuringRequest, folder: Path) -> record.RunRecord:
    """The record of a try. Raises KernelgateError where there is none."""
    from kernelgate.bench.check import trials
    from kernelgate.bench.kernel import cards, compared
    from kernelgate.bench.measure import run as verbs
    from kernelgate.bench.system import git
    from kernelgate.bench.system.worker import worker_pool

    known = policy.load(asked.repo / policy.POLICY_FILE if (asked.repo / policy.POLICY_FILE).exists() else None)
    gates = known.gates.model_copy(update={"sanitizer": "ignore"})  # before a merge, not at each try
    rules = local.MeasuringRules(
        known.model_copy(update={"gates": gates}),
        prior.past(say),
        asked.cases,
        SESSION_FUZZ_S,
        "full",  # what is recommended next goes by NVIDIA's rules, too
    )
    say("building")
    with worker_pool() as processes, git.worktree(asked.repo, asked.base, cards.FOLDER) as tree:
        processes.prepare({trials.WORKER: 1})  # it loads torch while libraries are compiled
        heads = verbs.libraries(asked.repo, asked.head, None)
        sides = verbs.against(heads, verbs.bases(asked.repo, asked.base))
        judging = cards.read(tree / cards.FOLDER)
        if asked.card not in sides:
            raise KernelgateError(f"the change leaves no card {asked.card}: {cards.FOLDER}/{asked.card}.py is gone")
        about = compared.judged(judging, {asked.card: sides[asked.card]})
        return local.measured(about, processes, folder / RECORD, rules)


def main() -> int:
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that worktrees and workers are tidied away
        signal.signal(number, lambda code, _: sys.exit(128 + code))
    folder = Path(sys.argv[1])
    asked = MeasuringRequest.model_validate_json((folder / ASKED).read_text(encoding="utf-8"))
    try:
        record.write(measure(asked, folder), folder / RECORD)
    except KernelgateError as error:
        of_sources = isinstance(error, BuildError) and not isinstance(error, CannotCompileError)
        failure = MeasuringFailure(kind="build" if of_sources else "measurement", said=str(error))
        files.write(folder / FAILURE, failure.model_dump_json() + "\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
