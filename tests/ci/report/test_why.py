"""Why a case changed: real profiles of the kernel before and after a change, in the comment."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.record import Device, Environment, KernelFacts, Profile, RunRecord, Side
from kernelgate.ci.document.model import Table
from kernelgate.ci.document.render import comment
from kernelgate.ci.judge.policy import Gates, Static
from kernelgate.ci.judge.verdict import Outcome
from kernelgate.ci.report import why as explaining
from kernelgate.ci.report.build import report
from kernelgate.ci.report.gpu import judged
from tests.ci.report_examples import case, judge, record, same, slower, with_kernels

DATA = Path(__file__).parents[2] / "data"
GOLDEN = DATA / "explained" / "comment.md"
H200 = Environment(device=Device(name="NVIDIA H200", compute_capability="9.0", sm_count=132))
TIMED = case(512, 32, 62.66, 22.9)


def profiled(side: Side, name: str) -> Profile:
    kernel = ncu_reader.launches(str(DATA / "nsight" / f"{name}.ncu-repz"))[0]
    return Profile(case=TIMED.id, side=side, metrics=dict(kernel.figures), report=f"{name}.ncu-repz")


def built(registers: int, spill: int, shared: int, occupancy: float) -> KernelFacts:
    return KernelFacts(
        target="sm_90",
        name="attention<Sm90, 1, false>",
        registers=registers,
        spill_bytes=spill,
        static_shared_bytes=shared,
        occupancy_pct={"H100 and H200": occupancy},
        occupancy_limits={"H100 and H200": "shared memory"},
        instructions={"total": 1576, "HMMA": 128, "STL": spill // 4},
    )


def with_profiles(head: str, base: str | None = "attention_before") -> RunRecord:
    profiles = (profiled("head", head),) if base is None else (profiled("base", base), profiled("head", head))
    made = record((TIMED,), profile=profiles, environment=H200)
    return with_kernels(made, built(242, 0, 49152, 12.5), built(242, 0, 147456, 6.25))


def why(head: str) -> list[str]:
    found = with_profiles(head)
    cases = judged(found, judge(Outcome.REGRESSED, slower(TIMED, 22.9)))
    return ["".join(getattr(piece, "text", piece) for piece in line) for line in explaining.why(found, cases)]


def test_less_occupancy_is_blamed_on_shared_memory() -> None:
    reason, action = why("attention_occupancy")
    assert reason.startswith("Why: occupancy 12.0% → 6.2%, because shared memory rose 48 KiB → 144 KiB; ")
    assert action.startswith(
        "Try: cut shared memory from 144 KiB per block: fewer stages, a smaller or narrower tile; see "
    )


def test_bank_conflicts_are_what_explains_a_lost_swizzle() -> None:
    reason, action = why("attention_banks")
    assert reason.startswith("Why: shared-memory bank conflicts 39,106 → 31,")
    assert action.startswith("Try: swizzle or pad the tile")


def test_spills_come_before_what_they_cause() -> None:
    reason, action = why("attention_spills")
    assert reason.startswith("Why: spill instructions 0 → 6,717,440, because registers fell 242 → 128; ")
    assert "occupancy" not in reason  # it rose, which explains no loss
    assert action.startswith("Try: give the kernel more registers")


def test_an_unchanged_case_needs_no_reason() -> None:
    found = with_profiles("attention_spills")
    assert explaining.why(found, judged(found, judge(Outcome.EQUIVALENT, same(TIMED, 0.0)))) == ()


def test_a_profile_of_the_head_alone_explains_nothing() -> None:
    found = with_profiles("attention_spills", base=None)
    cases = judged(found, judge(Outcome.REGRESSED, slower(TIMED, 22.9)))
    assert explaining.why(found, cases) == ()
    section = explaining.section(found, cases)
    assert section is not None
    [table] = [block for block in section.blocks if isinstance(block, Table)]
    assert (section.title, [column.title for column in table.columns]) == ("Profiler: head alone", ["metric", "head"])
    assert ("local-memory instructions (spills)",) in [row[0] for row in table.rows]
    assert all(len(row) == 2 for row in table.rows)


def test_identical_profiles_explain_nothing() -> None:
    found = with_profiles("attention_before")
    cases = judged(found, judge(Outcome.REGRESSED, slower(TIMED, 22.9)))
    assert all("Why:" not in str(line) for line in explaining.why(found, cases))


def test_the_comment_is_the_golden_one() -> None:
    found = with_profiles("attention_occupancy")
    text = comment(report(found, judge(Outcome.REGRESSED, slower(TIMED, 22.9)), Gates(), static=Static()))
    if os.environ.get("KERNELGATE_GOLDEN") == "write":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_new_spills_block_in_so_many_words() -> None:
    found = with_profiles("attention_spills")
    spilling = with_kernels(found, built(242, 0, 49152, 12.5), built(128, 944, 49152, 25.0))
    said = report(spilling, judge(Outcome.EQUIVALENT, same(TIMED, 0.0)), Gates())
    (remark,) = ["".join(str(getattr(piece, "text", piece)) for piece in line[1:]) for line in said.remarks]
    assert remark.startswith(" Blocks: attention<Sm90, 1, false> for sm_90: 944 bytes of registers are spilled")


def test_a_comparison_with_a_baseline_blocks_nothing() -> None:
    spilling = with_kernels(with_profiles("attention_spills"), built(242, 0, 49152, 12.5), built(128, 944, 49152, 25.0))
    against = replace(judge(Outcome.EQUIVALENT, same(TIMED, 0.0)), against="baseline.json")
    assert report(spilling, against, Gates()).remarks == ()


@pytest.mark.parametrize("capability", [None, "2.0", "99.9", "13.7"])
def test_any_device_will_do(capability: str | None) -> None:
    found = with_profiles("attention_spills")
    device = Device(name="another", compute_capability=capability)
    other = found.model_copy(update={"environments": (Environment(device=device),)})
    cases = judged(other, replace(judge(Outcome.REGRESSED, slower(TIMED, 22.9))))
    assert explaining.section(other, cases) is not None
