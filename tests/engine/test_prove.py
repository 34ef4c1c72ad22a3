"""`kernelgate prove` with real workflows between its two looks: what it opens is measured and reported in act."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelgate.ci.commands.cli import run as kernelgate
from kernelgate.ci.github import prove
from tests.engine.project import MEASURE, Project
from tests.fakes.github_server import ALL_PERMISSIONS
from tests.workflows.documents import ROOT

EVERY = prove.read(ROOT / prove.FILE)
GPU = {
    "faster": {"GPU_SLOWER": "0.7"},
    "slower": {"GPU_SLOWER": "1.5"},
    "equal": {"GPU_SLOWER": "1.0"},
    "wrong": {"GPU_IS": "wrong"},
    "cheating": {"GPU_IS": "wrong"},
}
"""What the made-up GPU makes of each; the changes themselves are compiled, and never run."""


@pytest.mark.nightly
@pytest.mark.timeout(3000)  # eleven workflows
def test_what_is_opened_is_measured_as_promised(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server, page = project.server, tmp_path / "proof.md"
    shutil.copy(ROOT / "docs/proof.md", page)
    for path in EVERY.files:
        server.files["main", path] = (project.repository.tree / path).read_bytes()
    server.refs["heads/main"] = project.repository.main
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(prove, "POLL_S", 0.01)
    words = ["prove", "--repo", server.repository, "--yes", "--page", str(page), "--column", "engine"]

    def proved(*more: str) -> int:
        server.permissions = ALL_PERMISSIONS | {"actions": "write"}
        with monkeypatch.context() as there:
            there.chdir(ROOT)
            return kernelgate([*words, *more])

    assert proved("--wait", "0.0001") == 1, capsys.readouterr().err
    assert "6 broken" in capsys.readouterr().out, "nothing has answered yet"
    base = committed(project, prove.BASE, "main")
    server.refs[f"heads/{prove.BASE}"] = base
    for pull in server.pulls.values():
        pull.base_sha = base
        server.refs[f"heads/{pull.head_ref}"] = committed(project, pull.head_ref, prove.BASE)
        project.machine = dict(GPU[pull.head_ref.removeprefix(prove.BRANCHES)])
        run = project.measure(project.offer(pull, "opened"))
        project.report(run.id)
        wrong = "GPU_IS" in project.machine
        assert ("bench" in run.jobs[MEASURE].steps) != wrong, "after a failed fuzz"
    assert server.reruns == []
    [(workflow, asked)] = server.dispatches
    project.machine = dict(GPU[prove.PROFILED])
    run = project.dispatch(workflow, **asked["inputs"])
    assert run.conclusion == "success", run.log
    ended = proved()
    printed = capsys.readouterr()
    assert ended == 0, printed.err
    assert "6 promises kept, 0 broken" in printed.out
    assert page.read_text(encoding="utf-8").count("(proof-engine.json)") == len(EVERY.pulls) + 1


def committed(project: Project, branch: str, start: str) -> str:
    """The commit of what the branch holds on GitHub, which git does not have yet."""

    def written(tree: Path) -> None:
        for path in EVERY.files:
            (tree / path).write_bytes(project.server.files[branch, path])

    project.repository.git("branch", branch, start)
    sha = project.repository.change(branch, written)
    project.repository.git("push", "--quiet", "origin", branch)
    return sha
