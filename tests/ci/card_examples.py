"""Records of several cards, of cards without a base, and of cards that the head brought, with verdicts made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kernelgate.bench.record import (
    Build,
    Calls,
    Card,
    Check,
    FuzzResult,
    KernelFacts,
    Note,
    Profile,
    RunRecord,
    Side,
    TimedCase,
    Work,
)
from kernelgate.ci.judge.case import CaseVerdict, Outcome, Status
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.judge.verdict import NOTHING_TO_COMPARE
from tests import runs
from tests.ci.report_examples import BASE_SHA, HEAD_SHA, PROCESSES, ROUNDS, Example, faster, judge, record, same, slower
from tests.runs import process

NORM = Card(name="rmsnorm", label="RMSNorm", build="extension", source="default branch", reference="PyTorch")
SWIGLU = Card(name="swiglu", label="SwiGLU", build="package", source="default branch", reference="PyTorch")


def timed(card: Card, m: int, base_us: float | None, head_us: float) -> TimedCase:
    """A case of M rows; without a base the head alone."""
    sides: dict[str, float] = {"head": head_us, "reference": 1.25 * head_us}
    if base_us is not None:
        sides["base"] = base_us
    role: Any = "block" if base_us is None else "paired"
    compared = {side: Calls(compared=3) for side in sides if side != "reference"}
    return runs.case(
        f"m{m}_n4096_fp16",
        [process(runs.samples(ROUNDS, **sides), role, inner_repeats=8, calls=compared) for _ in range(PROCESSES)],
        axes={"M": m, "N": 4096, "dtype": "fp16"},
        work=Work(flops=4.0 * m * 4096, bytes=4.0 * m * 4096),
        card=card.name,
        label=f"M={m} N=4096 fp16",
    )


def alone(one: TimedCase) -> CaseVerdict:
    """As the judge finds a case without a base."""
    why = "the head was measured alone"
    return CaseVerdict(
        card=one.case.card,
        id=one.id,
        status=Status.ALONE,
        sentence=f"not compared: {why}",
        base_us=None,
        head_us=runs.middle(one, "head"),
        reference_us=runs.middle(one, "reference"),
        processes=PROCESSES,
        rounds=PROCESSES * ROUNDS,
        findings=(Finding("head_alone", why, disqualifies=True),),
    )


def built(card: Card, *differs: str) -> tuple[Build, Build]:
    """Both sides of a card, alike but for the fields that `differs` names: key, call_hash or library_sha256."""

    def of(side: Side, sha: str) -> Build:
        own = {name: f"{side}-{name}" for name in differs}
        known = {"key": f"{card.name}-key", "call_hash": f"{card.name}-call", "library_sha256": f"{card.name}-library"}
        return Build(card=card.name, side=side, sha=sha, seconds=4.2, targets=("sm_89",), **{**known, **own})

    return of("base", BASE_SHA), of("head", HEAD_SHA)


def head_built(card: Card) -> tuple[Build]:
    return (built(card, "key", "library_sha256")[1],)


def fuzzed(card: Card, failing: int = 0) -> Check:
    results = tuple(
        FuzzResult(
            id=f"fuzz_{number:02}",
            seed=70 + number,
            axes={"M": 7 + number, "N": 129, "dtype": "fp16", "distribution": "tiny"},
            passed=number >= failing,
            max_abs_error=0.0004 if number >= failing else 0.31,
            error_ratio=0.2 if number >= failing else 155.0,
        )
        for number in range(4)
    )
    return Check(kind="fuzz", card=card.name, status="failed" if failing else "passed", seed=70, results=results)


def with_facts(builds: tuple[Build, ...], registers: int) -> tuple[Build, ...]:
    facts = KernelFacts(target="sm_89", name="_kernel", registers=registers, spill_bytes=0)
    return tuple(build.model_copy(update={"kernels": (facts,)}) for build in builds)


def cards_record(cases: tuple[TimedCase, ...], *cards: Card, **parts: Any) -> RunRecord:
    return record(cases, **{"cards": cards, "checks": tuple(map(fuzzed, cards)), **parts})


def _beside_one_library() -> Example:
    """One kernel improved; the other's library did not change."""
    cases = (timed(SWIGLU, 4096, 800.0, 660.0), timed(SWIGLU, 512, 20.0, 20.0))
    verdicts = (faster(cases[0], -17.5), same(cases[1], 0.0))
    builds = (*built(NORM), *built(SWIGLU, "key", "library_sha256"))
    note = Note(code="same_library", card="rmsnorm", text="base and head of rmsnorm are the same library")
    made = cards_record(cases, NORM, SWIGLU, builds=builds, checks=(fuzzed(SWIGLU),), notes=(note,))
    return Example(made, judge(Outcome.IMPROVED, *verdicts))


