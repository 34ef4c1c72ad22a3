"""The commands that find a commit which changed a kernel: between two commits, or since a date."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.kernel import cards
from kernelgate.bench.measure import bisect as commits
from kernelgate.bench.measure.bisect import CommitRange, TrialBench, Workbench
from kernelgate.bench.system import git, progress
from kernelgate.ci.bisect import answers as answered
from kernelgate.ci.bisect.answers import CompiledAnswer, FailingAnswer, NotSearched, TimedAnswer
from kernelgate.ci.bisect.first_failing import FirstFailing, last_that_compiles
from kernelgate.ci.bisect.posterior import Search
from kernelgate.ci.bisect.rounds import Rounds, spread_pct
from kernelgate.ci.commands import options
from kernelgate.ci.commands.options import OUTPUT, OUTPUT_FOLDER, Answered, GrowingRecord, answers, shown, with_rules
from kernelgate.ci.document import render
from kernelgate.ci.history.entry import moment
from kernelgate.ci.pipeline import scan as pipeline
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import scan as reported

Result = TypeVar("Result")
Found = TypeVar("Found", TimedAnswer, FailingAnswer)
Bench = TypeVar("Bench", Workbench, TrialBench)
UNITS = {"d": "days", "w": "weeks", "mo": "months", "y": "years"}
GIT_BEGINS, GIT_ENDS = "1970-01-02", "2099-12-31"
"""Days beyond which git takes a date for another one."""
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@click.command()
@options.argument("good", about="A commit")
@options.argument("bad", default="HEAD", about="A later one. Default: HEAD")
@click.option("--case", help="Written as `kernelgate cards` lists them. Default: the card's first one on this device.")
@click.option("--build", "only_build", is_flag=True, help="Find the last commit that compiles instead. Needs no GPU.")
@click.option("--fuzz", is_flag=True, help="Find the first commit at which a fuzz case fails: --case, or BAD's first.")
@click.option("--rounds", type=click.IntRange(min=20), default=100, show_default=True, help="Rounds in each process.")
@options.seed
@options.from_cards
@answers(answered.BisectAnswer)
@click.option("--answer", type=OUTPUT, help="A file that gets that JSON object, too.")
@with_rules()
@click.option("-o", "--output", type=OUTPUT, default=Path("out/bisect.json"), show_default=True, help="The run record.")
def bisect(
    good: str,
    bad: str,
    case: str | None,
    only_build: bool,
    fuzz: bool,
    rounds: int,
    seed: int | None,
    from_cards: Path | None,
    answer: Path | None,
    rules: Policy,
    output: Path,
) -> Answered:
    """Find the commit after GOOD, up to BAD, that changed a case's time: by measuring, not by reading.

    Builds commits and times them beside each other in the same processes, those first that tell most, until one is
    certain enough. Commits that do not compile, crash or give wrong results are stepped over. Where the commit moves a
    submodule that the card is built from, its commits are searched as well.

    Exit codes: 0 found, 2 the ends take the same time or the fuzz case does not fail at BAD, 3 it could not be told or
    could not run, 64 usage.
    """

    def done(found: answered.BisectAnswer, code: int = 0) -> Answered:
        files = {answer: shown(found) + "\n"} if answer else {}
        text = "" if isinstance(found, answered.NothingFails) else answered.text(found)
        return Answered(found, text, code, files | keep.files)

    ends, keep = (good, bad), GrowingRecord(None)
    if only_build:
        if case or fuzz:
            raise UsageError("--build asks whether commits compile, of all cards: leave out --case and --fuzz")
        return done(_built(commits.between(Path.cwd(), *ends, from_cards)))
    if fuzz:
        try:
            limit_s = rules.fuzz.gpu_limit_s
            with commits.opened_trial(Path.cwd(), ends, case, seed, limit_s, from_cards) as trials:
                failing = _first_failing(trials)
        except commits.NothingFailsError as error:
            progress.say(f"kernelgate: {error}")
            return done(answered.NothingFails.model_construct(why=str(error)), error.exit_code)
        return done(failing, failing.exit_code)
    how = commits.measuring(rounds, seed)
    keep = GrowingRecord(output)
    with commits.opened(Path.cwd(), ends, case, how, rules.timing.lock_clocks, keep, from_cards) as bench:
        found = _searched(bench)
    return done(found, found.exit_code)


def _searched(bench: Workbench) -> TimedAnswer:
    device = bench.setup.device
    search = Search(bench.range.last, spread_pct=spread_pct(device, bench.together))
    found = Rounds(bench, progress.say, search, spread_pct(device, together=False)).run()
    return _with_inside(bench, found, _searched)


def _first_failing(trials: TrialBench) -> FailingAnswer:
    return _with_inside(trials, FirstFailing(trials, progress.say).run(), _first_failing)


def _built(whole: CommitRange) -> CompiledAnswer:
    found = last_that_compiles(whole, progress.say)
    inner = whole.inside(whole.shas.index(found.culprits[0]))
    return found.model_copy(update={"inside": _on(inner, _built)})


def _with_inside(bench: Bench, found: Found, search: Callable[[Bench], Found]) -> Found:
    """With what is found in the submodule that the one culprit moves; else why it was not searched."""
    if found.found != "found" or len(found.culprits) != 1:
        return found
    inner = bench.range.inside(bench.shas.index(found.culprits[0]), bench.paths())
    return found.model_copy(update={"inside": _on(inner, lambda commits: search(bench.within(commits)))})


def _on(inner: CommitRange | str | None, search: Callable[[CommitRange], Result]) -> Result | NotSearched | None:
    if isinstance(inner, CommitRange):
        try:
            return search(inner)
        except KernelgateError as error:
            inner = f"{inner.submodule}: {error}"
    return NotSearched.model_construct(why=inner) if inner else None


@click.command()
@click.option("--since", default="6mo", show_default=True, help="Such as 30d, 8w, 6mo, 1y; a date; or a commit or tag.")
@click.option("--budget", default="30m", show_default=True, help="End after about so long, such as 90s, 30m, 2h.")
@click.option("--case", help="Written as `kernelgate cards` lists them. Default: each card's first one.")
@options.from_cards
@click.option("--rounds", type=click.IntRange(min=20), default=100, show_default=True, help="Rounds in each process.")
@options.seed
@with_rules(presets=True)
@answers(reported.ScanAnswer)
@click.option("--out", type=OUTPUT_FOLDER, default=Path("out/scan"), show_default=True, help="For the results.")
def scan(since: str, budget: str, from_cards: Path | None, rules: Policy, out: Path, **measuring: Any) -> Answered:
    """Find the commits that made a kernel slower or faster since a date, by measuring them.

    Builds the commits that touch the kernel, with the cards of this checkout or of --cards, and times them beside each
    other. Commits that seem to have changed the time are compared with the one before them as a pull request is: with
    a verdict, an interval and a page. Leaves scan.json and scan.md, and a folder for each comparison.

    Exit codes: 0 none made the case slower, 1 one did, 3 it could not be told or could not run, 64 usage.
    """
    repo = git.root(Path.cwd())
    named = re.fullmatch(r"0*([1-9]\d*)([smh])", budget)
    if named is None:
        raise UsageError(f"--budget {budget}: write a time such as 90s, 30m or 2h")
    budget_s = int(named[1]) * SECONDS[named[2]]
    folder = from_cards or repo / cards.FOLDER
    if not folder.is_dir():
        raise KernelgateError(
            f"{folder} does not exist: write a card (`kernelgate init`), or name a folder with --cards"
        )
    asked = pipeline.Scan(repo, since, _ends(repo, since), folder, budget_s=budget_s, **measuring)
    found = pipeline.run(asked, rules, out)
    report = reported.report(found)
    texts = {"json": shown(found) + "\n", "md": render.comment(report)}
    files = {out / f"scan.{suffix}": text for suffix, text in texts.items()}

    def show() -> None:
        render.show(report, sys.stdout)
        progress.say(f"Written: {', '.join(map(str, files))}")

    return Answered(found, show, found.exit_code, files)


def _ends(repo: Path, since: str) -> tuple[str, str]:
    """The commit before the first one that is scanned, and the newest. Raises UsageError where there is none."""
    head = git.resolve(repo, "HEAD")
    if named := reported.SPAN.fullmatch(since):
        date = f"{named[1]} {UNITS[named[2]]} ago"
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", since) and moment(since):
        date = f"{sorted((GIT_BEGINS, since, GIT_ENDS))[1]} 00:00"
    else:
        try:
            return git.resolve(repo, since), head
        except KernelgateError as error:
            known = "30d, 8w, 6mo, 1y, a date such as 2026-01-31, or a commit or tag"
            raise UsageError(f"--since {since}: neither a time nor a commit; write {known} ({error})") from None
    listed = git.since(repo, date, head)
    start = (git.parent(repo, listed[0]) or listed[0]) if listed else head
    if start == head:
        raise UsageError(f"--since {since}: no commit of this branch is that new; name an older date")
    return start, head
