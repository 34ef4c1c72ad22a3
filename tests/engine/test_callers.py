"""A repository whose kernel lies there, and which calls the workflows of kernelgate's own by a tag, in act."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.conftest import plan_one_case
from tests.engine.engine import Engine
from tests.engine.test_pull_requests import verdict
from tests.miniature import git
from tests.workflows.language import Language
from tests.workflows.project import call_kernelgate, hosted, touch_kernel
from tests.workflows.runner import HOME_REPOSITORY

pytestmark = pytest.mark.nightly
NOTHING = "\njobs: {none: {name: none, runs-on: ubuntu-24.04, steps: [{run: 'true'}]}}\n"


def call_the_tag(tree: Path) -> None:
    plan_one_case(tree)
    call_kernelgate(tree)
    for file in (tree / ".github/workflows").iterdir():
        file.write_text(file.read_text("utf-8").replace(".yml@main", ".yml@v0"), "utf-8")


def tag_and_move_on(origin: Path, clone: Path) -> None:
    """The tag v0, and after it a default branch whose first workflows do nothing."""
    git(origin, "tag", "v0", "main")
    git(origin, "clone", "--quiet", str(origin), str(clone))
    for name in ("measure-pull-request", "report"):
        file = clone / f".github/workflows/{name}.yml"
        text = file.read_text("utf-8")
        file.write_text(
            text[: text.index("\njobs:")] + '\njobs: {none: {runs-on: ubuntu-24.04, steps: [{run: "true"}]}}\n', "utf-8"
        )
    git(clone, "commit", "--quiet", "--all", "-m", "Move on")
    git(clone, "push", "--quiet", "origin", "main")


def test_a_repository_calls_by_tag(tmp_path: Path, language: Language) -> None:
    with hosted("my-org/my-kernels", tmp_path, language, Engine) as project:
        tag_and_move_on(project.platform.origins[HOME_REPOSITORY], tmp_path / "elsewhere")
        project.repository.change_main(call_the_tag)
        run = project.measure(project.pull(touch_kernel), "performance.yml")
        assert run.conclusion == "success", run.log
        report = project.report(run)
        assert report.conclusion == "success", report.log
        headline, conclusion, labels = verdict(project)
        assert "slower on the L4" in headline
        assert (conclusion, labels) == ("failure", ["performance: regressed"])
