"""The verbs that check a kernel's results, on the machine where the code is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError

if TYPE_CHECKING:
    from kernelgate.bench.check.soak import Soak


@click.command()
@click.option("--ref", help="Fuzz this commit instead of the working tree.")
@click.option("--library", type=click.Path(path_type=Path), help="Fuzz a compiled library: FOLDER[@sha256:DIGEST].")
@click.option("--seed", type=click.IntRange(min=0), help="The random seed. Default: a new one.")
@click.option(
    "--case",
    "case_ids",
    envvar="KERNELGATE_FUZZ_CASE",
    multiple=True,
    help="Run this configuration alone, as failures name it; with several cards CARD/ID.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="For each card's trials, the riskiest of which come first. Default: on a GPU the policy's, on a CPU none.",
)
@click.option(
    "--hours",
    type=click.FloatRange(min=0, max=10_000, min_open=True),
    help="Soak: random configurations for so long, which may be 0.1; failures are kept.",
)
@click.option(
    "--corpus",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --hours: the folder of what is kept and tried first. Default: corpus/ in the cache.",
)
@click.option("--smallest-first", is_flag=True, help="The small configurations first, to the first that fails.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the results as a run record.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: `checks`; with --hours `soaked`.")
def fuzz(
    ref: str | None,
    library: Path | None,
    seed: int | None,
    case_ids: tuple[str, ...],
    time_limit: float | None,
    hours: float | None,
    corpus: Path | None,
    smallest_first: bool,
    output: Path | None,
    as_json: bool,
) -> int:
    """Run each card's kernel on random inputs and compare it with the card's oracle in float64.

    Every failure comes with the command that repeats it, the first ones also with the smallest case that fails so.

    Exit codes: 0 all passed, 1 a case failed or it does not compile, 2 skipped because there is no kernel, 3 could not
    be run, 64 usage.
    """
    from kernelgate.bench import record
    from kernelgate.bench.check import fuzz
    from kernelgate.bench.measure import run_checks
    from kernelgate.ci.commands import answers
    from kernelgate.ci.document import escape, render
    from kernelgate.ci.policy import policy
    from kernelgate.ci.report import correctness

    if hours is None and corpus is not None:
        raise UsageError("--corpus goes with --hours")
    if hours is not None:
        if case_ids or output or time_limit or smallest_first:
            raise UsageError(
                "--hours goes without --case, --output and limits of its own: what it finds is in its corpus"
            )
        soaked = run_checks.soak(Path.cwd(), ref, library, seed, hours * 3600, corpus)
        if as_json:
            click.echo(_soak_answer(soaked))
        for soak in () if as_json else soaked:
            click.echo(soak.summary())
        return int(any(soak.failed for soak in soaked))
    if output:
        files.try_file(output)
    limits = fuzz.FuzzLimits(time_limit, policy.load().fuzz.gpu_limit_s, smallest_first)
    done = run_checks.fuzz(Path.cwd(), ref, library, run_checks.FuzzOptions(seed, case_ids, limits), output)
    if as_json:
        click.echo(answers.FuzzAnswer(checks=done).shown())
    for check in () if as_json else done:
        click.echo(fuzz.summary(check))
        if said := correctness.in_words(record.RunRecord(checks=done), check):
            click.echo(f"  {escape.visible(render.plain_line(said))}")
    return fuzz.exit_code(done)


def _soak_answer(soaked: Sequence[Soak]) -> str:
    from kernelgate.ci.commands import answers

    rows = (
        answers.SoakedCard(
            card=one.card.name, tried=one.tried, failed=one.failed, repeat=dict(one.kept), said=one.summary()
        )
        for one in soaked
    )
    return answers.SoakAnswer(soaked=tuple(rows)).shown()


@click.command()
@click.option("--ref", help="Check this commit instead of the working tree.")
@click.option("--library", type=click.Path(path_type=Path), help="Check a compiled library (a folder with kernel.so).")
@click.option("--base", help="Where something is found, look whether this commit has it, too.")
@click.option("--base-library", type=click.Path(path_type=Path), help="The same of a compiled library.")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    type=click.Choice(["memcheck", "racecheck", "initcheck", "synccheck"]),
    help="Default: all four; may be repeated.",
)
@click.option("--case", "cases", multiple=True, help="Default: the smallest that launch every kernel; may be repeated.")
@click.option("--quick", is_flag=True, help="As in a pull request: the policy's tools, within the policy's seconds.")
@click.option("--record", "run", type=click.Path(path_type=Path), help="Put the checks into this run record.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: `checks`, one for each card.")
def sanitize(
    ref: str | None,
    library: Path | None,
    base: str | None,
    base_library: Path | None,
    tools: tuple[str, ...],
    cases: tuple[str, ...],
    quick: bool,
    run: Path | None,
    as_json: bool,
) -> int:
    """Look for out-of-bounds accesses, races, uninitialised reads and misused barriers. Needs a GPU.

    With a base, cards whose libraries are the same are left out.

    Exit codes: 0 nothing found, 1 something found, 3 not everything could be run (why), 64 usage.
    """
    from kernelgate.bench.build.library import Sides
    from kernelgate.bench.check import sanitize as sanitizer
    from kernelgate.bench.kernel import cards, compared
    from kernelgate.bench.measure import run as verbs
    from kernelgate.bench.measure import run_checks
    from kernelgate.ci.commands import answers
    from kernelgate.ci.policy import policy

    rules = policy.load().sanitizer
    verbs.try_record(run)
    heads = verbs.libraries(Path.cwd(), ref, library)
    alone = base is None and base_library is None
    sides = {name: Sides(None, one) for name, one in heads.built.items()}
    sides = sides if alone else verbs.against(heads, verbs.bases(Path.cwd(), base, base_library))
    options = sanitizer.SanitizerOptions(
        tools or (rules.tools if quick else sanitizer.TOOLS), rules.seconds if quick else None
    )
    done = run_checks.sanitize(compared.judged(cards.of_checkout(Path.cwd()), sides), options, cases)
    if run is not None:
        verbs.put_into(run, sides, lambda old: {"checks": verbs.with_checks(old.checks, done)})
    if as_json:
        click.echo(answers.SanitizeAnswer(checks=done).shown())
    for line in () if as_json else (line for check in done for line in sanitizer.to_text(check)):
        click.echo(line)
    return sanitizer.exit_code(done)
