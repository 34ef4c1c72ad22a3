"""Several GPUs in one comment: everything that one GPU has, each line with its GPU."""

from __future__ import annotations

from kernelgate.ci.document import render
from kernelgate.ci.document.model import Report
from kernelgate.ci.judge.case import Outcome
from tests.ci.report import situations
from tests.ci.report.situations import DATA, Part, lost, of, on
from tests.ci.report.test_build import expect
from tests.ci.report_examples import EXAMPLES, NINE, judge, record, same


def together(*parts: Part) -> Report:
    return situations.together(*parts).report


def explained(label: str) -> Part:
    """A slower GPU with both profiles."""
    return situations.of(label, situations.profiled("attention_occupancy"), EXAMPLES["slower"]().verdict)


def test_the_comment_is_the_golden_one() -> None:
    text = render.comment(together(on("l4", "equivalent"), explained("h100")))
    expect(DATA / "two_gpus" / "comment.md", text)


def test_the_first_screen_explains_the_gpu_of_the_first_line_and_the_others_come_below_the_table() -> None:
    text = render.comment(together(explained("l4"), explained("h100"), on("b200", "slower")))
    parts = [text.index(f"fp16 on `{label}`") for label in ("l4", "h100")]
    assert text.startswith("### ❌ Blocks: 1 of 9 cases 4.9% slower on `l4`")
    assert parts[0] < text.index("**Now:**") < text.index("| | change |") < parts[1]


def test_the_worst_case_of_any_gpu_is_the_first_row() -> None:
    said = together(on("l4", "faster"), on("h100", "mixed"))
    assert said.cases is not None
    rows = [[render.plain_line(cell) for cell in row] for row in said.cases.rows]
    assert rows[0] == ["❌", "+7.25%", "321.4 → 344.7 µs", "h100 S=512 B=32"]
    assert rows[1] == ["✅", "−12.8%", "321.4 → 280.3 µs", "l4 S=512 B=32"]


def test_a_gpu_that_measured_nothing_is_missing_and_hides_no_other() -> None:
    text = render.comment(together(on("l4", "equivalent"), lost("h100")))
    assert text.startswith("### 🛠️ Held: no change: all 9 cases within ±1% on `l4`; `h100` missing\n")
    assert "<details><summary>9 cases unchanged wherever measured</summary>" in text


def test_a_wrong_result_on_one_gpu_says_so_first_and_keeps_the_others() -> None:
    text = render.comment(together(on("l4", "equivalent"), on("h100", "wrong_result")))
    assert text.startswith("### 🛑 Blocks: wrong result in 3 of 38 fuzz cases on `h100`\n")
    assert "**Now:** repeat it with `kernelgate fuzz --seed 1271" in text
    assert "9 cases unchanged wherever measured" in text
    assert "✅ `l4`: correct" not in text, "beside a wrong result nothing is called correct"
    assert "➖ `l4`: 38 of 38 fuzz cases passed" in text


def test_gpus_may_have_measured_different_cases() -> None:
    few, many = record(NINE[:1]), record(NINE[1:3])
    verdicts = (
        judge(Outcome.EQUIVALENT, *(same(case, 0.0) for case in NINE[:1])),
        judge(Outcome.EQUIVALENT, *(same(case, 0.0) for case in NINE[1:3])),
    )
    said = together(of("l4", few, verdicts[0]), of("h100", many, verdicts[1]))
    assert said.cases is None
    assert said.folded is not None
    assert [render.plain_line(row[3]) for row in said.folded.rows] == [
        "l4 S=448 B=8 H=8 fp16", "h100 S=448 B=32 H=8 fp16", "h100 S=448 B=64 H=8 fp16"
    ]  # fmt: skip
