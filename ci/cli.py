"""The verbs. Each one is thin: it reads its words, calls one function, and turns the result into an exit code.

Heavy imports (torch, scipy, jinja2) stay inside the verbs, so that `kernelgate --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import click

from kernelgate.bench.errors import KernelgateError, UsageError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name="kernelgate")
def cli() -> None:
    """Continuous integration for CUDA kernels: build, fuzz, duel, judge, and say so in one comment."""


@cli.command()
@click.argument("report", type=click.Path(path_type=Path))
@click.option("--against", type=click.Path(path_type=Path), help="An earlier report: say what changed since.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: `kernels`, a list in the report's order.")
def analyze(report: Path, against: Path | None, as_json: bool) -> None:
    """Name the bottleneck of each kernel in an Nsight Compute REPORT, and what to try next. Needs no GPU."""
    from kernelgate.ci.explain import analyze

    analyses = analyze.analyze(report)
    before = analyze.analyze(against) if against else ()
    click.echo((analyze.to_json if as_json else analyze.to_text)(analyses, before))


@cli.command()
@click.argument("speedup", type=float)
@click.argument("milliseconds", type=float)
def decide(speedup: float, milliseconds: float) -> None:
    """Say what to do next, from SPEEDUP over the reference (0.8 is slower) and the MILLISECONDS of one call."""
    from kernelgate.ci.explain.next_step import decide as choose

    decision = choose(speedup, milliseconds)
    click.echo(decision.sentence)
    click.echo(f"Next: {decision.command}")


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


@cli.command()
@two_sides
@click.option("--record", "run", type=click.Path(path_type=Path), help="Put what is found into this run record.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: `resources` and `findings`.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option("--tile", help="Compile nothing: would this tile fit? Queries x keys, such as 128x64.")
@click.option("--stages", type=int, default=2, show_default=True, help="Of the tile's ring of keys and values.")
@click.option("--warps", type=int, default=4, show_default=True, help="That share the tile's queries.")
@click.option("--gpu", default="l4", show_default=True, help="For --tile: l4, a100, h100 or h200.")
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

    Exit codes: 0 nothing that the policy blocks, 1 new spills, 3 could not be tried, 64 usage.
    """
    if tile is not None:
        from kernelgate.bench.explain import occupancy

        click.echo(occupancy.explain(occupancy.tile(tile, stages, warps), occupancy.gpu(gpu)))
        return 0
    from kernelgate.bench import run as verbs
    from kernelgate.bench.explain.resources import of_sides
    from kernelgate.ci.judge import policy, static

    here = Path.cwd()
    compiled = verbs.sides(here, base, base_library, head, head_library, alone)
    found = of_sides(here, compiled)
    if run is not None:
        verbs.put_into(run, compiled, resources=found)
    findings = static.judge(found, policy.load(policy_file).static)
    click.echo(static.to_json(found, findings) if as_json else static.to_text(found))
    for finding in findings:
        click.echo(str(finding), err=True)
    return static.exit_code(findings)


@cli.command()
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
@click.option("--kernel", default="attention", show_default=True, help="Profile the kernel whose name holds this.")
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
    from kernelgate.bench.kernel import suite
    from kernelgate.bench.system import progress
    from kernelgate.ci.explain import analyze as profiles
    from kernelgate.ci.judge import policy

    rules = policy.load(policy_file).profiling
    chosen = [suite.parse(case).id for case in cases] or [suite.TARGET.id]
    options = nsight.Options(out, only_gpu(), which, rules.clock_control, rules.timeout_s, kernel)
    compiled = verbs.sides(Path.cwd(), base, base_library, head, head_library, alone)
    done = nsight.profile(compiled, chosen, options)
    if run is not None and done.profiles:
        verbs.put_into(run, compiled, profile=done.profiles)
    for text in profiles.sides_to_text(out, done.profiles):
        click.echo(text)
    for reason in done.failures:
        progress.say(reason)
    return 3 if done.failures else 0


