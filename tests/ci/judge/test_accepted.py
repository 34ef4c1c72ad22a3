"""What the gate makes of an acceptance: it takes a regression of one commit against one base from what blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.record import CaseKey
from kernelgate.ci.document import render
from kernelgate.ci.judge import gate
from kernelgate.ci.judge.case import CaseVerdict, Direction, MeanVerdict, RecordVerdict, Status, overall
from kernelgate.ci.judge.gate import Acceptance, Fault, GpuEvidence, Label, Regression, decide
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.build import build
from tests.ci.mixes import MIXES, Mix, part

HEAD, BASE, OTHER = "a" * 40, "b" * 40, "c" * 40


def case(status: Status, name: str = "x") -> CaseVerdict:
    times = {"base_us": None, "head_us": None, "reference_us": None}
    return CaseVerdict(
        card="norm", id=name, status=status, change_pct=5.0, **times, processes=4, rounds=40, findings=()
    )


def mean(status: Status, card: str = "norm") -> MeanVerdict:
    return MeanVerdict(card, status, Direction.SLOWER, "", 2.0, (1.9, 2.1), 0.0, 3, 3, 4)


def of(*cases: CaseVerdict, means: tuple[MeanVerdict, ...] = (), label: str = "l4") -> GpuEvidence:
    found = RecordVerdict(label, overall(cases, means), "", cases, means=means)
    return GpuEvidence(label, found, head_sha=HEAD, base_sha=BASE)


def accepted(name: str = "x", card: str = "norm", head: str = HEAD, base: str = BASE) -> Acceptance:
    return Acceptance(CaseKey(card, name), "ada", "exact rounding", head, base)


WORSE, SAME = case(Status.REGRESSED), case(Status.UNCHANGED, "y")


def test_an_accepted_regression_is_neutral_and_keeps_its_label() -> None:
    found = decide([of(WORSE, SAME)], accepted=[accepted()])
    assert (found.conclusion, found.label, found.blockers, found.settled) == ("neutral", Label.REGRESSED, (), True)
    assert (found.accepted, found.regressions) == ((accepted(),), (Regression("l4", CaseKey("norm", "x"), True),))


@pytest.mark.parametrize(
    "other",
    [accepted("y"), accepted(card="gelu"), accepted(head=OTHER), accepted(base=OTHER), accepted("")],
    ids=["another case", "another card", "another head", "another base", "the mean"],
)
def test_an_acceptance_of_something_else_changes_nothing(other: Acceptance) -> None:
    gpu = of(WORSE, SAME)
    assert decide([gpu], accepted=[other]) == decide([gpu])


def test_a_case_takes_along_the_mean_that_it_alone_carries() -> None:
    both = (mean(Status.REGRESSED), mean(Status.REGRESSED, "gelu"))
    assert not decide([of(WORSE, SAME, means=both[:1])], accepted=[accepted()]).blocks
    for other in (Status.SLOWER, Status.UNDECIDED, Status.LIKELY_SLOWER):
        assert decide([of(WORSE, case(other, "y"), means=both[:1])], accepted=[accepted()]).blocks
    assert decide([of(WORSE, SAME, means=both)], accepted=[accepted()]).blocks, "another card's"
    assert decide([of(SAME, means=both[:1])], accepted=[accepted("y")]).blocks, "it did not regress"


@pytest.mark.parametrize(
    ("other", "settled"),
    [(Status.SLOWER, True), (Status.IMPROVED, True), (Status.UNDECIDED, False), (Status.LIKELY_SLOWER, False)],
)
def test_what_is_in_doubt_takes_no_failure_back(other: Status, settled: bool) -> None:
    assert decide([of(WORSE, case(other, "y"))], accepted=[accepted()]).settled is settled
    means = (mean(Status.REGRESSED), mean(other, "gelu"))
    assert decide([of(SAME, means=means)], accepted=[accepted("")]).settled is (other is not Status.LIKELY_SLOWER)


def test_what_was_not_judged_or_is_missing_takes_no_failure_back() -> None:
    done = of(WORSE, SAME)
    assert done.verdict is not None
    for held in (
        [replace(done, verdict=replace(done.verdict, refused="no"))],
        [replace(done, fault=Fault.RUNNER)],
        [replace(done, missing=(("a case was not timed",),))],
        [done, GpuEvidence("h100", fault=Fault.RUNNER)],
    ):
        assert not decide(held, accepted=[accepted()]).settled, held


@pytest.mark.slow
@given(st.lists(MIXES, min_size=1, max_size=3), st.booleans(), st.booleans(), st.data())
def test_an_acceptance_only_ever_takes_a_regression_from_what_blocks(
    mixes: list[Mix], described: bool, refused: bool, data: st.DataObject
) -> None:
    parts = [part(f"gpu{number}", mix) for number, mix in enumerate(mixes)]
    gpus = [replace(one.evidence, head_sha=HEAD, base_sha=BASE) for one in parts]
    words = (() if described else ("## Intent and hypothesis",), (("refused",),) if refused else ())
    before = decide(gpus, *words)
    known = sorted({one.key for gpu in gpus if gpu.verdict for one in gpu.verdict.cases}, key=str)
    known += [CaseKey(mean.card, "") for gpu in gpus if gpu.verdict for mean in gpu.verdict.means]
    taken = [
        Acceptance(key, "ada", "so", head, base)
        for key in (data.draw(st.lists(st.sampled_from(known), max_size=4)) if known else [])
        for head, base in [data.draw(st.sampled_from([(HEAD, BASE), (OTHER, BASE), (HEAD, OTHER)]))]
    ]
    after = decide(gpus, *words, accepted=taken)
    assert after.conclusion == before.conclusion or (before.conclusion, before.label) == ("failure", Label.REGRESSED)
    assert (after.conclusion == "success") == (before.conclusion == "success")
    assert (after.label, after.open) == (before.label, before.open)
    others = [one for one in before.blockers if one.code is not gate.BlockCode.SLOWER]
    assert [one for one in after.blockers if one.code is not gate.BlockCode.SLOWER] == others
    ours = {one.case for one in taken if (one.head_sha, one.base_sha) == (HEAD, BASE)}
    assert {one.case for one in after.accepted} <= ours
    assert ours or after == before
    assert not after.settled or not (after.blockers or refused or any(gpu.fault or gpu.missing for gpu in gpus))
    remarks = build(parts, after, Policy()).remarks
    assert any("Accepted by" in render.plain_line(line) for line in remarks) == bool(after.accepted)
