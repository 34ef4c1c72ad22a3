"""`/kernelgate` in comments, and what a person dispatches, in act."""

from __future__ import annotations

import pytest

from tests.workflows.project import DESCRIPTION, Project, touch_kernel

CLAIM = "- s512_b32_h8_d64_fp16: 10% faster"
pytestmark = pytest.mark.nightly


def test_a_maintainer_measures_and_accepts(project: Project) -> None:
    pull, _, _ = project.pull(touch_kernel, body=DESCRIPTION.replace(CLAIM, "None."))
    project.server.collaborators["maintainer"] = "write"
    project.server.add_run(pull)  # what the push started
    run = project.comment(pull, "/kernelgate bench", "maintainer")
    assert run.conclusion == "success", run.log
    assert {"authorise", "build / build", "measure (l4) / measure", "report / report"} == set(run.jobs)
    assert pull.labels == ["performance: regressed"]
    accepted = project.comment(pull, "/kernelgate accept all because $(touch owned) rounding is exact", "maintainer")
    assert set(accepted.jobs) == {"authorise", "accept / report"}, accepted.log
    [comment] = [body for body in project.server.bodies(pull.number) if "topic=verdict" in body]
    assert "Accepted by `@maintainer`, until the next push: " in comment
    assert {check["name"]: check["conclusion"] for check in project.server.checks.values()} == {
        "kernelgate verdict": "neutral",
        "kernelgate accepted": "neutral",
    }


@pytest.mark.parametrize("author", ["stranger", "some-app[bot]"])
def test_who_may_not_write_starts_nothing(project: Project, author: str) -> None:
    pull, _, _ = project.pull(touch_kernel)
    run = project.comment(pull, "/kernelgate bench", author)
    assert set(run.jobs) == {"authorise"}, run.log
    assert project.server.checks == {}
    assert pull.labels == []
    assert not [body for body in project.server.bodies(pull.number) if "topic=verdict" in body]
