"""A night of the default branch: measured once beside the pinned commit, and kept in the history."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Run, RunRecord
from kernelgate.ci.history import canary, database, index, nights, series, store
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry
from kernelgate.ci.history.series import Wanted
from tests.ci.history.entries import an_entry
from tests.engine.log import WorkflowRun
from tests.engine.project import Project, edit_docs, replaces, touch_kernel, touch_kernel_again, two_cases
from tests.workflows.documents import HOME_REPOSITORY
from tests.workflows.repository import copy_project

pytestmark = pytest.mark.nightly


@pytest.fixture
def project(project: Project, tmp_path: Path) -> Project:
    """Its policy pins the first commit, and its history is a folder."""
    first = project.repository.main
    project.repository.change_main(replaces(".ci/kernelgate.toml", 'pinned = ""', f'pinned = "{first}"'))
    project.variables["KERNELGATE_HISTORY_STORE"] = str(tmp_path / "history")
    return project


def night(project: Project, event: str = "schedule", file: str = "refresh-baseline.yml") -> WorkflowRun:
    main = project.repository.main
    project.server.refs["heads/main"] = main
    project.server.merge_bases["main", main] = main
    run = project.on_main(file, event, project.event("push"))
    assert run.conclusion == "success", run.log
    return run


def test_nights_are_kept_beside_the_pinned_commit_and_shown_on_the_site(project: Project) -> None:
    first = project.repository.git("rev-parse", "HEAD^")
    assert "keep / keep" in night(project).jobs
    project.repository.change_main(touch_kernel)
    two = night(project, "push")
    keeping = two.jobs["keep / keep"]
    assert keeping.steps["index the history"] == "success"
    assert "index the history" not in keeping.logs, "it went on from the last index"

    kept = store.at(project.variables["KERNELGATE_HISTORY_STORE"])
    names = [*store.names(kept, "records")]
    every = [RunRecord.model_validate_json(store.get(kept, "records", name) or b"") for name in names]
    records = [one for one in every if one.cards[0].name != record.CANARY]
    assert (len(records), len(every)) == (2, 4), "each night has a canary"
    assert {record.run.gpu for record in records} == {"l4"}
    assert all(record.run.base_sha is None for record in records)

    assert two.jobs["keep / tell"].conclusion == "success", two.log
    assert project.server.issues == {}, "nothing was confirmed"

    index = project.artifacts[two.id]["kernelgate-history-index"]
    assert [file.name for file in index.iterdir()] == ["index.sqlite"]
    with database.reading(database.at(index / "index.sqlite")) as connection:
        [one] = [each for each in series.series(connection, Wanted()) if each.card != record.CANARY]
        [case] = nights.of_index(connection, Wanted())
        [told] = canary.machines(connection)
    assert (told.machine, told.equal, told.false_alarms, told.more, told.detected) == ("GPU-0", 2, 0, 2, 2)
    assert {row.base for row in one.comparisons} == {first}
    assert (case.places, case.pinned) == ((2, 3), True), "of the commits of main"

    project.repository.change_main(lambda tree: copy_project(tree, "tests"))  # which make examples of comments
    published = night(project, file="docs.yml")
    assert set(published.jobs) == {"build", "publish"}
    site = project.artifacts[published.id]["github-pages"]
    assert "kernelgate" in (site / "index.html").read_text("utf-8")
    assert CASE in (site / "history/index.html").read_text("utf-8")


def test_the_baseline_is_offered_and_never_pushed(project: Project) -> None:
    main = project.server.refs["heads/main"]
    run = project.dispatch("refresh-baseline.yml", force="true")
    assert run.conclusion == "success", run.log
    assert project.repository.git("ls-remote", "origin", "refs/heads/main").startswith(project.repository.main)
    assert project.server.refs["heads/main"] == main
    [pull] = project.server.pulls.values()
    assert pull.head_ref.startswith("kernelgate/baseline-")


CASE = "s512_b32_h8_d64_fp16"
L4 = record.Environment(device=record.Device(name="NVIDIA L4"))


def remember(project: Project, line: list[str], slower_from: dict[str, str]) -> None:
    """An index that a night left, of cases that are 5% slower from a commit of the line on."""
    file = project.folder / "before.sqlite"
    kept, opened = store.at(project.variables["KERNELGATE_HISTORY_STORE"]), database.at(file)
    rng = np.random.default_rng(3)
    with database.writing(opened) as connection:
        for place, sha in enumerate(line):
            cases = []
            for case, culprit in slower_from.items():
                effect = float(rng.normal(0.05 if place >= line.index(culprit) else 0.0, 5e-4))
                found = ComparisonEntry(base="f" * 40, head=sha, effect=effect, error=5e-4, spread_pct=0.1, processes=4)
                cases.append(CaseEntry(card="attention", case=case, comparisons=(found,)))
            run = Run(
                repository=HOME_REPOSITORY, head_sha=sha, gpu="l4", created_at=f"2026-08-{place + 1:02}T00:00:00Z"
            )
            made = an_entry(f"{place}", environment=L4, cases=tuple(cases), run=run)
            index.add(connection, made)
            store.write(kept, "judgements", f"{made.name}-r", made.model_dump_json(by_alias=True).encode())
        index.place(connection, ["f" * 40, *line])  # all of them, or the checkout's own line would count
    opened.engine.dispose()
    main = {"event": "schedule", "head_branch": "main", "head_sha": project.repository.main}
    left = project.server.add_run(**main)
    project.server.add_artifact(left, "kernelgate-history-index", {"index.sqlite": file.read_bytes()})


def test_two_suspicions_are_confirmed_side_by_side_and_each_commit_gets_one_issue(project: Project) -> None:
    project.repository.change_main(two_cases)
    line = [*(f"{number:040x}" for number in range(1, 12)), project.repository.main]
    for change in (touch_kernel, *[edit_docs] * 3, touch_kernel_again, *[edit_docs] * 3):
        project.repository.change_main(change)
        line.append(project.repository.main)
    culprits = {CASE: line[12], "s256_b32_h8_d64_fp16": line[16]}
    remember(project, line, culprits)
    confirming = night(project, file="confirm.yml")
    assert {"kernelgate-record-l4-1", "kernelgate-record-l4-2"} <= set(project.artifacts[confirming.id])
    issues = {issue["title"]: issue["body"] for issue in project.server.issues.values()}
    assert issues.keys() == {f"attention/{case} is 5.0% slower: {sha[:7]}" for case, sha in culprits.items()}
    for case, sha in culprits.items():
        asked = f"kernelgate bench --base {line[line.index(sha) - 1]} --head {sha} --case attention/{case}"
        assert any(asked in body for body in issues.values())
    later = night(project, file="confirm.yml")
    assert not any(name.endswith("build / head") for name in later.jobs), "nothing is suspected any more"
    assert len(project.server.issues) == 2
