"""Taking in a run: whose it is comes from GitHub, what it left behind from nobody one could trust."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.ci.github import untrusted_artifact
from kernelgate.ci.github.client import GitHubError
from kernelgate.ci.github.fetch import RunInfo, fetch, read_run_info
from kernelgate.ci.github.upsert import Stamp, state_line
from kernelgate.ci.history.facts import ComparedPair
from tests.ci.desk import Desk
from tests.ci.report_examples import BASE_SHA, EXAMPLES, HEAD_SHA
from tests.fakes.github_server import Json, Pull

RECORD = {"run.json": record.to_json(EXAMPLES["slower"]().record).encode()}
NAME = "kernelgate-record-l4"


@pytest.fixture
def pull(desk: Desk) -> Pull:
    return desk.github.open_pull(head_sha=HEAD_SHA, base_sha=BASE_SHA)


@pytest.fixture
def run(desk: Desk, pull: Pull) -> Json:
    """The pull request's; what is taken in of it is told by `taken`."""
    return desk.github.add_run(pull)


def taken(desk: Desk, folder: Path, run: Json, wanted: record.Run | None = None) -> tuple[RunInfo, list[str]]:
    info = fetch(desk.bot, run["id"], folder / "in", wanted)
    assert read_run_info(folder / "in") == info
    return info, sorted(path.name for path in (folder / "in").iterdir() if path.name != "run-info.json")


def test_a_run_of_a_pull_request_is_taken_in(desk: Desk, tmp_path: Path, run: Json) -> None:
    desk.github.add_artifact(run, NAME, RECORD)
    desk.github.add_artifact(run, "kernelgate-files-l4", {"page.html": b"<script>"})
    info, files = taken(desk, tmp_path, run)
    assert (info.run.pull_request, info.head_sha, info.run.base_sha) == (1, HEAD_SHA, BASE_SHA)
    assert (info.refused, files) == ((), ["l4.run.json"])
    assert record.read(tmp_path / "in" / "l4.run.json") == EXAMPLES["slower"]().record


def test_another_branch_of_the_same_name_is_not_meant(desk: Desk, tmp_path: Path, pull: Pull) -> None:
    pull.head_repository = "fork/kernels"
    run = desk.github.add_run(pull)
    pull.head_repository = "fork/other-kernels"
    info, _ = taken(desk, tmp_path, run)
    assert (info.run.pull_request, info.no_pull_request) == (None, "no pull request has the commit of this run")


def test_who_authorised_a_run_says_which_base(desk: Desk, tmp_path: Path, pull: Pull) -> None:
    """A profile may be compared with any commit; a record that names another one is refused all the same."""
    pull.base_sha = "d" * 40
    run = desk.github.add_run(event="workflow_dispatch", head_sha="c" * 40)
    desk.github.add_artifact(run, NAME, RECORD)
    asked = record.Run(head_sha=HEAD_SHA, base_sha=BASE_SHA, pull_request=1)
    info, files = taken(desk, tmp_path, run, asked)
    assert (info.run.base_sha, info.refused, files) == (BASE_SHA, (), ["l4.run.json"])
    info, _ = taken(desk, tmp_path, run, asked.model_copy(update={"base_sha": "d" * 40}))
    assert "another base commit" in info.refused[0]


def test_each_pair_of_a_run_has_its_own_commits(desk: Desk, tmp_path: Path, pull: Pull) -> None:
    run = desk.github.add_run(event="schedule", head_sha="c" * 40)
    for name in ("-1", "-2"):
        desk.github.add_artifact(run, NAME + name, RECORD)
    facts = {"gpu": "l4", "target": "8.9", "head_sha": HEAD_SHA, "cases": "norm/one", "processes": "4"}
    bases = {"-1": BASE_SHA, "-2": "d" * 40}
    pairs = [ComparedPair(name=name, base_sha=base, **facts) for name, base in bases.items()]
    asked = record.Run(head_sha="c" * 40, pull_request=pull.number)
    info = fetch(desk.bot, run["id"], tmp_path, asked, pairs=pairs)
    assert [path.name for path in tmp_path.glob("*.run.json")] == ["l4-1.run.json"]
    [refused] = info.refused
    assert "kernelgate-record-l4-2" in refused
    assert "another base commit" in refused


