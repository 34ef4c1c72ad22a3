"""`kernelgate setup`: the settings on GitHub that a repository needs, shown before each is changed, and restored.
`kernelgate prove` and `demo`: pull requests whose verdict is known, there and here."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import click
from pydantic import Field, ValidationError

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.record import Model
from kernelgate.bench.system.interpreter import ROOT
from kernelgate.ci.commands.options import MORE_THAN_0, OUTPUT, Answered, answers
from kernelgate.ci.document.escape import visible
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.github import client
from kernelgate.ci.github import prove as proving
from kernelgate.ci.github import setup as hub
from kernelgate.ci.github.actions import Step
from kernelgate.ci.github.client import Bot
from kernelgate.ci.github.prove import COLUMNS, Promise, Proposals
from kernelgate.ci.github.setup import Json, Place, Setting
from kernelgate.ci.policy import policy


@dataclass(frozen=True)
class SettingAnswer:
    setting: str
    was: str
    will_be: str
    changed: bool


@dataclass(frozen=True)
class SetupAnswer:
    changes: tuple[SettingAnswer, ...]
    before: str | None
    """The file with what was there before; null where nothing is to be restored."""
    runner_conf: str


class KeptSettings(Model, validate_by_name=True, validate_by_alias=True):
    """What was there before the first change of each setting, by its name; null where there was nothing."""

    schema_: Annotated[Literal["kernelgate.setup/1"], Field(alias="schema")] = "kernelgate.setup/1"
    repository: str
    before: dict[str, Json | None] = Field(default_factory=dict)


def file_of(repository: str) -> Path:
    return Path(f"kernelgate-setup-{repository.replace('/', '-')}.json")


def read_kept(repository: str) -> KeptSettings:
    """Raises UsageError where the file is another's."""
    file = file_of(repository)
    if not file.exists():
        return KeptSettings(repository=repository)
    try:
        kept = KeptSettings.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        raise UsageError(f"{file} is not what `kernelgate setup` writes: move it away") from None
    if kept.repository != repository:
        raise UsageError(f"{file} is about {kept.repository}: move it away")
    return kept


def write_kept(kept: KeptSettings) -> None:
    """The file goes with the last setting in it."""
    file = file_of(kept.repository)
    if kept.before:
        files.write(file, kept.model_dump_json(by_alias=True, indent=2) + "\n")
    else:
        file.unlink(missing_ok=True)


@click.command()
@click.argument("repository", metavar="OWNER/NAME")
@click.option("--yes", is_flag=True, help="Make each change without a question.")
@click.option("--undo", is_flag=True, help="Restore what was there before.")
@answers(SetupAnswer)
def setup(repository: str, yes: bool, undo: bool) -> Answered:
    """Set up a repository on GitHub: permissions of workflows, labels, environments, rules and the runner group.

    Each change is shown before it is made, and made after a yes. What was there before is kept in
    kernelgate-setup-OWNER-NAME.json, in this folder. Needs GITHUB_TOKEN, such as `gh auth token` prints it.
    """
    at, kept = hub.place(repository_bot(repository)), read_kept(repository)
    made = tuple(_restored(at, kept, yes) if undo else _made(at, kept, yes))
    left = file_of(repository) if file_of(repository).exists() else None
    told = SetupAnswer(made, str(left) if left else None, hub.runner_conf(at))
    return Answered(told, _said(told, repository, undo))


def repository_bot(repository: str) -> Bot:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository, re.ASCII):
        raise UsageError(f"{visible(repository, 80)!r} is no repository: name it as OWNER/NAME")
    return client.connect(Step({**Step().environment, "GITHUB_REPOSITORY": repository}))


def agreed(yes: bool, question: str = "  change it?") -> bool:
    """Whether a change is made; without a terminal nobody could be asked."""
    return yes or (sys.stdin.isatty() and click.confirm(question, default=True, err=True))


def _made(at: Place, kept: KeptSettings, yes: bool) -> Iterator[SettingAnswer]:
    before = dict(kept.before)
    for setting in hub.settings(at):
        now = setting.read()
        if hub.holds(now, setting.wanted):
            continue
        asked = _asked(setting, now, setting.wanted, yes)
        if asked.changed:
            # The first one counts, and is written before anything is changed.
            before.setdefault(setting.name, now)
            write_kept(kept.model_copy(update={"before": before}))
            setting.change(setting.wanted)
        yield asked


def _restored(at: Place, kept: KeptSettings, yes: bool) -> Iterator[SettingAnswer]:
    before, known = dict(kept.before), {setting.name: setting for setting in hub.settings(at)}
    for name in reversed(kept.before):
        setting, then = known.get(name), kept.before[name]
        now = setting.read() if setting else None
        if setting and now != then:
            asked = _asked(setting, now, then, yes)
            if asked.changed:
                setting.change(then)
            yield asked
            if not asked.changed:
                continue
        del before[name]
        write_kept(kept.model_copy(update={"before": before}))


def _asked(setting: Setting, now: Json | None, then: Json | None, yes: bool) -> SettingAnswer:
    was, will_be = visible(hub.shown(now, then or {}), 2000), visible(hub.shown(then, now or {}), 2000)
    click.echo(f"{setting.name}\n  is:      {was}\n  will be: {will_be}", err=True)
    return SettingAnswer(setting.name, was, will_be, changed=agreed(yes))


def _said(told: SetupAnswer, repository: str, undo: bool) -> str:
    done, left = (sum(one.changed is which for one in told.changes) for which in (True, False))
    lines = [f"{repository}: nothing to do"] if not told.changes else []
    lines += [f"{repository}: {counted(done, 'setting')} {'restored' if undo else 'changed'}"] if done else []
    lines += [f"{counted(left, 'change')} not made; --yes makes each without a question"] if left else []
    lines += [f"what was there before: {told.before}; --undo restores it"] if told.before and not undo else []
    lines += [f"/etc/kernelgate/runner.conf of the GPU machine:\n{told.runner_conf}"] if not undo else []
    return "\n".join(lines)


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
    if not agreed(yes, "  do it?"):
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
        if agreed(yes, "  do it?"):
            proving.undo(bot, branch, pull)
        else:
            left += 1
    if left:
        return Answered(told, f"{left} not undone; --yes does it without a question", 2)
    return Answered(told, f"{told.repository}: {len(found)} branches removed" if found else "nothing to do")
