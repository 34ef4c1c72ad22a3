"""Reports of many pull requests at once, for tests/faults: how many calls to GitHub each takes, and what comes of it.

GitHub is the one of the tests, in this process: it keeps what it is told, and, where asked, answers some requests with
429 or resets their connection. Waits are cut to 20 ms. Every tenth pull request is reported by two jobs at the same
time.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kernelgate.bench import record
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import connect
from kernelgate.ci.github.fetch import fetch
from kernelgate.ci.github.publish import post
from kernelgate.ci.policy.policy import Policy
from tests.ci.report_examples import BASE_SHA, EXAMPLES
from tests.fakes.github_server import FakeGitHub, Json, Pull
from tests.runs import run_record

LONGEST_WAIT_S = 0.02
BODY = "## Intent and hypothesis\nLess waiting.\n## Profiler evidence\nFewer stalls.\n## Testing done\nmake pr\n"
"""All that measuring one case does not fill."""
CASE = "s512_b32_h8_d64_fp16"
ENDS = {"slower": ("failure", "performance: regressed"), "faster": ("success", "performance: improved")}
"""What becomes of each example: the check's conclusion, and the label."""


@dataclass(frozen=True)
class Reported:
    """One report."""

    calls: int
    """To GitHub, those that failed included."""
    waits: int
    twice: bool
    """Whether two jobs posted it at once."""


def load(pulls: int, bad_days: int, seed: int = 1) -> tuple[list[Reported], list[str]]:
    """Reports so many pull requests at once; `bad_days`: requests that get a 429 or a reset connection.

    With the pull requests that do not end with one comment, one check run and the right label.
    """
    with FakeGitHub() as github, tempfile.TemporaryDirectory() as folder:
        opened = [_open(github, number) for number in range(pulls)]
        _spoil(github, bad_days, np.random.default_rng(seed))
        with ThreadPoolExecutor(pulls) as pool:
            done = pool.map(lambda one: _report_both(github, one[0], one[1], Path(folder)), opened)
        return [one for both in done for one in both], [
            said for one, _, example in opened for said in _wrong(github, one, example)
        ]


def _open(github: FakeGitHub, number: int) -> tuple[Pull, Json, str]:
    example = ("slower", "faster")[number % 2]
    pull = github.open_pull(
        head_sha=f"{number:040x}", base_sha=BASE_SHA, head_ref=f"change-{number}", files=[{"filename": "csrc/k.cuh"}]
    )
    pull.body = BODY
    run = github.add_run(pull, status="queued", conclusion=None)
    github.add_job(run, "plan / plan", "success")
    github.add_job(run, "measure (l4) / measure", "success")
    github.add_artifact(run, "kernelgate-record-l4", {"run.json": _record(example, pull.head_sha)})
    return pull, run, example


def _record(example: str, head: str) -> bytes:
    """One of the example's cases alone: judging is not what is measured here."""
    whole = EXAMPLES[example]().record
    [timed] = (one for one in record.timed_cases(whole) if one.id == CASE)
    builds = tuple(build.model_copy(update={"sha": None}) for build in whole.builds)
    parts = {"run": record.Run(head_sha=head, base_sha=BASE_SHA), "builds": builds, "checks": whole.checks}
    return record.to_json(run_record((timed,), whole.environment, **parts)).encode()


def _spoil(github: FakeGitHub, bad_days: int, chance: np.random.Generator) -> None:
    """Requests anywhere in the load fail: before they did anything, or with their answer lost."""
    limited = {"status": 429, "headers": {"Retry-After": "1"}}
    kinds: Sequence[dict[str, Any]] = (limited, {"drop": "before"}, {"drop": "after"})
    for number in range(bad_days):
        method = ("GET", "GET", "POST", "PATCH")[chance.integers(4)]
        github.fault(method, ".*", skip=int(chance.integers(900)), **kinds[number % len(kinds)])


def _report_both(github: FakeGitHub, pull: Pull, run: Json, folder: Path) -> list[Reported]:
    first = _report(github, run, folder / f"{pull.number}-begun")
    run |= {"status": "completed", "conclusion": "success"}
    jobs = 2 if pull.number % 10 == 0 else 1
    with ThreadPoolExecutor(jobs) as pool:
        folders = [folder / f"{pull.number}-ended-{job}" for job in range(jobs)]
        return [first, *pool.map(lambda one: _report(github, run, one, jobs == 2), folders)]


def _report(github: FakeGitHub, run: Json, folder: Path, twice: bool = False) -> Reported:
    """What report.yml does: fetch, and post."""
    folder.mkdir()
    (folder / "event.json").write_text(json.dumps({"workflow_run": run}), "utf-8")
    step = Step({**github.environment, "GITHUB_ACTIONS": "", "GITHUB_EVENT_PATH": str(folder / "event.json")})
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        time.sleep(min(seconds, LONGEST_WAIT_S))

    bot = connect(step, sleep, pause_s=0)
    requester: Any = bot.repository.requester
    ask, calls = requester.requestJson, []

    def counted(*words: Any, **more: Any) -> Any:
        calls.append(words)
        return ask(*words, **more)

    requester.requestJson = counted
    fetch(bot, run["id"], folder)
    post(bot, folder, Policy())
    requester.close()
    return Reported(len(calls), len(waited), twice)


def _wrong(github: FakeGitHub, pull: Pull, example: str) -> list[str]:
    shown = [check for check in github.checks.values() if check["head_sha"] == pull.head_sha]
    ours = [(check["status"], check["conclusion"]) for check in shown if not check["name"].endswith("(twice)")]
    conclusion, label = ENDS[example]
    ends = (len(github.bodies(pull.number)), ours, pull.labels)
    wanted = (1, [("completed", conclusion)], [label])
    return [] if ends == wanted else [f"pull request {pull.number}: {ends}, not {wanted}"]
