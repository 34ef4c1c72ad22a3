"""The verbs that compile, check and measure, on the machine where the code is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import click


def two_sides(verb: Callable[..., int | None]) -> Callable[..., int | None]:
    """The options that name base and head."""
    for option in (
        click.option("--alone", is_flag=True, help="The head without a base."),
        click.option("--head-library", type=click.Path(path_type=Path), help="This compiled library is the head."),
        click.option("--head", help="This commit is the head, instead of the working tree."),
        click.option("--base-library", type=click.Path(path_type=Path), help="This compiled library is the base."),
        click.option("--base", help="The base commit. Default: where this branch left the default branch."),
    ):
        verb = option(verb)
    return verb


@click.command()
@click.option("--ref", help="Compile this commit instead of the working tree.")
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), help="Put a copy into this folder.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    default=600.0,
    show_default=True,
    metavar="SECONDS",
    help="End a compile that takes longer.",
)
def build(ref: str | None, output: Path | None, time_limit: float) -> None:
    """Compile one commit's kernel into the cache, and print where the library is. Needs no GPU.

    Compiles for the GPUs in TORCH_CUDA_ARCH_LIST, such as "8.9;9.0"; without it, for the L4 and the GPU at hand. The
    cache is $KERNELGATE_CACHE, or ~/.cache/kernelgate.

    Exit codes: 0 done, 1 does not compile, 2 the commit has no kernel, 3 could not run, 64 usage.
    """
    from kernelgate.bench.build import build
    from kernelgate.bench.system import git, progress
    from kernelgate.bench.system.supervise import TimeLimits

    limits = TimeLimits(total_s=time_limit)
    here = Path.cwd()
    built = (
        build.build_tree(git.toplevel(here) or here, limits=limits)
        if ref is None
        else build.build_commit(here, ref, limits=limits)
    )
    progress.say(build.describe(built))
    click.echo((build.export(built, output) if output else built).path)


@click.command()
@click.option("--ref", help="Fuzz this commit instead of the working tree.")
@click.option("--library", type=click.Path(path_type=Path), help="Fuzz a compiled library (a folder with kernel.so).")
@click.option("--seed", type=click.IntRange(min=0), help="The random seed. Default: a new one.")
@click.option(
    "--case",
    "case_ids",
    envvar="KERNELGATE_FUZZ_CASE",
    multiple=True,
    help="Run this configuration alone, such as s512_b32_h8 or edge_s513.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write the results as a run record.")
def fuzz(
    ref: str | None, library: Path | None, seed: int | None, case_ids: tuple[str, ...], output: Path | None
) -> int:
    """Run the kernel on random inputs and compare it with PyTorch's SDPA in float64.

    38 configurations around S=512 and at the edges of tiles; on a CPU the same list with fewer batches and heads.
    Every failure comes with the command that repeats it.

    Exit codes: 0 all passed, 1 a case failed or it does not compile, 2 skipped because there is no kernel, 3 could not
    be run, 64 usage.
    """
    from kernelgate.bench import run as verbs
    from kernelgate.bench.check import fuzz

    done = verbs.fuzz(Path.cwd(), ref, library, seed, case_ids, output)
    click.echo(fuzz.summary(done))
    return fuzz.exit_code(done)


@click.command()
@click.option("--base", help="Time against this commit. Default: where this branch left the default branch.")
@click.option("--base-library", type=click.Path(path_type=Path), help="Time against this compiled library.")
@click.option("--head", help="Time this commit instead of the working tree.")
@click.option("--head-library", type=click.Path(path_type=Path), help="Time this compiled library.")
@click.option("--alone", is_flag=True, help="Time the head without a base, next to the reference; for baselines.")
@click.option("--suite", help="pr, full or cpu. Default: pr on a GPU, cpu elsewhere.")
@click.option(
    "--case",
    "case_ids",
    envvar="KERNELGATE_BENCH_CASE",
    multiple=True,
    help="Time this case, such as s512_b32_h8_d64_fp16; may be repeated.",
)
@click.option(
    "--processes", type=click.IntRange(min=1), default=5, show_default=True, help="Maximum number of fresh processes."
)
@click.option("--rounds", type=click.IntRange(min=1), default=100, show_default=True, help="Rounds in each of them.")
@click.option("--seed", type=click.IntRange(min=0), help="The random seed. Default: a new one.")
@click.option("--resume", is_flag=True, help="Run only the processes that are missing from the output file.")
@click.option(
    "--fuzz",
    "fuzzed",
    type=click.Path(path_type=Path),
    help="Take the results of `kernelgate fuzz -o FILE` into the record.",
)
@click.option("--gpu", help="The label in the policy of the GPU that is measured, such as l4: kept in the record.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=Path("out/run.json"),
    show_default=True,
    help="Run record.",
)
def bench(
    base: str | None,
    base_library: Path | None,
    head: str | None,
    head_library: Path | None,
    alone: bool,
    suite: str | None,
    case_ids: tuple[str, ...],
    processes: int,
    rounds: int,
    seed: int | None,
    resume: bool,
    fuzzed: Path | None,
    gpu: str | None,
    output: Path,
) -> None:
    """Time base and head against each other, in interleaved rounds, over several fresh processes.

    Stops early once every case is decided, as .ci/kernelgate.toml has it; the judge's error rates hold all the same.
    The record grows process by process: an interrupted run loses only the current process; --resume continues it.
    Prints the record's path; judge it with `kernelgate compare`.
    """
    from kernelgate.bench import run as verbs
    from kernelgate.ci.judge import policy
    from kernelgate.ci.judge.early_stop import decided

    rules = policy.load()
    target = next((known.target for known in rules.measure.gpus if known.label == gpu), None)
    asked = verbs.TimingOptions(suite, case_ids, processes, rounds, seed, rules.processes.minimum, gpu, target)
    asked.check()
    settled = partial(decided, policy=rules)
    sides = verbs.sides(Path.cwd(), base, base_library, head, head_library, alone)
    verbs.bench(sides, asked, output, settled, resume, fuzzed)
    click.echo(output)


@click.command()
@click.option("--ref", help="Check this commit instead of the working tree.")
@click.option("--library", type=click.Path(path_type=Path), help="Check a compiled library (a folder with kernel.so).")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    type=click.Choice(["memcheck", "racecheck", "initcheck", "synccheck"]),
    help="Default: all four; may be repeated.",
)
@click.option("--case", "cases", multiple=True, help="Default: two small ragged ones; may be repeated.")
def sanitize(ref: str | None, library: Path | None, tools: tuple[str, ...], cases: tuple[str, ...]) -> int:
    """Look for out-of-bounds accesses, races, uninitialised reads and misused barriers. Needs a GPU.

    Exit codes: 0 nothing found, 1 something found, 3 could not run, 64 usage.
    """
    from kernelgate.bench import run as verbs
    from kernelgate.bench.build.archs import only_gpu
    from kernelgate.bench.check import sanitize as sanitizer
    from kernelgate.bench.kernel import case_list
    from kernelgate.bench.system import cuda_tools
    from kernelgate.ci.document import formatting

    chosen = [case_list.parse(case).id for case in cases] or sanitizer.CASES
    cuda_tools.find(sanitizer.SANITIZER)
    only_gpu()
    found = sanitizer.library(verbs.library(Path.cwd(), ref, library), tools or sanitizer.TOOLS, chosen)
    for finding in found:
        click.echo(str(finding))
    click.echo("nothing found" if not found else formatting.counted(len(found), "finding"))
    return int(bool(found))


@click.command()
@two_sides
@click.option(
    "--case",
    "cases",
    envvar="KERNELGATE_PROFILE_CASE",
    multiple=True,
    help="Such as s512_b32_h8_d64_fp16, the default; may be repeated.",
)
@click.option(
    "--set",
    "which",
    envvar="KERNELGATE_PROFILE_SET",
    type=click.Choice(["quick", "full"]),
    default="quick",
    show_default=True,
    help="quick: the figures of the comment, at most 12 passes. full: all that Nsight Compute knows.",
)
@click.option("--kernel", default="attention", show_default=True, help="Profile the kernel whose name contains this.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/profile"), show_default=True)
@click.option("--record", "run", type=click.Path(path_type=Path), help="Put the metrics into this run record.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def profile(
    base: str | None,
    base_library: Path | None,
    head: str | None,
    head_library: Path | None,
    alone: bool,
    cases: tuple[str, ...],
    which: Literal["quick", "full"],
    kernel: str,
    out: Path,
    run: Path | None,
    policy_file: Path | None,
) -> int:
    """Profile base and head with Nsight Compute, one launch each, and say what changed. Needs a GPU.

    Exit codes: 0 both were profiled, 3 a profile is missing and why, 64 usage.
    """
    from kernelgate.bench import run as verbs
    from kernelgate.bench.build.archs import only_gpu
    from kernelgate.bench.explain import nsight
    from kernelgate.bench.kernel import case_list
    from kernelgate.bench.system import progress
    from kernelgate.ci.explain import analyze as profiles
    from kernelgate.ci.judge import policy

    rules = policy.load(policy_file).profiling
    chosen = [case_list.parse(case).id for case in cases] or [case_list.TARGET.id]
    options = nsight.Options(out, only_gpu(), which, rules.clock_control, rules.timeout_s, kernel)
    compiled = verbs.sides(Path.cwd(), base, base_library, head, head_library, alone)
    done = nsight.profile(compiled, chosen, options)
    if run is not None and done.profiles:
        verbs.put_into(run, compiled, lambda _: {"profile": done.profiles})
    for text in profiles.sides_to_text(out, done.profiles):
        click.echo(text)
    for reason in done.failures:
        progress.say(reason)
    return 3 if done.failures else 0


@click.command()
@two_sides
@click.option("--record", "run", type=click.Path(path_type=Path), help="Add the result to this run record.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: `resources` and `findings`.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option("--tile", help="Compile nothing: would this tile fit? Queries x keys, such as 128x64.")
@click.option("--stages", type=int, default=2, show_default=True, help="Number of pipeline stages for keys and values.")
@click.option("--warps", type=int, default=4, show_default=True, help="Number of warps of a tile.")
@click.option("--gpu", default="l4", show_default=True, help="For --tile: l4, l40s, a100, h100 or h200.")
def resources(
    base: str | None,
    base_library: Path | None,
    head: str | None,
    head_library: Path | None,
    alone: bool,
    run: Path | None,
    as_json: bool,
    policy_file: Path | None,
    tile: str | None,
    stages: int,
    warps: int,
    gpu: str,
) -> int:
    """Show what the compiler made of base and head: registers, spills, occupancy, instructions. Needs no GPU.

    Exit codes: 0 nothing that the policy blocks, 1 a finding that the policy fails, 3 could not run, 64 usage.
    """
    if tile is not None:
        from kernelgate.bench import hardware
        from kernelgate.bench.explain import tile as calculator

        click.echo(calculator.explain(calculator.parse(tile, stages, warps), hardware.gpu(gpu)))
        return 0
    from kernelgate.bench import run as verbs
    from kernelgate.ci.judge import policy, static

    compiled = verbs.sides(Path.cwd(), base, base_library, head, head_library, alone)
    builds = verbs.builds(compiled)
    if run is not None:
        verbs.put_into(run, compiled, lambda old: {"builds": verbs.with_builds(old.builds, builds)})
    findings = static.judge(builds, policy.load(policy_file).static)
    click.echo(static.to_json(builds, findings) if as_json else static.to_text(builds))
    for finding in findings:
        click.echo(str(finding), err=True)
    return static.exit_code(findings)


@click.command()
@click.option("--gpu", is_flag=True, help="A machine without a GPU is not fit; for GPU runners.")
def doctor(gpu: bool) -> int:
    """Is this machine fit to measure? Each check that fails says how to fix it.

    Exit codes: 0 fit, 1 not fit.
    """
    from kernelgate.bench import doctor

    checks = doctor.examine(gpu_wanted=gpu)
    click.echo(doctor.report(checks))
    return 0 if doctor.fit(checks) else 1


@click.command()
@click.option("--base", help="Compare with this commit. Default: where this branch left the default branch.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="For the results.")
@click.option("--preset", default="default", show_default=True, help="The policy's preset, such as strict.")
def pr(base: str | None, out: Path, preset: str) -> int:
    """Do locally what a pull request gets: build, fuzz, time base against head, judge, and show the comment.

    The head is the working tree. Runs on the GPU where there is one, else on the CPU. Leaves run.json, comment.md and
    page.html in the output folder.

    Exit codes: 0 nothing blocks, 1 the change blocks: it does not compile, is wrong, spills registers, or is slower
    than the policy allows; 3 it could not be judged (why), 64 usage.
    """
    from rich.console import Console

    from kernelgate.ci import local
    from kernelgate.ci.document import render
    from kernelgate.ci.judge import policy

    result = local.run(Path.cwd(), base, out, policy.load(None, preset))
    console = Console()
    render.show(result.comment, console)
    if console.is_terminal:
        click.echo(result.first_line)  # the comment is longer than a screen
    click.echo(f"Written: {', '.join(str(out / name) for name in local.written(out))}", err=True)
    return int(result.decision.blocks)
