"""The bot fills the section of statistical results in a description, and never touches anybody's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelgate.bench.record import RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.github import description
from kernelgate.ci.github.description import BEGIN, describe, filled, split
from kernelgate.ci.github.publish import post
from kernelgate.ci.github.upsert import Stamp, put_results
from kernelgate.ci.judge.gate import GpuEvidence
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.gpu import GpuReport
from kernelgate.ci.report.speed import results
from tests.ci.desk import Desk
from tests.ci.github.test_publish import BODY, l4, measured
from tests.ci.report_examples import EXAMPLES, HEAD_SHA

POLICY = Policy()
PLACE = f"{BEGIN}\n<!-- /kernelgate-results -->"
MINE = f"{BODY.format(claim='none')}\n## Statistical results\n{PLACE}\nmy own words\n"
STAMP = Stamp(HEAD_SHA, 1, 1)


def test_it_is_filled_and_filled_anew_and_nothing_else_changes() -> None:
    once = filled(MINE, "first")
    assert once.replace("\r\n", "\n") == MINE.replace(
        PLACE, f"{BEGIN}\n\nfirst\n\n<!-- /kernelgate-results a7937b64b8caa58f -->"
    )
    assert filled(once, "first") == once
    kept_by_github = once.replace("\n", "\r\n")
    assert filled(kept_by_github, "first") == kept_by_github
    twice = filled(kept_by_github, "second")
    assert twice is not None
    assert "first" not in twice
    assert description.without(twice) == description.without(kept_by_github)
    assert split(twice) == split(MINE)
    assert filled(once.replace("first", "first\nbut see below"), "second") is None, "an author's words stay"


@pytest.mark.parametrize(
    "body",
    [
        "no marks",
        BEGIN,
        f"{BEGIN}\nwords of the author\n<!-- /kernelgate-results 0123456789abcdef -->",
        f"{PLACE}{'x' * 65_500}",
    ],
)
def test_where_there_is_no_place_or_somebody_wrote_nothing_is_filled(body: str) -> None:
    assert filled(body, "results") is None


def test_marks_without_an_end_are_read_in_time() -> None:
    """A pattern that looks for an end from each of 10,000 beginnings would take minutes."""
    body = BEGIN * 10_000
    assert description.without(body) == body
    assert not describe(body, POLICY.template).claims


def test_the_statistics_are_those_of_the_comment(desk: Desk, tmp_path: Path) -> None:
    folder = measured(desk, tmp_path, l4("slower"), body=MINE)
    denied = desk.github.fault("PATCH", "/pulls/1", status=403, message="Resource not accessible by integration")
    assert (post(desk.bot, folder, POLICY), denied.times) == (0, 0)
    assert "the block of results in the description is missing" in desk.summary
    assert post(desk.bot, folder, POLICY) == 0
    body = desk.github.pulls[1].body or ""
    assert "Of `a1b2c3d` against `9f8e7d6`, written by kernelgate" in body
    (row,) = [line for line in body.splitlines() if line.startswith("| `s512_b32_h8_d64_fp16` ")]
    (comment,) = desk.github.bodies(1)
    assert row in comment
    assert "Cliff" in body
    assert split(body) == split(MINE)
    assert body.endswith("my own words\n")
    # The edit begins a run that measures nothing; its report finds nothing to change, and so it ends.
    assert post(desk.bot, measured(desk, tmp_path, {}, body=body), POLICY) == 0
    assert len([said for said in desk.github.writes() if said.startswith("PATCH /pulls/")]) == 2, "one was denied"


def test_a_gpu_without_figures_is_named_beside_one_that_has_them() -> None:
    made = EXAMPLES["equivalent"]()
    one, none = GpuReport(GpuEvidence("l4"), made.record, made.verdict), GpuReport(GpuEvidence("h100"), RunRecord())
    both = render.blocks(results([one, none], made.record.run))
    assert "On `h100` no case was compared, or a result is wrong." in both
    assert "On `l4`:" in both


def test_an_author_who_edits_meanwhile_loses_nothing(desk: Desk) -> None:
    """The description is read right before it is written, whatever was read when the run was fetched, and a write that
    was lost is repeated once at most."""
    pull = desk.github.open_pull(head_sha=HEAD_SHA, body=MINE)
    pull.body = MINE.replace("my own words", "words of this very second")
    for drop in ("before", "after"):
        desk.github.fault("PATCH", "/pulls/1", drop=drop)
    assert put_results(desk.bot, 1, "results", STAMP).outcome == "results filled in"
    assert "words of this very second" in (pull.body or "")
    assert (pull.body or "").count("results\n\n<!-- /kernelgate-results ") == 1
    pull.body = (pull.body or "").replace("results", "ours", 1).replace(BEGIN, "")
    assert put_results(desk.bot, 1, "newer", STAMP).left
