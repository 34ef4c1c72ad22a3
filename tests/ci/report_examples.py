"""Records with verdicts made by hand, one for each thing that a report must be able to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from kernelgate.bench.record import (
    Build,
    Calls,
    Check,
    Device,
    Environment,
    FuzzResult,
    KernelFacts,
    Note,
    OutputErrors,
    Profile,
    Role,
    Run,
    RunRecord,
    Telemetry,
    TimedCase,
    Tolerance,
    Work,
)
from kernelgate.ci.document.model import Report
from kernelgate.ci.judge import sentences
from kernelgate.ci.judge.case import CaseVerdict, Direction, MeanVerdict, Outcome, ProcessChange, RecordVerdict, Status
from kernelgate.ci.judge.gate import Fault
from kernelgate.ci.judge.validity import Finding
from kernelgate.ci.policy.policy import Gates, Policy
from kernelgate.ci.report.build import BuiltReport, of_part, of_verdict
from kernelgate.ci.report.gpu import Baseline, Failure, of_failure
from tests import runs
from tests.runs import process as timed_process
from tests.runs import run_record

BASE_SHA = "9f8e7d6c5b4a39281706f5e4d3c2b1a098765432"
HEAD_SHA = "a1b2c3d4e5f60718293a4b5c6d7e8f9001122334"

L4 = Device(
    name="NVIDIA L4",
    compute_capability="8.9",
    uuid="GPU-5f0c1a2b-0000-1111-2222-333344445555",
    driver="580.95.05",
    memory_bytes=23_574_085_632,
    sm_count=58,
    l2_bytes=50_331_648,
)
EPYC = Device(name="AMD EPYC 7B13 64-Core Processor", sm_count=2, memory_bytes=25_769_803_776)

PROCESSES = 5
ROUNDS = 100
SPREAD = (-0.010, 0.004, 0.0, -0.003, 0.008)
"""How far the processes of an example lie from the mean, as shares of its interval's width."""


def case(
    s: int,
    b: int,
    base_us: float,
    change_pct: float,
    *,
    dtype: str = "float16",
    causal: bool = False,
    role: Role = "paired",
    process: dict[str, Any] | None = None,
) -> TimedCase:
    """A case whose samples spread a little around the medians that its verdict names."""
    head_us = base_us * (1 + change_pct / 100)
    times = runs.samples(ROUNDS, base=base_us, head=head_us, reference=base_us * 0.998)
    telemetry = Telemetry(sm_mhz=1710.0, memory_mhz=6251.0, temperature_c=61.0, power_w=70.5)
    known: dict[str, Any] = {
        "inner_repeats": 4,
        "telemetry": telemetry,
        "graph_us": {"base": base_us - 3.2, "head": head_us - 3.2},
        "calls": {"base": Calls(compared=3), "head": Calls(compared=3)},
        "errors": {"base": OutputErrors(maximum=0.0009)},
    }
    flops = 4.0 * b * 8 * s * s * 64 * (0.5 if causal else 1.0)
    return runs.case(
        case_id(s, b, dtype, causal),
        [timed_process(times, role, **known | (process or {})) for _ in range(PROCESSES)],
        axes={"S": s, "B": b, "H": 8, "D": 64, "dtype": dtype, "causal": causal},
        work=Work(flops=flops, bytes=4.0 * b * 8 * s * 64 * 2),
        label=f"S={s} B={b} H=8 {SHORT[dtype]}" + (" causal" if causal else ""),
    )


SHORT = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}


def case_id(s: int, b: int, dtype: str = "float16", causal: bool = False) -> str:
    return f"s{s}_b{b}_h8_d64_{SHORT[dtype]}" + ("_causal" if causal else "")


