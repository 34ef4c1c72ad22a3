"""`kernelgate history`: every measurement that was ever made, kept and shown. Needs the extra `history`.

What judges, looks for changes or draws is in history_verbs.py, which is loaded when one of its commands is called: what
is here needs none of it, which takes a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

import click

from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.system import git, progress
from kernelgate.ci.commands.options import PATH, Command, json_option, shown
from kernelgate.ci.history import database, facts, index
from kernelgate.ci.history import series as measured
from kernelgate.ci.history import store as stores
from kernelgate.ci.history.database import Database
from kernelgate.ci.history.entry import moment
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.history.store import Store, StoreError
from kernelgate.ci.policy import policy
from kernelgate.ci.policy.policy import Policy

FOLDER = ".kernelgate/history"
"""In the checkout; git is told to ignore it."""


def of_series(command: Command) -> Command:
    """Gives a command the options that choose series."""
    command = click.option("--gpu", help="A part of the GPU's name, such as h200.")(command)
    command = click.option("--case", help="Written as `kernelgate cards` lists them.")(command)
    return click.option("--card", help="Of this kernel.")(command)


@dataclass(frozen=True)
class Places:
    store_at: str | None
    index_at: str | None
    policy: Path | None

    @property
    def rules(self) -> Policy:
        return policy.load(self.policy)

    @property
    def store(self) -> Store:
        return stores.at(self.store_at or str(git.root(Path.cwd()) / FOLDER))

    @property
    def index(self) -> Path | str:
        if self.index_at is not None:
            return self.index_at if "://" in self.index_at else Path(self.index_at)
        if self.store.folder is None:
            raise UsageError(
                f"the store {self.store.url} is no folder: name a file or a Postgres database with --database"
            )
        return self.store.folder / facts.INDEX_FILE

    @property
    def existing(self) -> Database:
        """To be read; a history that nobody has begun is not begun by looking at it."""
        where = self.index
        if isinstance(where, Path) and not where.exists():
            again = "`kernelgate history rebuild` makes it from the store, `kernelgate history add RECORD` begins one"
            raise KernelgateError(f"there is no history at {where}: {again}")
        found = opened(where, partial(database.at, make=False))
        if self.store_at or (self.store.folder and self.store.folder.exists()):
            try:
                with database.reading(found) as connection:
                    if differs := str(index.difference(self.store, connection)):
                        progress.say(f"the index {found.name} {differs}: `kernelgate history rebuild` makes it again")
            except StoreError as error:
                progress.say(f"the index was not counted against the store: {error}")
        return found


def opened(index: Path | str, open_index: Callable[[Path | str], Database]) -> Database:
    found = open_index(index)
    click.get_current_context().call_on_close(found.engine.dispose)
    return found


class History(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        import_module(f"{__package__}.history_verbs")  # which puts its commands into this group
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands:
            self.list_commands(ctx)
        return super().get_command(ctx, cmd_name)


@click.group(cls=History)
@click.option("--store", help=f"A folder, or an object store such as s3://bucket/history. Default: {FOLDER}.")
@click.option("--database", help="The index: a SQLite file, or postgresql://USER@HOST/NAME. Default: in the store.")
@click.option("--policy", "policy_file", type=PATH, help="Default: .ci/kernelgate.toml.")
@click.pass_context
def history(context: click.Context, store: str | None, database: str | None, policy_file: Path | None) -> None:
    """Keep every measurement, and show how each kernel's speed has moved.

    KERNELGATE_HISTORY_STORE and KERNELGATE_HISTORY_DATABASE stand for the options.
    """
    context.obj = Places(store, database, policy_file)


@history.command()
@of_series
@click.option("--since", help="What was measured from this day on, such as 2026-08-01.")
@json_option(facts.ShownHistory, f"Print one object with all points and comparisons ({page('history.md')}).")
@click.pass_obj
def show(places: Places, /, since: str | None, as_json: bool, **asked: str | None) -> None:
    """Show how times have moved: each series in a line, or each commit of one that is asked for."""
    wanted = Wanted(**asked, since=(moment(since) or "")[:10] or None)
    if since is not None and wanted.since is None:
        raise UsageError(f"--since {since!r} is no date: give one such as 2026-08-01")
    with database.reading(places.existing) as connection:
        if as_json:
            text = shown(facts.ShownHistory(measured.series(connection, wanted)))
        else:
            text = measured.text(connection, wanted).rstrip()
    click.echo(text)


@history.command()
@json_option(facts.ExportedHistory, "It always is one JSON object.")
@click.pass_obj
def export(places: Places, as_json: bool) -> None:  # noqa: ARG001
    """Print all points, comparisons, events, costs and sessions for other tools, as one JSON object."""
    with database.reading(places.existing) as connection:
        for piece in measured.as_json(connection):
            click.echo(piece, nl=False)
