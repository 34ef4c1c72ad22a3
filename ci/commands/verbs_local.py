"""The verbs for the machine in front of you: whether it is fit, and all that a pull request gets, at once."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kernelgate.ci.commands.verbs_measure import both_sides


@click.command()
@click.option(
    "--gpu", is_flag=True, help="A machine without a GPU is not fit, and nothing is compiled; for GPU runners."
)
@click.option("--json", "as_json", is_flag=True, help="Print all as JSON.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Write all as JSON to this file, too.")
def doctor(gpu: bool, as_json: bool, output: Path | None) -> int:
    """Is this machine fit to measure, and do the checkout's kernels work on it? What does not says how to fix it.

    Each kernel is compiled, unless the cache has it, and called on its smallest case.

    Exit codes: 0 fit, 1 not fit.
    """
    from kernelgate.bench.core import files
    from kernelgate.bench.doctor import machine
    from kernelgate.bench.doctor.examine import examine

    if output:
        files.try_file(output)
    checks = examine(Path.cwd(), gpu_wanted=gpu)
    if output:
        files.write(output, machine.to_json(checks) + "\n")
    click.echo(machine.to_json(checks) if as_json else machine.report(checks))
    return 0 if machine.fit(checks) else 1


@click.command()
@both_sides
@click.option("--suite", help="pr, cpu, or one that a card names. Default: pr on a GPU, cpu elsewhere.")
@click.option("--case", "case_ids", multiple=True, help="Written as `kernelgate cards` lists them; may be repeated.")
@click.option("--seed", type=click.IntRange(min=0), help="The random seed. Default: a new one.")
@click.option("--json", "as_json", is_flag=True, help="The run record, with every figure.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def accuracy(
    base: str | None,
    base_library: Path | None,
    head: str | None,
    head_library: Path | None,
    suite: str | None,
    case_ids: tuple[str, ...],
    seed: int | None,
    as_json: bool,
    policy_file: Path | None,
) -> int:
    """Compare the errors of base and head against float64, in units in the last place, on the same inputs.

    `kernelgate bench` does the same after timing. Takes at most 10 s of the device.

    Exit codes: 0 not less accurate, 1 less accurate, 2 nothing could be measured, 3 could not run, 64 usage.
    """
    from kernelgate.bench import record
    from kernelgate.bench.kernel import cards, compared
    from kernelgate.bench.measure import run as verbs
    from kernelgate.ci.policy import policy
    from kernelgate.ci.report import accuracy as words

    rules = policy.load(policy_file).accuracy
    judging = cards.of_checkout(Path.cwd())
    verbs.check_cases(judging, suite, case_ids)
    about = compared.judged(judging, verbs.sides(Path.cwd(), base, base_library, head, head_library, False))
    made = verbs.accuracy_alone(about, suite, case_ids, seed)
    click.echo(record.to_json(made).rstrip() if as_json else words.to_text(made, rules))
    return words.exit_code(made, rules)


@click.command()
@click.option("--base", help="Compare with this commit. Default: where this branch left the default branch.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="For the results.")
@click.option("--preset", default="default", show_default=True, help="The policy's preset, such as strict.")
@click.option("--details", is_flag=True, help="In a terminal, also print the comment's folded parts.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: whether it `blocks`, `why`, and the `files`.")
def pr(base: str | None, out: Path, preset: str, details: bool, as_json: bool) -> int:
    """Do locally what a pull request gets: build, fuzz, time base against head, judge, and show the comment.

    The head is the working tree. Runs on the GPU where there is one, else on the CPU. Leaves run.json, comment.md and
    page.html in the output folder.

    Exit codes: 0 nothing blocks, 1 the change blocks: it does not compile, is wrong, spills registers, or is slower
    than the policy allows; 3 it could not be judged (why), 64 usage.
    """
    from kernelgate.ci.commands import answers
    from kernelgate.ci.document import render
    from kernelgate.ci.pipeline import local
    from kernelgate.ci.policy import policy

    result = local.run(Path.cwd(), base, out, policy.load(None, preset))
    made = tuple(str(out / name) for name in local.written(out))
    click.echo(f"Written: {', '.join(made)}", err=True)
    if as_json:
        decided = result.decision
        why = render.plain_line(result.report.headline)
        said = answers.PrAnswer(blocks=decided.blocks, conclusion=decided.conclusion, why=why, files=made)
        click.echo(said.shown())
    else:
        render.show(result.report, sys.stdout, details)
    return int(result.decision.blocks)


@click.group()
def cache() -> None:
    """Look after the cache of compiled libraries ($KERNELGATE_CACHE)."""


@cache.command()
@click.option("--days", type=click.FloatRange(min=0), default=30, show_default=True, help="What was used since stays.")
@click.option("--gigabytes", type=click.FloatRange(min=0), default=20, show_default=True, help="Of the rest, so much.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: what was `removed`, is `in_use` and `kept`.")
def prune(days: float, gigabytes: float, as_json: bool) -> None:
    """Remove libraries that nobody used for so long; then those that waited longest, until the rest fits.

    What a process has in use stays, and is said. The next build of what is gone compiles it again. Fuzz cases that are
    kept (corpus/) are never removed.
    """
    from datetime import datetime

    from kernelgate.bench.build import build
    from kernelgate.bench.build import cache as entries
    from kernelgate.ci.commands import answers

    folder = build.cache_folder()
    done = entries.prune(folder, days * 86_400, gigabytes * 1e9)
    if as_json:
        removed_, in_use = (
            tuple(answers.PrunedLibrary(name=one.folder.name, bytes=one.size) for one in some)
            for some in (done.removed, done.in_use)
        )
        kept_bytes = sum(one.size for one in done.kept)
        made = answers.CacheAnswer(
            folder=str(folder), removed=removed_, in_use=in_use, kept=len(done.kept), kept_bytes=kept_bytes
        )
        click.echo(made.shown())
        return
    for one in done.removed:
        used = datetime.fromtimestamp(one.last_used).astimezone().strftime("%Y-%m-%d %H:%M")
        click.echo(f"removed {one.folder.name}, {one.size / 1e6:.1f} MB, last used {used}")
    for one in done.in_use:
        click.echo(f"in use: {one.folder.name}, {one.size / 1e6:.1f} MB")
    removed, kept = (sum(one.size for one in some) / 1e6 for some in (done.removed, done.kept))
    of = f"{len(done.removed)} of {len(done.removed) + len(done.kept)} libraries"
    click.echo(f"{folder}: removed {of} ({removed:.1f} MB); {kept:.1f} MB are left")
