"""What a reader may meet on a pull request, each with what is true of it: evidence that goes the bot's own way through
judge, gate and report to the comment. Plain data; the answers come from what was planted, never from the judge."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.explain.causes import CAUSES
from kernelgate.bench import record
from kernelgate.bench.record import (
    BaseTrial,
    Calls,
    Check,
    CheckFinding,
    FuzzResult,
    KernelFacts,
    Note,
    OutputErrors,
    RunRecord,
    TimedCase,
    timed_cases,
)
from kernelgate.ci.document import render
from kernelgate.ci.github.assemble import Posting, Trusted, assemble
from kernelgate.ci.github.check_run import KeptAcceptance
from kernelgate.ci.github.fetch import Job, RunInfo, SeenPull
from kernelgate.ci.judge.prior import no_past
from kernelgate.ci.policy.policy import Gates, Measure, Policy, RunnerGpu
from tests import accuracies
from tests.ci import records, report_examples
from tests.ci.card_examples import CARD_EXAMPLES
from tests.ci.github.test_description import FILLED
from tests.ci.report_examples import BASE_SHA, EXAMPLES, HEAD_SHA, case, fuzz, with_kernels
from tests.gallery.asks import SAME, UNKNOWN, Amount, Answers, Blocks, Sure, faster, slower
from tests.runs import process

DATA = Path(__file__).parents[1] / "data"
POLICY = Policy(measure=Measure(gpus=(RunnerGpu(label="l4", target="8.9"), RunnerGpu(label="h100", target="9.0"))))
"""Without a stored baseline: the checkout's own would be one of these cases, too."""
THREE = Policy(measure=Measure(gpus=(*POLICY.measure.gpus, RunnerGpu(label="b200", target="10.0"))))
MEASURED = record.Run(
    repository="octo-org/kernels", pull_request=12, head_sha=HEAD_SHA, base_sha=BASE_SHA,
    run_id=7, run_attempt=1, event="pull_request",
)  # fmt: skip
REPOSITORY = "https://github.com/octo-org/kernels"


@dataclass(frozen=True)
class Situation:
    name: str
    posted: Callable[[], Posting]
    truth: Answers

    @cached_property
    def posting(self) -> Posting:
        return self.posted()

    @cached_property
    def comment(self) -> str:
        return render.comment(self.posting.report)


# The bot's own way ----------------------------------------------------------------------------------------------------


def bot(
    *made: RunRecord,
    policy: Policy | None = None,
    known: bool = True,
    plan: record.Expected | None = None,
    note: dict[str, Any] | None = None,
    **info: Any,
) -> Callable[[], Posting]:
    """What the bot makes of a run that left these records, of the GPUs l4 and h100. `known`: their machine has a
    history. `plan`: of l4. `note`: of the step that failed there."""

    def posting() -> Posting:
        seen = RunInfo(**{"run": MEASURED, "run_url": f"{REPOSITORY}/actions/runs/7", "conclusion": "success", **info})
        with tempfile.TemporaryDirectory() as folder:
            for label, one in zip(("l4", "h100"), made, strict=False):
                commits = {"head_sha": HEAD_SHA, "base_sha": BASE_SHA}
                of_pull = one.model_copy(update={"run": one.run.model_copy(update=commits)})
                record.write(of_pull, Path(folder, f"{label}.run.json"))
            if note is not None:
                Path(folder, "l4.failure.json").write_text(json.dumps({"schema": "kernelgate.failure/1", **note}))
            trusted = Trusted({"l4": plan} if plan else {}, records.remembered if known else no_past)
            return assemble(Path(folder), seen, policy or POLICY, trusted=trusted)

    return posting


def timed(*changes: float, **more: Any) -> tuple[TimedCase, ...]:
    """A case for each change in percent, S=512."""
    return tuple(case(512, 8 * (at + 1), 60.0 * (at + 1), change, **more) for at, change in enumerate(changes))


def made(*changes: float, **parts: Any) -> RunRecord:
    return report_examples.record(timed(*changes), **parts)


def facts(registers: int, **more: Any) -> KernelFacts:
    known: dict[str, Any] = {"spill_bytes": 0, "occupancy_pct": {"NVIDIA L4": 50.0}}
    return KernelFacts(target="sm_89", name="attention_forward<64>", registers=registers, **{**known, **more})


