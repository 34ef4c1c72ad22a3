"""Of the compilers' warnings those are said that the author's change brought, where the author's change is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelgate.bench.record import MAX_WARNINGS, Build, CompilerWarning, RunRecord
from kernelgate.ci.document import render
from kernelgate.ci.document.model import Report
from kernelgate.ci.github.assemble import Posting
from kernelgate.ci.github.check_run import Annotation
from kernelgate.ci.github.publish import MAX_WARNINGS as MOST_ANNOTATIONS
from kernelgate.ci.github.publish import line_notes, post
from kernelgate.ci.judge.gate import Decision, GpuEvidence
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import remarks
from kernelgate.ci.report.gpu import GpuReport
from tests.ci.desk import Desk
from tests.ci.github.test_publish import measured as measured_there
from tests.ci.github.test_publish import named
from tests.ci.report_examples import BASE_SHA, HEAD_SHA

Warnings = Sequence[CompilerWarning]
UNUSED = CompilerWarning(file="csrc/k.cu", line=12, text="unused variable 'x' [-Wunused-variable]")
ELSEWHERE = CompilerWarning(file="csrc/other.cu", line=3, text="unused variable 'y'")


def at(line: int, text: str = UNUSED.text) -> CompilerWarning:
    return UNUSED.model_copy(update={"line": line, "text": text})


def measured(head: Warnings, *base: Warnings | None, changed: tuple[str, ...] | None = ("csrc/k.cu",)) -> GpuReport:
    of_base = (Build(side="base", warnings=None if one is None else tuple(one)) for one in base)
    record = RunRecord(builds=(Build(side="head", warnings=tuple(head)), *of_base))
    return GpuReport(GpuEvidence("l4"), record, changed=changed)


@pytest.mark.parametrize(
    ("head", "base", "new"),
    [
        ([at(14)], [UNUSED], []),  # lines were added above it
        ([at(12), at(20)], [at(12)], [20]),
        ([at(9, "f (declared at line 7) is unused")], [at(9, "f (declared at line 5) is unused")], []),
    ],
)
def test_only_what_the_base_has_not_is_news(head: Warnings, base: Warnings, new: list[int | None]) -> None:
    assert [one.line for one in remarks.compiler_warnings([measured(head, base)])] == new


@pytest.mark.parametrize("bases", [(None,), ([at(n) for n in range(1, MAX_WARNINGS + 1)],)])
def test_what_is_not_known_of_the_base_is_not_called_new(bases: tuple[Warnings | None, ...]) -> None:
    gpu = measured([UNUSED], *bases)
    (section,) = remarks.compiler_warning_sections([gpu])
    assert section.title == "Compiler warnings (1)"
    assert "Whether the base has these, too, is not known." in shown(gpu)
    (known,) = remarks.compiler_warning_sections([measured([UNUSED], [])])
    assert known.title == "New compiler warnings (1)"


def shown(*gpus: GpuReport) -> str:
    return render.comment(Report(("News",), (), sections=remarks.compiler_warning_sections(gpus)))


def test_a_strangers_text_stays_text() -> None:
    evil = at(1, "</code></details> @everyone ![x](https://evil) `| <!-- kernelgate --> \u202e\n# big")
    comment = shown(measured([evil], []))
    assert "\u202e" not in comment
    assert comment.count("<!-- kernelgate -->") == 1
    assert "``</code></details> @everyone" in comment
    (note,) = annotations(measured([evil], []))
    assert "\n" not in note.message
    assert "\u202e" not in note.message


def annotations(*gpus: GpuReport) -> list[Annotation]:
    posting = Posting(Report(("News",), ()), Decision("success"), gpus)
    return list(line_notes(posting, [("csrc/k.cu", "@@ -1 +1 @@\n-a\n+b")], ["csrc/"]))


def test_a_warning_stands_at_its_line_in_a_changed_file() -> None:
    """Whatever files a forged record names, and wherever the tool gave no line."""
    forged = UNUSED.model_copy(update={"file": "../.github/workflows/check.yml"})
    gpu = measured([UNUSED, ELSEWHERE, forged, at(0), at(10**9)], [], changed=None)
    assert annotations(gpu, gpu) == [Annotation("csrc/k.cu", 12, 12, "warning", "compiler warning", UNUSED.text)]
    assert len(annotations(measured([at(n) for n in range(1, 90)], []))) == MOST_ANNOTATIONS


def test_a_planted_warning_is_in_the_comment_and_beside_its_line(desk: Desk, tmp_path: Path) -> None:
    """From the record over the wire; what stands in a file that the pull request does not touch is not said."""
    content = json.loads(named("slower"))
    planted = {"file": "csrc/k.cuh", "line": 12, "text": "unused variable 'x' [-Wunused-variable]"}
    elsewhere = planted | {"file": "csrc/other.cuh", "text": "old"}
    content["builds"] = [
        {"side": "base", "sha": BASE_SHA, "warnings": []},
        {"side": "head", "sha": HEAD_SHA, "warnings": [planted, elsewhere]},
    ]
    folder = measured_there(desk, tmp_path, {"kernelgate-record-l4": {"run.json": json.dumps(content).encode()}})
    assert post(desk.bot, folder, Policy()) == 0
    (comment,) = desk.github.bodies(1)
    assert "<summary>New compiler warnings (1)</summary>" in comment
    assert "- `csrc/k.cuh:12`: `unused variable 'x' [-Wunused-variable]`" in comment
    assert "csrc/other.cuh" not in comment
    (check,) = desk.github.checks.values()
    notes = [one for one in check["annotations"] if one["title"] == "compiler warning"]
    assert [(one["path"], one["start_line"], one["annotation_level"]) for one in notes] == [
        ("csrc/k.cuh", 12, "warning")
    ]
