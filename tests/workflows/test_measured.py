"""A pull request measured for real, on the CPU: compiled, fuzzed, timed and judged, from its opening to the comment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.kernel import cards
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy import policy
from tests.engine.project import Project, hosted, replaces, touch_kernel
from tests.workflows.documents import HOME_REPOSITORY, ROOT
from tests.workflows.language import Language

SHOWN = {
    Outcome.IMPROVED: (["performance: improved"], "success"),
    Outcome.REGRESSED: (["performance: regressed"], "failure"),
    Outcome.EQUIVALENT: (["performance: unchanged"], "success"),
    Outcome.INCONCLUSIVE: ([], "neutral"),
}
"""Which labels and which conclusion of the check a verdict must lead to."""


@pytest.fixture
def project(tmp_path: Path, language: Language) -> Iterator[Project]:
    with hosted(HOME_REPOSITORY, tmp_path, language) as project:
        # Both need a GPU: one to find it, the other for its counters. All else is real, as the workflow has it.
        project.stood_in = ("doctor", "profile")
        project.machine |= {
            "KERNELGATE_CACHE": str(tmp_path / "libraries"),
            "CUDA_VISIBLE_DEVICES": "",  # the CPU's kernel, also on a machine with a GPU
        }
        # The runner of these tests has no GPU: the default branch plans the CPU's cases for it.
        before = "    cpu_cases = ["
        project.repository.change_main(replaces(".ci/kernels/attention.py", before, "    cases = cpu_cases = ["))
        yield project


@pytest.mark.slow
def test_a_kernel_is_fuzzed_timed_and_judged(project: Project) -> None:
    """No time is asserted, nor which verdict it is: machines are noisy. What a CPU measured never passes for an L4."""
    pull, *rest = project.pull(touch_kernel)
    run = project.measure((pull, *rest))
    assert run.conclusion == "success", run.log
    found = record.read(project.artifacts[run.id]["kernelgate-record-l4"] / "run.json")
    assert (found.run.head_sha, found.run.base_sha) == (pull.head_sha, project.repository.main)
    assert (found.run.repository, found.run.run_id) == (HOME_REPOSITORY, run.id)
    assert {build.side: build.sha for build in found.builds} == {"base": project.repository.main, "head": pull.head_sha}
    assert all(build.kernels for build in found.builds), "the compiler's facts travel with the libraries"
    assert found.environment.device.compute_capability is None
    assert [case.id for case in found.cases] == [
        case.id for case in cards.read(ROOT / cards.FOLDER)["attention"].suites["cpu"]
    ]
    timings = [timing for process in found.processes if process.role == "paired" for timing in process.timings]
    assert {len(timing.samples_us[side]) for timing in timings for side in ("base", "head")} == {100}
    assert [process.role for process in found.processes].count("witness") == 3
    assert all(set(timing.samples_us) == {"base", "head", "reference"} for timing in timings)
    assert all(set(timing.calls) == {"base", "head"} for timing in timings)
    assert all(calls.compared and not calls.failed for timing in timings for calls in timing.calls.values())

    project.report(run.id)
    [comment] = project.server.bodies(1)
    ran = len(found.fuzz.results) if found.fuzz else 0
    assert ran > 38, "the card's own list, and what is risky besides"
    assert f"{ran} of {ran} fuzz cases" in comment
    for name in ("S=512 B=1 H=8 fp32", "S=512 B=1 H=8 fp32 causal", "S=512 B=1 H=4 bf16"):
        assert f"| {name} |" in comment.replace("**", ""), "one that regressed stands out"
    rules = policy.load(ROOT / ".ci/kernelgate.toml")
    labels, conclusion = SHOWN[judge(found, rules).verdict]
    [check] = project.server.checks.values()
    if conclusion == "failure":
        assert (pull.labels, check["conclusion"]) == (labels, conclusion)
    else:
        assert "it is not known on which compute capability it was measured" in comment.splitlines()[0]
        assert (pull.labels, check["conclusion"]) == ([], "action_required"), "head may be why nothing is known of it"
        assert project.server.reruns == [run.id], "the runner is the cause: it is measured again"
