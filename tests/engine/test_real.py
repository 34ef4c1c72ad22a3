"""Two pull requests measured for real, on the CPU, from their opening to the comment.

In the other scenes gpu.py makes up what a GPU says, for the verbs that engine.py lists, and starter.py starts all verbs
faster than a runner does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy import policy
from tests.demo.__main__ import EVERY, FEWER, apply
from tests.engine.project import MEASURE, Project, hosted, replaces
from tests.workflows.documents import HOME_REPOSITORY, ROOT
from tests.workflows.language import Language

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path, language: Language) -> Iterator[Project]:
    def begin(tree: Path) -> None:
        apply((*EVERY.begin, *FEWER), tree)
        for file in (tree / "csrc").rglob("*.cu"):  # it takes a minute to compile what is not run
            file.unlink()
        # The runner of these tests has no GPU: the default branch plans the CPU's cases for it.
        replaces(".ci/kernels/attention.py", "    cpu_cases = [", "    cases = cpu_cases = [")(tree)

    with hosted(HOME_REPOSITORY, tmp_path, language, starter="") as project:
        # Both need a GPU: one to find it, the other for its counters. All else is real, as the workflow has it.
        project.stood_in = ("doctor", "profile")
        project.machine |= {
            "KERNELGATE_CACHE": str(tmp_path / "libraries"),
            "CUDA_VISIBLE_DEVICES": "",  # the CPU's kernel, also on a machine with a GPU
        }
        project.repository.change_main(begin)
        yield project


def test_faster(project: Project) -> None:
    """A head that leaves out what a causal mask hides. What a CPU measured never passes for an L4."""
    pull, *rest = project.pull(lambda tree: apply(EVERY.changes("faster"), tree))
    run = project.measure((pull, *rest))
    assert run.conclusion == "success", run.log
    found = record.read(project.artifacts[run.id]["kernelgate-record-l4"] / "run.json")
    assert (found.run.head_sha, found.run.base_sha) == (pull.head_sha, project.repository.main)
    assert (found.run.repository, found.run.run_id) == (HOME_REPOSITORY, run.id)
    assert {build.side: build.sha for build in found.builds} == {"base": project.repository.main, "head": pull.head_sha}
    assert found.environment.device.compute_capability is None
    timings = [timing for process in found.processes if process.role == "paired" for timing in process.timings]
    rounds = {len(timing.samples_us[side]) for timing in timings for side in ("base", "head")}
    assert min(rounds) >= 40, "fewer than 100 where the machine is slow"
    assert [process.role for process in found.processes].count("witness") == 3
    assert all(calls.compared and not calls.failed for timing in timings for calls in timing.calls.values())
    found_out = judge(found, policy.load(ROOT / ".ci/kernelgate.toml"))
    assert found_out.verdict is not Outcome.REGRESSED, "the other case may seem a percent slower on a busy machine"

    project.report(run.id)
    [comment] = project.server.bodies(1)
    ran = len(found.fuzz.results) if found.fuzz else 0
    assert ran > 38, "the card's own list, and what is risky besides"
    assert f"{ran} of {ran} fuzz cases" in comment
    [row] = [line for line in comment.splitlines() if line.endswith("fp32 causal |")]
    [(base, head)] = re.findall(r"([\d.]+) → ([\d.]+) ms", row)
    assert float(head) < 0.85 * float(base), "keys that no query sees are left out"
    assert "it is not known on which compute capability it was measured" in comment.splitlines()[0]
    [check] = project.server.checks.values()
    assert (pull.labels, check["conclusion"]) == ([], "action_required"), "head may be why nothing is known of it"
    assert project.server.reruns == [run.id], "the runner is the cause: it is measured again"


def test_wrong(project: Project) -> None:
    """A head that forgets its causal mask where a block is not full."""
    pull, *rest = project.pull(lambda tree: apply(EVERY.changes("wrong"), tree))
    run = project.measure((pull, *rest))
    assert run.jobs[MEASURE].steps["fuzz"] == "failure", run.log
    assert "bench" not in run.jobs[MEASURE].steps
    project.report(run.id)
    [comment] = project.server.bodies(1)
    assert "wrong result" in comment.splitlines()[0]
    [check] = project.server.checks.values()
    assert (check["conclusion"], pull.labels) == ("failure", [])
