"""The commands that explain a time: a profile's bottleneck, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.ci.commands.options import MORE_THAN_0, PATH, Answered, answers, argument, with_rules
from kernelgate.ci.explain import analyze as profiles
from kernelgate.ci.explain import next_step
from kernelgate.ci.policy.policy import Policy


@click.command()
@argument("report", type=PATH, about="Of Nsight Compute")
@click.option("--against", type=PATH, help="An earlier report: say what changed since.")
@answers(profiles.AnalysesAnswer, "Print one JSON object: `kernels`, a list in the report's order.")
def analyze(report: Path, against: Path | None) -> Answered:
    """Name the bottleneck of each kernel in an Nsight Compute REPORT, and what to try next. Needs no GPU."""
    analyses = profiles.analyze(report)
    before = profiles.analyze(against) if against else ()
    return Answered(profiles.to_answer(analyses, before), profiles.to_text(analyses, before))


@dataclass(frozen=True)
class DecideAnswer:
    priority: str
    sentence: str
    command: str
    stops: bool
    """Profile before anything else; exit code 1."""
    keep: str | None
    """With --before-ms: whether the fix is worth keeping."""


@click.command()
@argument("speedup", type=MORE_THAN_0, about="Times as fast as the reference")
@argument("milliseconds", type=MORE_THAN_0, about="Of a call")
@click.option("--kernel-ms", type=MORE_THAN_0, help="Of its kernels alone, such as the record's graph_us / 1000.")
@click.option("--before-ms", type=MORE_THAN_0, help="Of a call before the last fix: says whether to keep it.")
@answers(DecideAnswer)
@with_rules()
def decide(
    speedup: float, milliseconds: float, kernel_ms: float | None, before_ms: float | None, rules: Policy
) -> Answered:
    """Say what to do next, from SPEEDUP over the reference (0.8 is slower) and the MILLISECONDS of one call.

    Exit codes: 0, 1 below the policy's gates.reference_min: stop and profile, 64 usage.
    """
    step = next_step.decide(speedup, milliseconds, rules.gates.reference_min, kernel_ms)
    keep = None if before_ms is None else next_step.worth_keeping(before_ms, milliseconds)
    told = DecideAnswer(step.priority, step.sentence, step.command, step.stops, keep)
    lines = [*([keep] if keep is not None else []), step.sentence, f"Next: {step.command}"]
    return Answered(told, "\n".join(lines), int(step.stops))
