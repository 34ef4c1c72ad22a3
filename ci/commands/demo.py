"""`kernelgate demo` and `prove`: pull requests whose verdict is known, here and on GitHub."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.system.interpreter import ROOT
from kernelgate.ci.commands.options import MORE_THAN_0, OUTPUT, Answered, answers
from kernelgate.ci.commands.setup import agreed, repository_bot
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.github import prove as proving
from kernelgate.ci.github.client import Bot
from kernelgate.ci.github.prove import COLUMNS, Promise, Proposals
from kernelgate.ci.policy import policy

MODULE = "tests.demo"


@click.command()
def demo() -> int:
    """Measure five pull requests to the included kernel on this CPU: faster, slower, equal, wrong, and a cheat.

    It takes about five minutes, needs a clone of kernelgate and no account: a GitHub in this process gets the comments.
    They end in one page, as a phone shows them.

    Exit codes: 0, 1 it failed, 64 usage.
    """
    if not ROOT.joinpath(*MODULE.split(".")).is_dir():
        raise UsageError("the demo is in kernelgate's own repository: clone it, run `make env` there, then `make demo`")
    return subprocess.run([sys.executable, "-m", MODULE], cwd=ROOT, check=False).returncode


@dataclass(frozen=True)
class ProveAnswer:
    repository: str
    day: str
    pull_requests: dict[str, int]
    """By their names in .ci/proposals.toml; empty where nothing was opened."""
    promises: tuple[Promise, ...]


@click.command()
@click.option("--repo", "repository", required=True, metavar="OWNER/NAME", help="The repository on GitHub.")
@click.option("--yes", is_flag=True, help="Do it without a question.")
@click.option("--undo", is_flag=True, help="Close the pull requests, and delete their branches.")
@click.option("--wait", type=MORE_THAN_0, default=90.0, show_default=True, help="Minutes for all answers, at most.")
@click.option("--page", type=OUTPUT, help="Fill the table of this page, and put the record beside it.")
@click.option("--column", type=click.Choice(COLUMNS), default="GitHub", show_default=True, help="Of that table.")
@answers(ProveAnswer, "Print one JSON object: the pull requests, and of each promise what was found.")
def prove(repository: str, yes: bool, undo: bool, wait: float, page: Path | None, column: str) -> Answered:
    """Open pull requests whose verdict is known, profile one, and look whether GitHub shows what was promised.

    They are those of .ci/proposals.toml in this folder's checkout, on branches kernelgate-prove/…. What it will do is
    shown, and done after a yes. Needs GITHUB_TOKEN, such as `gh auth token` prints it.

    Exit codes: 0 every promise is kept, 1 one is broken, 2 nothing was done, 3 could not run, 64 usage.
    """
    bot, every = repository_bot(repository), proving.read(proving.FILE)
    today = datetime.now(UTC).date().isoformat()
    if undo:
        return _undone(bot, every, yes, ProveAnswer(repository, today, {}, ()))
    if page:
        proving.table_files(page, column, today, repository, ())  # before anything is opened
    for name, proposal in every.pulls.items():
        click.echo(f"open {proving.BRANCHES}{name}: {proposal.title}\n  promised: {proposal.promise}", err=True)
    click.echo(f"profile {proving.PROFILED}; then wait, up to {wait:g} minutes", err=True)
    if not agreed(yes, "  do it?")():
        return Answered(ProveAnswer(repository, today, {}, ()), "nothing done; --yes does it without a question", 2)
    numbers = proving.opened(bot, every)
    proving.dispatch_profile(bot, numbers[proving.PROFILED], policy.load().measure.gpus[0].label)
    found: list[Promise] = []
    for one in proving.results(bot, every, numbers, wait * 60):
        click.echo(f"{'kept' if one.kept else 'BROKEN'}: {one.promised}\n  {one.found}", err=True)
        found.append(one)
    order = [*every.pulls, proving.PROFILE]
    told = ProveAnswer(repository, today, numbers, tuple(sorted(found, key=lambda one: order.index(one.name))))
    broken = [one.name for one in told.promises if not one.kept]
    said = f"{counted(len(told.promises) - len(broken), 'promise')} kept, {len(broken)} broken: {', '.join(broken)}"
    files = proving.table_files(page, column, today, repository, told.promises) if page else {}
    return Answered(told, said.removesuffix(": "), int(bool(broken)), files)


def _undone(bot: Bot, every: Proposals, yes: bool, told: ProveAnswer) -> Answered:
    left = 0
    found = proving.there(bot, every)
    for branch, pull in found.items():
        click.echo(f"{f'close #{pull.number} and ' if pull else ''}delete {branch}", err=True)
        if agreed(yes, "  do it?")():
            proving.undo(bot, branch, pull)
        else:
            left += 1
    if left:
        return Answered(told, f"{left} not undone; --yes does it without a question", 2)
    return Answered(told, f"{told.repository}: {len(found)} branches removed" if found else "nothing to do")
