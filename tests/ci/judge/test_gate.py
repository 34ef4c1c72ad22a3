"""The gate: every mix of evidence gives one decision."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.record import (
    Build,
    Card,
    Case,
    Check,
    Expected,
    KernelFacts,
    Note,
    RunRecord,
)
from kernelgate.ci.judge import completeness, gate
from kernelgate.ci.judge.case import Direction, MeanVerdict, Outcome, RecordVerdict, Status
from kernelgate.ci.judge.gate import Decision, Fault, GpuEvidence, Label, decide
from kernelgate.ci.policy.policy import AccuracyRules, Gates, Policy
from tests import accuracies
from tests.ci.card_examples import CARD_EXAMPLES, NORM, SWIGLU, fuzzed
from tests.ci.judge.told import missing, plain
from tests.ci.mixes import CLAIM, MADE, MIXES, SPILLS, Mix, decided
from tests.ci.report_examples import Example


def verdict(outcome: Outcome) -> RecordVerdict:
    cases = tuple(one for one in MADE["slower"].verdict.cases if one.verdict is outcome)[:1]
    return RecordVerdict("l4", outcome, "made by hand", cases)


KERNEL = KernelFacts(target="sm_89", name="_kernel", spill_bytes=0)
SPILLING = KERNEL.model_copy(update={"spill_bytes": 64})
FASTER, SLOWER, SAME, OPEN = map(
    verdict, (Outcome.IMPROVED, Outcome.REGRESSED, Outcome.EQUIVALENT, Outcome.INCONCLUSIVE)
)


def l4(found: RecordVerdict | None = SAME, **facts: object) -> GpuEvidence:
    return replace(GpuEvidence("l4", found), **facts)  # type: ignore[arg-type]


def codes(decision: Decision) -> list[str]:
    return [blocker.code.value for blocker in decision.blockers]


@pytest.mark.parametrize(
    ("one", "conclusion", "label", "blocking"),
    [
        (l4(FASTER), "success", Label.IMPROVED, []),
        (l4(SAME), "success", Label.UNCHANGED, []),
        (l4(OPEN), "neutral", None, []),
        (l4(verdict(Outcome.SLOWER)), "neutral", None, []),
        (l4(verdict(Outcome.FASTER)), "success", None, []),
        (l4(SLOWER), "failure", Label.REGRESSED, ["slower"]),
        (l4(None), "neutral", None, []),
        (l4(SLOWER, fault=Fault.OUTPUT), "failure", None, ["wrong_output"]),
        (l4(None, fault=Fault.BUILD), "failure", None, ["does_not_compile"]),
        (l4(None, fault=Fault.OURS), "action_required", None, []),
        (l4(None, fault=Fault.DISPUTED), "action_required", None, []),
        (l4(SLOWER, fault=Fault.DISPUTED), "failure", Label.REGRESSED, ["slower"]),
        (l4(FASTER, blockers=(SPILLS,)), "failure", Label.IMPROVED, ["new_spills"]),
        (l4(SAME, blockers=(CLAIM,)), "failure", Label.UNCHANGED, ["contradicted_claim"]),
        (l4(FASTER, missing=(("a case was not timed",),)), "neutral", None, []),
        (l4(replace(OPEN, refused="no cases")), "neutral", None, []),
    ],
)
def test_one_gpu(one: GpuEvidence, conclusion: str, label: Label | None, blocking: list[str]) -> None:
    found = decide([one])
    assert (found.conclusion, found.label, codes(found)) == (conclusion, label, blocking)
    assert {named.gpu for named in (*found.blockers, *found.held)} <= {"l4"}
    if one.fault is Fault.DISPUTED and not found.blocks:
        assert decide([one], hold=False).conclusion == "action_required", "whatever the policy"


def test_of_a_wrong_result_nothing_else_blocks() -> None:
    """Not how inaccurate, slow or large it is: of the same record without the wrong output, all of them do."""
    made = MADE["slower"]
    first = made.verdict.cases[0]
    less = accuracies.check(accuracies.output(accuracies.side(0.25), accuracies.side(0.5), first.id), card=first.card)
    taken = {"memory_bytes": {"head": 300, "reference": 100}}
    processes = tuple(
        one.model_copy(update={"timings": tuple(timing.model_copy(update=taken) for timing in one.timings)})
        for one in made.record.processes
    )
    slow = replace(first, reference_us=0.1 * (first.head_us or 1.0))
    judged = replace(made.verdict, cases=(slow, *made.verdict.cases[1:]))
    gates = Gates(below_reference_min="fail", above_memory_max="fail")
    policy = Policy(gates=gates, accuracy=AccuracyRules(action="fail"))
    builds = (Build(side="base", kernels=(KERNEL,)), Build(side="head", kernels=(SPILLING,)))

    def evidence(*checks: Check) -> GpuEvidence:
        changed = {"processes": processes, "checks": (*made.record.checks, *checks), "builds": builds}
        return gate.evidence("l4", made.record.model_copy(update=changed), judged, policy)

    spilt = codes(decide([evidence(less)]))
    assert spilt == ["slower", "less_accurate", "new_spills", "below_reference", "memory"], "the worst first"
    wrong = evidence(less, Check(kind="fuzz", card=first.card, status="failed"))
    assert (codes(decide([wrong])), wrong.doubts) == (["wrong_output", "new_spills"], ())


def test_a_refused_artifact_keeps_what_is_faster_open() -> None:
    assert decide([]) == Decision("neutral")
    found = decide([l4(FASTER)], refused=[("artifact kernelgate-record-h100 is refused",)])
    assert (found.conclusion, found.label, len(found.open)) == ("action_required", None, 1)


@given(st.lists(MIXES, min_size=1, max_size=3), st.booleans(), st.booleans())
def test_the_decision_holds_together(mixes: list[Mix], described: bool, refused: bool) -> None:
    parts, found = decided(mixes, described, refused)
    gpus = [one.evidence for one in parts]
    known = all(one.verdict is not None and one.verdict.refused is None and not one.missing for one in gpus)
    assert (found.conclusion == "failure") == found.blocks
    if found.label is Label.REGRESSED:
        assert found.blocks
    if found.conclusion == "success":
        assert not refused
        assert not found.open
        assert not any(one.fault for one in gpus)
    if found.conclusion == "success" or found.label in (Label.IMPROVED, Label.UNCHANGED):
        assert known


def own(made: Example, *names: str, **parts: object) -> GpuEvidence:
    """The evidence where the head brought these cards itself."""
    cards = tuple(
        card.model_copy(update={"source": "head"}) if card.name in names else card for card in made.record.cards
    )
    return gate.evidence("l4", made.record.model_copy(update={"cards": cards, **parts}), made.verdict, Policy())


@pytest.mark.parametrize("name", ["card_changed", "one_card_wrong"])
def test_nothing_that_the_heads_own_card_says_blocks_or_passes(name: str) -> None:
    made = CARD_EXAMPLES[name]()
    heads = (one for one in made.record.builds if one.side == "head")
    spilling = {"builds": tuple(one.model_copy(update={"kernels": (SPILLING,)}) for one in heads)}
    for changed in ({}, spilling):
        assert decide([own(made, **changed)]).blocks
        assert decide([own(made, "rmsnorm", "swiglu", **changed)]) == Decision("neutral")


def test_only_the_means_of_the_default_branchs_cards_decide() -> None:
    made = CARD_EXAMPLES["improved_beside_unchanged"]()
    means = tuple(
        MeanVerdict(card, Status.REGRESSED, Direction.SLOWER, "", 2.0, (1.9, 2.1), 0.0, 3, 3, 4)
        for card in ("rmsnorm", "swiglu")
    )
    judged = replace(made.verdict, means=means)
    found = own(replace(made, verdict=judged), "swiglu").verdict
    assert [{one.card for one in every} for every in (found.cases, found.means)] == [{"rmsnorm"}, {"rmsnorm"}]
    assert found.verdict is Outcome.REGRESSED, "by the mean alone"
    refused = replace(judged, refused="no")
    assert own(replace(made, verdict=refused), "swiglu").verdict == refused


def test_a_note_alone_tells_that_there_was_no_card() -> None:
    """Where no card says whose it is; one of the default branch is not the head's for a note."""
    made = CARD_EXAMPLES["card_changed"]()
    note = (Note(code="no_card_on_base", text="there is none"),)
    assert decide([own(made, notes=note)]).blocks
    unsaid = tuple(card.model_copy(update={"source": None}) for card in made.record.cards)
    assert decide([own(made, cards=unsaid)]).blocks
    assert decide([own(made, cards=unsaid, notes=note)]) == Decision("neutral")


