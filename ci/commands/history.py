"""`kernelgate history`: every measurement that was ever made, kept and shown. Needs the extra `history`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, RecordError, UsageError
from kernelgate.bench.system import git, progress
from kernelgate.ci.commands.options import PATH, answers, step_answer
from kernelgate.ci.document import answer, formatting
from kernelgate.ci.history.facts import (
    AddedRecords,
    CondensedRecords,
    ExportedHistory,
    ImportedSessions,
    KnownCulprits,
    NightPlan,
    RebuiltIndex,
    ShownChanges,
    ShownHistory,
    WrittenSite,
)
from kernelgate.ci.policy import policy

if TYPE_CHECKING:
    from kernelgate.ci.history.database import Database
    from kernelgate.ci.history.keep import Archive
    from kernelgate.ci.history.sessions import KeptSession
    from kernelgate.ci.history.store import Store

EXTRA = {"fsspec", "psycopg", "sqlalchemy", "zstandard"}
FOLDER = ".kernelgate/history"
"""In the checkout; git is told to ignore it."""

card_option = click.option("--card", help="Of this kernel.")
case_option = click.option("--case", "case_id", help="Written as `kernelgate cards` lists them.")
gpu_option = click.option("--gpu", help="A part of the GPU's name, such as h200.")
release_option = click.option(
    "--release", help="A tag or commit that is compared with. Default: the default branch's newest tag."
)


@dataclass(frozen=True)
class Places:
    """Where the user has the history; None stands for the default."""

    store: str | None
    database: str | None
    policy: Path | None


class HistoryGroup(click.Group):
    """Names the extra where what it brings is missing."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in EXTRA:
                raise
            needed = f"the history needs {error.name}, which is not installed"
            raise KernelgateError(f"{needed}: pip install 'kernelgate[history]'") from None


@click.group(cls=HistoryGroup)
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
@click.argument("records", nargs=-1, required=True, type=PATH)
@answers(AddedRecords)
@click.pass_obj
def add(places: Places, records: tuple[Path, ...], as_json: bool) -> int:
    """Keep run records and judge them. What is there already is left alone, so that a call may be repeated.

    Exit codes: 0 all are in the history, 3 some could not be read, which are named.
    """
    from kernelgate.ci.history import keep

    archive = _archive(places)
    new, failed = 0, dict[str, str]()
    for path in records:
        try:
            new += keep.add_record(archive, _bytes(path), str(path))
        except RecordError as error:
            if len(records) == 1:
                raise
            failed[str(path)] = str(error)
            progress.say(str(error))
    _place_commits(archive.database)
    _keep_sessions(archive, _sessions_of_checkout())
    known = len(records) - new - len(failed)
    parts = [f"{formatting.counted(new, 'record')} added"]
    parts += [f"{known} known already"] if known else []
    parts += [f"{len(failed)} not added"] if failed else []
    click.echo(answer.shown(AddedRecords(new, known, failed)) if as_json else ", ".join(parts))
    return KernelgateError.exit_code if failed else 0


@history.command()
@card_option
@case_option
@gpu_option
@click.option("--since", help="What was measured from this day on, such as 2026-08-01.")
@answers(ShownHistory, "Print one object with all points and comparisons (docs/history.md).")
@click.pass_obj
def show(
    places: Places, card: str | None, case_id: str | None, gpu: str | None, since: str | None, as_json: bool
) -> None:
    """Show how times have moved: each series in a line, or each commit of one that is asked for."""
    from kernelgate.ci.history import database, recent, series
    from kernelgate.ci.history.entry import moment

    begin = moment(since)
    if since is not None and begin is None:
        raise UsageError(f"--since {since!r} is no date: give one such as 2026-08-01")
    wanted = series.Wanted(card, case_id, gpu, begin)
    with database.reading(_existing(places)) as connection:
        if as_json:
            text = answer.shown(ShownHistory(series.series(connection, wanted)))
        else:
            text = recent.text(connection, wanted).rstrip()
    click.echo(text)


@history.command()
@card_option
@case_option
@gpu_option
@answers(ShownChanges, "Print one object: `changes`, oldest first (docs/history.md).")
@click.pass_obj
def changes(places: Places, card: str | None, case_id: str | None, gpu: str | None, as_json: bool) -> None:
    """Show when times changed on the default branch: suspected by its nights, confirmed or refuted by comparisons of
    both commits, or accepted.
    """
    from kernelgate.ci.history import database, nights
    from kernelgate.ci.history.series import Wanted

    with database.reading(_existing(places)) as connection:
        found = nights.of_index(connection, Wanted(card, case_id, gpu))
    shown = ShownChanges(nights.oldest_first(found))
    click.echo(answer.shown(shown) if as_json else nights.text(found).rstrip())