def noisy(change: float = 0.0, spread: float = 0.01, processes: int = 5, seed: int = 3) -> RunRecord:
    return records.paired_record(*records.noise(np.random.default_rng(seed), change, processes, 100, spread))


def few(processes: int, *changes: float) -> RunRecord:
    return report_examples.record(tuple(replace(one, processes=one.processes[:processes]) for one in timed(*changes)))


def at_two_speeds() -> RunRecord:
    rng = np.random.default_rng(1)
    base, head = records.noise(rng, spread=0.002)
    for index, samples in enumerate(head):
        samples[rng.random(len(samples)) < 0.2 + 0.15 * index] *= 1.09
    return records.paired_record(base, head)


def drifting() -> RunRecord:
    base, head = records.noise(np.random.default_rng(2), spread=0.002)
    return records.paired_record(base, [one * np.linspace(0.97, 1.03, len(one)) for one in head])


def contradicted() -> RunRecord:
    base, head = records.noise(np.random.default_rng(5), -0.3, spread=0.001)
    seen, was = (100 * np.exp(np.random.default_rng(seed).normal(0, 0.001, 12)) for seed in (7, 8))
    paired = records.case(base, head)
    compared = {side: Calls(made=12, compared=12) for side in ("base", "head")}
    witness = process({"base": was, "head": seen}, "witness", calls=compared)
    return report_examples.record((replace(paired, processes=(*paired.processes, witness)),))


def failing(count: int = 31, of: int = 38, **result: Any) -> RunRecord:
    """So many of the fuzz cases fail, all with odd N."""
    known: dict[str, Any] = {"max_abs_error": 0.41, "error_ratio": 205.0, "message": "Error 0.41 at row 512."}
    wrong = tuple(
        FuzzResult(id=f"n{2 * at + 1}", seed=70 + at, axes={"N": 2 * at + 1}, passed=False, **{**known, **result})
        for at in range(count)
    )
    check = Check(kind="fuzz", status="failed", seed=70, results=(*wrong, *fuzz().results[: of - count]))
    return report_examples.record((), checks=(check,))


def raced() -> RunRecord:
    found = CheckFinding(text="race between write and read", kernel="attention_forward", tool="racecheck")
    return made(0.0, 0.0, checks=(fuzz(), Check(kind="sanitizer", status="failed", findings=(found,))))


def imprecise(change: float = 0.0) -> RunRecord:
    one = accuracies.output(accuracies.side(0.25, 0.5), accuracies.side(1.5, 6.0), case="s512_b8_h8_d64_fp16")
    return made(change, checks=(fuzz(), Check(kind="accuracy", status="passed", accuracies=(one,))))


def kept(path: str) -> RunRecord:
    return record.read(DATA / path)


def change_of(one: RunRecord) -> float:
    """Of a record of one case: by medians alone, in percent."""
    (only,) = timed_cases(one)
    pairs = [found.timing.samples_us for found in only.processes if {"base", "head"} <= found.timing.samples_us.keys()]
    return 100 * (median(median(both["head"]) / median(both["base"]) for both in pairs) - 1)


def pull(body: str = "", names: tuple[str, ...] = ("csrc/attention/a.cu",), *labels: str) -> SeenPull:
    return SeenPull(body=body, by_bot=False, labels=labels, names=names, patches=())


# What is true ---------------------------------------------------------------------------------------------------------

PR, AGAIN = r"kernelgate pr --base", r"/kernelgate bench"
NOT_PROFILED = r"not profiled"


def truth(
    *much: Amount,
    sure: Sure | tuple[Sure, ...] = "certain",
    why: str | tuple[str, ...] = "",
    blocks: Blocks | tuple[Blocks, ...] = "passes",
    now: str = "nothing|merge",
    refuses: frozenset[str] = frozenset(),
) -> Answers:
    of_sure: tuple[Sure, ...] = (sure,) if isinstance(sure, str) else sure
    of_blocks: tuple[Blocks, ...] = (blocks,) if isinstance(blocks, str) else blocks
    return Answers(much, of_sure, why, of_blocks, now, refuses)


def past(*much: Amount, why: str | tuple[str, ...] = NOT_PROFILED) -> Answers:
    """Certainly past the gate."""
    return truth(*much, why=why, blocks="blocks", now=PR)


def doubted(*much: Amount, why: str | tuple[str, ...] = NOT_PROFILED) -> Answers:
    """Past the gate, after so few processes that both "likely" and "certain" may be honest."""
    return truth(*much, sure=("likely", "certain"), why=why, blocks=("held", "blocks"), now=f"{AGAIN}|{PR}")