def test_a_pair_of_which_a_commit_does_not_compile_leaves_a_record_of_nothing(
    desk: Desk, tmp_path: Path, pull: Pull
) -> None:
    """A head fails the build; a base is left out of the measurement. A runner's failure says nothing of a pair."""
    run = desk.github.add_run(event="schedule", head_sha="c" * 40)
    made = EXAMPLES["slower"]().record
    alone = made.model_copy(update={"run": made.run.model_copy(update={"base_sha": None}), "processes": ()})
    desk.github.add_artifact(run, f"{NAME}-2", {"run.json": record.to_json(alone).encode()})
    for name, fault in (("-1", "build"), ("-3", "runner")):
        note = {"schema": "kernelgate.failure/1", "fault": fault, "message": "csrc/k.cu:3: error: no"}
        desk.github.add_artifact(run, f"kernelgate-record-build{name}", {"failure.json": json.dumps(note).encode()})
    facts = {"gpu": "l4", "target": "8.9", "base_sha": BASE_SHA, "head_sha": HEAD_SHA, "cases": "norm/one"}
    pairs = [ComparedPair(name=f"-{number}", processes="4", **facts) for number in (1, 2, 3)]
    fetch(desk.bot, run["id"], tmp_path, record.Run(head_sha="c" * 40, pull_request=pull.number), pairs=pairs)
    left = {path.name: record.read(path) for path in tmp_path.glob("*.run.json")}
    assert left.keys() == {"build-1.run.json", "l4-2.run.json"}
    assert {(one.run.base_sha, one.run.head_sha, one.cases) for one in left.values()} == {(BASE_SHA, HEAD_SHA, ())}


def measured_run(desk: Desk, pull: Pull, **facts: Any) -> Json:
    run = desk.github.add_run(pull, **facts)
    for job in ("build / build", "measure (l4) / measure"):
        desk.github.add_job(run, job, "success")
    desk.github.add_artifact(run, NAME, RECORD)
    return run


def edited_run(desk: Desk, pull: Pull) -> Json:
    """A run that had nothing to measure."""
    run = desk.github.add_run(pull)
    for job, ended in (("plan / plan", "success"), ("build", "skipped"), ("measure", "skipped")):
        desk.github.add_job(run, job, ended)
    return run


def test_a_build_that_failed_is_not_forgotten(desk: Desk, tmp_path: Path, pull: Pull) -> None:
    failed = desk.github.add_run(pull, conclusion="failure")
    desk.github.add_job(failed, "build / build", "failure", ("build head", "failure"))
    info, _ = taken(desk, tmp_path, edited_run(desk, pull))
    assert (info.run.run_id, [job.step for job in info.failed]) == (failed["id"], ["build head"])


def test_the_run_of_a_command_is_found_by_the_bots_comment(desk: Desk, tmp_path: Path, pull: Pull) -> None:
    measured_run(desk, pull)
    pull.files = [{"filename": ".github/workflows/performance.yml"}]
    ordered = measured_run(desk, pull, event="issue_comment", head_sha="c" * 40)
    desk.github.comment(1, "### Slower\n" + state_line("verdict", Stamp(HEAD_SHA, ordered["id"], 1)))
    desk.github.comment(1, state_line("verdict", Stamp(HEAD_SHA, ordered["id"] + 9, 1)), author="mallory")
    info, files = taken(desk, tmp_path, edited_run(desk, pull))
    assert (info.run.run_id, files, info.changes_judges) == (ordered["id"], ["l4.run.json"], False)


def test_runs_of_other_branches_and_workflows_are_not_meant(desk: Desk, tmp_path: Path, pull: Pull) -> None:
    for others in ({"workflow_id": 7}, {"head_branch": "other"}, {"head_sha": "e" * 40}):
        measured_run(desk, pull, **others)
    run = edited_run(desk, pull)
    measured_run(desk, pull)
    info, files = taken(desk, tmp_path, run)
    assert (info.run.run_id, files, info.measured) == (run["id"], [], False)


def test_a_base_of_the_authors_choice_is_refused(desk: Desk, tmp_path: Path, run: Json) -> None:
    desk.github.merge_bases[BASE_SHA, HEAD_SHA] = "c" * 40
    desk.github.add_artifact(run, NAME, RECORD)
    info, files = taken(desk, tmp_path, run)
    assert (files, info.run.base_sha) == ([], "c" * 40)
    assert "another base commit" in info.refused[0]


