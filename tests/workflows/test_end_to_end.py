"""From a pull request opened to the comment posted: the workflows, executed step by step against a stateful GitHub."""

from __future__ import annotations

import json
import re
import shutil
from copy import deepcopy
from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.kernel import cards
from tests.fakes.github_server import Json, Pull
from tests.workflows.documents import ROOT
from tests.workflows.language import Language
from tests.workflows.project import (
    DESCRIPTION,
    Project,
    call_kernelgate,
    hosted,
    touch_kernel,
)

STRANGER = "stranger/kernelgate"


@pytest.mark.slow
def test_a_pull_request_is_measured_and_the_comment_posted(project: Project) -> None:
    opened = project.pull(touch_kernel)
    run = project.measure(opened)
    assert run.conclusion == "success", run.log
    assert [name for name, job in run.jobs.items() if job.conclusion == "success"] == [
        "plan / plan",
        "build / base",
        "build / head",
        "measure (l4) / measure",
    ]
    assert project.server.writes() == [], "the run of a pull request wrote something"
    assert project.server.bodies(1) == []

    report = project.report(run)
    assert report.conclusion == "success", report.log
    [comment] = project.server.bodies(1)
    assert re.match(r"### ❌ Blocks: [\d.]+% slower on the L4\n", comment), comment
    assert "contradicted" in comment, "the author claimed the opposite"
    assert opened[0].labels == ["performance: regressed"]
    [check] = project.server.checks.values()
    assert (check["head_sha"], check["conclusion"]) == (opened[0].head_sha, "failure")

    # Of a card that is made up, the profiles are real ones.
    case = cards.read(ROOT / cards.FOLDER)["attention"].target.id
    kept = project.platform.artifacts(run.id)
    profiled = record.read(kept["kernelgate-record-l4"] / "run.json").profile
    reports = {side: f"attention.{case}.{side}.ncu-rep" for side in ("base", "head")}
    assert {(one.case, one.side, one.report) for one in profiled} == {(case, *one) for one in reports.items()}
    files = {file.name for file in kept["kernelgate-files-l4"].iterdir()}
    assert {"profile.csv", "profile.json", *reports.values()} <= files
    assert (
        "20.9% slower under the profiler, at equal clocks and with cold caches, but 5.0% slower as measured" in comment
    )
    assert "| achieved occupancy | 12.0% | 6.2% | −47.8% |" in comment

    page = (project.platform.artifacts(report.id)["kernelgate.html"] / "kernelgate.html").read_text("utf-8")
    assert "<h1>" in page
    assert "is contradicted" in page
    [address] = re.findall(r"\[The page\]\((.+?)\)", comment)
    assert address.startswith(f"https://github.com/{project.server.repository}/actions/runs/{report.id}/artifacts/")

    before = deepcopy((project.server.comments, project.server.checks, opened[0].labels))
    again = project.report(run)
    assert again.conclusion == "success", again.log
    assert (project.server.comments, project.server.checks, opened[0].labels) == before, "the second time changed it"

    edited_is_judged_again_without_measuring(project, *opened)
    a_maintainer_accepts_it(project, opened[0])
    what_was_accepted_passes_the_merge_queue(project, opened[0])


def edited_is_judged_again_without_measuring(project: Project, pull: Pull, payload: Json, merge: str) -> None:
    pull.body = DESCRIPTION.replace("10% faster", "5% slower")
    payload |= {"action": "edited", "changes": {"body": {"from": DESCRIPTION}}}
    run = project.measure((pull, payload, merge))
    assert run.jobs["build"].conclusion == "skipped", run.log
    report = project.report(run)
    assert report.conclusion == "success", report.log
    [comment] = project.server.bodies(1)
    assert "slower" in comment.splitlines()[0]
    assert "claim `s512_b32_h8_d64_fp16: 5% slower` is supported" in comment


def a_maintainer_accepts_it(project: Project, pull: Pull) -> None:
    """Nothing is built or measured for it; a case that does not block is refused, and nothing is posted anew."""
    project.server.collaborators["maintainer"] = "write"
    before = project.server.bodies(pull.number)
    refused = project.comment(pull, "/kernelgate accept nothing because so", "maintainer")
    assert refused.conclusion == "success", refused.log
    assert [body for body in project.server.bodies(pull.number) if "topic=verdict" in body] == before

    run = project.comment(pull, "/kernelgate accept all because $(touch owned) rounding is exact", "maintainer")
    assert run.conclusion == "success", run.log
    ran = {name for name, job in run.jobs.items() if job.conclusion != "skipped"}
    assert ran == {"authorise", "accept / report"}
    [comment] = [body for body in project.server.bodies(pull.number) if "topic=verdict" in body]
    assert "Accepted by `@maintainer`, until the next push: " in comment
    assert "rounding is exact" in comment
    assert "[The page](" in comment
    checks = {check["name"]: check["conclusion"] for check in project.server.checks.values()}
    # Made up is one case alone: the others that the plan asks for hold it.
    assert checks == {"kernelgate verdict": "action_required", "kernelgate accepted": "neutral"}
    assert sorted(pull.labels) == ["performance: accepted", "performance: regressed"]


