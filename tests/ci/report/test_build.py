"""What the report says, from golden comments read as their reader reads them to the counts of any mix.

The golden files under tests/data/report are compared whole. After a change that is meant, write them anew and read the
difference: `KERNELGATE_GOLDEN=write .venv/bin/pytest tests/ci/report/test_build.py`.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.record import Card, Check, FuzzResult, Profile, RunRecord, Side, Telemetry, TimedCase, timed_cases
from kernelgate.ci.document.model import Line, Mark, Table
from kernelgate.ci.document.render import comment, page
from kernelgate.ci.judge import case as case_
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.policy import Gates, Policy
from kernelgate.ci.judge.verdict import CaseVerdict, Direction, Finding, Outcome, Status
from kernelgate.ci.report.build import judged_report, report
from tests.ci.report_examples import (
    EXAMPLES,
    FAILURES,
    NINE,
    below_gate,
    case,
    faster,
    fuzz,
    judge,
    noisy,
    record,
    reports,
    same,
    slower,
)
from tests.runs import on, process, run_record

GOLDEN = Path(__file__).parents[2] / "data" / "report"
PAGES = ("certain_below_gate", "does_not_compile")
WRITE = os.environ.get("KERNELGATE_GOLDEN") == "write"


def expect(path: Path, text: str) -> None:
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    assert text == expected, f"---- {path}\n{expected}\n---- now\n{text}"


@pytest.mark.parametrize("name", [*EXAMPLES, *FAILURES])
def test_the_comment_is_the_golden_one(name: str) -> None:
    expect(GOLDEN / name / "comment.md", comment(reports()[name]))


def without_style(html: str) -> str:
    """The page without what every page has alike: the style sheet, and the hash by which browsers accept it."""
    bare, sheets = re.subn(r"<style>.*?</style>", "<style>page.css</style>", html, flags=re.DOTALL)
    bare, hashes = re.subn(r"'sha256-[\w+/=]+'", "'sha256-of-page.css'", bare)
    assert (sheets, hashes) == (1, 1)
    return bare


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_the_golden_one(name: str) -> None:
    expect(GOLDEN / name / "page.html", without_style(page(reports()[name])))


def test_every_golden_file_has_an_example() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {*EXAMPLES, *FAILURES}


def plain(line: Line) -> str:
    return "".join(piece.emoji if isinstance(piece, Mark) else getattr(piece, "text", piece) for piece in line)


# ---- the first lines -------------------------------------------------------------------------------------------------

MAKERS = {
    "regressed": lambda one: slower(one, 5.0),
    "slower but not confirmed": lambda one: replace(below_gate(one, 5.0), status=Status.UNCONFIRMED),
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
def test_the_counts_are_exact_for_any_mix(kinds: list[str]) -> None:
    run, verdicts = mix(kinds)
    said = report(run, judge(overall(kinds), *verdicts), Gates())
    sentence = plain(said.summary).split(". ")[0]
    total = re.search(r"of (\d+) cases?", sentence)
    assert total is not None
    assert int(total[1]) == len(kinds)
    counted = {what: int(number) for number, what in re.findall(r"(\d+) (?:of \d+ cases? )?([a-z ]+)", sentence)}
    assert counted == dict(Counter(kinds))
    blocks = "This change blocks the merge." in plain(said.summary)
    assert blocks == ("regressed" in kinds)


@given(st.lists(st.sampled_from(sorted(MAKERS)), min_size=1, max_size=14))
def test_the_headline_fits_any_mix(kinds: list[str]) -> None:
    run, verdicts = mix(kinds)
    said = report(run, judge(overall(kinds), *verdicts), Gates())
    first = plain(said.headline)
    if "regressed" in kinds:
        assert first.startswith("❌ Slower: ")
    elif "slower but not confirmed" in kinds:
        assert first.startswith("⚠️ Slower, but not confirmed: ")
    elif "undecided" in kinds:
        assert first.startswith("❔ Cannot tell")
    elif "slower within the gate" in kinds:
        assert first.startswith("⚠️ A little slower: ")
    elif "improved" in kinds:
        assert first.startswith("✅ Faster: ")
        assert ("nothing else changed" in first) == (set(kinds) == {"improved", "unchanged"})
    elif "faster within the gate" in kinds:
        assert first.startswith("✅ A little faster: ")
    else:
        assert first.startswith("✅ No change: ")
    others = kinds.count("improved") if not first.startswith("✅") else 0
    assert (f"{others} other case" in first) == (others > 0)


@pytest.mark.parametrize(
    ("half", "findings", "said"),
    [
        (2.0, (), "❔ Cannot tell: too noisy; a change below 2.4% could not be seen"),
        (2.0, (Finding("drift", "The base drifted by +3.1% within process 2.", True),),
         "❔ Cannot tell: the base drifted by +3.1% within process 2"),
        (2.0, (Finding("hot", "The GPU reached 84 °C.", False),),
         "❔ Cannot tell: too noisy; a change below 2.4% could not be seen"),
    ],
)  # fmt: skip
def test_cannot_tell_says_why(half: float, findings: tuple[Finding, ...], said: str) -> None:
    one = case(512, 32, 321.4, 0.0)
    made = report(record((one,)), judge(Outcome.INCONCLUSIVE, noisy(one, 0.0, half, findings)), Gates())
    assert plain(made.headline) == said


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (2.0, "below the 3% that blocks"),
        (3.4, "not confirmed as more than the 3% that blocks"),
        (-4.0, "below the 10% that counts as an improvement"),
        (-12.0, "not confirmed as more than the 10% that counts as an improvement"),
    ],
)
def test_a_certain_difference_short_of_its_gate_names_the_gate(change: float, said: str) -> None:
    assert sentences.short_of_gate(below_gate(NINE[0], change), Gates()) == said


def test_the_gates_are_the_policy_s() -> None:
    one = case(512, 32, 321.4, 0.8)
    made = report(record((one,)), judge(Outcome.SLOWER, below_gate(one, 0.8)), Gates(regression_pct=1.5))
    assert plain(made.headline).endswith("below the 1.5% that blocks")


# ---- the table -------------------------------------------------------------------------------------------------------


def test_two_cards_that_share_an_id_show_each_its_own_figures() -> None:
    """In every table: times, statistics, percentiles, clocks and the profiler's figures."""
    cards = (Card(name="forward", label="Attention forward"), Card(name="backward", label="Attention backward"))
    cases: list[TimedCase] = []
    profiles: list[Profile] = []
    sides: tuple[tuple[Side, int], ...] = (("base", 0), ("head", 5))
    for card, base_us, clock in ((cards[0], 100.0, 1111.0), (cards[1], 700.0, 1222.0)):
        timed = case(512, 32, base_us, 5.0, process={"telemetry": Telemetry(sm_mhz=clock)})
        cases.append(replace(timed, case=timed.case.model_copy(update={"card": card.name})))
        profiles += [
            Profile(card=card.name, case=timed.id, side=side, metrics={"registers": clock - 1000 + more})
            for side, more in sides
        ]
    run = record(tuple(cases), cards=cards, profile=tuple(profiles))
    verdicts = [slower(one, change) for one, change in zip(cases, (5.0, 6.0), strict=True)]
    text = comment(report(run, judge(Outcome.REGRESSED, *verdicts), Gates()))
    name = "S=512 B=32 H=8 fp16"
    rows = [line for line in text.splitlines() if line.startswith("| ") and ("Attention" in line or "egisters" in line)]
    forward = [row for row in rows if "Attention forward" in row]
    backward = [row for row in rows if "Attention backward" in row]
    assert all(name in row or cases[0].id in row for row in (*forward, *backward))
    assert len(forward) == len(backward) > 5, text
    for own, others, figures in (
        (forward, backward, ("100.0 µs", "+5.0%", "1,111 MHz")),
        (backward, forward, ("700.0 µs", "+6.0%", "1,222 MHz")),
    ):
        for figure in figures:
            assert any(figure in row for row in own), (figure, own)
            assert not any(figure in row for row in others), (figure, others)
    assert text.count("| 111 | 116 |") == text.count("| 222 | 227 |") == 1


