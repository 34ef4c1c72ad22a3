"""A measurement whose cases two runners share, in act."""

from __future__ import annotations

import re

import pytest

from tests.engine.project import Project, replaces, touch_kernel, two_cases
from tests.engine.test_pull_requests import verdict

pytestmark = pytest.mark.nightly
SHARDS = ["measure (l4) / measure 1/2", "measure (l4) / measure 2/2"]


@pytest.fixture
def project(project: Project) -> Project:
    """Its policy has two runners of a label, and its card two cases."""
    project.repository.change_main(two_cases)
    project.repository.change_main(replaces(".ci/kernelgate.toml", 'target = "8.9"\n', 'target = "8.9"\nshards = 2\n'))
    project.runners = 2
    return project


def table(project: Project) -> dict[str, str]:
    """Of each case, what the comment's table says of its change."""
    [comment] = project.server.bodies(1)
    return {
        case: change for change, case in re.findall(r"^\| \S+ \| (\S+) \| .* \| (S=\d+) \|$", comment, re.MULTILINE)
    }


def test_two_runners_measure_a_pull_request(project: Project) -> None:
    run = project.measure(project.pull(touch_kernel))
    assert run.conclusion == "success", run.log
    assert {*SHARDS, "measure (l4) / merge"} < set(run.jobs)
    project.report(run.id)
    headline, conclusion, labels = verdict(project)
    assert "slower on the L4" in headline
    assert set(table(project)) == {"S=512", "S=256"}
    assert "—" not in table(project).values()
    [comment] = project.server.bodies(1)
    assert "measured in 2 shards, which are judged together" in comment
    assert re.search(r"correct: (\d+) of \1 fuzz cases", comment), "the first shard fuzzed"
    assert "Incomplete" not in comment
    assert (conclusion, labels) == ("failure", ["performance: regressed"])


def test_one_of_two_runners_is_lost(project: Project) -> None:
    project.machine["GPU_IS"] = "lost 2/2"
    run = project.measure(project.pull(touch_kernel))
    assert [run.jobs[name].conclusion for name in SHARDS] == ["success", "failure"], run.log
    project.report(run.id)
    [comment] = project.server.bodies(1)
    assert (
        "Incomplete: not everything was measured, since the job `measure (l4) / measure 2/2` stopped at bench"
        in comment
    )
    told = table(project)
    assert set(told) == {"S=512", "S=256"}
    [missing] = [case for case, change in told.items() if change == "—"]
    assert f"`s{missing[2:]}_b32_h8_d64_fp16` was not timed" in comment
    said = comment.replace("`", "")
    assert f"shard 2/2 is missing: not measured: attention/s{missing[2:]}_b32_h8_d64_fp16" in said
    assert verdict(project)[1:] == ("failure", ["performance: regressed"]), "the rest stands"
