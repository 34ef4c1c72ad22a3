"""From `/kernelgate accept` over the merge to the baseline that takes it in."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench import record
from kernelgate.bench.record import Run
from kernelgate.ci.github import assemble
from kernelgate.ci.github.baseline_pr import as_baseline, refresh
from tests.attacks.honest import PullRequestRuns, changed, judged_once
from tests.attacks.honest import measured as compared
from tests.attacks.test_accept import said
from tests.ci.desk import Desk
from tests.ci.github.test_baseline_pr import RULES, scaled
from tests.ci.report_examples import HEAD_SHA

MERGED, STORED_AT, LATER = "e" * 40, "f" * 40, "1" * 40
ACCEPTED = (
    "- `norm/m1024`: accepted in [pull request 1](https://github.com/octo-org/kernels/pull/1) by `@ada`. "
    "Reason: exact rounding costs it"
)


@pytest.fixture
def merged(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A pull request that made the second case 40% slower, accepted and merged since the baseline was measured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(assemble, "judge", judged_once)
    desk.github.collaborators["ada"] = "write"
    pull = PullRequestRuns(desk, tmp_path)
    assert pull.run([("l4", changed(compared(0.0, worse=0.4)))]).conclusion == "failure"
    assert said(pull)
    shown = desk.github.pulls[1]
    shown.state, shown.merged_at, shown.merge_commit_sha = "closed", "2026-11-21T09:00:00Z", MERGED
    desk.github.merge_bases[MERGED, STORED_AT] = STORED_AT
    before = as_baseline(scaled(compared()))
    record.write(before.model_copy(update={"run": Run(head_sha=STORED_AT)}), tmp_path / "stored.json")
    return desk


def offered(desk: Desk, worse: float = 0.4, other: float = 0.0) -> str | None:
    """What the baseline's pull request says; None where there is none."""
    path = Path("run.json")
    record.write(scaled(compared(other, worse=worse)), path)
    number = refresh(desk.bot, path, "l4", RULES, force=False)
    return None if number is None else desk.github.pulls[number].body


def test_the_baseline_takes_in_what_was_accepted(merged: Desk) -> None:
    body = offered(merged)
    assert body
    assert ACCEPTED in body
    assert "### ⚠️ Slower, and accepted: 1 of 2 cases 40.0% slower on the L4" in body
    stored = record.from_json(merged.github.files["kernelgate/baseline-l4", "stored.json"])
    assert stored.run.head_sha == HEAD_SHA
    assert {path for _, path in merged.github.files} == {"stored.json"}, "best and release never worsen"
    check = next(one for one in merged.github.checks.values() if one["name"] == "kernelgate accepted")
    check["output"]["text"] = check["output"]["text"].replace("exact rounding costs it", "@octocat <img src=x>")
    assert "Reason: `@octocat <img src=x>`" in (offered(merged) or "")


def test_what_else_is_slower_stops_it(merged: Desk) -> None:
    """It would pass into the baseline unseen."""
    assert offered(merged, other=0.4) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    ["not merged", "no label", "another commit merged", "comment deleted", "in the baseline", "merged later", "denied"],
)
def test_what_was_not_accepted_stops_it(merged: Desk, how: str) -> None:
    github = merged.github
    pull = github.pulls[1]
    match how:
        case "not merged":
            pull.merged_at = None
        case "no label":
            pull.labels.clear()
        case "another commit merged":
            pull.head_sha = "c" * 40
        case "comment deleted":
            github.comments = {n: one for n, one in github.comments.items() if "because" not in one["body"]}
        case "in the baseline":
            github.merge_bases[MERGED, STORED_AT] = MERGED
        case "merged later":
            github.merge_bases[MERGED, HEAD_SHA] = LATER
        case "denied":
            del github.permissions["checks"]
    assert offered(merged) is None
