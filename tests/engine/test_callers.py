"""A repository whose kernel lies there, and which calls the workflows of kernelgate's own by a tag, in act."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engine.project import MEASURED, Project, call_kernelgate, hosted, plan_one_case, touch_kernel
from tests.miniature import git
from tests.workflows.documents import HOME_REPOSITORY, ROOT
from tests.workflows.language import Language
from tests.workflows.test_release import date_the_entry, release

pytestmark = pytest.mark.nightly
CARD = ".ci/kernels/attention.py"


@pytest.fixture
def project(tmp_path: Path, language: Language, starter: str) -> Iterator[Project]:
    """It has no card yet, and kernelgate has moved on since its release: no workflow of its main does anything."""
    with hosted("my-org/my-kernels", tmp_path, language, starter) as project:
        origin, clone = project.origins[HOME_REPOSITORY], tmp_path / "elsewhere"
        git(origin, "clone", "--quiet", str(origin), str(clone))
        date_the_entry(clone)
        git(clone, "commit", "--quiet", "--all", "-m", "Write the entry")
        done = release(clone, "0.2.0")
        assert done.returncode == 0, done.stderr
        for file in (clone / ".github/workflows").iterdir():
            begin, _, _ = file.read_text("utf-8").partition("\njobs:")
            file.write_text(f"{begin}\njobs: {{none: {{runs-on: ubuntu-24.04, steps: [{{run: 'true'}}]}}}}\n", "utf-8")
        git(clone, "commit", "--quiet", "--all", "-m", "Move on")
        git(clone, "push", "--quiet", "origin", "main", "v0")
        project.repository.change_main(call_the_tag)
        yield project


def call_the_tag(tree: Path) -> None:
    call_kernelgate(tree)
    shutil.rmtree(tree / ".ci")
    for file in (tree / ".github/workflows").iterdir():
        file.write_text(file.read_text("utf-8").replace(".yml@main", ".yml@v0"), "utf-8")


def bring_the_card(tree: Path) -> None:
    (tree / CARD).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(ROOT / CARD, tree / CARD)
    plan_one_case(tree)


def gate_at(percent: float) -> str:
    return f"[gates]\nregression_pct = {percent}\n"


def test_the_first_pull_request_of_an_adopter_is_measured_and_blocks_nothing(project: Project) -> None:
    """It brings the card, which the default branch does not have: so nothing there says what is right."""

    def adopt(tree: Path) -> None:
        touch_kernel(tree)
        bring_the_card(tree)

    pull, *rest = project.pull(adopt)
    run = project.measure((pull, *rest), "performance.yml")
    assert run.conclusion == "success", run.log
    project.report(run.id)
    [comment] = project.server.bodies(1)
    assert "no card of Attention yet" in comment
    assert "Does not block: " in comment.splitlines()[0]
    [check] = project.server.checks.values()
    assert (check["head_sha"], check["conclusion"]) == (pull.head_sha, "neutral")


def test_another_repository_only_calls_as_the_install_page_says(project: Project) -> None:
    """The workflows to copy from docs/install.md, with a policy of its own; it is commanded and profiled alike."""

    def begin(tree: Path) -> None:
        bring_the_card(tree)
        (tree / ".ci/kernelgate.toml").write_text(gate_at(9.0), "utf-8")

    def change(tree: Path) -> None:
        touch_kernel(tree)
        (tree / ".ci/kernelgate.toml").write_text(gate_at(90.0), "utf-8")

    project.repository.change_main(begin)
    opened = project.pull(change)
    run = project.measure(opened, "performance.yml")
    assert run.conclusion == "success", run.log
    project.report(run.id)
    [comment] = project.server.bodies(1)
    assert "slower" in comment.splitlines()[0]
    assert "below the 9% that blocks" in comment, comment
    assert "takes effect after the merge" in comment
    assert "baseline" not in comment, "kernelgate's own baseline is of another kernel"
    assert opened[0].labels == []

    project.server.collaborators["maintainer"] = "write"
    run = project.comment(opened[0], "/kernelgate bench", "maintainer", "command.yml")
    assert run.conclusion == "success", run.log
    checks = len(project.server.checks)
    run = project.dispatch("profile.yml", **{"pull-request": "1"})
    assert run.conclusion == "success", run.log
    assert len(run.jobs) == len(MEASURED) + 2, run.log
    assert project.server.reactions
    verdict, *_, profiled = project.server.bodies(1)
    assert "slower" in verdict.splitlines()[0]
    assert profiled.startswith("### ✅ Profiled: `s512_b32_h8_d64_fp16`")
    assert "**Try:** " in profiled
    assert f"/actions/runs/{run.id}#artifacts" in profiled
    assert len(project.server.checks) == checks, "a profile speaks of no merge"