def what_was_accepted_passes_the_merge_queue(project: Project, pull: Pull) -> None:
    """The group is the machine code that was measured, until somebody else's kernel is merged."""
    accepted = {check["name"]: check["conclusion"] for check in project.server.checks.values()}
    run = project.queue(pull)
    steps = {step.name: step.conclusion for step in run.jobs["measure (l4) / measure"].steps}
    assert [steps[name] for name in ("take what was measured before", "doctor", "fuzz", "bench")] == [
        "success",
        *["skipped"] * 3,
    ], run.log
    assert project.report(run).conclusion == "success"
    check = project.server.checks[max(project.server.checks)]
    assert (check["head_sha"], check["conclusion"]) == (run.head_sha, accepted["kernelgate verdict"]), check
    assert check["conclusion"] != "failure", "it is the verdict that was accepted"
    assert "are the same machine code as measured in" in check["output"]["summary"]
    assert f"#{pull.number}" in check["output"]["summary"]
    assert "Accepted by `@maintainer`" in check["output"]["summary"]

    project.repository.change_main(touch_another_file)
    run = project.queue(pull)
    assert f"the base of attention is not what was measured in #{pull.number}" in run.log
    steps = {step.name: step.conclusion for step in run.jobs["measure (l4) / measure"].steps}
    assert steps["bench"] == "success"
    assert project.report(run).conclusion == "success"
    check = project.server.checks[max(project.server.checks)]
    assert (check["head_sha"], check["conclusion"]) == (run.head_sha, "failure"), "it was accepted of other code"


def touch_another_file(tree: Path) -> None:
    with (tree / "csrc/attention/numeric.cuh").open("a", encoding="utf-8") as file:
        file.write("\n[[gnu::used]] static const int another_number = 2;\n")


@pytest.mark.slow
def test_several_gpus_share_one_comment(project: Project) -> None:
    def add_a_gpu(tree: Path) -> None:
        with (tree / ".ci/kernelgate.toml").open("a", encoding="utf-8") as file:
            file.write('\n[[measure.gpus]]\nlabel = "h100"\ntarget = "9.0"\n')

    project.repository.change_main(add_a_gpu)
    run = project.measure(project.pull(touch_kernel))
    assert {"measure (l4) / measure", "measure (h100) / measure"} <= set(run.jobs), run.log
    assert project.report(run).conclusion == "success"
    [comment] = project.server.bodies(1)
    assert "l4" in comment
    assert "h100" in comment
    manifest = json.loads(
        (project.platform.artifacts(run.id)["kernelgate-library-head"] / "attention/library.json").read_text()
    )
    assert manifest["targets"] == ["sm_89", "sm_90", "sm_90a"], "one library serves every GPU"


def keep_cards_alone(tree: Path) -> None:
    """Of .ci the cards, without which there is nothing to measure."""
    for file in (tree / ".ci").iterdir():
        if file.name != "kernels":
            shutil.rmtree(file) if file.is_dir() else file.unlink()


@pytest.mark.slow
def test_the_first_pull_request_of_an_adopter_is_measured_and_blocks_nothing(
    tmp_path: Path, language: Language
) -> None:
    """It brings the card, which the default branch does not have: so nothing there says what is right."""
    card = (ROOT / ".ci/kernels/attention.py").read_text("utf-8")

    def begin(tree: Path) -> None:
        call_kernelgate(tree)
        shutil.rmtree(tree / ".ci")

    def adopt(tree: Path) -> None:
        touch_kernel(tree)
        (tree / ".ci/kernels").mkdir(parents=True)
        (tree / ".ci/kernels/attention.py").write_text(card, "utf-8")

    with hosted("my-org/my-kernels", tmp_path, language) as project:
        project.repository.change_main(begin)
        pull, *rest = project.pull(adopt)
        run = project.measure((pull, *rest), "performance.yml")
        assert run.conclusion == "success", run.log
        assert project.report(run).conclusion == "success"
        [comment] = project.server.bodies(1)
        assert "no card of Attention yet" in comment
        assert "Does not block: " in comment.splitlines()[0]
        [check] = project.server.checks.values()
        assert (check["head_sha"], check["conclusion"]) == (pull.head_sha, "neutral")


