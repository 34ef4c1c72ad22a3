"""An honest measurement as the default branch plans it, and the way of a run's records to what is shown of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from kernelgate.bench import record
from kernelgate.bench.record import (
    Build,
    Calls,
    Card,
    Case,
    Check,
    Device,
    Environment,
    Expected,
    FuzzResult,
    Run,
    RunRecord,
    TimedCase,
    Work,
)
from kernelgate.ci.document import render
from kernelgate.ci.github.assemble import Task, Trusted, assemble
from kernelgate.ci.github.fetch import RunInfo, fetch
from kernelgate.ci.github.publish import post
from kernelgate.ci.github.untrusted_artifact import RefusedError, checked_record
from kernelgate.ci.judge.case import RecordVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Policy
from tests.ci.desk import Desk
from tests.runs import process, run_record

HEAD, BASE = "a" * 40, "b" * 40
CARD = Card(name="norm", label="Norm", source="default branch", reference="PyTorch")
CASES = tuple(
    Case(card="norm", id=f"m{rows}", axes={"M": rows, "dtype": "fp16"}, work=Work(flops=6e9, bytes=20e6))
    for rows in (512, 1024)
)
PLAN = Expected(
    label="l4", target="8.9", cards=(CARD,), cases=CASES, checks=("fuzz", "sanitizer", "witness"), processes=2
)
TWO = {"l4": PLAN, "h100": PLAN.model_copy(update={"label": "h100", "target": "9.0"})}
L4 = Environment(device=Device(name="NVIDIA L4", compute_capability="8.9"))
BODY = """## Intent and hypothesis
Fewer registers.
## Profiler evidence
200 registers, then 128
## Correctness
- [x] fuzz
## Statistical results
as measured
## Testing done
make pr
"""
ROUNDS = 40
COMPARED = {"base": Calls(made=400, compared=100), "head": Calls(made=400, compared=100)}

Change = Callable[[dict[str, Any]], object]
"""Edits the JSON of a record in place."""


@cache
def measured(change: float = 0.0, worse: float | None = None) -> RunRecord:
    """A whole record whose head takes (1 + change) times as long as its base. `worse`: of the second case alone."""
    rng = np.random.default_rng(7)
    changes = (change, change if worse is None else worse)
    timed = [_timed(rng, case, by) for case, by in zip(CASES, changes, strict=True)]
    fuzzed = tuple(FuzzResult(id=f"f{n}", seed=n, passed=True, max_abs_error=1e-4, error_ratio=0.2) for n in range(4))
    return run_record(
        timed,
        L4,
        run=Run(repository="octo-org/kernels", head_sha=HEAD, base_sha=BASE, run_attempt=1, ended="complete"),
        cards=(CARD,),
        builds=tuple(
            Build(card="norm", side=side, sha=sha, key=side, library_sha256=side * 8, targets=("sm_89",))
            for side, sha in (("base", BASE), ("head", HEAD))
        ),
        checks=(
            Check(kind="fuzz", card="norm", status="passed", asked=4, run=4, failed=0, results=fuzzed),
            Check(kind="sanitizer", card="norm", status="passed", asked=2, run=2, tools=("memcheck", "racecheck")),
        ),
    )


def _timed(rng: np.random.Generator, case: Case, change: float) -> TimedCase:
    def times(centre: float, count: int = ROUNDS) -> list[float]:
        return (centre * np.exp(rng.normal(0, 0.002, count))).tolist()

    head = 100 * (1 + change)
    sides = {"base": 100.0, "head": head, "reference": 110.0}
    paired = [process({side: times(at) for side, at in sides.items()}, calls=COMPARED) for _ in range(4)]
    alone = process({"base": times(100, 12), "head": times(head, 12)}, "witness", calls=COMPARED)
    return TimedCase(case, (*paired, alone))


def changed(made: RunRecord, *changes: Change) -> bytes:
    """The record's JSON after these edits."""
    content = json.loads(record.to_json(made))
    for change in changes:
        change(content)
    return json.dumps(content).encode()


