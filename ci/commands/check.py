"""The commands that check a kernel's results, on the machine where the code is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from kernelgate.bench import record
from kernelgate.bench.check import fuzz as fuzzer
from kernelgate.bench.check import sanitize as sanitizer
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import commit
from kernelgate.bench.measure import run as measuring
from kernelgate.bench.record import RunRecord, with_costs
from kernelgate.bench.system import environment, lock
from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import MORE_THAN_0, OUTPUT, OUTPUT_FOLDER, Answered, AskedSides, answers
from kernelgate.ci.document import escape, render
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import accuracy as accuracy_words
from kernelgate.ci.report import correctness

TOOLS = click.Choice(sanitizer.TOOLS)
HOURS = options.FiniteNumber(min=0, max=10_000, min_open=True)


@dataclass(frozen=True)
class SoakedCard:
    card: str
    tried: int
    failed: int
    repeat: dict[str, str]
    """Of each different failure, the command that repeats it."""
    sentence: str


@dataclass(frozen=True)
class SoakAnswer:
    soaked: tuple[SoakedCard, ...]


@click.command()
@options.one_side
@options.seed
@click.option(
    "--case", "case_ids", envvar="KERNELGATE_FUZZ_CASE", multiple=True, help="This alone, as failures name it: CARD/ID."
)
@click.option("--time-limit", type=MORE_THAN_0, help="Seconds of each card's trials. Default: on a GPU the policy's.")
@click.option("--hours", type=HOURS, help="Soak: random configurations for so long, such as 0.1; failures are kept.")
@click.option(
    "--corpus", type=OUTPUT_FOLDER, help="With --hours: what is kept and tried first. Default: corpus/ in the cache."
)
@options.in_python
@click.option("--smallest-first", is_flag=True, help="The small configurations first, to the first that fails.")
@click.option("-o", "--output", type=OUTPUT, help="Write the results as a run record.")
@answers(RunRecord | SoakAnswer, "Print the checks as a run record; with --hours one JSON object, `soaked`.")
def fuzz(
    sides: AskedSides,
    seed: int | None,
    case_ids: tuple[str, ...],
    time_limit: float | None,
    hours: float | None,
    corpus: Path | None,
    smallest_first: bool,
    output: Path | None,
) -> Answered:
    """Run each card's kernel on random inputs and compare it with the card's oracle in float64.

    Every failure comes with the command that repeats it, the first ones also with the smallest case that fails so.
    With a base, what it does alike is no failure, but for the shapes that the card times.

    Exit codes: 0 all passed, 1 a case failed or it does not compile, 2 skipped because there is no kernel, 3 could not
    run, or the card itself failed in a case, so that this one is not judged, 64 usage.
    """
    if hours is None and corpus is not None:
        raise UsageError("--corpus goes with --hours")
    if hours is not None:
        if case_ids or output or time_limit or smallest_first or any(sides.base):
            own = "without a base, --case, --output and limits of its own"
            raise UsageError(f"--hours goes {own}: what it finds is in its corpus")
        soaked = measuring.soak(Path.cwd(), sides.head, seed, hours * 3600, corpus, sides.cards)
        made = [SoakedCard(one.card.name, one.tried, one.failed, dict(one.kept), one.summary()) for one in soaked]
        text = "\n".join(one.sentence for one in made)
        return Answered(SoakAnswer(tuple(made)), text, int(any(one.failed for one in made)))
    limits = fuzzer.FuzzLimits(time_limit, policy.load().fuzz.gpu_limit_s, smallest_first)
    asked = measuring.FuzzOptions(seed, case_ids, limits)
    fuzzed = measuring.fuzz(Path.cwd(), sides.head, sides.base, asked, sides.cards)
    done, files = fuzzed.checks, {output: record.to_json(fuzzed)} if output else {}
    told, lines = RunRecord(checks=done), list[str]()
    for check in done:
        lines.append(fuzzer.summary(check))
        if check.failed and check.failed > 1:
            alone = RunRecord(checks=(check,))
            failing = (*correctness.headline(alone), ". ", *correctness.first_failure(alone))
            lines.append(f"  {escape.visible(render.plain_line(failing)).rstrip()}")
        if said := correctness.in_words(told, check):
            lines.append(f"  {escape.visible(render.plain_line(said))}")
    return Answered(record.to_json(told).rstrip(), "\n".join(lines), fuzzer.exit_code(done), files)


@click.command()
@options.in_python
@options.one_side
@click.option("--tool", "tools", multiple=True, type=TOOLS, help="Default: all four; may be repeated.")
@click.option("--case", "cases", multiple=True, help="Default: the card's small ones; may be repeated.")
@click.option("--quick", is_flag=True, help="As in a pull request: the policy's tools, within the policy's seconds.")
@click.option("--record", "run", type=OUTPUT, help="Put the checks into this run record.")
@answers(RunRecord, "Print the checks as a run record.")
def sanitize(
    sides: AskedSides, tools: tuple[str, ...], cases: tuple[str, ...], quick: bool, run: Path | None
) -> Answered:
    """Look for out-of-bounds accesses, races, uninitialised reads and misused barriers. Needs a GPU.

    With a base, cards whose libraries are the same are left out.

    Exit codes: 0 nothing found, 1 something found, 3 not everything could be run (why), 64 usage.
    """
    known = policy.load()
    rules = known.sanitizer
    measuring.check_record(run)
    about = measuring.heads(Path.cwd(), sides.head, sides.base, sides.cards)
    options = sanitizer.SanitizerOptions(
        tools or (rules.tools if quick else sanitizer.TOOLS), rules.seconds if quick else None
    )
    machine, took = environment.describe(), lock.stopwatch()
    done, spent = measuring.sanitize(about, options, machine, cases), took()

    def parts(old: RunRecord) -> dict[str, object]:
        return {"checks": measuring.with_checks(old.checks, done), "costs": with_costs(old.costs, sanitize=spent)}

    added = measuring.added(run, {one.card.name: one.sides for one in about}, parts)
    looked_at = RunRecord(cards=tuple(one.recorded for one in about), checks=done)
    text = "\n".join(map(render.plain_line, correctness.sanitizer(looked_at, known.gates)))
    return Answered(record.to_json(RunRecord(checks=done)).rstrip(), text, sanitizer.exit_code(done), added)


@click.command()
@options.both_sides
@click.option("--suite", help="pr, cpu, or one that a card names. Default: pr on a GPU, cpu elsewhere.")
@click.option("--case", "case_ids", multiple=True, help="Written as `kernelgate cards` lists them; may be repeated.")
@options.seed
@answers(RunRecord, "Print the run record, with every figure.")
@options.with_rules()
def accuracy(
    sides: AskedSides, suite: str | None, case_ids: tuple[str, ...], seed: int | None, rules: Policy
) -> Answered:
    """Compare the errors of base and head against float64, in units in the last place, on the same inputs.

    `kernelgate bench` does the same after timing. Takes at most 10 s of the device.

    Exit codes: 0 not less accurate, 1 less accurate, 2 nothing could be measured, 3 could not run, 64 usage.
    """
    judging = sides.judging()
    measuring.check_cases(judging, suite, case_ids)
    about = commit.judged(judging, sides.built())
    made = measuring.accuracy_alone(about, suite, case_ids, seed)
    text = accuracy_words.to_text(made, rules.accuracy)
    return Answered(record.to_json(made).rstrip(), text, accuracy_words.exit_code(made))