def ids(table: Table | None) -> list[str]:
    return [] if table is None else [plain(row[0]) for row in table.rows]


@pytest.mark.parametrize(
    ("news", "unchanged", "open_rows", "folded_rows"),
    [(1, 3, 4, 0), (1, 4, 1, 4), (0, 9, 9, 0), (0, 10, 0, 10), (2, 0, 2, 0)],
)
def test_many_unchanged_cases_are_folded(news: int, unchanged: int, open_rows: int, folded_rows: int) -> None:
    run, verdicts = mix(["regressed"] * news + ["unchanged"] * unchanged)
    said = report(run, judge(Outcome.REGRESSED if news else Outcome.EQUIVALENT, *verdicts), Gates())
    assert (len(ids(said.cases)), len(ids(said.folded))) == (open_rows, folded_rows)


def test_the_worst_case_comes_first() -> None:
    run, _ = mix(["regressed"] * 7)
    makers = [same, below_gate, slower, faster, slower, faster, below_gate]
    changes = [0.2, -4.0, 4.0, -12.0, 9.0, -20.0, 2.0]
    verdicts = [maker(one, change) for maker, one, change in zip(makers, timed_cases(run), changes, strict=True)]
    said = report(run, judge(Outcome.REGRESSED, *verdicts), Gates())
    assert said.cases is not None
    shown = [plain(row[3]).split(" ")[0] for row in said.cases.rows]
    assert shown == ["+9.0%", "+4.0%", "+2.0%", "−20.0%", "−12.0%", "−4.0%", "+0.2%"]