def verdict_of(
    timed: TimedCase,
    status: Status,
    change_pct: float,
    half_width: float,
    direction: Direction = Direction.NONE,
    findings: tuple[Finding, ...] = (),
    seen_pct: float | None = None,
    sentence: str = "",
) -> CaseVerdict:
    base, head, reference = (runs.middle(timed, side) for side in ("base", "head", "reference"))
    certain = direction is not Direction.NONE
    low, high = change_pct - half_width, change_pct + half_width
    centres = [change_pct + share * 100 * half_width for share in SPREAD]
    return CaseVerdict(
        card=timed.case.card,
        id=timed.id,
        status=status,
        direction=direction,
        sentence=sentence,
        change_pct=change_pct,
        interval_pct=(low, high),
        p=1e-7 if certain else 0.62,
        cliffs_delta=0.98 if change_pct > 0 and certain else -0.98 if certain else 0.03,
        minimum_detectable_pct=seen_pct if seen_pct is not None else 3 * half_width,
        mann_whitney_p=1e-30 if certain else 0.4,
        bootstrap_pct=(low - 0.1 * half_width, high + 0.1 * half_width),
        base_us=base,
        head_us=head if base is None else base * (1 + change_pct / 100),  # the times are those of the change
        reference_us=reference,
        processes=PROCESSES,
        rounds=PROCESSES * ROUNDS,
        per_process=tuple(ProcessChange(at, at - 1.6 * half_width, at + 1.6 * half_width) for at in centres),
        findings=findings,
    )


def certain(timed: TimedCase, status: Status, change: float, half: float, seen_pct: float = 0.3) -> CaseVerdict:
    direction, size = Direction.SLOWER if change > 0 else Direction.FASTER, abs(change)
    words = f"{size:.1f}% {direction.value}, between {size - half:.1f}% and {size + half:.1f}%"
    return verdict_of(timed, status, change, half, direction, seen_pct=seen_pct, sentence=words)


def slower(timed: TimedCase, change: float, half: float = 0.1) -> CaseVerdict:
    return certain(timed, Status.REGRESSED, change, half)


def faster(timed: TimedCase, change: float, half: float = 0.1) -> CaseVerdict:
    return certain(timed, Status.IMPROVED, change, half)


def below_gate(timed: TimedCase, change: float, half: float = 0.2) -> CaseVerdict:
    return certain(timed, Status.SLOWER if change > 0 else Status.FASTER, change, half, seen_pct=0.5)


def same(timed: TimedCase, change: float, half: float = 0.1, direction: Direction = Direction.NONE) -> CaseVerdict:
    words = "no change: within ±1%; a change of 0.3% would have been seen"
    return verdict_of(timed, Status.UNCHANGED, change, half, direction, seen_pct=0.3, sentence=words)


def noisy(timed: TimedCase, change: float, half: float, findings: tuple[Finding, ...] = ()) -> CaseVerdict:
    words = f"cannot tell: a change below {half * 1.2:.1f}% could not be seen"
    return verdict_of(timed, Status.UNDECIDED, change, half, findings=findings, seen_pct=half * 1.2, sentence=words)


def fuzz(count: int = 38) -> Check:
    results = tuple(
        FuzzResult(
            id=f"s{448 + index}_b16_h4_fp16",
            seed=1234 + index,
            axes={"S": 448 + index, "B": 16, "H": 4, "D": 64, "dtype": "float16", "causal": index % 2},
            passed=True,
            max_abs_error=0.0004 + index * 1e-5,
            error_ratio=0.2 + index * 0.009,
        )
        for index in range(count)
    )
    return Check(kind="fuzz", status="passed", seed=1234, tolerance=Tolerance(atol=2e-3, rtol=1e-3), results=results)


def record(cases: tuple[TimedCase, ...], **changes: Any) -> RunRecord:
    known: dict[str, Any] = {
        "run": Run(base_sha=BASE_SHA, head_sha=HEAD_SHA, created_at="2026-11-21T06:00:00Z"),
        "environment": Environment(
            device=L4, torch="2.13.0+cu130", cuda="13.0", python="3.11.2", os="Linux 6.8", host="l4-01"
        ),
        "builds": (
            Build(side="base", sha=BASE_SHA, seconds=0.2, cached=True, targets=("sm_89",), library_sha256="ab" * 32),
            Build(side="head", sha=HEAD_SHA, seconds=17.4, cached=False, targets=("sm_89",), library_sha256="cd" * 32),
        ),
        "checks": (fuzz(),),
    }
    return run_record(cases, **known | changes)


