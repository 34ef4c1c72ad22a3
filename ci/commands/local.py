"""The commands for the machine in front of you: whether it is fit, all that a pull request gets, and its cache."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from kernelgate.bench.build import cache as entries
from kernelgate.bench.build.cache import Pruned
from kernelgate.bench.core.errors import KernelgateError, first_line
from kernelgate.bench.measure import machine
from kernelgate.bench.measure.doctor import examine
from kernelgate.bench.measure.machine import MachineCheck
from kernelgate.bench.record import Device
from kernelgate.bench.system import git, interpreter, progress
from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import OUTPUT, OUTPUT_FOLDER, Answered, answers, argument, from_cards
from kernelgate.ci.document import render
from kernelgate.ci.pipeline import local, prior
from kernelgate.ci.pipeline.local import LocalResult
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy

SIBLINGS = "siblings"
TRIED = "tried"


@dataclass(frozen=True)
class DoctorAnswer:
    fit: bool
    checks: tuple[MachineCheck, ...]


def beside_siblings(device: Device) -> tuple[MachineCheck, ...]:
    """Whether this GPU's canary is that of its kind, where the configured history knows some."""
    where = prior.index()
    if where is None:
        return ()
    try:
        from kernelgate.ci.history import canary, database

        with database.opened(where, make=False) as opened, database.reading(opened) as connection:
            known = canary.machines(connection)
    except ModuleNotFoundError as error:
        return (machine.warning(SIBLINGS, prior.lacks(error), "without it, an odd GPU is not noticed"),)
    except KernelgateError as error:
        return (
            machine.warning(SIBLINGS, f"the history cannot be read: {first_line(error)}", "see kernelgate history"),
        )
    own = next((one for one in known if (one.gpu, one.machine) == (device.name, device.uuid)), None)
    if own is None or own.apart_pct is None:
        return (machine.passed(SIBLINGS, "not known: it takes nightly canaries of three GPUs of a kind"),)
    if own.odd:
        fix = "compare clocks, power limit and memory errors (nvidia-smi -q); the next good night's canary lets it back"
        return (machine.failed(SIBLINGS, own.odd, fix),)
    return (machine.passed(SIBLINGS, f"within {own.apart_pct:+.1f}% of {own.siblings} other {own.gpu}"),)


@click.command()
@click.option(
    "--gpu", is_flag=True, help="A machine without a GPU is not fit, and nothing is compiled; for GPU runners."
)
@answers(DoctorAnswer)
@click.option("--output", "-o", type=OUTPUT, help="Write all as JSON to this file, too.")
def doctor(gpu: bool, output: Path | None) -> Answered:
    """Is this machine fit to measure, and do the checkout's kernels work on it? What does not says how to fix it.

    Each kernel is compiled, unless the cache has it, and called on its smallest case. With --gpu and a history
    (KERNELGATE_HISTORY_DATABASE), a GPU is not fit whose canary differs from those of its kind.

    Exit codes: 0 fit, 1 not fit.
    """
    checks = examine(Path.cwd(), gpu_wanted=gpu, siblings=beside_siblings)
    made = DoctorAnswer(machine.fit(checks), tuple(checks))
    files = {output: options.shown(made) + "\n"} if output else {}
    return Answered(made, machine.report(checks), 0 if made.fit else 1, files)


@dataclass(frozen=True)
class PrAnswer:
    blocks: bool
    conclusion: str
    """Of the check run that a pull request would get."""
    why: str
    files: tuple[str, ...]


@click.command()
@click.option("--base", help="Compare with this commit. Default: where this branch left the default branch.")
@from_cards
@options.in_python
@click.option("--out", type=OUTPUT_FOLDER, default=Path("out"), show_default=True, help="For the results.")
@options.preset
@click.option("--details", is_flag=True, help="In a terminal, also print the comment's folded parts.")
@answers(PrAnswer, "Print one JSON object: whether it `blocks`, `why`, and the `files`.")
def pr(base: str | None, from_cards: Path | None, out: Path, preset: str, details: bool) -> Answered:
    """Do locally what a pull request gets: build, fuzz, time base against head, judge, and show the comment.

    The head is the working tree; if no kernel differs in it, the last commit that changed one is compared with its
    parent. Runs on the GPU if there is one, else on the CPU. Leaves run.json, comment.md and page.html in --out.

    Exit codes: 0 nothing blocks, also if a pull request would be held, such as a likely slower one; 1 it blocks: it
    does not compile, is wrong, is slower than the policy allows, or has another fault that the policy blocks, such as
    a finding of compute-sanitizer, register spills or memory; 3 it could not be judged (why), 64 usage.
    """
    result = local.run(local.Compare(Path.cwd(), base, cards=from_cards), out, _rules(preset))
    return _answered(result, out, details, int(result.decision.blocks))