def only(case: str) -> Change:
    """What `/kernelgate bench CASE` leaves."""

    def change(content: dict[str, Any]) -> None:
        content["cases"] = [one for one in content["cases"] if one["id"] == case]
        for one in content["processes"]:
            one["timings"] = [timing for timing in one["timings"] if timing["case"] == case]

    return change


def timings(content: dict[str, Any]) -> list[dict[str, Any]]:
    return [timing for one in content["processes"] if one["role"] == "paired" for timing in one["timings"]]


@dataclass(frozen=True)
class Shown:
    """What stands on the pull request: the conclusion of the newest check, the labels and the bot's comment."""

    conclusion: str
    labels: tuple[str, ...]
    comment: str


@dataclass
class PullRequestRuns:
    """A pull request, and one run of its head after the other."""

    desk: Desk
    folder: Path
    plan: Mapping[str, Expected] = field(default_factory=lambda: {"l4": PLAN})

    def __post_init__(self) -> None:
        files = [{"filename": "csrc/k.cu", "patch": "@@ -1 +1 @@\n-a\n+b"}]
        self.desk.github.open_pull(head_sha=HEAD, base_sha=BASE, files=files, body=BODY)

    def run(
        self,
        artifacts: Sequence[tuple[str, bytes | dict[str, bytes]]],
        jobs: Mapping[str, tuple[str, Sequence[tuple[str, str]]]] | None = None,
        command: bool = False,
        **facts: Any,
    ) -> Shown:
        """Reports a run that left these artifacts, a record each or the files, by their labels. `command`: one that a
        comment started."""
        github = self.desk.github
        event = {"event": "issue_comment", "head_sha": "c" * 40} if command else {}
        run = github.add_run(github.pulls[1], **event | facts)
        for name, (ended, steps) in (jobs or {"measure (l4) / measure": ("success", ())}).items():
            github.add_job(run, name, ended, *steps)
        for label, content in artifacts:
            files = content if isinstance(content, dict) else {"run.json": content}
            github.add_artifact(run, f"kernelgate-record-{label}", files)
        into = self.folder / f"run{run['id']}"
        fetch(self.desk.bot, run["id"], into, Run(head_sha=HEAD, base_sha=BASE, pull_request=1) if command else None)
        assert post(self.desk.bot, into, Policy(), trusted=Trusted(self.plan)) == 0
        return self.shown()

    def shown(self) -> Shown:
        github = self.desk.github
        latest = github.checks[max(github.checks)]
        return Shown(latest["conclusion"], tuple(github.pulls[1].labels), "\n".join(github.bodies(1)))


def judged(
    folder: Path, data: bytes, plan: Expected = PLAN, policy: Policy | None = None, task: Task = "bench"
) -> Shown:
    """What is posted of one record, through the door and without GitHub."""
    run = Run(
        repository="octo-org/kernels", head_sha=HEAD, base_sha=BASE, run_id=1, run_attempt=1, event="pull_request"
    )
    refused: tuple[str, ...] = ()
    try:
        record.write(checked_record(data, run), folder / "l4.run.json")
    except RefusedError as error:
        refused = (str(error),)
    info = RunInfo(run=run, run_url="https://github.com/o/r/actions/runs/1", refused=refused)
    made = assemble(folder, info, policy or Policy(), task, Trusted({"l4": plan}))
    label = made.decision.label
    return Shown(made.decision.conclusion, (label,) if label else (), render.comment(made.report))


_VERDICTS: dict[str, RecordVerdict] = {}


def judged_once(
    made: RunRecord, policy: Policy, baseline: RunRecord | None = None, *words: Any, **options: Any
) -> RecordVerdict:
    """As the judge, which says the same of the same."""
    key = record.to_json(made) + (record.to_json(baseline) if baseline else "") + repr((policy, words, options))
    if key not in _VERDICTS:
        _VERDICTS[key] = judge(made, policy, baseline, *words, **options)
    return _VERDICTS[key]
