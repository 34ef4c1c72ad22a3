"""The commands that compile and measure, on the machine where the code is."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click

from kernelgate.bench import record
from kernelgate.bench.build import build as builder
from kernelgate.bench.build.archs import only_gpu
from kernelgate.bench.build.library import Library, folder_digest
from kernelgate.bench.build.machine_code import Occupancy
from kernelgate.bench.check import accuracy
from kernelgate.bench.core import hardware
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.explain import nsight
from kernelgate.bench.explain import tile as calculator
from kernelgate.bench.explain.tile import BlockNeeds
from kernelgate.bench.kernel import cards as kernel_cards
from kernelgate.bench.kernel import commit
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.measure import list_cards
from kernelgate.bench.measure import run as measuring
from kernelgate.bench.record import Build
from kernelgate.bench.system import environment, lock, preemption, progress
from kernelgate.bench.system.supervise import TimeLimits
from kernelgate.bench.system.worker import worker_pool
from kernelgate.bench.timing import process
from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import MORE_THAN_0, OUTPUT, OUTPUT_FOLDER, PATH, Answered, AskedSides, answers
from kernelgate.ci.document import render
from kernelgate.ci.explain import analyze as profiles
from kernelgate.ci.explain.analyze import AnalysesAnswer
from kernelgate.ci.github.actions import Step
from kernelgate.ci.judge import cards as judged_cards
from kernelgate.ci.judge import correctness, static, stopping
from kernelgate.ci.judge.static import StaticFinding
from kernelgate.ci.pipeline import prior
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report.links import TRY

LISTED = "as `kernelgate cards` lists them; may be repeated"


@dataclass(frozen=True)
class BuildAnswer:
    libraries: dict[str, Library]
    left_out: dict[str, str]
    """Cards without a library, and why."""


@click.command()
@click.option("--ref", help="Compile this commit instead of the working tree.")
@options.from_cards
@click.option("-o", "--output", type=OUTPUT_FOLDER, help="Put a copy into this folder.")
@click.option("--time-limit", type=MORE_THAN_0, default=600.0, show_default=True, help="Seconds of a compile, at most.")
@click.option(
    "--as-base",
    "is_base",
    is_flag=True,
    help="Leave out what has no card or does not compile, and say why in the output: the head is then measured alone.",
)
@answers(BuildAnswer, "Print one JSON object: `libraries`, and what was `left_out`.")
def build(ref: str | None, from_cards: Path | None, output: Path | None, time_limit: float, is_base: bool) -> Answered:
    """Compile the kernels of one commit's cards into the cache, and print where they are. Needs no GPU.

    Compiles for the GPUs in TORCH_CUDA_ARCH_LIST, such as "8.9;9.0"; without it, for the L4 and the GPU at hand. The
    cache is $KERNELGATE_CACHE, or ~/.cache/kernelgate. In a workflow, the step's output `digest` is the folder's.

    Exit codes: 0 done, 1 does not compile, 2 the commit has no kernel, 3 could not run, 64 usage.
    """
    how = commit.HowToBuild(limits=TimeLimits(total_s=time_limit), forgiving=is_base, cards=from_cards)
    built = measuring.libraries(Path.cwd(), ref, None, how)
    for library in built.built.values():
        progress.say(builder.describe(library))
    for name, why in built.absent.items():
        progress.say(f"{name} is left out: {why}")
    made = commit.export(built, output) if output else built
    if output and (step := Step()).in_workflow:
        step.output(digest=folder_digest(output))
    told = BuildAnswer(dict(made.built), dict(made.absent))
    return Answered(told, "\n".join(str(library.path) for library in made.built.values()))


@click.command()
@click.option("--list", "only_list", is_flag=True, help="Only list: needs neither torch nor a compiler.")
@options.from_cards
@options.json_option(list_cards.ListedCards, "Print one JSON object: `cards`, `mistakes`, and what was `checked`.")
def cards(only_list: bool, from_cards: Path | None, as_json: bool) -> int:
    """List the cards in .ci/kernels, and check them: sources, operators, inputs, call and oracle. Needs no GPU.

    Each mistake names its file, line and member. Checking compiles the kernels, as `kernelgate build` does.

    Exit codes: 0 all are right, 1 mistakes, 2 no cards, 3 could not run, 64 usage.
    """
    said: list[str] = []
    say = said.append if as_json else click.echo
    found = list_cards.listed(Path.cwd(), check=not only_list, say=say, folder=from_cards)
    if as_json:
        click.echo(options.shown(found))
    return found.exit_code


@dataclass(frozen=True)
class BenchAnswer:
    record: str
    cases: int
    processes: int
    gpu_seconds: float
    next: str


@click.command()
@options.in_python
@options.two_sides
@click.option("--pinned-library", type=PATH, help="With --alone: time this library in the same processes, too.")
@click.option("--suite", help="pr, cpu, or one that a card names. Default: pr on a GPU, cpu elsewhere.")
@click.option("--case", "case_ids", envvar="KERNELGATE_BENCH_CASE", multiple=True, help=f"Time this case, {LISTED}.")
@click.option("--processes", type=click.IntRange(min=1), help="At most so many. Default: the policy's limit.")
@click.option("--rounds", type=click.IntRange(min=1), default=100, show_default=True, help="Rounds in each of them.")
@options.seed
@click.option("--resume", is_flag=True, help="Run only what is missing from the output file.")
@click.option("--shard", type=options.SHARD, help="Time this part of the cases alone, such as 2/4.")
@click.option("--times", type=PATH, help="With --shard: a record whose times deal out cases.")
@click.option("--fuzz", "fuzzed", type=PATH, help="Take in the results of `kernelgate fuzz -o FILE`.")
@click.option("--same", is_flag=True, help="Also time cards whose base and head are the same library.")
@click.option("--gpu", help="The measured GPU's label in the policy, such as l4.")
@click.option("-o", "--output", type=OUTPUT, default=Path("out/run.json"), show_default=True, help="Run record.")
@answers(BenchAnswer, "Print one JSON object: where the record is, and what it holds.")
def bench(
    sides: AskedSides,
    pinned_library: Path | None,
    processes: int | None,
    shard: tuple[int, int] | None,
    times: Path | None,
    fuzzed: Path | None,
    gpu: str | None,
    output: Path,
    **timing: Any,
) -> Answered:
    """Time base and head against each other, in interleaved rounds, over several fresh processes.

    Only cases that are still undecided are timed again, as .ci/kernelgate.toml has it; error rates hold all the same.
    The record grows process by process: an interrupted run loses only the current process; --resume continues it.
    Ends with the accuracy of both sides, for at most 10 s of the device.
    Prints the record's path; judge it with `kernelgate compare`.

    After SIGTERM the process that is being timed has 15 s to finish; the exit code is then 75. --resume goes on, also
    on another machine with the same kind of GPU.

    With --shard, which needs --seed, each of several machines times its part. Cases are dealt out by the times in
    --times, else in the policy's baseline of --gpu, else evenly. Fuzz, sanitize and profile with shard 1 alone.
    """
    if pinned_library and not sides.alone:
        raise UsageError("--pinned-library goes with --alone: beside a base, the head is compared with that")
    if fuzzed:
        record.read(fuzzed)
    rules = policy.load()
    part = None
    if shard is not None:
        if timing["seed"] is None:
            raise UsageError("--shard needs --seed: the same number for all shards")
        digest = hashlib.sha256(rules.model_dump_json().encode()).hexdigest()
        part = record.Shard(number=shard[0], of=shard[1], seed=timing["seed"], policy=digest)
    dealt_by = (times or options.stored_times(rules, gpu, Path())) if part else None
    known_seconds = record.measured_seconds(record.read(dealt_by)) if dealt_by else {}
    judging = sides.judging()
    target = next((one.target for one in rules.measure.gpus if one.label == gpu), None)
    # With a label, this is a workflow's run: the cards of its checkout are the default branch's.
    least = rules.processes.minimum
    plan_hash = kernel_cards.planned(judging, least, gpu, target, rules.checks).hash if gpu else None
    most = min(processes or rules.processes.limit, rules.processes.limit)
    called = measuring.called(TRY if sides.head[0] else None, sides.cards)
    known = rules.timing.model_dump() | timing | {"shard": part, "seconds": known_seconds, "called": called}
    asked = measuring.TimingOptions(most, least=least, gpu=gpu, target=target, plan_hash=plan_hash, **known)
    measuring.check_cases(judging, asked.suite, asked.case_ids)
    past = prior.past(progress.say)

    def open_cases(so_far: record.RunRecord) -> frozenset[record.CaseKey]:
        return stopping.undecided(so_far, rules, past(so_far))

    needed = {process.VERIFIER: 1, process.WORKER: 1, environment.DESCRIBES: 1}
    if not sides.alone:
        needed[accuracy.WORKER] = 1
    with ExitStack() as stack:
        workers = stack.enter_context(worker_pool())
        if not sides.head[1] and not sides.base[1]:  # they load torch while libraries are compiled
            workers.prepare(needed)
        built = sides.built()
        if pinned_library:
            built = measuring.beside(built, measuring.libraries(Path.cwd(), None, pinned_library))
        about = commit.judged(judging, built, "default branch" if gpu else None)
        workers.prepare(needed)
        notice = stack.enter_context(preemption.awaited())
        measuring.bench(about, asked, output, open_cases, fuzzed, workers, notice)
    made = record.read(output)
    for side in ("base", "head"):
        for key, wrong in correctness.wrong_outputs(made, side).items():
            progress.say(f"{judged_cards.called(made, key)}: {wrong.message}")
    seconds = sum(cost.gpu_seconds for cost in made.costs)
    told = BenchAnswer(str(output), len(made.cases), len(made.processes), seconds, f"kernelgate compare {output}")
    return Answered(told, str(output))


@dataclass(frozen=True)
class ProfileAnswer(nsight.ProfilingResult):
    analyses: dict[str, AnalysesAnswer]
    """By CARD/CASE, what `analyze` says of the head's report against the base's: metrics, bottleneck, what to try."""


@click.command()
@options.in_python
@options.two_sides
@click.option(
    "--case", "cases", envvar="KERNELGATE_PROFILE_CASE", multiple=True, help=f"This case, {LISTED}; default: target."
)
@click.option(
    "--set", "which", envvar="KERNELGATE_PROFILE_SET", type=click.Choice(["quick", "full"]), default="quick",
    show_default=True, help="quick: the figures of the comment, at most 12 passes. full: all of Nsight Compute's.",
)  # fmt: skip
@click.option("--kernel", help="Profile the kernels whose name matches this. Default: as the card says, else all.")
@click.option("--reference", is_flag=True, help="Also the card's reference, to compare with.")
@click.option("--out", type=OUTPUT_FOLDER, default=Path("out/profile"), show_default=True, help="For the reports.")
@click.option("--record", "run", type=OUTPUT, help="Put the metrics into this run record.")
@answers(ProfileAnswer, "Print one JSON object: `profiles`, `analyses` with each bottleneck, and `failures`.")
def profile(
    sides: AskedSides,
    cases: tuple[str, ...],
    which: Literal["quick", "full"],
    kernel: str | None,
    reference: bool,
    out: Path,
    run: Path | None,
) -> Answered:
    """Profile base and head with Nsight Compute, one launch each, and say what changed. Needs a GPU.

    Exit codes: 0 both were profiled, 3 a profile is missing and why, 64 usage.
    """
    measuring.check_record(run)
    gpu = only_gpu()
    with worker_pool() as workers:
        workers.prepare({environment.DESCRIBES: 1})  # it loads torch while libraries are compiled
        compiled = sides.built()
        options = nsight.Options(
            out, gpu, environment.describe(workers).device.uuid, which, kernel=kernel, reference=reference
        )
    about = commit.judged(sides.judging(), compiled)
    targets = [ChosenCase(one.card, one.card.target) for one in about]
    chosen = commit.select_cases(about, "cuda", None, cases) if cases else targets
    took = lock.stopwatch()
    done, spent = nsight.profile({one.card.name: one.sides for one in about}, chosen, options), took()

    def parts(old: record.RunRecord) -> dict[str, object]:
        of_sides = tuple(one for one in done.profiles if one.side != "reference")
        return {"profile": of_sides, "costs": record.with_costs(old.costs, profile=spent)}

    added = measuring.added(run, compiled, parts) if done.profiles else {}
    written = {out / name: text for name, text in nsight.summaries(done.profiles).items()}
    for reason in done.failures:
        progress.say(reason)

    sides_of = list(profiles.of_sides(out, done.profiles))
    text = "\n".join(profiles.to_text(head, base) for _, head, base in sides_of)
    found = {f"{key.card}/{key.id}": profiles.to_answer(head, base) for key, head, base in sides_of}
    told = ProfileAnswer(done.profiles, done.failures, found)
    return Answered(told, text, 3 if done.failures else 0, added | written)


@dataclass(frozen=True)
class CompilerFacts:
    builds: tuple[Build, ...]
    findings: tuple[StaticFinding, ...]


@dataclass(frozen=True)
class TileAnswer:
    """Of `resources --tile`: whether a block fits on a multiprocessor, and how many of them."""

    gpu: str
    needs: BlockNeeds
    fits: Occupancy | None
    sentence: str


@click.command()
@options.two_sides
@click.option("--record", "run", type=OUTPUT, help="Add the result to this run record.")
@answers(CompilerFacts | TileAnswer, "Print one JSON object: `builds` and `findings`; of --tile, whether it `fits`.")
@options.with_rules()
@click.option("--tile", help="Compile nothing: would this fit? Rows x columns of a card's tile, or bytes (48KiB).")
@click.option("--card", help="For --tile: the card, where there are several.")
@click.option("--stages", type=int, default=2, show_default=True, help="For --tile: number of pipeline stages.")
@click.option("--warps", type=int, default=4, show_default=True, help="For --tile: number of warps of a block.")
@click.option("--gpu", default="l4", show_default=True, help="For --tile: l4, l40s, a100, h100 or h200.")
def resources(sides: AskedSides, run: Path | None, rules: Policy, tile: str | None, gpu: str, **block: Any) -> Answered:
    """Show what the compiler made of base and head: registers, spills, occupancy, instructions. Needs no GPU.

    Exit codes: 0 nothing that the policy blocks, 1 a finding that the policy fails, 3 could not run, 64 usage.
    """
    if tile is not None:
        needs, device = measuring.block_needs(Path.cwd(), words=tile, **block), hardware.gpu(gpu)
        sentence, fits = calculator.explain(needs, device), calculator.fit(needs, device)
        return Answered(TileAnswer(device.name, needs, None if isinstance(fits, str) else fits, sentence), sentence)
    measuring.check_record(run)
    compiled = sides.built()
    builds = measuring.builds(compiled)
    added = measuring.added(run, compiled, lambda old: {"builds": measuring.with_builds(old.builds, builds)})
    findings = static.judge(builds, rules.static)
    for finding in findings:
        progress.say(str(finding))
    for line in static.unseen(builds, rules.static):
        progress.say(f"not known: {render.plain_line(line)}")
    failed = any(finding.severity == "fail" for finding in findings)
    return Answered(CompilerFacts(builds, findings), static.to_text(builds), int(failed), added)
