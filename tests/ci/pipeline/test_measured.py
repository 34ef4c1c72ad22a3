"""Whether a queued pull request's record is taken for its merge group: over the wire, with real library folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelgate.bench import record
from kernelgate.bench.build.library import Libraries, Library, Manifest
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.system.beside import version
from kernelgate.ci.github.client import GitHubError
from kernelgate.ci.github.fetch import record_of
from kernelgate.ci.github.upsert import Stamp, state_line
from kernelgate.ci.judge.cards import MEASURED_BEFORE
from kernelgate.ci.pipeline.measured import as_this_run
from tests.ci.desk import Desk
from tests.ci.report_examples import BASE_SHA, EXAMPLES, HEAD_SHA
from tests.fakes.github_server import event

GROUP_BASE, GROUP_HEAD = "c" * 40, "d" * 40
CODE = {side: {"sm_89": {"": f"machine code of the {side}"}} for side in ("base", "head")}


def libraries(side: str, **other: Any) -> Libraries:
    """What the group's own build made: other bytes, such as with another comment, and the same machine code."""
    known: dict[str, Any] = {
        "card": "attention",
        "kind": "extension",
        "namespace": "kernels",
        "sha": GROUP_BASE if side == "base" else GROUP_HEAD,
        "targets": ("sm_89",),
        "key": f"key of the {side}",
        "seconds": 1.0,
        "sha256": f"bytes of the group's {side}",
        "card_sha256": "the card",
        "kernels": (),
        "host": "the host",
        "code": CODE[side],
    }
    manifest = Manifest.model_validate(known | other)
    return Libraries({manifest.card: Library(Path(), manifest, cached=False)})


def measured(desk: Desk, **other: Any) -> None:
    """The pull request's own run, and the comment that the bot made of it."""
    content = json.loads(record.to_json(EXAMPLES["slower"]().record))
    built = {"card": "attention", "call_hash": "the card", "host": "the host", "python": "/job/python"}
    content["builds"] = [
        built | {"side": side, "sha": sha, "library_sha256": f"bytes of the {side}", "code": CODE[side]["sm_89"]}
        for side, sha in (("base", BASE_SHA), ("head", HEAD_SHA))
    ]
    content["run"] |= {"head_sha": HEAD_SHA, "base_sha": BASE_SHA, "version": version("kernelgate")}
    pull = desk.github.open_pull(number=104, head_sha=HEAD_SHA, base_sha=BASE_SHA, files=other.pop("files", []))
    run = desk.github.add_run(pull)
    desk.github.add_job(run, "measure (l4) / measure", other.pop("ended", "success"))
    desk.github.add_artifact(run, "kernelgate-record-l4", {"run.json": json.dumps(content | other).encode()})
    desk.github.comment(104, "### Slower\n" + state_line("verdict", Stamp(HEAD_SHA, run["id"], 1)))


@pytest.fixture
def queued(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The bot in a run of the merge queue."""
    desk.told(event("merge_group.checks_requested"))
    told = {"GITHUB_EVENT_NAME": "merge_group", "GITHUB_RUN_ID": "77", "GITHUB_RUN_ATTEMPT": "1"}
    for name, value in (told | {"GITHUB_REPOSITORY": desk.github.repository}).items():
        monkeypatch.setenv(name, value)
    return desk


def taken(desk: Desk, tmp_path: Path, **other: dict[str, Any]) -> record.RunRecord:
    """`other`: what differs in the libraries of a side."""
    number, known = record_of(desk.bot, "l4", tmp_path / "in")
    return as_this_run(known, number, *(libraries(side, **other.get(side, {})) for side in ("base", "head")))


def test_the_same_machine_code_is_not_measured_again(queued: Desk, tmp_path: Path) -> None:
    measured(queued)
    found = taken(queued, tmp_path)
    assert (found.run.base_sha, found.run.head_sha, found.run.run_id) == (GROUP_BASE, GROUP_HEAD, 77)
    assert (found.run.event, found.run.pull_request) == ("merge_group", None)
    assert {one.side: one.sha for one in found.builds} == {"base": GROUP_BASE, "head": GROUP_HEAD}
    times = [[one.timings[0].samples_us for one in made.processes] for made in (found, EXAMPLES["slower"]().record)]
    assert times[0] == times[1]
    [note] = [one for one in found.notes if one.code == MEASURED_BEFORE]
    assert note.text.endswith("as measured in #104")


@pytest.mark.parametrize(
    ("side", "other", "said"),
    [
        ("base", {"code": {"sm_89": {"": "newer"}}}, "the base of attention is not what was measured in #104"),
        ("head", {"host": None}, "the head of attention is not"),
        ("head", {"code": {}}, "the head of attention is not"),
        ("head", {"card_sha256": "another"}, "the head of attention is not"),
        ("head", {"card": "gemm"}, "is of other cards"),
    ],
    ids=["the code", "no host known", "no code known", "the card", "another card"],
)
def test_whatever_differs_is_measured(
    queued: Desk, tmp_path: Path, side: str, other: dict[str, Any], said: str
) -> None:
    measured(queued)
    with pytest.raises(KernelgateError, match=said):
        taken(queued, tmp_path, **{side: other})


def test_the_same_bytes_are_the_same_code_whose_code_is_not_known(queued: Desk, tmp_path: Path) -> None:
    measured(queued)
    same = {side: {"sha256": f"bytes of the {side}", "code": {}, "host": None} for side in ("base", "head")}
    assert taken(queued, tmp_path, **same).run.run_id == 77


@pytest.mark.parametrize(
    "other",
    [
        {"files": [{"filename": ".github/workflows/performance.yml"}]},
        {"ended": "failure"},
        {"schema": "kernelgate.run/99"},
    ],
    ids=["its own workflow measured it", "its job failed", "it was refused"],
)
def test_a_record_that_proves_nothing_is_not_taken(queued: Desk, tmp_path: Path, other: dict[str, Any]) -> None:
    measured(queued, **other)
    with pytest.raises(KernelgateError, match="no record that holds"):
        taken(queued, tmp_path)


def test_what_another_release_measured_is_measured_again(
    queued: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit that a version names is no release."""
    measured(queued)
    later = (version("kernelgate") or "").partition(".dev")[0] + ".dev7+another"
    monkeypatch.setattr("kernelgate.bench.measure.run.version_of", lambda _: later)
    assert taken(queued, tmp_path).run.run_id == 77
    monkeypatch.setattr("kernelgate.bench.measure.run.version_of", lambda _: "99.0")
    with pytest.raises(KernelgateError, match=r"measured #104, and this is 99\.0"):
        taken(queued, tmp_path)


def test_a_push_since_the_verdict_and_a_run_that_is_gone_are_said(queued: Desk, tmp_path: Path) -> None:
    measured(queued)
    queued.github.runs.clear()
    with pytest.raises(GitHubError, match="run"):
        taken(queued, tmp_path)
    queued.github.pulls[104].head_sha = "e" * 40
    with pytest.raises(KernelgateError, match="#104 has no verdict on its last commit"):
        taken(queued, tmp_path)
