"""A release up to its publishing, in act."""

from __future__ import annotations

import pytest

from tests.engine.log import WorkflowRun
from tests.engine.project import Project

pytestmark = pytest.mark.nightly


def tagged(project: Project, tag: str) -> WorkflowRun:
    payload = project.event("push") | {"ref": f"refs/tags/{tag}"}
    return project.start("release.yml", "push", payload, sha=project.repository.main, ref=f"refs/tags/{tag}")


def test_a_release_is_built_and_waits_for_its_approval(project: Project) -> None:
    project.held.add("pypi")
    for tag in ("v0", "v0.2.0"):  # where others call it, and what is released
        project.repository.git("push", "--quiet", "origin", f"HEAD:refs/tags/{tag}")
    run = tagged(project, "v0.2.0")
    assert run.jobs["build"].conclusion == "success", run.log
    assert (run.jobs["publish"].conclusion, run.jobs["publish"].steps) == ("waiting", {})
    built = {file.name for file in project.artifacts[run.id]["dist"].iterdir()}
    assert built == {"kernelgate-0.2.0-py3-none-any.whl", "kernelgate-0.2.0.tar.gz"}
    project.repository.git("push", "--quiet", "origin", "HEAD:refs/tags/v1.0.0-rc1")
    other = tagged(project, "v1.0.0-rc1")
    assert other.jobs["build"].conclusion == "failure"
    assert "the tag is v1.0.0-rc1, and dist has: dist/kernelgate-1.0.0rc1-py3" in other.log
    assert project.artifacts[other.id] == {}