@cli.command()
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

    Exit codes: 0 nothing found, 1 something found, 3 could not be tried, 64 usage.
    """
    from kernelgate.bench import run as verbs
    from kernelgate.bench.build.archs import only_gpu
    from kernelgate.bench.check import sanitize as sanitizer
    from kernelgate.bench.kernel import suite

    chosen = [suite.parse(case).id for case in cases] or sanitizer.CASES
    sanitizer.find_sanitizer()
    only_gpu()
    found = sanitizer.library(verbs.library(Path.cwd(), ref, library), tools or sanitizer.TOOLS, chosen)
    for finding in found:
        click.echo(str(finding))
    click.echo("nothing found" if not found else f"{len(found)} findings")
    return int(bool(found))


@cli.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--baseline", type=click.Path(path_type=Path), help="Compare the heads with the ones in this baseline file."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line for each record.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option("--profile", default="default", show_default=True, help="The policy's profile, such as strict.")
def compare(
    records: tuple[Path, ...], baseline: Path | None, as_json: bool, policy_file: Path | None, profile: str
) -> int:
    """Judge run records: improved, regressed, equivalent or inconclusive, and how sure that is.

    Exit codes: 0 improved, 1 regressed, 2 no significant difference, 3 cannot be judged (why), 64 usage. With several
    records the worst of them: 1, then 3, 2, 0.
    """
    from kernelgate.ci.judge import compare, policy

    codes = []
    for verdict in compare.compare(records, policy.load(policy_file, profile), baseline):
        click.echo(compare.as_json(verdict) if as_json else compare.as_text(verdict))
        codes.append(compare.exit_code(verdict))
    return compare.worst_exit_code(codes)


@cli.command()
@click.argument("run", required=False, type=click.Path(path_type=Path))
@click.option("--from", "folder", type=click.Path(path_type=Path), help="The folder that `kernelgate fetch` filled.")
@click.option("--post", is_flag=True, help="With --from: post comment, check run, label and job summary.")
@click.option(
    "--task",
    type=click.Choice(["bench", "profile", "fuzz"]),
    default="bench",
    show_default=True,
    help="What the run was for; all but bench get a comment of their own, and no check run or label.",
)
@click.option("--page", help="With --post: the address of the page, which the comment links to.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Say as well how the head stands to this baseline.")
@click.option("--html", type=click.Path(path_type=Path), help="Write the page, one file that opens anywhere.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write the comment's Markdown instead of printing it."
)
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.option("--profile", default="default", show_default=True, help="The policy's profile, such as strict.")
def report(
    run: Path | None,
    folder: Path | None,
    post: bool,
    task: Literal["bench", "profile", "fuzz"],
    page: str | None,
    baseline: Path | None,
    html: Path | None,
    output: Path | None,
    policy_file: Path | None,
    profile: str,
) -> int:
    """Render the pull-request comment of a run record, and the HTML page with its plots.

    With --from it is the comment on everything that a workflow run left behind, with the pull request's claims where
    GITHUB_TOKEN and GITHUB_REPOSITORY are set; --post, which needs them, puts it on the pull request.

    In a terminal the comment is printed as it would look; anywhere else, and with -o, it is Markdown. The exit code
    says only whether it could be rendered; `kernelgate compare` gives the verdict as an exit code.
    """
    from rich.console import Console

    from kernelgate.bench import record
    from kernelgate.ci.document import render
    from kernelgate.ci.judge import policy
    from kernelgate.ci.report.build import judged_report

    rules = policy.load(policy_file, profile)
    if (run is None) == (folder is None) or (post and folder is None):
        raise UsageError(
            "Missing argument: give a run record, or --from and a folder of `kernelgate fetch`; --post needs --from"
        )
    if post and (html or output):
        raise UsageError("--post writes no file: render the page by a call of its own, with --from and --html")
    if folder is not None:
        from kernelgate.ci.github import client, publish
        from kernelgate.ci.github.actions import Step

        step = Step()
        if post:
            return publish.post(client.connect(step), folder, rules, task, page)
        said = publish.prepare(client.connect(step) if step.token else None, folder, rules, task).said.report
    elif run is not None:
        stored = (baseline.name, record.read(baseline)) if baseline else None
        said = judged_report(record.read(run), rules, str(run), stored)
    if html:
        render.write(render.page(said), html)
    if output:
        render.write(render.comment(said), output)
    else:
        render.show(render.comment(said), Console())
    return 0


@cli.command("fetch")
@click.option("--run-id", required=True, type=click.IntRange(min=1), help="The workflow run that measured.")
@click.option("-o", "--output", required=True, type=click.Path(path_type=Path), help="The folder to fill.")
@click.option("--head-sha", help="Where no pull request started the run: the commit that was measured, …")
@click.option("--base-sha", help="… what it was compared with, …")
@click.option("--pull-request", type=click.IntRange(min=1), help="… and the pull request that is to be told.")
def fetch_(run_id: int, output: Path, head_sha: str | None, base_sha: str | None, pull_request: int | None) -> None:
    """Take in what a workflow run left behind, as data that an enemy may have written.

    The pull request is found from the run's head commit through GitHub's API. What does not fit is refused, and
    `kernelgate report --from` says so. Needs GITHUB_TOKEN and GITHUB_REPOSITORY.
    """
    from kernelgate.ci.github import client, fetch
    from kernelgate.ci.github.actions import Step

    if head_sha is None and (base_sha or pull_request):
        raise UsageError("--base-sha and --pull-request belong to --head-sha, the commit that was measured")
    asked = fetch.Requested(head_sha, base_sha, pull_request) if head_sha else None
    step = Step()
    target = fetch.fetch(client.connect(step), run_id, output, asked)
    records = len(list(output.glob("*.run.json")))
    step.output(pull_request=str(target.pull_request or ""), head_sha=target.head_sha, records=str(records))


@cli.command()
@click.argument("body", required=False, type=click.Path(path_type=Path))
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def template(body: Path | None, policy_file: Path | None) -> int:
    """Is the pull request's description complete, and what does it claim?

    Reads BODY.md, or in a workflow the pull request of its event; there, what is missing stands in the job summary.
    Exit codes: 0 nothing blocks, 1 something is missing that policy says must be there.
    """
    from kernelgate.ci.github import review
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.judge import policy

    return review.review(Step(), policy.load(policy_file).template, body)


@cli.command()
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def plan(policy_file: Path | None) -> None:
    """In a workflow: what is this run to measure, and on which GPUs?

    Reads the event (pull request, push, schedule or dispatch), the changed files, the labels and the policy, and hands
    the answer on as outputs. Needs GITHUB_TOKEN.
    """
    from kernelgate.ci.github import plan
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.judge import policy

    step = Step()
    plan.announce(step, plan.plan(step, connect(step), policy.load(policy_file).measure))


@cli.command()
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def command(policy_file: Path | None) -> None:
    """In a workflow: answer a comment such as `/kernelgate bench s512_b32_h8_d64_fp16`.

    For people with write access only; what is measured is the commit that was head when they asked. Needs GITHUB_TOKEN.
    """
    from kernelgate.ci.github import command
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.judge import policy

    step = Step()
    command.answer(step, connect(step), policy.load(policy_file).measure)


@cli.command()
@click.option("--record", "measured", required=True, type=click.Path(path_type=Path), help="Of the default branch.")
@click.option("--label", required=True, help="The GPU's label in the policy, such as l4.")
@click.option("--force/--no-force", help="Also where the verdict does not say improved.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
def baseline(measured: Path, label: str, force: bool, policy_file: Path | None) -> None:
    """Offer a new baseline as a pull request, where a record improves on the stored one.

    Nothing is pushed to the default branch. Needs GITHUB_TOKEN and GITHUB_REPOSITORY.
    """
    from kernelgate.ci.github import baseline_pr
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect
    from kernelgate.ci.judge import policy

    baseline_pr.refresh(connect(Step()), measured, label, policy.load(policy_file), force)


@cli.command()
@click.option("--head-sha", required=True, help="The commit whose library is about to be run.")
def admit(head_sha: str) -> None:
    """On the GPU runner: may this run measure this commit?

    A pull request's head must not have moved on, and the run of a fork must have been approved. Needs GITHUB_TOKEN and
    the variables of a workflow run. Exit codes: 0 yes, 3 no (why).
    """
    from kernelgate.ci.github import admit
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.github.client import connect

    step = Step()
    step.log(admit.admit(connect(step), step, head_sha))


@cli.command()
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

    Exit codes: 0 done, 1 does not compile, 2 the commit has no kernel, 3 could not be tried, 64 usage.
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


@cli.command()
@click.option("--ref", help="Fuzz this commit instead of the working tree.")
@click.option("--library", type=click.Path(path_type=Path), help="Fuzz a compiled library (a folder with kernel.so).")
@click.option("--seed", type=click.IntRange(min=0), help="Draw everything from this number instead of a new one.")
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


@cli.command()
@click.option("--base", help="Time against this commit. Default: where this branch left the default branch.")
@click.option("--base-library", type=click.Path(path_type=Path), help="Time against this compiled library.")
@click.option("--head", help="Time this commit instead of the working tree.")
@click.option("--head-library", type=click.Path(path_type=Path), help="Time this compiled library.")
@click.option("--alone", is_flag=True, help="Time the head without a base, beside PyTorch's SDPA: for a baseline.")
@click.option("--suite", help="pr, full or cpu. Default: pr on a GPU, cpu elsewhere.")
@click.option(
    "--case",
    "case_ids",
    envvar="KERNELGATE_BENCH_CASE",
    multiple=True,
    help="Time this case, such as s512_b32_h8_d64_fp16; may be repeated.",
)
@click.option(
    "--launches", type=click.IntRange(min=1), default=5, show_default=True, help="Fresh processes, at the most."
)
@click.option("--rounds", type=click.IntRange(min=1), default=100, show_default=True, help="Rounds in each of them.")
@click.option("--seed", type=click.IntRange(min=0), help="Draw everything from this number instead of a new one.")
@click.option("--resume", is_flag=True, help="Go on with the launches that the output file lacks.")
@click.option(
    "--fuzz",
    "fuzzed",
    type=click.Path(path_type=Path),
    help="Take the results of `kernelgate fuzz -o FILE` into the record.",
)
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
    launches: int,
    rounds: int,
    seed: int | None,
    resume: bool,
    fuzzed: Path | None,
    output: Path,
) -> None:
    """Time base and head against each other, in interleaved rounds, over several fresh processes.

    Stops early once every case is decided, as .ci/kernelgate.toml has it; the judge's error rates hold all the same.
    The record grows launch by launch: a run that was cut short loses the launch in flight, and --resume goes on.
    Prints the record's path; judge it with `kernelgate compare`.
    """
    from kernelgate.bench import run as verbs
    from kernelgate.ci.judge import policy
    from kernelgate.ci.judge.verdict import decided

    settled = partial(decided, policy=policy.load())
    sides = verbs.sides(Path.cwd(), base, base_library, head, head_library, alone)
    verbs.bench(sides, suite, case_ids, launches, rounds, seed, resume, output, settled, fuzzed)
    click.echo(output)


@cli.command()
@click.option("--gpu", is_flag=True, help="A machine without a GPU is not fit; for GPU runners.")
def doctor(gpu: bool) -> int:
    """Is this machine fit to measure? Each check that fails says how to mend it.

    Exit codes: 0 fit, 1 not fit.
    """
    from kernelgate.bench import doctor

    checks = doctor.examine(gpu_wanted=gpu)
    click.echo(doctor.report(checks))
    return 0 if doctor.fit(checks) else 1


@cli.command()
@click.option("--base", help="Compare with this commit. Default: where this branch left the default branch.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, help="For the results.")
@click.option("--profile", default="default", show_default=True, help="The policy's profile, such as strict.")
def pr(base: str | None, out: Path, profile: str) -> int:
    """Do locally what a pull request gets: build, fuzz, time base against head, judge, and show the comment.

    The head is the working tree. Runs on the GPU where there is one, else on the CPU. Leaves run.json, comment.md and
    page.html in the output folder.

    Exit codes: 0 nothing blocks, 1 the change does not compile, is wrong, or is slower than the policy allows, 3 it
    could not be judged (why), 64 usage.
    """
    from rich.console import Console

    from kernelgate.ci import local
    from kernelgate.ci.document import render
    from kernelgate.ci.judge import policy

    said = local.run(Path.cwd(), base, out, policy.load(None, profile))
    console = Console()
    render.show(said.comment, console)
    if console.is_terminal:
        click.echo(said.first_line)  # the comment is longer than a screen
    click.echo(f"Written: {', '.join(str(out / name) for name in local.written(out))}", err=True)
    return int(said.blocks)


def main() -> None:
    """The `kernelgate` command. Errors that a user can mend are printed in a sentence, never as a traceback."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs one verb and returns its exit code: a verb returns its own, errors carry theirs.

    An option may also be a variable, such as KERNELGATE_BENCH_CASE for `bench --case`: that is how workflows hand on
    what people typed, which then never meets a shell.
    """
    try:
        code = cli.main(arguments, prog_name="kernelgate", standalone_mode=False, auto_envvar_prefix="KERNELGATE")
    except click.ClickException as error:
        error.show()
        return UsageError.exit_code
    except click.Abort:
        click.echo("kernelgate: interrupted", err=True)
        return 130
    except KernelgateError as error:
        click.echo(f"kernelgate: {error}", err=True)
        if "KERNELGATE_FAILURE" in os.environ:
            from kernelgate.ci.github import failure_note

            failure_note.note(error, arguments[0])
        return error.exit_code
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    main()