def wrong(why: str, now: str = "kernelgate fuzz") -> Answers:
    return truth(UNKNOWN, why=why, blocks="blocks", now=now)


def unknown(why: str, blocks: Blocks | tuple[Blocks, ...] = "passes", now: str = AGAIN) -> Answers:
    return truth(UNKNOWN, sure="unknown", why=why, blocks=blocks, now=now)


def _planted() -> Iterator[tuple[str, Callable[[], Posting], Answers]]:
    """Measured causes: profiled, and mostly in two processes."""
    for cause in CAUSES:
        path = DATA / "causes" / f"{cause.name}.json"
        if path.exists():
            one = record.read(path)
            change = change_of(one)
            if change > 4:
                yield f"cause: {cause.name}", bot(one, known=False), doubted(slower(change), why=cause.named)


def _blocked(policy: Policy, one: RunRecord, why: str, now: str) -> tuple[Callable[[], Posting], Answers]:
    return bot(one, policy=policy), truth(SAME, why=why, blocks="blocks", now=now)


def _listed() -> Iterator[tuple[str, Callable[[], Posting], Answers]]:
    """Name, recipe, truth."""
    own = {name: make().record for name, make in CARD_EXAMPLES.items()}
    # By speed.
    yield "one of four slower", bot(made(0.0, 0.0, 4.9, 0.0)), past(slower(4.9))
    yield "far slower", bot(made(0.0, 1070.0)), past(slower(1070))
    yield "two slower, two faster", bot(made(7.3, 3.4, -15.0, -4.0, 0.0)), past(slower(7.3), faster(15))
    yield "slower within the gate", bot(made(2.0, 0.0)), truth(slower(2), why=NOT_PROFILED + "|below the 3%")
    yield "each a little slower", bot(made(1.3, 1.3, 1.3, 1.3)), past(slower(1.3))
    yield "one of four faster", bot(made(0.0, 0.0, -12.8, 0.0)), truth(faster(12.8))
    impossible = unknown(r"allows? no less", ("held", "passes"), r"does? .*the work|computes")
    yield "faster than its arithmetic allows", bot(made(-50.0)), impossible
    yield "nothing changed", bot(made(0.0, 0.1, -0.1)), truth(SAME)
    yield "slower after two processes", bot(few(2, 30.0), known=False), doubted(slower(30))
    either = truth(faster(30), sure=("likely", "certain"), now=f"{AGAIN}|nothing")
    yield "faster after two processes", bot(few(2, -30.0), known=False), either
    slow_cpu = report_examples.record(timed(9.0), environment=EXAMPLES["cpu"]().record.environment)
    yield "slower on a CPU", bot(slow_cpu), past(slower(9), why="sees no CPU kernel")
    # Measured ones.
    for name, expected in {
        "cards/int8_same": truth(SAME),
        "cards/rmsnorm_same": truth(SAME, UNKNOWN, sure=("certain", "unknown"), now=f"nothing|{AGAIN}"),
        "cards/rmsnorm_slower": doubted(Amount("slower", 3, 5), why=(" blocks, ", "instructions executed")),
        "cards/swiglu_slower": past(Amount("slower", 3.5, 5), why=("DRAM traffic",)),
        "comparisons/wgmma": truth(Amount("faster", 38, 44)),
        "comparisons/slower_5pct": doubted(Amount("slower", 5, 9), why=("instructions executed", "fixed latency")),
    }.items():
        yield f"measured: {name}", bot(kept(f"{name}.json"), known=False), expected
    yield from _planted()
    # By noise and machine.
    yield "noisy", bot(noisy(0.0, 0.15), known=False), unknown(r"noisy|could not be seen")
    yield "noisy, one process", bot(noisy(0.0, 0.01, 1), known=False), unknown(r"too few|process", ("held", "passes"))
    hot = EXAMPLES["cannot_tell_throttled"]().record
    yield "throttled", bot(hot, known=False), unknown(r"throttled", ("held", "passes"))
    yield "two speeds", bot(at_two_speeds(), known=False), unknown(r"two speeds", ("held", "blocks"))
    yield "head drifts", bot(drifting(), known=False), unknown(r"drift|moved|wander", ("held", "passes"))
    yield "contradicted by the witness", bot(contradicted()), replace(unknown("something", "held"), much=(faster(30),))
    # Wrong.
    yield "odd N wrong", bot(failing()), wrong(r"odd N|all .* have|N=1\b")
    bad = {"calls": {"base": Calls(failed=1)}, "errors": {"base": OutputErrors(maximum=0.9)}}
    base_wrong = report_examples.record((*timed(-60.0, process=bad), case(640, 8, 96.1, 0.0)))
    head_wrong = EXAMPLES["wrong_timed_output"]().record
    yield "timed output wrong", bot(head_wrong), wrong(r"timed", r"^(?!.*compares every output)")
    yield "base's timed output wrong", bot(base_wrong), unknown(r"base", "held")
    yield "one kernel of two wrong", bot(own["one_card_wrong"]), wrong(r"RMSNorm")
    shown = {"verb": "build", "message": 'a.cu:212: error: identifier "tile" is undefined', "target": "sm_89"}
    stopped = Job(name="build", conclusion="failure", step="build head")
    on_gpu = {"failed": (stopped.model_copy(update={"name": "measure (l4)"}),), "gpus": ("l4",)}
    yield "does not compile", bot(note={"fault": "build", **shown}, **on_gpu), wrong(r"identifier", "fix that error")
    # By the gates beside speed.
    strict = POLICY.model_copy(update={"gates": Gates(above_memory_max="fail")})
    lost = policy_of("static", occupancy_loss="fail")
    precise = policy_of("accuracy", action="fail")
    memory = {"memory_bytes": {"base": 1 << 20, "head": 9 << 20, "reference": 1 << 20}}
    heavy = report_examples.record(timed(0.0, process=memory))
    spilled = with_kernels(made(0.0), facts(128), facts(255, spill_bytes=96))
    halved = with_kernels(made(0.0), facts(64), facts(128, occupancy_pct={"NVIDIA L4": 25.0}))
    yield "new spills", *_blocked(POLICY, spilled, r"spill", "kernelgate resources")
    yield "less occupancy", *_blocked(lost, halved, r"occupancy", "kernelgate resources")
    yield "race", *_blocked(POLICY, raced(), r"\brace\b", "kernelgate sanitize")
    yield "more memory", *_blocked(strict, heavy, r"memory", "workspace|memory")
    yield "less accurate", *_blocked(precise, imprecise(), r"accuracy|accurate", "kernelgate accuracy")
    claims = FILLED.replace("s512_b32_h8_d64_fp16", "S=512 B=8")
    contradicts = truth(SAME, why="claim", blocks="blocks", now="correct|claim")
    yield "claim contradicted", bot(made(0.0), pull=pull(claims)), contradicts
    lacks = truth(SAME, why="description|hypothesis", blocks="blocks", now="add|description")
    yield "description incomplete", bot(made(0.0), pull=pull("Faster.")), lacks
    # Cards and libraries.
    bring = truth(UNKNOWN, sure="unknown", why="base|compare", now="nothing|merge", refuses=frozenset({"bench"}))
    yield "first card", bot(own["first_card"]), bring
    yield "one library", bot(own["one_library"]), truth(SAME, why="same library")
    yield "base does not compile", bot(own["base_does_not_compile"]), replace(bring, why="compile")
    yield "card changed", bot(own["card_changed"]), past(slower(5))
    # Several GPUs.
    yield "slower on one, faster on the other", bot(made(-15.0), made(6.0)), past(slower(6), faster(15))
    gone = Job(name="measure (h100)", conclusion="cancelled", step="bench")
    two = {"failed": (gone,), "gpus": ("l4", "h100")}
    lost = gone.model_copy(update={"name": "measure (b200)"})
    three = {"failed": (lost,), "gpus": ("l4", "h100", "b200"), "policy": THREE}
    missing = truth(faster(15), sure=("unknown", "certain"), why="h100", blocks=("held", "passes"), now=AGAIN)
    yield "faster, and a GPU lost", bot(made(-15.0), **two), missing
    # Runs that did not end well.
    on_l4 = {"gpus": ("l4",)}
    ended = {
        "runner lost": Job(name="measure (l4)", conclusion="cancelled", step="bench"),
        "our own failure": Job(name="measure (l4)", conclusion="failure", step="bench"),
    }
    for name, job in ended.items():
        yield name, bot(failed=(job,), **on_l4), unknown(r"stopped|job", ("held", "passes"))
    excuse = {"fault": "runner", "verb": "fuzz", "message": "the GPU is gone"}
    fuzzed = Job(name="measure (l4)", conclusion="failure", step="fuzz head")
    yield "disputed", bot(note=excuse, failed=(fuzzed,), **on_l4), unknown(r"only a file|contradict", "held")
    yield "artifact refused", bot(refused=("the artifact l4 is too large",)), unknown(r"too large", ("held", "passes"))
    cut = made(0.0, 0.0)
    plan = record.Expected(label="l4", target="8.9", cases=cut.cases, checks=("fuzz",), processes=2)
    ended_early = cut.model_copy(update={"run": cut.run.model_copy(update={"ended": "failed"})})
    half = truth(SAME, sure=("unknown", "certain"), why="ended early|incomplete", blocks="held", now=AGAIN)
    yield "cut short", bot(ended_early, plan=plan), half
    yield "no fuzz", bot(cut.model_copy(update={"checks": ()}), plan=plan), replace(half, why="fuzz")
    # Several things at once.
    apart = bot(made(6.0, 0.0), made(-15.0, 0.0), **three)
    yield "slower, a GPU faster, a GPU lost", apart, past(slower(6), faster(15))
    all_same = truth(SAME, sure=("unknown", "certain"), why="b200", blocks="held", now=AGAIN)
    yield "nothing changed, one of three GPUs lost", bot(made(0.0), made(0.0), **three), all_same
    of_three = plan.model_copy(update={"cases": made(0.0, 0.0, 0.0).cases})
    yield "both directions, a case missing", bot(made(7.3, -15.0), plan=of_three), past(slower(7.3), faster(15))
    loss = truth(faster(20), why=r"accura", blocks="blocks", now="kernelgate accuracy")
    yield "faster, less accurate", bot(imprecise(-20.0), policy=precise), loss
    doubled = report_examples.record(timed(0.0, process={"memory_bytes": {"base": 1 << 20, "head": 2 << 20}}))
    yield "memory doubled", bot(doubled), truth(SAME, now="read")
    # Again and again, or for the first time.
    third = {"run": MEASURED.model_copy(update={"run_attempt": 3})}
    doubtful = replace(doubted(slower(30)), now=f"{AGAIN} .*diff")
    yield "slower after two processes, the third time", bot(few(2, 30.0), known=False, **third), doubtful
    busy = Note(code="load", text="load 30.1 on 2 cores")
    loud = noisy(0.0, 0.15).model_copy(update={"environments": slow_cpu.environments, "notes": (busy,)})
    yield "noisy on a busy CPU", bot(loud, known=False), unknown(r"load 30\.1", now=f"{AGAIN} .*nothing else runs")
    refused = Note(code="no_profile", text="no profile of head at s512: ncu may not read counters here")
    yield "slower, ncu refused", bot(made(6.0, notes=(refused,))), past(slower(6), why="ncu may not read counters")
    base = BaseTrial(kind="wrong", error_ratio=205.0)
    alike = FuzzResult(id="n1", seed=70, axes={"N": 1}, passed=False, error_ratio=205.0, kind="wrong", base=base)
    as_base = made(0.0, checks=(Check(kind="fuzz", status="passed", seed=70, results=(alike, *fuzz().results)),))
    yield "wrong as the base is", bot(as_base), truth(SAME, why="the base does the same", now="read")
    # What is not measured.
    none = unknown(r"label|path|asks", now=AGAIN)
    skipped = pull("", ("csrc/a.cu",), "documentation")
    yield "not measured, by its label", bot(measured=False, pull=skipped), none
    draft = replace(unknown("draft", "held", "mark it ready"), much=(UNKNOWN,))
    yield "draft", bot(measured=False, pull=pull().model_copy(update={"draft": True})), draft
    yield "its own workflow", bot(changes_judges=True), unknown("workflow", "held")
    slow = made(4.9)
    cases = (timed_cases(slow)[0].key,)
    taken = KeptAcceptance(comment=1, digest="0", by="ada", reason="needed", base_sha=BASE_SHA, cases=cases)
    yield "accepted", bot(slow, accepted=(taken,)), truth(slower(4.9), why="accepted")


def policy_of(section: str, **keys: Any) -> Policy:
    return POLICY.model_copy(update={section: getattr(POLICY, section).model_copy(update=keys)})


@cache
def situations() -> tuple[Situation, ...]:
    return tuple(Situation(*one) for one in _listed())
