"""The line on accuracy, its table, and what blocks where the policy lets it."""

from __future__ import annotations

import pytest

from kernelgate.bench.record import Card, Case, Check, FuzzResult, OutputAccuracy, Process, RunRecord, Timing
from kernelgate.ci.document.render import plain_line
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.gate import BlockCode, Decision
from kernelgate.ci.policy.policy import AccuracyRules, Policy
from kernelgate.ci.report import accuracy
from tests.accuracies import check, output, side

WARN = AccuracyRules()
FAIL = AccuracyRules(action="fail")
NORM = Card(name="norm", reference="PyTorch")
FUZZED = Check(kind="fuzz", card="norm", status="passed", results=(FuzzResult(id="n0", seed=1, passed=True),))
BASE = side(0.27, 0.5)
WORSE = side(0.51, 0.99, outward=-0.51)


def record_of(*checks: Check) -> RunRecord:
    listed = tuple(Case(card="norm", id=f"m{n}", axes={"M": float(n)}, label=f"M={n} fp16") for n in range(2))
    times = dict.fromkeys(("base", "head"), (10.0, 10.1, 9.9) * 10)
    timings = tuple(Timing(card="norm", case=one.id, samples_us=times) for one in listed)
    processes = tuple(Process(id=f"{n}", timings=timings) for n in range(3))
    return RunRecord(cards=(NORM,), cases=listed, processes=processes, checks=checks)


def outputs(*heads: tuple[str, str, OutputAccuracy]) -> tuple[OutputAccuracy, ...]:
    return tuple(one.model_copy(update={"case": case, "distribution": values}) for case, values, one in heads)


ALIKE = output(BASE, BASE)
NEAR = output(BASE, side(0.25, 0.5))
SAME = output(BASE, BASE, identical=8)
LESS = output(BASE, WORSE)
UNCLEAR = output(BASE, side([0.2, 0.9] * 4, 0.5))


@pytest.mark.parametrize(
    ("first", "second", "says"),
    [
        (LESS, LESS, "⚠ less accurate in M=0 fp16: mean error 0.27 → 0.51 ulp (1.9×), certain in 2 of 2 cases, "
         "within the tolerance"),
        (UNCLEAR, ALIKE, "➖ accuracy: no certain change, and none within 20% shown in 1 of 2 comparisons"),
        (ALIKE, NEAR, "✅ accuracy: as before (mean error 0.27 → 0.25 ulp, where it changed most)"),
        (SAME, SAME, "✅ accuracy: every output is bit-identical to the base's"),
    ],
    ids=["less", "unclear", "alike", "same bits"],
)  # fmt: skip
def test_one_line_says_what_came_of_it(first: OutputAccuracy, second: OutputAccuracy, says: str) -> None:
    found = outputs(("m0", "normal", first), ("m1", "normal", second))
    (line,) = accuracy.lines(record_of(FUZZED, check(*found, card="norm")), WARN)
    assert plain_line(line) == says


def test_what_was_not_measured_is_said_and_no_record_without_a_check_says_anything() -> None:
    skipped = check(card="norm", reason="3 of 3 left out, such as m0: the head raised an error")
    (line,) = accuracy.lines(record_of(FUZZED, skipped), WARN)
    assert plain_line(line).startswith("❔ accuracy: not measured: 3 of 3 left out")
    (line,) = accuracy.lines(record_of(FUZZED, check(*outputs(("m0", "normal", SAME)), card="norm", asked=3)), WARN)
    assert plain_line(line).endswith("; 2 of 3 comparisons are missing")
    assert accuracy.lines(record_of(FUZZED), WARN) == ()


def test_the_table_has_the_figures_of_what_differs() -> None:
    found = outputs(("m0", "normal", SAME), ("m0", "large", ALIKE), ("m1", "normal", LESS))
    (section,) = accuracy.sections(record_of(FUZZED, check(*found, card="norm", reason="one was left out")))
    table, note = section.blocks
    rows = [[plain_line(cell) for cell in row] for row in getattr(table, "rows")]  # noqa: B009 - one of several kinds
    assert rows == [
        ["M=1 fp16", "normal", "0.27 → 0.51", "0.50 → 0.99", "0 → 0", "0 → −0.51",
         "less accurate: mean error, bias in size"],
        ["M=0 fp16", "large", "0.27 → 0.27", "0.50 → 0.50", "0 → 0", "0 → 0", "alike"],
    ]  # fmt: skip
    assert "one was left out" in plain_line(getattr(note, "line"))  # noqa: B009
    assert accuracy.sections(record_of(check(*outputs(("m0", "normal", SAME)), card="norm"))) == ()


def decided(rules: AccuracyRules, *checks: Check, cards: tuple[Card, ...] = (NORM,)) -> Decision:
    made = record_of(FUZZED, *checks).model_copy(update={"cards": cards})
    return gate.decide([gate.evidence("l4", made, None, Policy(accuracy=rules))])


@pytest.mark.parametrize(
    ("found", "rules", "blocks"), [(LESS, FAIL, True), (LESS, WARN, False), (UNCLEAR, FAIL, False)]
)
def test_what_is_less_accurate_blocks_only_where_the_policy_says_so(
    found: OutputAccuracy, rules: AccuracyRules, blocks: bool
) -> None:
    """And never by the head's own card."""
    made = check(*outputs(("m0", "normal", found)), card="norm")
    decision = decided(rules, made)
    assert [one.code for one in decision.blockers] == [BlockCode.LESS_ACCURATE] * blocks
    assert decision.open == ()
    assert not decided(rules, made, cards=(Card(name="norm", source="head"),)).blocks


def test_accuracy_that_is_not_known_keeps_open_only_what_it_could_block() -> None:
    skipped = check(card="norm", reason="it crashed")
    (line,) = decided(FAIL, skipped).open
    assert plain_line(line) == "the accuracy of norm was not measured: it crashed"
    assert decided(WARN, skipped).open == ()
