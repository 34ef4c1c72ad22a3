"""The gate: every mix of evidence gives one decision."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelgate.bench.record import (
    Build,
    Calls,
    Card,
    Case,
    Check,
    Device,
    Environment,
    Expected,
    KernelFacts,
    Note,
    RunRecord,
    timed_cases,
)
from kernelgate.ci.document import render
from kernelgate.ci.judge import completeness, gate
from kernelgate.ci.judge.case import Direction, MeanVerdict, Outcome, RecordVerdict, Status
from kernelgate.ci.judge.gate import BlockCode, Decision, Fault, GpuEvidence, Label, decide
from kernelgate.ci.policy.policy import AccuracyRules, Gates, Policy
from kernelgate.ci.report import now
from kernelgate.ci.report.gpu import of_record
from kernelgate.ci.report.links import Links
from tests import accuracies
from tests.ci.card_examples import CARD_EXAMPLES, NORM, SWIGLU, cards_record, fuzzed, timed
from tests.ci.judge.told import missing, plain
from tests.ci.mixes import CLAIM, MADE, MIXES, SPILLS, Mix, decided
from tests.ci.report_examples import BASE_SHA, HEAD_SHA, Example, judge, slower
from tests.runs import case, process, run_record


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


def test_a_label_needs_every_gpu() -> None:
    other = GpuEvidence("h100", fault=Fault.RUNNER)
    assert decide([l4(FASTER), other]).label is None
    assert decide([l4(SLOWER), other]).label is Label.REGRESSED
    assert decide([l4(SLOWER), replace(other, fault=Fault.OUTPUT)]).label is None, "of a wrong head none"
    assert decide([l4(FASTER), replace(l4(SAME), label="h100")]).label is Label.IMPROVED
    little = replace(l4(verdict(Outcome.FASTER)), label="h100")
    assert decide([l4(FASTER), little]).label is Label.IMPROVED
    assert decide([l4(SAME), little]).label is None, "faster is not unchanged"


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
EXTRA = Case(card="other", id="another")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"processes": 6}, ["9 cases were timed in 5 of 6 processes"]),
        ({"checks": ("fuzz", "sanitizer")}, ["the sanitizer check did not run"]),
        ({"cases": (*MEASURED.cases, EXTRA)}, [f"{EXTRA.id} was not timed", "the fuzz check did not run for other"]),
    ],
)
def test_what_is_missing_is_named(changes: dict[str, object], said: list[str]) -> None:
    assert missing(planned(MEASURED, **changes)) == said


def test_a_case_of_another_card_is_another_case() -> None:
    timed = replace(timed_cases(MEASURED)[0], case=MEASURED.cases[0].model_copy(update={"card": "gemm"}))
    asked = Expected(cases=(MEASURED.cases[0].model_copy(update={"card": "attention"}),))
    held = completeness.against_plan(run_record((timed,), expected=asked), "")
    assert (len(held.missing), len(held.contrary)) == (1, 1)


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


def test_a_skipped_check_is_missing_and_a_run_that_ended_early_is_open() -> None:
    skipped = MEASURED.checks[0].model_copy(update={"status": "skipped"})
    run = MEASURED.run.model_copy(update={"ended": "preempted"})
    made = planned(MEASURED.model_copy(update={"checks": (skipped,), "run": run}))
    assert missing(made) == ["the fuzz check did not run", "the run ended early: preempted"]


@pytest.mark.parametrize("environments", [(), (Environment(device=Device(name="NVIDIA L4")),)])
def test_a_machine_without_a_capability_is_open_and_not_contrary(environments: tuple[Environment, ...]) -> None:
    """A CPU under the label of a GPU; what is slower on it still blocks."""
    assert missing(planned(MEASURED.model_copy(update={"environments": environments}))) == [
        "it is not known on which compute capability it was measured; the plan asked for 8.9"
    ]


def test_a_case_whose_outputs_were_not_compared_on_one_side_keeps_the_verdict_open() -> None:
    compared, silent = Calls(made=9, compared=9), Calls(made=9)
    sides, said = {"base": (10.0,) * 9, "head": (10.0,) * 9}, "the outputs of one were not compared in every process"
    for base, head, lines in ((compared, compared, []), (silent, compared, [said]), (compared, silent, [said])):
        timed = case("one", [process(sides, calls={"base": base, "head": head})])
        assert missing(run_record((timed,), expected=Expected(cases=(timed.case,))), "") == lines


def test_few_compared_calls_send_to_a_slow_oracle() -> None:
    """A repeat compares no more of them."""
    sides, calls = {"base": (10.0,) * 400, "head": (10.0,) * 400}, Calls(made=400, compared=2)
    timed = case("one", [process(sides, calls={"base": calls, "head": calls})])
    made = run_record((timed,), expected=Expected(cases=(timed.case,)))
    said = "of the calls of one less than 1% were compared: they are not verified"
    assert missing(made, "") == [said]
    slow = made.model_copy(update={"notes": (Note(code="compared_in_part", text="the oracle takes long"),)})
    assert missing(slow, "") == [f"{said}, and more are once the card's oracle takes less time"]


SHARED = "m4096_n4096_fp16"
"""An id that both kernels have, so that it says nothing alone."""
GITHUB = Links("https://github.com/o/r", "https://github.com/o/r/pull/1", None, "https://github.com/o/r/actions/runs/1")


def test_what_blocks_names_the_kernel_and_its_command_means_that_one() -> None:
    """The other kernel's case has the same id, is slower still, and was accepted."""
    cases = timed(SWIGLU, 4096, 400.0, 480.0), timed(NORM, 4096, 400.0, 440.0)
    made = cards_record(cases, NORM, SWIGLU)
    found = judge(Outcome.REGRESSED, slower(cases[0], 20.0), slower(cases[1], 10.0))
    taken = gate.Acceptance(cases[0].key, "ada", "needed", HEAD_SHA, BASE_SHA)
    part = of_record("l4", made, found, Policy())
    decided = gate.decide([part.evidence], accepted=[taken])
    assert [(one.code, one.subject) for one in decided.blockers] == [(BlockCode.SLOWER, f"rmsnorm/{SHARED}")]
    said = render.plain_line(now.step([part], decided, GITHUB))
    assert f"/kernelgate accept rmsnorm/{SHARED} " in said