@click.command("try")
@argument("base", about="A commit")
@argument("head", about="A commit")
@from_cards
@options.in_python
@click.option("--env-a", type=options.PYTHON, help="The Python that BASE runs in, with its torch and Triton.")
@click.option("--env-b", type=options.PYTHON, help="The Python that HEAD runs in.")
@click.option("--out", type=OUTPUT_FOLDER, help="For the results. Default: a folder of the cache, which is printed.")
@options.preset
@click.option("--details", is_flag=True, help="In a terminal, also print the comment's folded parts.")
@answers(PrAnswer, "Print one JSON object: whether it `blocks`, `why`, and the `files`.")
def try_(
    base: str,
    head: str,
    from_cards: Path | None,
    env_a: Path | None,
    env_b: Path | None,
    out: Path | None,
    preset: str,
    details: bool,
) -> Answered:
    """Say whether commit HEAD is faster or slower than commit BASE, and right: what a pull request of HEAD would get.

    Works on any clone, from any folder of it, with nothing committed and nothing changed in it: --cards names a folder
    of cards, and of both commits only the files that they name are read. Runs on the GPU where there is one, else on
    the CPU. With --env-a and --env-b, BASE and HEAD may be one commit: what is compared is what the two have installed.

    Exit codes: 0 improved, 1 regressed, wrong, or it does not compile, 2 no gate acts, 3 it could not be judged (why),
    64 usage.
    """
    repo = git.root(Path.cwd())
    names = [repo.name, *(git.resolve(repo, ref)[:9] for ref in (base, head))]
    place = out or entries.cache_folder() / TRIED / "-".join(names)
    other = env_b.absolute() if env_b else None
    with interpreter.using(env_a.absolute() if env_a else None):
        result = local.run(local.Compare(repo, base, head, from_cards, other), place, _rules(preset))
    return _answered(result, place, details, result.exit_code)


def _rules(preset: str) -> Policy:
    """Of the checkout, from whichever of its folders the command was called."""
    file = git.root(Path.cwd()) / policy.POLICY_FILE
    return policy.load(file if file.exists() else None, preset)


def _answered(result: LocalResult, out: Path, details: bool, code: int) -> Answered:
    files = {out / name: text for name, text in result.files.items()}
    made = tuple(map(str, files))
    decided, why = result.decision, render.plain_line(result.report.headline)
    told = PrAnswer(decided.blocks, decided.conclusion, why, made)

    def show() -> None:
        render.show(result.report, sys.stdout, details)
        progress.say(f"Written: {', '.join(made)}")

    return Answered(told, show, code, files)


@click.group()
def cache() -> None:
    """Manage the cache of libraries and objects ($KERNELGATE_CACHE)."""


@cache.command()
@click.option("--days", type=options.AT_LEAST_0, default=30, show_default=True, help="What was used since stays.")
@click.option("--gigabytes", type=options.AT_LEAST_0, default=20, show_default=True, help="Of the rest, so much.")
@answers(Pruned, "Print one JSON object: what was `removed`, is `in_use` and `kept`.")
def prune(days: float, gigabytes: float) -> Answered:
    """Remove what nobody used for so long; then those that waited longest, until the rest fits.

    What a process has in use stays, and is said. The next build of what is gone compiles it again. Fuzz cases that are
    kept (corpus/) are never removed.
    """
    folder = entries.cache_folder()
    done = entries.prune(folder, days * 86_400, gigabytes * 1e9)
    lines = [
        f"removed {one.folder.name}, {one.size / 1e6:.1f} MB, last used "
        f"{datetime.fromtimestamp(one.last_used).astimezone():%Y-%m-%d %H:%M}"
        for one in done.removed
    ]
    lines += [f"in use: {one.folder.name}, {one.size / 1e6:.1f} MB" for one in done.in_use]
    removed, kept = (sum(one.size for one in some) / 1e6 for some in (done.removed, done.kept))
    of = f"{len(done.removed)} of {len(done.removed) + len(done.kept)} entries"
    lines.append(f"{folder}: removed {of} ({removed:.1f} MB); {kept:.1f} MB are left")
    return Answered(done, "\n".join(lines))
