"""Several GPUs in one comment: everything that one GPU has, each line with its GPU."""

from __future__ import annotations

from kernelgate.ci.document import render
from kernelgate.ci.document.model import Report
from tests.ci.report import situations
from tests.ci.report.situations import DATA, Part, lost, on
from tests.ci.report.test_build import expect
from tests.ci.report_examples import EXAMPLES


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