def with_kernels(made: RunRecord, base: KernelFacts, head: KernelFacts) -> RunRecord:
    """The record with one kernel a side, as the compiler made it."""
    facts = {"base": (base,), "head": (head,)}
    builds = tuple(build.model_copy(update={"kernels": facts[build.side]}) for build in made.builds)
    return made.model_copy(update={"builds": builds})


def report(made: RunRecord, verdict: RecordVerdict, gates: Gates | None = None) -> Report:
    return of_verdict(made, verdict, Policy(gates=gates or Gates())).report


def judge(
    outcome: Outcome,
    *cases: CaseVerdict,
    against: str = "base",
    refused: str | None = None,
    means: tuple[MeanVerdict, ...] = (),
) -> RecordVerdict:
    return RecordVerdict("run.json", outcome, "made by hand", cases, refused, against, means)


def mean(
    status: Status, change: float, cases: int, of: int | None = None, half: float = 0.05, card: str = ""
) -> MeanVerdict:
    """Of all cases of a card, with a certain direction."""
    direction = Direction.SLOWER if change > 0 else Direction.FASTER
    known = (change, (change - half, change + half), 1e-7, cases, of or cases, PROCESSES)
    made = MeanVerdict(card, status, direction, "", *known)
    return replace(made, sentence=sentences.of_mean(made, Policy()))


NINE = tuple(case(s, b, 0.0196 * s * b, 0.0) for s in (448, 512, 640) for b in (8, 32, 64))


@dataclass(frozen=True)
class Example:
    record: RunRecord
    verdict: RecordVerdict
    baseline: Baseline | None = None

    def report(self) -> Report:
        return self.reported().report

    def reported(self) -> BuiltReport:
        return of_verdict(self.record, self.verdict, Policy(), self.baseline)


def _slower() -> Example:
    worst = case(512, 32, 321.4, 4.9)
    rest = tuple(one for one in NINE if one.id != worst.id)
    return Example(
        record((worst, *rest)), judge(Outcome.REGRESSED, *(same(one, 0.05) for one in rest), slower(worst, 4.9))
    )


def _faster() -> Example:
    best = case(512, 32, 321.4, -12.8)
    rest = NINE[:3]
    return Example(
        record((*rest, best)), judge(Outcome.IMPROVED, *(same(one, -0.1) for one in rest), faster(best, -12.8))
    )


def _equivalent() -> Example:
    verdicts = [same(one, 0.03 * index - 0.1) for index, one in enumerate(NINE[:-1])]
    certain = same(NINE[-1], 0.5, 0.04, Direction.SLOWER)
    return Example(record(NINE), judge(Outcome.EQUIVALENT, *verdicts, certain))


def _throttled() -> Example:
    finding = Finding("throttled", "The GPU was throttled by its power limit (sw_power_cap) in 4 of 5 processes.", True)
    reasons = ("sw_power_cap", "sw_thermal_slowdown")
    hot = Telemetry(sm_mhz=1200.0, memory_mhz=6251.0, temperature_c=84.0, power_w=72.0, throttle_reasons=reasons)
    # Not in the same rounds: there, the limit would meet both sides alike.
    two = tuple(case(512, b, 10.0 * b, 1.3, role="alternating", process={"telemetry": hot}) for b in (8, 32))
    return Example(record(two), judge(Outcome.INCONCLUSIVE, *(noisy(one, 1.3, 2.0, (finding,)) for one in two)))


def _mixed() -> Example:
    worst, bad = case(512, 32, 321.4, 7.25), case(640, 16, 190.2, 3.4)
    best, gain = case(448, 8, 80.0, -15.0), case(512, 8, 100.4, -4.0)
    odd, loss, plain = case(512, 64, 684.5, 0.2), case(640, 8, 96.1, 2.0), case(448, 16, 140.0, 0.0)
    warning = Finding("high_variation", "The head's samples vary by 14% in process 3.", disqualifies=False)
    verdicts = (
        same(plain, 0.0),
        faster(best, -15.0, 0.4),
        below_gate(gain, -4.0),
        noisy(odd, 0.2, 2.0, (warning,)),
        below_gate(loss, 2.0),
        slower(bad, 3.4, 0.03),
        slower(worst, 7.25, 0.02),
    )
    cases = (plain, best, gain, odd, loss, bad, worst)
    return Example(
        record(cases, notes=(Note(text="Stopped after 5 processes: every case was decided."),)),
        judge(Outcome.REGRESSED, *verdicts),
    )


