from __future__ import annotations

import pytest

from kernelgate.bench.record import Build, KernelFacts, Side
from kernelgate.ci.document import render
from kernelgate.ci.judge import gate, static
from kernelgate.ci.policy.policy import Policy, Static, parse
from kernelgate.ci.report import now
from kernelgate.ci.report.gpu import of_record
from tests.ci.judge.told import plain
from tests.ci.report_examples import EXAMPLES


def one(side: Side, registers: int, spill: int = 0, occupancy: float = 25.0, kernel: str = "attention") -> Build:
    facts = KernelFacts(
        target="sm_89",
        name=kernel,
        registers=registers,
        spill_bytes=spill,
        occupancy_pct={"L4": occupancy},
        occupancy_limits={"L4": "registers"},
        instructions={"total": 100, "STL": spill // 4},
    )
    return Build(side=side, kernels=(facts,))


def test_new_spills_fail_and_lost_occupancy_warns_where_the_policy_says_nothing_else() -> None:
    found = static.judge([one("base", 128), one("head", 200, spill=64, occupancy=16.7)], Static())
    assert [str(finding) for finding in found] == [
        "fail: attention for sm_89: 64 bytes of registers are spilled to local memory; the base spills 0",
        "warn: attention for sm_89: occupancy on the L4 falls from 25% to 16.7%, limited by registers",
    ]
    policy = parse('[static]\nnew_spills = "ignore"\noccupancy_loss = "fail"').static
    found = static.judge([one("base", 128), one("head", 200, spill=64, occupancy=16.7)], policy)
    assert [(finding.code, finding.severity) for finding in found] == [("occupancy_loss", "fail")]


@pytest.mark.parametrize(("after", "lost"), [(25.0 - 0.01, False), (24.9895, True), (26.0, False)])
def test_occupancy_is_lost_beyond_what_rounding_explains(after: float, lost: bool) -> None:
    found = static.judge([one("base", 128), one("head", 128, occupancy=after)], Static())
    assert [finding.code for finding in found] == (["occupancy_loss"] if lost else [])


def test_what_is_not_known_is_no_loss() -> None:
    unknown = Build(side="head", kernels=(KernelFacts(target="sm_89", name="attention"),))
    assert static.judge([one("base", 128, spill=4), unknown], Static()) == ()
    other = one("head", 128, occupancy=1.0).kernels[0].model_copy(update={"occupancy_pct": {"H100": 1.0}})
    assert static.judge([one("base", 128), Build(side="head", kernels=(other,))], Static()) == ()
    (found,) = static.judge([unknown.model_copy(update={"side": "base"}), one("head", 128, spill=4)], Static())
    assert found.message == "4 bytes of registers are spilled to local memory; the base spills 0"


RENAMED, UNKNOWN = "the head has no kernel of this name", "the head's is not known"


@pytest.mark.parametrize(
    ("head", "which", "why"),
    [
        ({"attention": 25.0, "warmup": 50.0, "helper": 10.0}, "", None),
        ({"attention": 25.0}, "", None),  # the other is gone
        ({"attention": 25.0, "renamed": 50.0}, "", None),
        ({"attention": 25.0, "renamed": 49.9}, "warmup on the L4", RENAMED),
        ({"attention": None, "warmup": 50.0}, "attention on the L4", UNKNOWN),
        ({"renamed": None}, "attention on the L4 and 1 more", RENAMED),
        ({}, "attention on the L4 and 1 more", UNKNOWN),
    ],
)
def test_a_gate_on_occupancy_holds_what_it_cannot_see(
    head: dict[str, float | None], which: str, why: str | None
) -> None:
    def kernels(side: dict[str, float | None]) -> tuple[KernelFacts, ...]:
        known = {name: {} if pct is None else {"L4": pct} for name, pct in side.items()}
        return tuple(KernelFacts(target="sm_89", name=name, occupancy_pct=pct) for name, pct in known.items())

    made, base = EXAMPLES["equivalent"](), kernels({"attention": 25.0, "warmup": 50.0})
    builds = (Build(side="base", kernels=base), Build(side="head", kernels=kernels(head)))
    record = made.record.model_copy(update={"builds": builds})
    part = of_record("l4", record, made.verdict, Policy(static=Static(occupancy_loss="fail")))
    found = gate.decide([part.evidence], again=True)
    assert (found.conclusion, found.again) == ("action_required" if why else "success", False)
    assert plain(found.open) == ([f"the occupancy of {which} cannot be compared: {why}"] if why else [])
    assert ("keep the kernel's name" in render.plain_line(now.step([part], found))) is (why is not None)
    assert gate.decide([gate.evidence("l4", record, made.verdict, Policy())]).conclusion == "success", "no gate"


def test_text_shows_what_changed() -> None:
    text = static.to_text([one("base", 128), one("head", 200, spill=64, occupancy=16.7)])
    assert text.splitlines() == [
        "attention for sm_89",
        "  registers per thread: 128 → 200",
        "  spilled bytes: 0 → 64",
        "  occupancy on the L4: 25 → 16.7%, limited by registers",
        "  instructions: total 100, STL 0 → 16",
    ]
    assert static.to_text([]) == "no device code"
    unknown = Build(side="head", kernels=(KernelFacts(target="sm_89", name="k", registers=32),))
    assert "  occupancy: unknown, because the library does not record its launches (see " in static.to_text([unknown])