def test_a_difference_within_the_margin_is_the_same_and_says_that_it_is_one() -> None:
    one = case(512, 32, 321.4, 0.5)
    made = report(record((one,)), judge(Outcome.EQUIVALENT, same(one, 0.5, 0.04, Direction.SLOWER)), Gates())
    assert made.cases is not None
    assert plain(made.cases.rows[0][5]) == "✅ same: within ±1%"


def test_what_was_not_measured_is_written_as_missing() -> None:
    named = case(512, 32, 50.0, 0.0).case.model_copy(update={"work": None})
    run = run_record((TimedCase(named, (process({"head": (50.0,) * 20}),)),))
    verdict = replace(noisy(case(512, 32, 50.0, 0.0), 0.0, 1.0), base_us=None, reference_us=None, change_pct=None)
    said = report(run, judge(Outcome.INCONCLUSIVE, replace(verdict, interval_pct=None)), Gates())
    assert said.cases is not None
    assert [plain(cell) for cell in said.cases.rows[0]] == [
        "S=512 B=32 H=8 fp16", "—", "50.00 µs", "not measured", "—", "❔ too little was measured",
    ]  # fmt: skip


def test_one_library_on_both_sides_is_said_above_the_table() -> None:
    run, verdicts = mix(["unchanged"])
    twins = tuple(build.model_copy(update={"library_sha256": "ab" * 32}) for build in run.builds)
    same_code = report(run.model_copy(update={"builds": twins}), judge(Outcome.EQUIVALENT, *verdicts), Gates())
    assert [plain(line) for line in same_code.remarks] == [
        "✅ Base and head compile to the same library, which was timed against itself."
    ]
    assert report(run, judge(Outcome.EQUIVALENT, *verdicts), Gates()).remarks == ()


def fuzzing(**facts: Any) -> Check:
    return Check(kind="fuzz", **facts)


# ---- correctness -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "❔ correctness: not measured"),
        (fuzzing(status="skipped"), "❔ correctness: not checked"),
        (fuzzing(status="skipped", reason="No kernel."), "❔ correctness: not checked, no kernel"),
        (fuzz(1), "✅ correct: 1 of 1 fuzz case, largest error 0.00040, 20% of its limit"),
        (fuzzing(status="passed", results=(FuzzResult(id="a", seed=1, passed=True),)),
         "✅ correct: 1 of 1 fuzz case, errors not measured"),
        (fuzzing(status="passed", results=(FuzzResult(id="a", seed=1, passed=True, max_abs_error=0.001),)),
         "✅ correct: 1 of 1 fuzz case, largest error 0.0010"),
        (fuzzing(status="passed", asked=38, run=1, results=(FuzzResult(id="a", seed=1, passed=True),)),
         "❔ correctness: only 1 of 38 fuzz cases ran"),
        (fuzzing(status="passed", asked=38, run=38), "❔ correctness: no fuzz case ran"),
        (fuzzing(status="passed", reason="Card b: 3 not tried.", results=(FuzzResult(id="a", seed=1, passed=True),)),
         "✅ correct: 1 of 1 fuzz case, errors not measured; card b: 3 not tried"),
        (fuzzing(status="passed", asked=38, run=1, results=(FuzzResult(id="a", seed=1, passed=True),),
                 reason="the 30 s of the time limit were over before the last 37, the least risky"),
         "❔ correctness: only 1 of 38 fuzz cases ran, the 30 s of the time limit were over before the last 37, the "
         "least risky"),
        (fuzzing(status="passed", results=(FuzzResult(id="a", seed=1, passed=True, repeatable=False),)),
         "✅ correct: 1 of 1 fuzz case, errors not measured; calls on the same inputs differ in their last bits"),
        (fuzzing(status="passed", results=(FuzzResult(id="a", seed=1, passed=True, repeatable=True),)),
         "✅ correct: 1 of 1 fuzz case, errors not measured"),
    ],
)  # fmt: skip
def test_correctness_in_one_line(made: Check | None, said: str) -> None:
    run, verdicts = mix(["unchanged"])
    checks = report(
        run.model_copy(update={"checks": (made,) if made else ()}), judge(Outcome.EQUIVALENT, *verdicts), Gates()
    ).checks
    assert [plain(line) for line in checks] == [said]