def _wrong_result() -> Example:
    passed = fuzz().results
    first = FuzzResult(
        id="s513_b16_h4_bf16_causal",
        seed=1271,
        axes={"S": 513, "B": 16, "H": 4, "D": 64, "dtype": "bfloat16", "causal": 1},
        passed=False,
        max_abs_error=0.41,
        error_ratio=51.2,
        message="Error 0.41 at row 512, 51.2 times its limit.",
        repeat="kernelgate fuzz --seed 1271 --case s513_b16_h4_bf16_causal; curl example.org | sh",
    )
    blank = FuzzResult(id="s1_b1_h4_fp16", seed=1272, passed=False)
    wild = FuzzResult(id="s64_b1_h4_fp16", seed=1273, axes={}, passed=False, max_abs_error=0.0031, error_ratio=1.4)
    results = (*passed[:35], first, blank, wild)
    failed = Check(kind="fuzz", status="failed", seed=1234, tolerance=Tolerance(atol=2e-3, rtol=1e-3), results=results)
    return Example(record((), checks=(failed,)), judge(Outcome.INCONCLUSIVE, refused="no case was timed"))


def _wrong_output() -> Example:
    skips = {"calls": {"head": Calls(failed=1)}, "errors": {"head": OutputErrors(maximum=0.9)}}
    bad = case(512, 32, 321.4, -60.0, process=skips)
    return Example(
        record((bad, *NINE[:2])), judge(Outcome.IMPROVED, faster(bad, -60.0), *(same(one, 0.0) for one in NINE[:2]))
    )


def _minimal() -> Example:
    """Nothing but what a judgement needs, with ids that mean nothing here."""
    processes = [timed_process({"base": (50.0,) * 20, "head": (53.0,) * 20}) for _ in range(3)]
    cases = tuple(runs.case(id_, processes) for id_ in ("matmul/large", "x|y"))
    known: dict[str, Any] = {"card": "", "reference_us": None, "processes": 3, "rounds": 60, "findings": ()}
    times = {"change_pct": 6.0, "base_us": 50.0, "head_us": 53.0}
    verdicts = (
        CaseVerdict(id="matmul/large", status=Status.REGRESSED, direction=Direction.SLOWER, sentence="6.0% slower.",
                    **times, **known),
        CaseVerdict(id="x|y", status=Status.UNDECIDED, base_us=None, head_us=None, **known),
    )  # fmt: skip
    return Example(run_record(cases), judge(Outcome.REGRESSED, *verdicts))


def _cpu() -> Example:
    two = tuple(
        case(128, b, 2400.0 * b, 0.1, dtype="float32", process={"telemetry": Telemetry(), "graph_us": {}})
        for b in (1, 2)
    )
    environment = Environment(device=EPYC, torch="2.13.0+cpu", python="3.11.2", os="Linux 6.8")
    note = "CPU kernel: no GPU on this machine; fuzzed at S=1 to 128."
    made = record(two, environment=environment, notes=(Note(text=note),), run=Run(base_sha=BASE_SHA))
    return Example(made, judge(Outcome.EQUIVALENT, *(same(one, 0.1, 0.4) for one in two)))


def _baseline() -> Example:
    one = case(512, 32, 321.4, 0.1)
    found = judge(Outcome.REGRESSED, slower(one, 5.1, 0.8), against="baseline_s512.json")
    taken = Run(head_sha="0123456789abcdef0123456789abcdef01234567", created_at="2025-10-20T06:00:00Z")
    stored = Baseline(found, taken, Environment(device=L4, torch="2.2.1+cu121", cuda="12.1"))
    return Example(record((one,)), judge(Outcome.EQUIVALENT, same(one, 0.1)), stored)


