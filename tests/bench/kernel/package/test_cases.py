"""A package's kernels are compiled beforehand for what is fuzzed on a GPU, within bounds."""

from __future__ import annotations

from kernelgate.bench.kernel import fuzz_list, fuzz_risk
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_domain import LAYOUTS
from kernelgate.bench.kernel.package import build
from tests import registered

CARD = registered.ROOT / "tests" / "repositories" / "swiglu" / ".ci" / "kernels" / "swiglu.py"


def facts() -> CardFacts:
    return registered.facts(CARD)


def test_what_is_risky_is_compiled_for_once_of_each_kind() -> None:
    card = facts()
    cases = list(build.cases(card))
    own = {trial.id for trial in fuzz_list.trials(build.FUZZ_SEED, card, "cuda")}
    risky = [case for case in cases if not case.timed and case.id not in own]
    assert 0 < len(risky) <= build.RISKY
    assert len({case.id for case in cases}) == len(cases)
    assert [case.axes["way"] for case in risky].count("offset") == 2, (
        "where nothing divides the sizes, and where wide loads do"
    )
    assert {case.axes["way"] for case in risky} <= {*LAYOUTS, "plain", "empty", "repeat", "two-streams"}, "nothing huge"


def test_other_seeds_fuzz_few_kinds_that_were_not_compiled_for() -> None:
    """Of a kernel that asks for no block size by its shape."""

    def kind(axes: dict[str, bool | int | float | str]) -> tuple[object, ...]:
        elements = int(axes["T"]) * int(axes["F"])
        return elements == 1, elements % 16 == 0, axes["dtype"], axes.get("way") == "offset"

    card = facts()
    compiled = {kind(case.axes) for case in build.cases(card)}
    fuzzed = [kind(trial.axes) for seed in (1, 2, 3) for trial in fuzz_risk.risks(seed, card, "cuda")]
    assert sum(one not in compiled for one in fuzzed) <= 0.01 * len(fuzzed)
