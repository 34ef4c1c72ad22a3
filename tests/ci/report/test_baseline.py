"""How a case moved before a pull request: blocks for the eye, and words that say the same."""

from __future__ import annotations

from dataclasses import replace

from kernelgate.ci.document import render
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report import baseline
from kernelgate.ci.report import gpu as parts
from kernelgate.ci.report.gpu import CaseNights, GpuReport
from tests.ci.report_examples import EXAMPLES

GATES = Gates()
PAGE = "https://octo-org.github.io/kernels/history/series/one-0.html"
RISEN = CaseNights((*(321.4,) * 15, *(337.1,) * 5), "2026-10-30", "2026-11-20", PAGE)


def report(known: CaseNights, example: str = "slower") -> GpuReport:
    """Every case of the example has this past."""
    made = EXAMPLES[example]().record
    part = parts.of_record("l4", made, judge(made, Policy()), Policy())
    return replace(part, nights={case.key: known for case in made.cases})


def test_the_case_that_moved_has_a_line_with_words_and_a_link() -> None:
    [line] = baseline.nights_lines(report(RISEN), GATES)
    text = render.markdown_line(line)
    assert text.startswith(
        "**Before:** `▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▇▇▇▇▇` S=512 B=32 H=8 fp16 took 321.4 µs → 337.1 µs in the last"
    )
    assert "20 measurements of the default branch, 2026-10-30 to 2026-11-20, all within 4.9%" in text
    assert text.endswith(f"[All of its past]({PAGE}).")
