"""What the default branch compiled is not compiled again, and what a pull request left is never taken for it."""

from __future__ import annotations

import pytest

from kernelgate.bench.build import library
from kernelgate.bench.build.library import Library
from tests.engine.log import WorkflowRun
from tests.engine.project import Project, touch_kernel

pytestmark = pytest.mark.nightly
BUILDING = ("plan", "build")


def built(project: Project, run: WorkflowRun, side: str) -> Library:
    return library.read_all(project.artifacts[run.id][f"kernelgate-library-{side}"]).built["attention"]


@pytest.fixture
def pushed(project: Project) -> Library:
    """What the baseline workflow compiled, as a push to the default branch starts it."""
    main = project.repository.main
    project.server.merge_bases["main", main] = main
    project.machine["KERNELGATE_CACHE"] = str(project.folder / "of the push")
    run = project.on_main("refresh-baseline.yml", "push", project.event("push"), BUILDING)
    assert run.jobs["build / head"].conclusion == "success", run.log
    return built(project, run, "head")


def measured(project: Project, said: str, cache: str) -> tuple[WorkflowRun, dict[str, str]]:
    """A pull request's build on a fresh machine, and what it says of each side."""
    project.machine["KERNELGATE_CACHE"] = str(project.folder / cache)
    run = project.measure(project.pull(touch_kernel), only=BUILDING)
    base, head = run.jobs["build / base"], run.jobs["build / head"]
    assert (base.conclusion, head.conclusion) == ("success", "success"), run.log
    assert said in base.logs["reuse what the default branch compiled"]
    assert "cached" not in head.logs["build head"]
    return run, base.logs


def test_a_base_that_the_default_branch_compiled_is_not_compiled_again(project: Project, pushed: Library) -> None:
    """And what a pull request left for its own commit is compiled anew, whatever its library says it is."""
    run, base = measured(project, "need not be compiled again", "of the pull request")
    assert "cached, compiled in" in base["build base"]
    ours, theirs = built(project, run, "base").manifest, pushed.manifest
    assert (ours.sha256, ours.key, ours.sha) == (theirs.sha256, theirs.key, project.repository.main)
    again, _ = measured(project, "need not be compiled again", "of the same pull request once more")
    assert built(project, again, "head").manifest.sha256 == built(project, run, "head").manifest.sha256


def test_a_poisoned_library_of_a_pull_request_is_not_the_base(project: Project, pushed: Library) -> None:
    """Its run hands over, under the very name and for the default branch's commit, a library with a key that is honest
    and code that is not. All else of the attack would work: the library itself is whole."""
    folder = pushed.path.parents[1]
    evil = pushed.path.read_bytes() + b"evil"
    (folder / "attention/kernel.so").write_bytes(evil)
    text = (folder / "attention/library.json").read_text("utf-8")
    forged = text.replace(pushed.manifest.sha256, library.content_digest(folder / "attention", "extension"))
    (folder / "attention/library.json").write_text(forged, "utf-8")
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for artifact in project.server.artifacts.values():
        artifact["expired"] = True
    for event in ("pull_request", "issue_comment", "workflow_dispatch"):
        run = project.server.add_run(event=event, head_sha=project.repository.main, head_branch="main")
        project.server.add_artifact(run, "kernelgate-library-head", files)
    found, base = measured(project, "0 libraries of the default branch", "of the pull request")
    assert "cached" not in base["build base"]
    assert built(project, found, "base").path.read_bytes() != evil