@history.command()
@answers(NightPlan, "Print one object: `pairs` and `postponed` (docs/history.md).")
@click.pass_obj
def tonight(places: Places, as_json: bool) -> None:
    """Print the commands that confirm or refute what is suspected, within the policy's GPU-seconds of a night."""
    from kernelgate.ci.history import database, nights, tonight
    from kernelgate.ci.history.series import Wanted

    rules = policy.load(places.policy)
    with database.reading(_existing(places)) as connection:
        plan = tonight.of_index(connection, nights.of_index(connection, Wanted()), rules)
    click.echo(answer.shown(plan) if as_json else tonight.text(plan, rules))


@history.command("next")
@step_answer
@click.pass_obj
def next_(places: Places) -> None:
    """In a workflow: put out the comparison that this run is to make, of those that `history tonight` lists.

    The outputs are gpu (a label of the policy; empty where nothing is to be measured), target, base_sha, head_sha,
    cases and processes.
    """
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.history import database, nights, tonight
    from kernelgate.ci.history.series import Wanted

    rules, store = policy.load(places.policy), _store(places)
    with database.reading(_existing(places)) as connection:
        found = nights.of_index(connection, Wanted())
        night = tonight.ThisNight(datetime.now(UTC), git.default_branch_line(Path.cwd()) or ())
        chosen = tonight.next_pair(connection, store, found, rules, night)
    Step().output(**tonight.outputs(chosen))


@history.command()
@answers(KnownCulprits, "Print one object: `culprits` and `searches` (docs/history.md).")
@click.option("-o", "--output", type=PATH, help="A folder for that, and for the comparisons.")
@click.pass_obj
def culprits(places: Places, as_json: bool, output: Path | None) -> None:
    """Show which commits made a case slower, as comparisons confirmed it, and what became of each since.

    With -o, `culprits.json` and the record of each comparison are put there: what `kernelgate step culprits` posts.
    """
    from kernelgate.ci.history import culprits, database, nights, store
    from kernelgate.ci.history.series import Wanted

    kept = _store(places)
    with database.reading(_existing(places)) as connection:
        found = culprits.of_index(connection, nights.of_index(connection, Wanted()))
    shown = answer.shown(found)
    if output:
        output.mkdir(parents=True, exist_ok=True)
        files.write(output / "culprits.json", shown + "\n")
        for name in {case.record for one in found.culprits for case in one.cases if case.record}:
            if (data := store.get(kept, "records", name)) is not None:
                (output / f"{name}.run.json").write_bytes(data)
    click.echo(shown if as_json else culprits.text(found))


@history.command()
@click.option("--if-needed", is_flag=True, help="Leave an index of this version as it is.")
@answers(RebuiltIndex)
@click.pass_obj
def rebuild(places: Places, if_needed: bool, as_json: bool) -> None:
    """Make the index again from the store. Others may add and read meanwhile; if it is ended early, run it again."""
    from kernelgate.ci.history import database, keep, sessions
    from kernelgate.ci.lab import session_entries

    if if_needed and database.is_there(_index(places)):
        return
    archive = _archive(places, renew=True)
    count = keep.rebuild(archive, progress.say)
    _place_commits(archive.database)
    read = session_entries.entry
    sessions.rebuild(archive, _sessions_of_checkout(), lambda one: read(one, archive.policy), progress.say)
    made = RebuiltIndex(index=archive.database.name, measurements=count)
    text = f"{made.index} holds {formatting.counted(count, 'measurement')}"
    click.echo(answer.shown(made) if as_json else text)


@history.command()
@release_option
@answers(CondensedRecords)
@click.pass_obj
def condense(places: Places, release: str | None, as_json: bool) -> int:
    """Drop the samples of old records that can decide nothing more, as `[retention]` of the policy says. Verdicts stay
    as they are. If it is ended early, run it again.

    Exit codes: 0 done, 3 some records were left as they are, which are named.
    """
    from kernelgate.ci.history import retention

    archive = _archive(places)
    _, released = git.release(Path.cwd(), release) or ("", ())
    done = retention.condense(archive, frozenset(released), datetime.now(UTC))
    for line in done.left:
        progress.say(line)
    sizes = f": {done.bytes_before / 1e6:,.1f} MB became {done.bytes_after / 1e6:,.1f} MB" if done.condensed else ""
    kept = f"{formatting.counted(done.with_every_sample, 'record')} with every sample"
    text = f"{formatting.counted(done.condensed, 'record')} condensed{sizes}; {kept}"
    click.echo(answer.shown(done) if as_json else text)
    return KernelgateError.exit_code if done.left else 0


