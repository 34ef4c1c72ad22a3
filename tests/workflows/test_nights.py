"""A night of the default branch: measured once beside the pinned commit, and kept in the history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelgate.bench.record import RunRecord
from kernelgate.ci.history import database, nights, shown, store
from kernelgate.ci.history.shown import Wanted
from kernelgate.ci.judge.policy import Policy
from tests.fakes.github_server import Json
from tests.workflows.language import Language
from tests.workflows.project import Project, hosted, touch_kernel
from tests.workflows.runner import HOME_REPOSITORY, WorkflowRun


@pytest.fixture
def project(tmp_path: Path, language: Language) -> Iterator[Project]:
    """Its policy pins the first commit, and its history is a folder."""
    with hosted(HOME_REPOSITORY, tmp_path, language) as running:
        first = running.repository.main
        running.repository.change_main(lambda tree: pin(tree, first))
        running.platform.variables["KERNELGATE_HISTORY_STORE"] = str(tmp_path / "history")
        yield running


def pin(tree: Path, sha: str) -> None:
    policy = tree / ".ci/kernelgate.toml"
    policy.write_text(policy.read_text("utf-8").replace('pinned = ""', f'pinned = "{sha}"'), "utf-8")


def night(project: Project, event: str = "schedule") -> WorkflowRun:
    main = project.repository.main
    project.server.refs["heads/main"] = main
    project.server.merge_bases["main", main] = main
    payload: Json = project.event("push")
    return project.platform.start("refresh-baseline.yml", event, payload, sha=main, ref="refs/heads/main")


@pytest.mark.nightly
def test_each_night_is_kept_beside_the_pinned_commit_and_leaves_an_index(project: Project) -> None:
    first = project.repository.git("rev-parse", "HEAD^")
    one = night(project)
    assert one.conclusion == "success", one.log
    assert {name: job.conclusion for name, job in one.jobs.items()}["keep"] == "success", one.log
    project.repository.change_main(touch_kernel)
    two = night(project, "push")
    assert two.conclusion == "success", two.log
    steps = {step.name: step.log for step in two.jobs["keep"].steps}
    assert "index the history" not in steps or not steps["index the history"], "it went on from the last index"

    kept = store.at(project.platform.variables["KERNELGATE_HISTORY_STORE"])
    names = [*store.names(kept, "records")]
    assert len(names) == 2
    records = [RunRecord.model_validate_json(store.get(kept, "records", name) or b"") for name in names]
    assert {record.run.gpu for record in records} == {"l4"}
    assert all(record.run.base_sha is None for record in records)

    assert two.jobs["tell"].conclusion == "success", two.log
    assert project.server.issues == {}, "nothing was confirmed"

    index = project.platform.artifacts(two.id)["kernelgate-history-index"]
    assert [file.name for file in index.iterdir()] == ["index.sqlite"]
    with database.reading(database.at(index / "index.sqlite")) as connection:
        [series] = shown.series(connection, Wanted())
        [case] = nights.of_index(connection, Wanted(), Policy())
    assert {row["base"] for row in series.comparisons} == {first}
    assert (case.nights, case.places, case.pinned) == (2, (1, 2), True)