def planned(made: RunRecord, **changes: object) -> RunRecord:
    asked = {"cases": made.cases, "checks": ("fuzz",), "processes": 5, "label": "l4", "target": "8.9"} | changes
    return made.model_copy(update={"expected": Expected.model_validate(asked)})


MEASURED = MADE["equivalent"].record


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"label": "h100"}, "it was planned for the GPU h100, not for l4"),
        ({"target": "9.0"}, "it was measured on compute capability 8.9; the plan asked for 9.0"),
        ({"cases": MEASURED.cases[1:]}, f"it holds {MEASURED.cases[0].id}, which the plan did not ask for"),
    ],
)
def test_a_record_of_something_else_proves_nothing(changes: dict[str, object], said: str) -> None:
    made = planned(MADE["slower"].record if "cases" not in changes else MEASURED, **changes)
    assert plain(completeness.against_plan(made, "l4").contrary) == [said]
    found = gate.evidence("l4", made, SLOWER, Policy())
    assert (found.verdict, found.fault, found.blockers) == (None, Fault.DISPUTED, ())
    assert decide([found]).conclusion == "action_required", "the head could have written it"


REPLANNED = "the cards of the default branch changed between plan and report, so this must be measured again"


@pytest.mark.parametrize(
    ("planned_by", "asked_by", "again"), [("a", "b", True), ("a", "a", False), (None, "b", False), ("a", None, False)]
)
def test_a_record_that_other_cards_planned_is_measured_again_and_not_refused(
    planned_by: str | None, asked_by: str | None, again: bool
) -> None:
    """Its cases are no longer those of the plan, which is nobody's fault."""
    made = planned(MEASURED, cases=MEASURED.cases[1:], hash=asked_by)
    made = made.model_copy(update={"run": made.run.model_copy(update={"plan_hash": planned_by})})
    held = completeness.against_plan(made, "l4")
    assert plain(held.missing) == ([REPLANNED] if again else [])
    assert (held.contrary == ()) == again
    found = decide([gate.evidence("l4", made, SLOWER if again else SAME, Policy())])
    assert (found.conclusion, codes(found)) == (("failure", ["slower"]) if again else ("action_required", []))