@history.command()
@answers(ExportedHistory, "It always is one JSON object.")
@click.pass_obj
def export(places: Places, as_json: bool) -> None:  # noqa: ARG001
    """Print all points, comparisons, events, costs and sessions for other tools, as one JSON object."""
    from kernelgate.ci.history import database, series

    with database.reading(_existing(places)) as connection:
        for piece in series.as_json(connection):
            click.echo(piece, nl=False)


@history.command("import")
@click.argument("exported", type=PATH)
@answers(ImportedSessions)
@click.pass_obj
def import_(places: Places, exported: Path, as_json: bool) -> None:
    """Take the sessions from the file of another history's `export`. What is there already is left alone."""
    from kernelgate.ci.history import sessions

    carried = sessions.of_export(exported)
    made = ImportedSessions(len(carried), _keep_sessions(_archive(places), carried))
    whole = "measurements come by `history add`, or with their store"
    text = f"{formatting.counted(made.sessions, 'session')}, {made.new_sessions} new; {whole}"
    click.echo(answer.shown(made) if as_json else text)


@history.command()
@click.option("-o", "--output", type=PATH, required=True, help="A folder.")
@release_option
@click.option("--uplot", type=PATH, help="The folder of npm's package uplot (docs/history-site.md).")
@answers(WrittenSite)
@click.pass_obj
def site(places: Places, output: Path, release: str | None, uplot: Path | None, as_json: bool) -> None:
    """Write the dashboard: pages to open from a folder or to publish. Other files in the folder are left alone."""
    from kernelgate.ci.history import database, sessions
    from kernelgate.ci.lab import session_entries
    from kernelgate.ci.report import dashboard_load, dashboard_write

    library, rules = dashboard_write.chart_library(uplot), policy.load(places.policy)
    files.try_folder(output)
    yardstick = git.release(Path.cwd(), release)
    index = _existing(places)
    with database.reading(index) as connection:
        shown = dashboard_load.dashboard(connection, rules, yardstick)
    listed = session_entries.of_index(sessions.listed(index), rules)
    dashboard_write.write(replace(shown, sessions=listed), library, output)
    made = WrittenSite(index=str(output / "index.html"), cases=len(shown.series))
    click.echo(answer.shown(made) if as_json else f"{made.index}: {formatting.counted(made.cases, 'case')}")


# ---- where it lies ---------------------------------------------------------------------------------------------------


def _archive(places: Places, renew: bool = False) -> Archive:
    """To be written to. `renew`: an index of another version is made anew."""
    from kernelgate.ci.history.keep import Archive

    rules, store = policy.load(places.policy), _store(places)
    if places.store is None and store.folder and not (store.folder.parent / ".gitignore").exists():
        files.write(store.folder.parent / ".gitignore", "*\n")
    return Archive(store, _opened(_index(places), renew), rules)


def _existing(places: Places) -> Database:
    """To be read; a history that nobody has begun is not begun by looking at it."""
    index = _index(places)
    if isinstance(index, Path) and not index.exists():
        again = "`kernelgate history rebuild` makes it from the store, `kernelgate history add RECORD` begins one"
        raise KernelgateError(f"there is no history at {index}: {again}")
    return _opened(index)


def _opened(index: Path | str, renew: bool = False) -> Database:
    """Until the command has ended."""
    from kernelgate.ci.history import database

    found = database.at(index, renew)
    click.get_current_context().call_on_close(found.engine.dispose)
    return found


def _store(places: Places) -> Store:
    from kernelgate.ci.history import store

    return store.at(places.store or str(git.root(Path.cwd()) / FOLDER))


def _index(places: Places) -> Path | str:
    from kernelgate.ci.pipeline import prior

    if places.database is not None:
        return places.database if "://" in places.database else Path(places.database)
    store = _store(places)
    if store.folder is None:
        raise UsageError(f"the store {store.url} is no folder: name a file or a Postgres database with --database")
    return store.folder / prior.INDEX


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None


def _keep_sessions(archive: Archive, found: Iterable[KeptSession]) -> int:
    """How many of them are new to the history, or went on."""
    from kernelgate.ci.history import sessions
    from kernelgate.ci.lab import session_entries

    return sessions.keep(archive, found, lambda one: session_entries.entry(one, archive.policy), progress.say)


def _sessions_of_checkout() -> list[KeptSession]:
    from kernelgate.ci.lab import session_entries

    return session_entries.of_checkout(git.root(Path.cwd()), os.environ.get("GITHUB_REPOSITORY", ""), progress.say)


def _place_commits(index_at: Database) -> None:
    """The checkout knows in which order commits came to the default branch."""
    from kernelgate.ci.history import database, index

    with database.reading(index_at) as connection:
        asked = index.unplaced(connection)
    line = git.default_branch_line(Path.cwd()) if asked else None
    if line:
        with database.writing(index_at) as connection:
            index.place(connection, line)