def test_a_label_that_is_none_is_refused(desk: Desk, tmp_path: Path, run: Json) -> None:
    desk.github.add_artifact(run, "kernelgate-record-l4\n::x", RECORD)
    info, files = taken(desk, tmp_path, run)
    assert (files, "no GPU label looks like that" in info.refused[0]) == ([], True)


def test_sizes_are_limited_whatever_github_says_of_them(
    desk: Desk, tmp_path: Path, run: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(untrusted_artifact, "MAX_ARCHIVE", 1000)
    desk.github.add_artifact(run, "kernelgate-record-a", RECORD)
    desk.github.add_artifact(run, "kernelgate-record-b", RECORD, size_in_bytes=10)
    info, files = taken(desk, tmp_path, run)
    assert files == []
    assert "bytes, more than 1000" in info.refused[0]
    assert "more than 1000 bytes came" in info.refused[1]


def test_of_two_attempts_the_newer_artifact_counts(desk: Desk, tmp_path: Path, run: Json) -> None:
    """GitHub lists the artifacts of every attempt, in no order that it promises. What an older one left broken is made
    up for."""
    run["run_attempt"] = 2
    desk.github.add_artifact(run, NAME, b"no zip")
    for example, attempt in (("faster", 1), ("slower", 2)):
        made = EXAMPLES[example]().record
        made = made.model_copy(update={"run": made.run.model_copy(update={"run_attempt": attempt})})
        desk.github.add_artifact(run, NAME, {"run.json": record.to_json(made).encode()})
    info, files = taken(desk, tmp_path, run)
    assert (files, info.refused) == (["l4.run.json"], ())
    assert record.read(tmp_path / "in" / "l4.run.json").run.run_attempt == 2


def test_other_bytes_than_were_uploaded_are_not_taken(desk: Desk, tmp_path: Path, run: Json) -> None:
    desk.github.add_artifact(run, NAME, RECORD, digest="sha256:" + "0" * 64)
    with pytest.raises(GitHubError, match="ContentDecodingError"):
        fetch(desk.bot, run["id"], tmp_path / "in")


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ({}, False),
        ({"filename": ".github/workflows/performance.yml"}, True),
        ({"filename": "elsewhere.yml", "previous_filename": ".github/workflows/performance.yml"}, True),
        ({"filename": ".github/actions/setup/action.yml"}, True),
    ],
)
def test_a_change_to_the_workflows_is_seen(
    desk: Desk, tmp_path: Path, pull: Pull, run: Json, file: Json, changes: bool
) -> None:
    pull.files = [{"filename": "csrc/k.cu"}, *([file] if file else [])]
    assert taken(desk, tmp_path, run)[0].changes_judges is changes


def test_a_change_too_large_to_list_could_hide_anything(desk: Desk, tmp_path: Path, pull: Pull, run: Json) -> None:
    pull.files, pull.changed_files = [{"filename": "csrc/k.cu"}], 4000
    assert taken(desk, tmp_path, run)[0].changes_judges


def test_the_token_goes_to_github_only(
    desk: Desk, tmp_path: Path, run: Json, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.github.add_artifact(run, NAME, RECORD)
    desk.github.fault("GET", "/blob/.*", status=503, message="no")
    taken(desk, tmp_path, run)
    # The fake notes a problem where the token arrives at the other host; its address is in no log.
    printed = capsys.readouterr().out
    assert "trying again" in printed
    assert "s3cret" not in printed
    assert desk.github.token not in printed


@pytest.mark.parametrize(
    "path", ["/actions/runs/.*", "/pulls", "/compare/.*", "/actions/artifacts/.*", "/blob/.*", ".*/jobs", ".*/files"]
)
def test_bad_days_only_take_longer(desk: Desk, tmp_path: Path, pull: Pull, run: Json, path: str) -> None:
    pull.changed_files = 300
    desk.github.add_artifact(run, NAME, RECORD)
    for fault in ({"status": 502}, {"drop": "before"}, {"status": 429, "headers": {"Retry-After": "2"}}):
        desk.github.fault("GET", path, **fault)
    assert taken(desk, tmp_path, run)[1] == ["l4.run.json"]
    assert len(desk.slept) == 3
