"""The commands of `kernelgate history` that keep, judge, look for changes, search or draw."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import click

from kernelgate.bench.core import files
from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.errors import KernelgateError, RecordError
from kernelgate.bench.system import git, progress
from kernelgate.ci.commands.history import Places, history, of_series, opened
from kernelgate.ci.commands.options import OUTPUT_FOLDER, PATH, Answered, answers, shown
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.github.actions import Step
from kernelgate.ci.history import culprits, database, facts, index, keep, nights, retention
from kernelgate.ci.history import series as measured
from kernelgate.ci.history.database import BrokenIndexError, Database, HistoryIndexError
from kernelgate.ci.history.entry import KeptSession, SeriesEvent
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.series import Wanted
from kernelgate.ci.lab import session_entries
from kernelgate.ci.report import dashboard, dashboard_write

release_option = click.option(
    "--release", help="A tag or commit that is compared with. Default: the default branch's newest tag."
)


def _archive(places: Places, open_index: Callable[[Path | str], Database] = database.at) -> Archive:
    """To be written to, with the index that is opened so."""
    rules, store = places.rules, places.store
    if places.store_at is None and store.folder and not (store.folder.parent / ".gitignore").exists():
        files.write(store.folder.parent / ".gitignore", "*\n")
    return Archive(store, opened(places.index, open_index), rules)


def _current(places: Places) -> Archive:
    """To be written to, its index counted against the store, and brought up to it."""
    archive = _archive(places)
    keep.catch_up(archive, progress.say)
    return archive


@history.command()
@click.argument("records", nargs=-1, required=True, type=PATH)
@answers(facts.AddedRecords)
@click.pass_obj
def add(places: Places, records: tuple[Path, ...]) -> Answered:
    """Keep run records and judge them. What is there already is left alone, so that a call may be repeated.

    Exit codes: 0 all are in the history, 3 some could not be read, which are named.
    """
    archive = _current(places)
    new, failed = 0, dict[str, str]()
    for path in records:
        try:
            new += keep.add_record(archive, files.content(path), str(path))
        except (RecordError, OSError) as error:
            said = f"{path}: cannot be read: {error.strerror}" if isinstance(error, OSError) else str(error)
            if len(records) == 1:
                raise RecordError(said) from None
            failed[str(path)] = said
            progress.say(said)
    _place_commits(archive.database)
    keep.add_sessions(archive, _sessions_of_checkout())
    known = len(records) - new - len(failed)
    text = f"{counted(new, 'record')} added" + (f", {known} known already" if known else "")
    text += f", {len(failed)} not added" if failed else ""
    return Answered(facts.AddedRecords(new, known, failed), text, KernelgateError.exit_code if failed else 0)


@history.command()
@of_series
@answers(facts.ShownChanges, f"Print one object: `changes`, oldest first ({page('history.md')}).")
@click.pass_obj
def changes(places: Places, /, **asked: str | None) -> Answered:
    """Show when times changed on the default branch: suspected by its nights, confirmed or refuted by comparisons of
    both commits, or accepted.
    """
    with database.reading(places.existing) as connection:
        found = nights.of_index(connection, Wanted(**asked))
    named = tuple(replace(case, changes=tuple(map(with_author, case.changes))) for case in found)
    return Answered(facts.ShownChanges(nights.oldest_first(named)), nights.text(named).rstrip())


def with_author(change: facts.Change) -> facts.Change:
    here = Path.cwd()
    if git.toplevel(here) is None or not git.is_here(here, change.commit):
        return change
    author, _, subject = git.checked(here, "log", "-1", "--format=%an%n%s", change.commit).rstrip("\n").partition("\n")
    return replace(change, author=author, subject=subject)


@history.command("tonight")
@answers(facts.NightPlan, f"Print one object: `pairs` and `postponed` ({page('history.md')}).")
@click.pass_obj
def tonight_(places: Places) -> Answered:
    """Print the commands that confirm or refute what is suspected, and find the commits of what is confirmed, within
    the policy's GPU-seconds of a night. Each night has several rounds: call it again once they are done.
    """
    rules = places.rules
    with database.reading(places.existing) as connection:
        found = nights.of_index(connection, Wanted())
        plan = culprits.plan(connection, found, rules, git.default_branch_line(Path.cwd()) or ())
    return Answered(plan, culprits.plan_text(plan, rules))


@history.command("next")
@click.pass_obj
def next_(places: Places) -> None:
    """In a workflow: put out the comparisons that this run is to make, of those that `history tonight` lists.

    The output is pairs: a JSON list of what confirm.yml's matrix reads, empty where nothing is to be measured.
    """
    rules, line = places.rules, git.default_branch_line(Path.cwd()) or ()
    with database.reading(places.existing) as connection:
        plan = culprits.plan(connection, nights.of_index(connection, Wanted()), rules, line, datetime.now(UTC))
        pairs = culprits.of_run(connection, places.store, plan, rules)
    Step().output(pairs=facts.COMPARED.dump_json(pairs).decode() if pairs else "")


@history.command("culprits")
@answers(facts.KnownCulprits, f"Print one object: `culprits` and `searches` ({page('history.md')}).")
@click.option("-o", "--output", type=OUTPUT_FOLDER, help="A folder for that.")
@click.pass_obj
def culprits_(places: Places, output: Path | None) -> Answered:
    """Show which commits made a case slower, as comparisons confirmed it, and what became of each since.

    With -o, `culprits.json` is put there: what `kernelgate step culprits` posts.
    """
    with database.reading(places.existing) as connection:
        found = culprits.of_index(connection, nights.of_index(connection, Wanted()))
    files: dict[Path, str] = {output / "culprits.json": shown(found) + "\n"} if output else {}
    return Answered(found, culprits.text(found), files=files)


@history.command()
@click.option("--if-needed", is_flag=True, help="Leave an index of this version as it is.")
@answers(facts.RebuiltIndex)
@click.pass_obj
def rebuild(places: Places, if_needed: bool) -> Answered:
    """Make the index again from the store, whose records are read and checked, in the place of whatever is there: a
    file that is no index is kept beside it. Others may read meanwhile; if it is ended early, run it again.

    Exit codes: 0 done, 3 something in the store is damaged and was left out, which is named.
    """
    if if_needed:
        with suppress(HistoryIndexError), database.opened(places.index, make=False):
            return Answered("", "")
    lost = Said()
    try:
        archive = _archive(places, partial(database.at, renew=True))
        count = keep.rebuild(archive, lost, _sessions_of_checkout())
    except BrokenIndexError as error:
        progress.say(f"{error}, in its place")
        lost = Said()
        archive = _archive(places, database.replaced)
        count = keep.rebuild(archive, lost, _sessions_of_checkout())
    _place_commits(archive.database)
    made = facts.RebuiltIndex(archive.database.name, count, tuple(lost))
    text = f"{made.index} holds {counted(count, 'measurement')}" + (f"; {len(lost)} left out" if lost else "")
    return Answered(made, text, KernelgateError.exit_code if lost else 0)


class Said(list[str]):
    def __call__(self, text: str) -> None:
        self.append(text)
        progress.say(text)


@history.command()
@answers(facts.VerifiedHistory)
@click.pass_obj
def verify(places: Places) -> Answered:
    """Read and check all that the store has, and count the index against it. Nothing is changed.

    Exit codes: 0 all is whole, 3 something is damaged or missing, which is named.
    """
    archive = Archive(places.store, opened(places.index, partial(database.at, make=False)), places.rules)
    damaged = Said()
    files = keep.verify(archive, damaged)
    with database.reading(archive.database) as connection:
        differs = str(index.difference(archive.store, connection))
    found = facts.VerifiedHistory(files, tuple(damaged), differs)
    text = f"{counted(files, 'file')} whole, {len(damaged)} damaged; the index {differs or 'holds all of them'}"
    return Answered(found, text, KernelgateError.exit_code if damaged or differs else 0)


@history.command()
@click.argument("kind", type=click.Choice(["accepted", "excluded"]))
@click.argument("commit")
@of_series
@click.option("--why", required=True, help="The reason, for whoever reads it.")
@click.option("--by", envvar=["GITHUB_ACTOR", "USER"], required=True, help="Who decided. Default: the user's login.")
@answers(facts.DecidedCases)
@click.pass_obj
def decide(places: Places, /, kind: facts.Decision, commit: str, **options: str) -> Answered:
    """Accept that cases take another time since COMMIT, or let what was measured of COMMIT count for nothing.

    What was accepted is no longer an issue, and its old records need not keep their samples. It is said of all cases
    that the options leave.
    """
    archive, sha = _current(places), git.resolve(Path.cwd(), commit)
    with database.reading(archive.database) as connection:
        cases = measured.cases_at(connection, Wanted(options["card"], options["case"], options["gpu"]), sha)
        about = {"made": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), "who": options["by"], "why": options["why"]}
        events = [SeriesEvent(kind=kind, sha=sha, **about, **asdict(case)) for case in cases]
    for event in events:
        keep.add_event(archive, event)
    return Answered(facts.DecidedCases(kind, sha, cases), f"{kind}: {sha[:12]} in {counted(len(cases), 'case')}")


@history.command()
@release_option
@answers(facts.CondensedRecords)
@click.pass_obj
def condense(places: Places, release: str | None) -> Answered:
    """Drop the samples of records older than 90 days that can decide nothing more. Verdicts stay as they are. If it is
    ended early, run it again.

    Exit codes: 0 done, 3 some records were left as they are, which are named.
    """
    archive = _current(places)
    _, released = git.release(Path.cwd(), release) or ("", ())
    done = retention.condense(archive, frozenset(released), datetime.now(UTC))
    for line in done.left:
        progress.say(line)
    sizes = f": {done.bytes_before / 1e6:,.1f} MB became {done.bytes_after / 1e6:,.1f} MB" if done.condensed else ""
    kept = f"{counted(done.with_every_sample, 'record')} with every sample"
    text = f"{counted(done.condensed, 'record')} condensed{sizes}; {kept}"
    return Answered(done, text, KernelgateError.exit_code if done.left else 0)


@history.command()
@click.option("-o", "--output", type=OUTPUT_FOLDER, required=True, help="A folder.")
@release_option
@click.option("--uplot", type=PATH, help=f"The folder of npm's package uplot ({page('history.md')}).")
@answers(facts.WrittenSite)
@click.pass_obj
def site(places: Places, output: Path, release: str | None, uplot: Path | None) -> Answered:
    """Write the dashboard: pages to open from a folder or to publish. Other files in the folder are left alone."""
    library, rules = dashboard_write.chart_library(uplot), places.rules
    yardstick = git.release(Path.cwd(), release)
    with database.reading(places.existing) as connection:
        shown = dashboard.dashboard(connection, rules, yardstick)
        listed = session_entries.of_index(measured.sessions(connection), rules, progress.say)
        dashboard_write.write(replace(shown, sessions=listed), library, output)
    made = facts.WrittenSite(index=str(output / "index.html"), cases=len(shown.series))
    return Answered(made, f"{made.index}: {counted(made.cases, 'case')}")


def _sessions_of_checkout() -> list[KeptSession]:
    return session_entries.of_checkout(git.root(Path.cwd()), os.environ.get("GITHUB_REPOSITORY", ""), progress.say)


def _place_commits(index_at: Database) -> None:
    with database.reading(index_at) as connection:
        asked = index.unplaced(connection)
    line = git.default_branch_line(Path.cwd()) if asked else None
    if line:
        with database.writing(index_at) as connection:
            index.place(connection, line)
