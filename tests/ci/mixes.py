"""Any mix of what may be known of a GPU, with its report: for properties that hold whatever was found."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from kernelgate.bench.record import Run
from kernelgate.ci.judge.gate import BlockCode, Blocker, Decision, Fault, decide
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.gpu import Failure, GpuReport, of_failure, of_record
from tests.ci.card_examples import CARD_EXAMPLES
from tests.ci.report_examples import EXAMPLES, Example

SPILLS = Blocker(BlockCode.NEW_SPILLS, "l4", "attention")
CLAIM = Blocker(BlockCode.CONTRADICTED_CLAIM, "l4", "all cases: 20% faster")
BLOCKERS = [(), (SPILLS,), (CLAIM,), (SPILLS, CLAIM)]

NAMES = (
    *("slower", "faster", "equivalent", "cannot_tell_throttled", "mixed", "certain_below_gate", "wrong_result"),
    *("slower_together", "slower_likely", "refused", "minimal_opaque_ids", "wrong_timed_output"),
)
CARDS = (
    *("improved_beside_one_library", "one_library", "base_does_not_compile", "first_card", "second_card"),
    *("card_changed", "one_card_wrong"),
)


def _own(made: Example) -> Example:
    """As if the pull request had brought all of its cards."""
    cards = tuple(card.model_copy(update={"source": "head"}) for card in made.record.cards)
    return replace(made, record=made.record.model_copy(update={"cards": cards}))


MADE: dict[str, Example] = {
    **{name: EXAMPLES[name]() for name in NAMES},
    **{name: CARD_EXAMPLES[name]() for name in CARDS},
    **{f"own {name}": _own(CARD_EXAMPLES[name]()) for name in CARDS},
}

Mix = tuple[str, Fault | None, tuple[Blocker, ...], tuple[tuple[str], ...]]

MIXES = st.tuples(
    st.sampled_from(sorted(MADE)),
    st.none() | st.sampled_from(Fault),
    st.sampled_from(BLOCKERS),
    st.sampled_from([(), (("one case was not timed",),)]),
)


def part(label: str, mix: Mix) -> GpuReport:
    name, fault, blockers, missing = mix
    if fault is not None:
        return of_failure(label, Failure(fault, "It broke."), Run())
    made = of_record(label, MADE[name].record, MADE[name].verdict, Policy())
    blocked = (*made.evidence.blockers, *(replace(one, gpu=label) for one in blockers))
    return replace(made, evidence=replace(made.evidence, blockers=blocked, missing=missing))


def decided(mixes: list[Mix], described: bool = True, refused: bool = False) -> tuple[list[GpuReport], Decision]:
    """Of each mix a GPU, and what follows from all of them, from a description and from artifacts."""
    gpus = [part(f"gpu{number}", mix) for number, mix in enumerate(mixes)]
    sections, artifacts = () if described else ("## Intent",), (("an artifact is refused",),) if refused else ()
    return gpus, decide([one.evidence for one in gpus], sections, artifacts)