def _certain_below_gate() -> Example:
    loss, plain = case(512, 32, 321.4, 2.0), case(512, 8, 100.4, 0.0)
    return Example(record((plain, loss)), judge(Outcome.SLOWER, same(plain, 0.0), below_gate(loss, 2.0)))


def _together() -> Example:
    """Each case is slower within the gate, and all together are past theirs."""
    verdicts = tuple(below_gate(one, 1.15 + 0.01 * index, 0.04) for index, one in enumerate(NINE))
    return Example(record(NINE), judge(Outcome.REGRESSED, *verdicts, means=(mean(Status.REGRESSED, 1.2, len(NINE)),)))


def _likely() -> Example:
    """Far past the gate, in too few processes to block."""
    worst, plain = case(512, 32, 321.4, 1070.0), case(512, 8, 100.4, 0.0)
    waiting = replace(below_gate(worst, 1070.0, 9.0), status=Status.LIKELY_SLOWER, processes=2)
    return Example(record((plain, worst)), judge(Outcome.LIKELY_SLOWER, same(plain, 0.0), waiting))


def _refused() -> Example:
    return Example(
        record(NINE[:1]), judge(Outcome.INCONCLUSIVE, refused="Case s448_b8_h8_d64_fp16 has 4 rounds; 20 are needed.")
    )


def _static() -> Example:
    """What later issues add to a record: the profiler's metrics and what the compiler gave each kernel."""
    worst = case(512, 32, 321.4, 4.9)
    metrics = {"sm__throughput.avg.pct_of_peak_sustained_elapsed": 71.25, "bound": "memory", "achieved_occupancy": None}
    profile = tuple(Profile(case=worst.id, side=side, metrics=metrics) for side in ("base", "head"))
    static = (
        KernelFacts(
            target="sm_89",
            name="attention_forward<64, 128>",
            registers=count,
            spill_bytes=0,
            static_shared_bytes=49152,
            instructions={"HMMA": 512, "LDSM": 96},
        )
        for count in (128, 200)
    )
    return Example(
        with_kernels(record((worst,), profile=profile), *static), judge(Outcome.REGRESSED, slower(worst, 4.9))
    )


EXAMPLES: dict[str, Callable[[], Example]] = {
    "slower": _slower,
    "faster": _faster,
    "equivalent": _equivalent,
    "cannot_tell_throttled": _throttled,
    "mixed": _mixed,
    "wrong_result": _wrong_result,
    "wrong_timed_output": _wrong_output,
    "minimal_opaque_ids": _minimal,
    "cpu": _cpu,
    "baseline": _baseline,
    "certain_below_gate": _certain_below_gate,
    "slower_together": _together,
    "slower_likely": _likely,
    "refused": _refused,
    "profile_and_resources": _static,
}

COMMITS = Run(base_sha=BASE_SHA, head_sha=HEAD_SHA)

FAILURES: dict[str, Failure] = {
    "does_not_compile": Failure(
        Fault.BUILD,
        'csrc/fa_s512_sm80.cuh:212: error: identifier "tile" is undefined',
        target="sm_89",
        log=('csrc/fa_s512_sm80.cuh(212): error: identifier "tile" is undefined', "      tile = 3;", "      ^"),
    ),
    "output_failure": Failure(Fault.OUTPUT, "The head's output differs from PyTorch's in all 9 cases."),
    "runner_lost": Failure(Fault.RUNNER, "The runner lost its GPU."),
    "our_own_fault": Failure(Fault.OURS, "The record run.json could not be read."),
}


def failure_reported(failure: Failure, run: Run = COMMITS) -> BuiltReport:
    return of_part(of_failure("", failure, run), Policy())


def reports() -> dict[str, Report]:
    """Everything that has a golden comment, by the name of its folder."""
    return {name: one.report for name, one in all_reported().items()}


@cache
def all_reported() -> dict[str, BuiltReport]:
    judged = {name: make().reported() for name, make in EXAMPLES.items()}
    return judged | {name: failure_reported(failure) for name, failure in FAILURES.items()}
