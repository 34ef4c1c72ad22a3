"""What the comment says: golden ones, any mix of cases, what is wrong, cards, and several GPUs.

The golden files below tests/data are compared whole. After a change that is meant, write them anew and read the
difference: `KERNELGATE_GOLDEN=write .venv/bin/pytest tests/ci/report/test_build.py`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelgate.bench.record import Check, FuzzResult, RunRecord, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.document.model import Line, Mark
from kernelgate.ci.document.render import comment
from kernelgate.ci.judge import case as case_
from kernelgate.ci.judge.case import CaseVerdict, Outcome, Status
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.build import reported
from kernelgate.ci.report.gpu import GpuReport, of_record
from tests.ci.card_examples import CARD_EXAMPLES
from tests.ci.report import situations
from tests.ci.report.situations import lost, on
from tests.ci.report_examples import (
    EXAMPLES,
    FAILURES,
    NINE,
    below_gate,
    case,
    faster,
    judge,
    noisy,
    record,
    report,
    reports,
    same,
    slower,
)
from tests.runs import process, run_record

GOLDEN = Path(__file__).parents[2] / "data"


def expect(path: Path, text: str) -> None:
    if os.environ.get("KERNELGATE_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    assert text == expected, f"---- {path}\n{expected}\n---- now\n{text}"


@pytest.mark.parametrize("name", [*EXAMPLES, *FAILURES])
def test_the_comment_is_the_golden_one(name: str) -> None:
    expect(GOLDEN / "report" / name / "comment.md", comment(reports()[name]))


@pytest.mark.parametrize("name", CARD_EXAMPLES)
def test_the_comment_on_cards_is_the_golden_one(name: str) -> None:
    expect(GOLDEN / "card_reports" / name / "comment.md", comment(CARD_EXAMPLES[name]().report()))


def plain(line: Line) -> str:
    return "".join(piece.emoji if isinstance(piece, Mark) else getattr(piece, "text", piece) for piece in line)


MAKERS = {
    "regressed": lambda one: slower(one, 5.0),
    "very likely slower": lambda one: replace(below_gate(one, 5.0), status=Status.LIKELY_SLOWER),
    "slower within the gate": lambda one: below_gate(one, 2.0),
    "undecided": lambda one: noisy(one, 0.0, 2.0),
    "improved": lambda one: faster(one, -12.0),
    "faster within the gate": lambda one: below_gate(one, -4.0),
    "unchanged": lambda one: same(one, 0.0),
}


def overall(kinds: list[str]) -> Outcome:
    return case_.overall(MAKERS[kind](NINE[0]) for kind in kinds)


def mix(kinds: list[str]) -> tuple[RunRecord, tuple[CaseVerdict, ...]]:
    cases = tuple(case(64 * (index + 1), 8, 50.0, 0.0) for index in range(len(kinds)))
    return record(cases), tuple(MAKERS[kind](one) for kind, one in zip(kinds, cases, strict=True))


@given(st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=14))
@settings(max_examples=40)
def test_any_mix_has_its_headline_and_each_case_in_one_table_once(kinds: list[str]) -> None:
    run, verdicts = mix(kinds)
    said = report(run, judge(overall(kinds), *verdicts))
    tables = [table for table in (said.cases, said.folded) if table]
    shown = [plain(row[1]) for table in tables for row in table.rows]
    assert Counter(shown) == Counter(formatting.signed(one.change_pct, one.interval_pct)[0] for one in verdicts)
    assert said.cases is None or len(said.cases.rows) <= 10
    if said.folded and re.search(r": \d", said.folded_title):
        folded = Counter(plain(row[0]) for row in said.folded.rows)
        assert sum(map(int, re.findall(r"(\d+) [a-z]", said.folded_title.partition(": ")[2]))) == folded.total()
    first = plain(said.headline)
    worst = {
        "regressed": r"❌ Blocks: .*5.0% slower",
        "very likely slower": r"⚠️ Held: .*very likely .*5.0% slower \(4.8 to 5.2%\) on the L4",
        "undecided": r"❔ Does not block: cannot tell",
        "slower within the gate": r"⚠️ Does not block: .*2.0% slower",
        "improved": r"✅ Does not block: .*12.0% faster",
        "faster within the gate": r"✅ Does not block: .*4.0% faster",
        "unchanged": r"✅ Does not block: no change: ",
    }
    kind = next(kind for kind in worst if kind in kinds)
    assert re.match(worst[kind], first), first
    counts, of = Counter(kinds), len(kinds)
    if kind not in ("undecided", "unchanged"):
        number = f"{counts[kind]} of {of}" if counts[kind] < of else "all" if of > 2 else "both"
        upto = "up to " if counts[kind] > 1 else ""
        assert of == 1 or re.search(rf": {number}.* cases (?:very likely )?{upto}[\d.]+% (slower|faster)", first), first
    # Both directions, and how many are unknown, are told whatever is worst.
    slower = {"regressed", "very likely slower", "slower within the gate"}
    for side, group in (("slower", slower), ("faster", {"improved", "faster within the gate"})):
        assert (side in first) == any(one in kinds for one in group), first
    assert kind == "undecided" or (f"{counts['undecided']} unknown" in first) == bool(counts["undecided"])


def test_the_command_is_that_of_the_smallest_case_that_fails() -> None:
    wrong = FuzzResult(id="edge_s65", seed=7, passed=False, message="Error 0.4.", smallest="s37_way-plain")
    checks = (Check(kind="fuzz", status="failed", results=(wrong,)),)
    text = comment(report(record((), checks=checks), judge(Outcome.INCONCLUSIVE)))
    assert "kernelgate fuzz --seed 7 --case s37_way-plain" in text
    assert "--case edge_s65" not in text


def test_a_record_without_a_base_is_judged_against_the_baseline() -> None:
    even = EXAMPLES["equivalent"]().record
    heads = tuple(
        replace(one, processes=tuple(process({"head": timed.samples_us["head"]}) for timed in one.processes))
        for one in timed_cases(even)
    )
    said = reported(
        even.model_copy(update={"processes": run_record(heads).processes}), Policy(), "run.json", ("l4.json", even)
    ).report
    assert "vs the baseline l4.json" in plain(said.summary)
    assert "block" not in plain(said.headline), "a comparison with a baseline is not about merging"


def together(*parts: GpuReport) -> str:
    return comment(situations.together(*parts).report)


def explained(label: str) -> GpuReport:
    """A slower GPU with both profiles."""
    return of_record(label, situations.profiled("attention_occupancy"), EXAMPLES["slower"]().verdict, Policy())


def test_the_comment_on_two_gpus_is_the_golden_one() -> None:
    expect(GOLDEN / "two_gpus" / "comment.md", together(on("l4", "equivalent"), explained("h100")))


def test_the_first_screen_explains_the_gpu_of_the_first_line_and_the_others_come_below_the_table() -> None:
    text = together(explained("l4"), explained("h100"), on("b200", "slower"))
    parts = [text.index(f"fp16 on `{label}`") for label in ("l4", "h100")]
    assert text.startswith("### ❌ Blocks: 1 of 9 cases 4.9% slower on `l4`")
    assert parts[0] < text.index("**Now:**") < text.index("| | change |") < parts[1]


def test_a_gpu_that_measured_nothing_or_wrongly_hides_no_other() -> None:
    text = together(on("l4", "equivalent"), lost("h100"))
    assert text.startswith("### 🛠️ Held: no change: all 9 cases within ±1% on `l4`; `h100` missing\n")
    text = together(on("l4", "equivalent"), on("h100", "wrong_result"))
    assert text.startswith("### 🛑 Blocks: wrong result in 3 of 38 fuzz cases on `h100`\n")
    assert "<details><summary>9 cases unchanged wherever measured</summary>" in text
    assert "➖ `l4`: 38 of 38 fuzz cases passed" in text, "beside a wrong result nothing is called correct"


def test_an_autotuner_that_chooses_by_process_is_said_where_nothing_is_certain() -> None:
    def tuned(name: str, *by_process: str) -> str:
        kept = EXAMPLES[name]().record
        chosen = dict(enumerate(by_process))
        processes = []
        for number, one in enumerate(kept.processes):
            autotuned = {"head": f"scale: warps={chosen.get(number, by_process[-1])}"}
            timings = tuple(timing.model_copy(update={"autotuned": autotuned}) for timing in one.timings)
            processes.append(one.model_copy(update={"timings": timings}))
        record = kept.model_copy(update={"processes": tuple(processes)})
        return comment(reported(record, Policy()).report)

    said = "the autotuner of head chose `scale: warps=8` in 4, `scale: warps=4` in 1 of 5 processes"
    assert said in tuned("cannot_tell_throttled", "4", "8")
    assert "autotuner" not in tuned("cannot_tell_throttled", "4"), "always the same"
    assert "autotuner" not in tuned("equivalent", "4", "8"), "certain all the same"
