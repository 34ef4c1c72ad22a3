"""Why a case changed: real profiles of the kernel before and after a change, in the comment."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.record import Device, Environment, KernelFacts, Profile, RunRecord, Side, Timing
from kernelgate.ci.document.model import Table
from kernelgate.ci.document.render import comment
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.report import why as explaining
from kernelgate.ci.report.gpu import JudgedCase, judged
from tests.ci.report.test_build import expect
from tests.ci.report_examples import case, judge, record, report, same, slower, with_kernels

DATA = Path(__file__).parents[2] / "data"
H200 = Environment(device=Device(name="NVIDIA H200", compute_capability="9.0", sm_count=132))
TIMED = case(512, 32, 62.66, 22.9)


def profiled(side: Side, name: str) -> Profile:
    return Profile(case=TIMED.id, side=side, metrics=figures(name), report=f"{name}.ncu-repz")


@cache
def figures(name: str) -> dict[str, float | str | None]:
    return dict(ncu_reader.launches(str(DATA / "nsight" / f"{name}.ncu-repz"))[0].figures)


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


def words(found: RunRecord, cases: tuple[JudgedCase, ...]) -> list[str]:
    return [
        "".join(getattr(piece, "text", piece) for piece in line)
        for line in explaining.why(found, judge(Outcome.REGRESSED), cases)
    ]


PROFILE = "Why, by the profile of S=512 B=32 H=8 fp16: "


def test_a_slower_clock_explains_what_the_profiles_do_not() -> None:
    """At equal clocks nothing changed; while it was timed, the head's clock was lower."""
    found = with_profiles("attention_before")
    clocks = {"base": (1800.0,), "head": (1710.0,)}
    timing = Timing(case=TIMED.id, samples_us={"base": (62.66,), "head": (65.8,)}, sm_mhz=clocks)
    process = found.processes[0].model_copy(update={"timings": (timing,)})
    slow = found.model_copy(update={"processes": (process,)})
    reason, *_ = words(slow, judged(slow, judge(Outcome.REGRESSED, slower(TIMED, 5.0))))
    assert reason.startswith(f"{PROFILE}the SM clock fell while this was timed, 1,800 → 1,710 MHz: all 5.0 points")


def test_a_profile_of_the_head_alone_explains_nothing() -> None:
    found = with_profiles("attention_spills", base=None)
    cases = judged(found, judge(Outcome.REGRESSED, slower(TIMED, 22.9)))
    [said] = words(found, cases)
    assert said.startswith("Why: not profiled, because only the head was profiled; kernelgate profile")
    section = explaining.section(found, cases)
    [table] = [block for block in section.blocks if isinstance(block, Table)]
    assert (section.title, [column.title for column in table.columns]) == ("Profiler: head alone", ["metric", "head"])
    assert ("local-memory instructions (spills)",) in [row[0] for row in table.rows]
    assert all(len(row) == 2 for row in table.rows)


def test_the_comment_is_the_golden_one() -> None:
    found = with_profiles("attention_occupancy")
    expect(DATA / "explained" / "comment.md", comment(report(found, judge(Outcome.REGRESSED, slower(TIMED, 22.9)))))


def test_a_comparison_with_a_baseline_blocks_nothing() -> None:
    spilling = with_kernels(with_profiles("attention_spills"), built(242, 0, 49152, 12.5), built(128, 944, 49152, 25.0))
    against = replace(judge(Outcome.EQUIVALENT, same(TIMED, 0.0)), against="baseline.json")
    assert report(spilling, against).remarks == ()
