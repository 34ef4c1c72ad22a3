"""What a reader may be shown: every kind of result, of example records, of measured ones, and of hostile ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.record import (
    MAX_HOT_INSTRUCTIONS,
    MAX_HOT_LINES,
    HotInstruction,
    HotLine,
    HotSpots,
    Profile,
    Run,
    RunRecord,
    Side,
)
from kernelgate.ci.judge import gate, verdict
from kernelgate.ci.judge.case import Outcome
from kernelgate.ci.judge.gate import Fault
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.build import BuiltReport, build, of_verdict, reported
from kernelgate.ci.report.gpu import Failure, GpuReport, of_failure, of_record
from kernelgate.ci.report.links import NO_LINKS, Links
from tests import hot_examples
from tests.ci.report.browser import PLACES
from tests.ci.report_examples import EXAMPLES, NINE, all_reported, judge, same, slower
from tests.ci.report_examples import record as example_record
from tests.gallery.situations import at_two_speeds

DATA = Path(__file__).parents[2] / "data"
POLICY = Policy()
TARGET = "s512_b32_h8_d64_fp16"

HOSTILE = '</script><b onclick="x">@octocat #1 http://a.b \u202e|`'
LONG = "W" * 30 + "x" * 70


def _kept(path: str) -> BuiltReport:
    return reported(record.read(DATA / path), POLICY, path)


def profiled(name: str) -> RunRecord:
    """A slower case with the profiles of before, and of this change."""

    def read(side: Side, file: str) -> Profile:
        figures = ncu_reader.launches(str(DATA / "nsight" / f"{file}.ncu-repz"))[0].figures
        return Profile(case=TARGET, side=side, metrics=dict(figures))

    both = (read("base", "attention_before"), read("head", name))
    return EXAMPLES["slower"]().record.model_copy(update={"profile": both})


def sampled(*sides: Side, change: Callable[[HotSpots], HotSpots] = lambda spots: spots) -> BuiltReport:
    """A slower case with samples by line of these sides, of a kernel that lost the padding of its tile."""
    kernels = {"base": "transpose_padded", "head": "transpose_tiled"}
    profiles = tuple(
        Profile(
            case=TARGET,
            side=side,
            metrics=dict(hot_examples.launches()[kernel].figures),
            hot_spots=change(hot_examples.quoted(kernel)) if side in sides else None,
        )
        for side, kernel in kernels.items()
    )
    example = EXAMPLES["slower"]()
    return of_verdict(example.record.model_copy(update={"profile": profiles}), example.verdict, POLICY)


def untimed(*sides: Side) -> BuiltReport:
    """What `kernelgate profile --record` leaves by itself: nothing was timed."""
    timed = sampled(*sides).gpus[0].record
    return reported(timed.model_copy(update={"cases": (), "processes": (), "checks": ()}), POLICY)


def full(words: str, spots: HotSpots) -> HotSpots:
    """As much as a record may hold."""
    lines = tuple(
        HotLine(file=words[:200], line=index + 1, text=f"{index} {words}"[:200], samples=90 - index, stall=words[:200])
        for index in range(MAX_HOT_LINES)
    )
    instructions = tuple(
        HotInstruction(sass=f"{index} {words}"[:200], file=words[:200], line=7, samples=60 - index, stall="wait")
        for index in range(MAX_HOT_INSTRUCTIONS)
    )
    return HotSpots(samples=spots.samples, lines=lines, instructions=instructions)


def together(*gpus: GpuReport, description: tuple[str, ...] = (), places: Links = NO_LINKS) -> BuiltReport:
    decision = gate.decide([gpu.evidence for gpu in gpus], description)
    return BuiltReport(build(gpus, decision, POLICY, places=places), decision, gpus)


def on(label: str, name: str) -> GpuReport:
    example = EXAMPLES[name]()
    return of_record(label, example.record, example.verdict, POLICY)


def _everything() -> BuiltReport:
    """Three GPUs, each with more rows than are shown, profiles of both sides, and a description that lacks parts."""
    paths = ("cards/swiglu_slower.json", "comparisons/wgmma.json", "timing/all_cases_slower.json")
    measured = [record.read(DATA / path) for path in paths]
    parts = [
        of_record(label, one, verdict.judge(one, POLICY), POLICY)
        for label, one in zip(("h200-sxm-runner", "l4", "h100-nvl-runner"), measured, strict=True)
    ]
    return together(*parts, description=("## Intent and hypothesis", "## Claimed effect"), places=PLACES)


def lost(label: str) -> GpuReport:
    return of_failure(label, Failure(Fault.RUNNER, "the GPU is gone"), Run())


def _named(words: str) -> BuiltReport:
    """Every case, and the repository, is called something else than was thought of."""
    example = EXAMPLES["mixed"]()
    run = Run(repository=words, pull_request=12345678, base_sha="9f8e7d6" * 5, head_sha=words)
    cases = tuple(one.model_copy(update={"label": f"{words}{index}"}) for index, one in enumerate(example.record.cases))
    made = example.record.model_copy(update={"run": run, "cases": cases})
    verdicts = tuple(replace(one, sentence=words) for one in example.verdict.cases)
    return of_verdict(made, replace(example.verdict, cases=verdicts), POLICY)


def _far() -> BuiltReport:
    rest = (same(one, 0.3) for one in NINE[1:])
    return of_verdict(example_record(NINE), judge(Outcome.REGRESSED, slower(NINE[0], 1070.0), *rest), POLICY)


MADE: dict[str, Callable[[], BuiltReport]] = {
    "one case far from the rest": _far,
    "hostile names": lambda: _named(HOSTILE),
    "long names": lambda: _named(LONG),
    "everything at once": _everything,
    "two speeds": lambda: reported(at_two_speeds(), POLICY),
    "less occupancy": lambda: of_verdict(profiled("attention_occupancy"), EXAMPLES["slower"]().verdict, POLICY),
    "samples by line": lambda: sampled("base", "head"),
    "profiled alone": lambda: untimed("base", "head"),
    "hostile samples": lambda: sampled("base", "head", change=lambda spots: full(HOSTILE * 4, spots)),
    "measured: 27 cases": lambda: _kept("timing/all_cases_slower.json"),
    "measured: swiglu": lambda: _kept("cards/swiglu_slower.json"),
}


LIKE_OTHERS = {"equivalent", "slower_likely", "slower_together", "certain_below_gate"}
"""Examples whose pages have the shape of others."""
NAMES = (*(name for name in EXAMPLES if name not in LIKE_OTHERS), "does_not_compile", "runner_lost", *MADE)


@cache
def situation(name: str) -> BuiltReport:
    return MADE[name]() if name in MADE else all_reported()[name]