@pytest.mark.slow
def test_another_repository_only_calls_as_the_install_page_says(tmp_path: Path, language: Language) -> None:
    """The workflows to copy from docs/install.md, in a repository of another name, with a policy of its own."""

    def begin(tree: Path) -> None:
        call_kernelgate(tree)
        keep_cards_alone(tree)
        (tree / ".ci/kernelgate.toml").write_text("[gates]\nregression_pct = 9.0\n", "utf-8")

    def change(tree: Path) -> None:
        touch_kernel(tree)
        (tree / ".ci/kernelgate.toml").write_text("[gates]\nregression_pct = 90.0\n", "utf-8")

    with hosted("my-org/my-kernels", tmp_path, language) as project:
        project.repository.change_main(begin)
        run = project.measure(project.pull(change), "performance.yml")
        assert run.conclusion == "success", run.log
        report = project.report(run)
        assert report.conclusion == "success", report.log
        [comment] = project.server.bodies(1)
        assert "slower" in comment.splitlines()[0]
        assert "below the 9% that blocks" in comment, comment
        assert "takes effect after the merge" in comment
        assert "baseline" not in comment, "kernelgate's own baseline is of another kernel"
        assert project.server.pulls[1].labels == []


@pytest.mark.slow
def test_another_repository_is_commanded_and_profiled_alike(tmp_path: Path, language: Language) -> None:
    with hosted("my-org/my-kernels", tmp_path, language) as project:
        project.repository.change_main(call_kernelgate)
        pull, _, _ = project.pull(touch_kernel)
        project.server.add_run(pull)
        project.server.collaborators["maintainer"] = "write"
        run = project.comment(pull, "/kernelgate bench", "maintainer", "command.yml")
        assert run.conclusion == "success", run.log
        run = project.dispatch("profile.yml", **{"pull-request": str(pull.number)})
        assert run.conclusion == "success", run.log
        firsts = [body.splitlines()[0] for body in project.server.bodies(pull.number)]
        assert ["slower" in first for first in firsts] == [False, False, True, False], firsts
        assert firsts[-1].startswith("### ✅ Profiled: `s512_b32_h8_d64_fp16`")
        assert project.server.reactions
        bodies = project.server.bodies(pull.number)
        assert "**Try:** " in bodies[-1]
        assert f"/actions/runs/{run.id}#artifacts" in bodies[-1]
        assert len(project.server.checks) == 1, "a profile speaks of no merge"


# Forks ---------------------------------------------------------------------------------------------------------------


class Approvals(dict[int, dict[str, str]]):
    """Every run's approval by one person."""

    def __init__(self, login: str) -> None:
        self.login = login

    def get(self, key: int, default: object = None) -> dict[str, str]:  # type: ignore[override] # noqa: ARG002
        return {"kernelgate-forks": self.login}


@pytest.mark.slow
def test_a_forks_changes_to_the_judge_do_not_judge(project: Project) -> None:
    """Its run waits until it is approved; and its kernelgate is never run with a GPU: what measures is main's."""

    def rewrite_the_judge(tree: Path) -> None:
        touch_kernel(tree)
        (tree / "bench/core/errors.py").write_text("raise SystemExit('owned')\n")
        (tree / "ci/commands/cli.py").write_text("raise SystemExit('owned')\n")

    opened = project.pull(rewrite_the_judge, STRANGER)
    held = project.measure(opened).jobs["measure (l4) / measure"]
    assert (held.conclusion, held.environment) == ("waiting", "kernelgate-forks")
    project.platform.approved.add("kernelgate-forks")
    project.server.approvals = Approvals("maintainer")
    run = project.measure(opened)
    for name in ("build / base", "build / head", "measure (l4) / measure"):
        assert run.jobs[name].conclusion == "success", run.log
        assert all("owned" not in step.log for step in run.jobs[name].steps)
    assert project.report(run).conclusion == "success"
    [comment] = project.server.bodies(1)
    assert "after the merge" in comment


# Commands ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["good", "bad", "case", "gpu", "number"])
def test_shell_text_in_an_input_of_a_search_is_never_run(name: str, project: Project, tmp_path: Path) -> None:
    file = tmp_path / "owned"
    run = project.dispatch("bisect.yml", **({"good": project.repository.main} | {name: f"$(touch {file})"}))
    assert not file.exists(), run.log
    assert run.jobs["ends"].conclusion == "failure", run.log
    assert run.jobs["search"].conclusion == "skipped", run.log
    assert "Traceback" not in run.log


# Profiles ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_baseline_is_offered_and_never_pushed(project: Project) -> None:
    before = project.repository.git("ls-remote", "origin", "refs/heads/main")
    run = project.dispatch("refresh-baseline.yml", force="true")
    assert run.conclusion == "success", run.log
    assert project.repository.git("ls-remote", "origin", "refs/heads/main") == before
    assert project.server.refs["heads/main"] == project.repository.main
    [pull] = project.server.pulls.values()
    assert pull.head_ref.startswith("kernelgate/baseline-")