def _beside_unchanged() -> Example:
    """One kernel improved, the other was measured and is unchanged; both have a case of the same label and id."""
    best, plain = timed(SWIGLU, 4096, 800.0, 660.0), timed(SWIGLU, 512, 20.0, 20.0)
    other = timed(NORM, 4096, 400.0, 400.0)
    builds = (
        *with_facts(built(NORM, "key", "library_sha256"), 40),
        *with_facts(built(SWIGLU, "key", "library_sha256"), 64),
    )
    sides: tuple[tuple[Side, float], ...] = (("base", 12.0), ("head", 48.0))
    profile = tuple(
        Profile(card="swiglu", case=best.id, side=side, metrics={"occupancy_pct": value, "duration_us": 900 / value})
        for side, value in sides
    )
    made = cards_record((other, best, plain), NORM, SWIGLU, builds=builds, profile=profile)
    return Example(made, judge(Outcome.IMPROVED, same(other, 0.0), faster(best, -17.5), same(plain, 0.0)))


def _one_library() -> Example:
    made = cards_record((), NORM, builds=built(NORM), checks=())
    return Example(made, replace(judge(Outcome.EQUIVALENT), reason=NOTHING_TO_COMPARE))


def _timed_against_itself() -> Example:
    cases = (timed(NORM, 4096, 400.0, 400.0),)
    made = cards_record(cases, NORM, builds=built(NORM, "key"))
    return Example(made, judge(Outcome.EQUIVALENT, same(cases[0], 0.0)))


def _base_does_not_compile() -> Example:
    cases = tuple(timed(NORM, m, None, 0.1 * m) for m in (4096, 512))
    why = 'The base does not compile for sm_89: csrc/rmsnorm.cu:12: error: expected a ";".'
    note = Note(code="head_alone", card="rmsnorm", text=why)
    made = cards_record(cases, NORM, builds=head_built(NORM), notes=(note,))
    return Example(made, judge(Outcome.INCONCLUSIVE, *map(alone, cases)))


def _first_card() -> Example:
    """The pull request brings kernel and card."""
    own = NORM.model_copy(update={"source": "head"})
    cases = tuple(timed(own, m, None, 0.1 * m) for m in (4096, 512))
    notes = (
        Note(code="no_card_on_base", card="rmsnorm", text="the default branch has no card rmsnorm yet"),
        Note(code="head_alone", card="rmsnorm", text="the base commit has no card rmsnorm"),
        Note(code="returns_new_tensors", card="rmsnorm", text="RMSNorm returns new tensors: they have no guards."),
    )
    made = cards_record(cases, own, builds=head_built(own), notes=notes)
    return Example(made, judge(Outcome.INCONCLUSIVE, *map(alone, cases)))


def _second_card() -> Example:
    """A card of the default branch is unchanged, and the pull request brings another."""
    own = NORM.model_copy(update={"source": "head"})
    cases = (timed(SWIGLU, 512, 20.0, 20.0), timed(own, 4096, None, 400.0))
    notes = (
        Note(code="no_card_on_base", card="rmsnorm", text="the default branch has no card rmsnorm yet"),
        Note(code="head_alone", card="rmsnorm", text="the base commit has no card rmsnorm"),
    )
    builds = (*built(SWIGLU, "key", "library_sha256"), *head_built(own))
    made = cards_record(cases, SWIGLU, own, builds=builds, notes=notes)
    return Example(made, judge(Outcome.INCONCLUSIVE, same(cases[0], 0.0), alone(cases[1])))


def _card_changed() -> Example:
    cases = (timed(NORM, 4096, 400.0, 420.0),)
    note = Note(code="card_changed", card="rmsnorm", text="the card rmsnorm is changed")
    builds = built(NORM, "key", "call_hash", "library_sha256")
    return Example(
        cards_record(cases, NORM, builds=builds, notes=(note,)), judge(Outcome.REGRESSED, slower(cases[0], 5.0))
    )


def _one_card_wrong() -> Example:
    builds = (*built(NORM, "key"), *built(SWIGLU, "key"))
    checks = (fuzzed(NORM, failing=2), fuzzed(SWIGLU))
    made = cards_record((), NORM, SWIGLU, builds=builds, checks=checks)
    return Example(made, judge(Outcome.INCONCLUSIVE, refused="wrong result: 2 of 8 fuzz cases failed"))


CARD_EXAMPLES: dict[str, Callable[[], Example]] = {
    "improved_beside_one_library": _beside_one_library,
    "improved_beside_unchanged": _beside_unchanged,
    "one_library": _one_library,
    "timed_against_itself": _timed_against_itself,
    "base_does_not_compile": _base_does_not_compile,
    "first_card": _first_card,
    "second_card": _second_card,
    "card_changed": _card_changed,
    "one_card_wrong": _one_card_wrong,
}