def lacking(name: str, *cases: Case, cards: tuple[Card, ...] = (NORM, SWIGLU), **changes: object) -> list[str]:
    made = CARD_EXAMPLES[name]().record
    asked = Expected(cards=cards, cases=(*made.cases, *cases), checks=("fuzz",), processes=2)
    return missing(made.model_copy(update={"expected": asked, **changes}))


ASKED = Case(card="rmsnorm", id="m512")


def test_a_card_with_one_library_is_not_asked_for() -> None:
    assert lacking("improved_beside_one_library", ASKED) == []
    assert lacking("improved_beside_unchanged", ASKED) == ["rmsnorm/m512 was not timed"]
    assert lacking("one_library", ASKED, cards=(NORM,)) == []
    assert lacking("one_library", Case(card="swiglu", id="m64")) == [
        f"nothing was measured of the card swiglu, which the head may have deleted or renamed: {completeness.MEANT}"
    ]


def test_each_card_needs_its_own_checks() -> None:
    norm = fuzzed(NORM)
    other = norm.model_copy(update={"card": "swiglu"})
    short = norm.model_copy(update={"asked": 231})
    for checks, said in (
        ((norm, other), []),
        ((norm,), ["the fuzz check did not run for swiglu"]),
        ((), ["the fuzz check did not run"]),
        ((short, other), [f"the fuzz check ran only {len(norm.results)} of 231 for {NORM.name}"]),
    ):
        assert lacking("improved_beside_unchanged", checks=checks) == said


def test_a_card_of_the_plan_that_the_head_judged_keeps_the_check_open() -> None:
    """Else a change could exempt itself by saying that its own card was used."""
    made = CARD_EXAMPLES["first_card"]()
    asked = Expected(cards=(NORM,), cases=(ASKED,), checks=("fuzz",), processes=2)
    record_ = made.record.model_copy(update={"expected": asked})
    found = decide([gate.evidence("l4", record_, made.verdict, Policy())])
    assert plain(found.open) == ["rmsnorm was judged by the card of this pull request, not by that of the plan"]
    assert (found.conclusion, found.blocks) == ("action_required", False)
