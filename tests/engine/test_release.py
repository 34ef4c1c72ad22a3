"""A release up to its publishing, in act."""

from __future__ import annotations

import pytest

from tests.workflows.project import Project
from tests.workflows.runner import WorkflowRun

pytestmark = pytest.mark.nightly


def tagged(project: Project, tag: str) -> WorkflowRun:
    payload = project.event("push") | {"ref": f"refs/tags/{tag}"}
    main = project.repository.main
    return project.platform.start("release.yml", "push", payload, sha=main, ref=f"refs/tags/{tag}")


def test_a_release_is_built_and_waits_for_its_approval(project: Project) -> None:
    project.platform.protected.add("pypi")
    run = tagged(project, "v0.1.0")
    assert run.jobs["build"].conclusion == "success", run.log
    assert (run.jobs["publish"].conclusion, run.jobs["publish"].steps) == ("waiting", ())
    built = {file.name for file in project.platform.artifacts(run.id)["dist"].iterdir()}
    assert built == {"kernelgate-0.1.0-py3-none-any.whl", "kernelgate-0.1.0.tar.gz"}
    other = tagged(project, "v0.9.0")
    assert other.jobs["build"].conclusion == "failure"
    assert "the tag is v0.9.0, the version in pyproject.toml v0.1.0" in other.log
    assert project.platform.artifacts(other.id) == {}