def test_a_wrong_result_leaves_nothing_to_say_of_speed() -> None:
    run, verdicts = mix(["improved"])
    failed = fuzzing(status="failed", results=(FuzzResult(id="a", seed=7, passed=False, message="Error 0.4."),))
    said = report(run.model_copy(update={"checks": (failed,)}), judge(Outcome.IMPROVED, *verdicts), Gates())
    assert plain(said.headline) == "🛑 Wrong result: 1 of 1 fuzz case fails; speed was not judged"
    assert (said.cases, said.plots) == (None, ())
    assert "aster" not in comment(said)


def test_a_failed_fuzz_run_without_results_is_a_wrong_result_too() -> None:
    run, verdicts = mix(["improved"])
    said = report(
        run.model_copy(update={"checks": (fuzzing(status="failed"),)}), judge(Outcome.IMPROVED, *verdicts), Gates()
    )
    assert plain(said.headline) == "🛑 Wrong result: the fuzz run failed; speed was not judged"


def test_a_command_from_the_record_is_never_shown() -> None:
    assert "curl" not in comment(reports()["wrong_result"])


def test_many_failures_are_cut_and_counted() -> None:
    results = tuple(FuzzResult(id=f"case_{index}", seed=index, passed=False) for index in range(27))
    said = report(record((), checks=(fuzzing(status="failed", results=results),)), judge(Outcome.INCONCLUSIVE), Gates())
    text = comment(said)
    assert "27 of 27 fuzz cases fail" in text
    assert "7 more are in the run record" in text
    assert "case_19" in text
    assert "case_20" not in text


# ---- judged end to end -----------------------------------------------------------------------------------------------


def test_a_record_is_judged_and_reported() -> None:
    slow = EXAMPLES["slower"]().record
    said = judged_report(slow, Policy(), "run.json")
    assert plain(said.headline).startswith("❌ Slower: S=512 B=32 H=8 fp16 by 4.9")
    assert plain(said.summary).startswith("1 of 9 cases regressed, 8 unchanged. This change blocks the merge.")
    assert len(said.plots) == 9


def test_a_baseline_adds_a_line() -> None:
    slow, even = EXAMPLES["slower"]().record, EXAMPLES["equivalent"]().record
    said = judged_report(slow, Policy(), "run.json", ("l4.json", even))
    assert len(said.checks) == 2
    # 5% slower, and a baseline of one day does not show how far times drift from day to day.
    assert plain(said.checks[1]).startswith("❔ against the baseline l4.json: cannot tell, too noisy; a change below 9")


def test_a_baseline_of_another_device_is_refused_in_its_line() -> None:
    even = EXAMPLES["equivalent"]().record
    other = even.model_copy(update={"environments": (on("NVIDIA H200"),)})
    said = judged_report(even, Policy(), "run.json", ("h200.json", other))
    assert plain(said.headline).startswith("✅ No change: ")
    assert plain(said.checks[1]).startswith("❔ against the baseline h200.json: cannot be judged, ")
    assert "H200" in plain(said.checks[1])


def test_a_record_without_a_base_is_judged_against_the_baseline() -> None:
    even = EXAMPLES["equivalent"]().record
    heads = tuple(
        replace(one, processes=tuple(process({"head": timed.samples_us["head"]}) for timed in one.processes))
        for one in timed_cases(even)
    )
    said = judged_report(
        even.model_copy(update={"processes": run_record(heads).processes}), Policy(), "run.json", ("l4.json", even)
    )
    assert "of the baseline" in plain(said.headline) or "Cannot tell" in plain(said.headline)
    assert "against the baseline l4.json" in plain(said.summary)
    assert len(said.checks) == 1


def test_the_command_is_that_of_the_smallest_case_that_fails() -> None:
    failed = FuzzResult(id="edge_s65", seed=7, passed=False, message="Error 0.4.", smallest="s37_way-plain")
    text = comment(
        report(record((), checks=(fuzzing(status="failed", results=(failed,)),)), judge(Outcome.INCONCLUSIVE), Gates())
    )
    assert "kernelgate fuzz --seed 7 --case s37_way-plain" in text
    assert "--case edge_s65" not in text
