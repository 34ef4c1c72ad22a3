"""What the default branch compiled is not compiled again, and what a pull request left is never taken for it."""

from __future__ import annotations

import pytest

from kernelgate.bench.build import library
from kernelgate.bench.build.library import Library
from tests.workflows.project import Project, touch_kernel
from tests.workflows.runner import WorkflowRun

BASE, HEAD = "build / base", "build / head"


def on_a_fresh_machine(project: Project, name: str) -> None:
    project.platform.machine["KERNELGATE_CACHE"] = str(project.platform.folder / name)


def push(project: Project) -> WorkflowRun:
    """The baseline workflow, as a push to the default branch starts it."""
    main = project.repository.main
    project.server.merge_bases["main", main] = main
    on_a_fresh_machine(project, "of the push")
    return project.platform.start(
        "refresh-baseline.yml", "push", project.event("push"), sha=main, ref="refs/heads/main", only=("plan", "build")
    )


def built(project: Project, run: WorkflowRun, side: str) -> Library:
    return library.read_all(project.platform.artifacts(run.id)[f"kernelgate-library-{side}"]).built["attention"]


def step(run: WorkflowRun, name: str) -> str:
    return next(one.log for job in (BASE, HEAD) for one in run.jobs[job].steps if one.name == name)


@pytest.mark.nightly
def test_a_base_that_the_default_branch_compiled_is_not_compiled_again(project: Project) -> None:
    """And what a pull request left for its own commit is compiled anew, whatever its library says it is."""
    pushed = push(project)
    assert pushed.jobs[HEAD].conclusion == "success", pushed.log
    on_a_fresh_machine(project, "of the pull request")
    run = project.measure(project.pull(touch_kernel))
    assert run.jobs[BASE].conclusion == "success", run.log
    assert "need not be compiled again" in step(run, "reuse what the default branch compiled")
    assert "cached, compiled in" in step(run, "build base")
    assert "cached" not in step(run, "build head")
    ours, theirs = built(project, run, "base").manifest, built(project, pushed, "head").manifest
    assert (ours.sha256, ours.key, ours.sha) == (theirs.sha256, theirs.key, project.repository.main)
    on_a_fresh_machine(project, "of the same pull request once more")
    again = project.measure(project.pull(touch_kernel))
    assert "cached" not in step(again, "build head")
    assert built(project, again, "head").manifest.sha256 == built(project, run, "head").manifest.sha256


@pytest.mark.nightly
def test_a_poisoned_library_of_a_pull_request_is_not_the_base(project: Project) -> None:
    """Its run hands over, under the very name and for the default branch's commit, a library with a key that is honest
    and code that is not. All else of the attack would work: the library itself is whole."""
    pushed = push(project)
    honest = built(project, pushed, "head")
    folder = project.platform.artifacts(pushed.id)["kernelgate-library-head"]
    evil = honest.path.read_bytes() + b"evil"
    (folder / "attention/kernel.so").write_bytes(evil)
    text = (folder / "attention/library.json").read_text("utf-8")
    forged = text.replace(honest.manifest.sha256, library.content_digest(folder / "attention", "extension"))
    (folder / "attention/library.json").write_text(forged, "utf-8")
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for artifact in list(project.server.artifacts.values()):
        artifact["expired"] = True
    for facts in ({"event": "pull_request"}, {"event": "issue_comment"}, {"event": "workflow_dispatch"}):
        found = {"head_sha": project.repository.main, "head_branch": "main"}
        project.server.add_artifact(project.server.add_run(**facts, **found), "kernelgate-library-head", files)
    on_a_fresh_machine(project, "of the pull request")
    run = project.measure(project.pull(touch_kernel))
    assert run.jobs[BASE].conclusion == "success", run.log
    assert "0 libraries of the default branch" in step(run, "reuse what the default branch compiled")
    assert "cached" not in step(run, "build base")
    assert built(project, run, "base").path.read_bytes() != evil
