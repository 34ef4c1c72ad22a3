"""The command that looks for changes of speed in a repository's past."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.kernel import cards
from kernelgate.bench.system import git, progress
from kernelgate.ci.commands.options import OUTPUT_FOLDER, Answered, answers, from_cards, shown, with_rules
from kernelgate.ci.commands.options import seed as seed_option
from kernelgate.ci.document import render
from kernelgate.ci.pipeline import scan as pipeline
from kernelgate.ci.pipeline.scan import Scan
from kernelgate.ci.policy.policy import Policy
from kernelgate.ci.report import scan as reported
from kernelgate.ci.report.scan import ScanAnswer

UNITS = {"d": "days", "w": "weeks", "mo": "months", "y": "years"}
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


@click.command()
@click.option("--since", default="6mo", show_default=True, help="Such as 30d, 8w, 6mo, 1y; a date; or a commit or tag.")
@click.option("--budget", default="30m", show_default=True, help="End after about so long, such as 90s, 30m, 2h.")
@click.option("--case", help="Written as `kernelgate cards` lists them. Default: each card's first one.")
@from_cards
@click.option("--rounds", type=click.IntRange(min=20), default=100, show_default=True, help="Rounds in each process.")
@seed_option
@with_rules(presets=True)
@answers(ScanAnswer)
@click.option("--out", type=OUTPUT_FOLDER, default=Path("out/scan"), show_default=True, help="For the results.")
def scan(since: str, budget: str, from_cards: Path | None, rules: Policy, out: Path, **measuring: Any) -> Answered:
    """Find the commits that made a kernel slower or faster since a date, by measuring them.

    Builds the commits that touch the kernel, with the cards of this checkout or of --cards, and times them beside each
    other. Commits that seem to have changed the time are compared with the one before them as a pull request is: with
    a verdict, an interval and a page. Leaves scan.json, scan.md and scan.html, and a folder for each comparison.

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
    asked = Scan(repo, since, _ends(repo, since), folder, budget_s=budget_s, **measuring)
    found = pipeline.run(asked, rules, out)
    report = reported.report(found)
    texts = {"json": shown(found) + "\n", "md": render.comment(report), "html": reported.page(found)}
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
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", since):
        date = f"{since} 00:00"
    else:
        try:
            return git.resolve(repo, since), head
        except KernelgateError:
            known = "30d, 8w, 6mo, 1y, a date such as 2026-01-31, or a commit or tag"
            raise UsageError(f"--since {since}: neither a time nor a commit; write {known}") from None
    listed = git.since(repo, date, head)
    start = (git.parent(repo, listed[0]) or listed[0]) if listed else head
    if start == head:
        raise UsageError(f"--since {since}: no commit of this branch is that new; name an older date")
    return start, head
