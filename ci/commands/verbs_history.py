"""`kernelgate history`: every measurement that was ever made, kept and shown. Needs the extra `history`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.ci.commands import history_places
from kernelgate.ci.commands.history_places import FOLDER, Places
from kernelgate.ci.commands.options import step_answer

as_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object (docs/schemas/).")


@click.group(cls=history_places.HistoryGroup)
@click.option("--store", help=f"A folder, or an object store such as s3://bucket/history. Default: {FOLDER}.")
@click.option("--database", help="The index: a SQLite file, or postgresql://USER@HOST/NAME. Default: in the store.")
@click.option("--policy", "policy_file", type=click.Path(path_type=Path), help="Default: .ci/kernelgate.toml.")
@click.pass_context
def history(context: click.Context, store: str | None, database: str | None, policy_file: Path | None) -> None:
    """Keep every measurement, and show how each kernel's speed has moved.

    KERNELGATE_HISTORY_STORE and KERNELGATE_HISTORY_DATABASE stand for the options.
    """
    context.obj = Places(store, database, policy_file)


@history.command()
@click.argument("records", nargs=-1, required=True, type=click.Path(path_type=Path))
@as_json_option
@click.pass_obj
def add(places: Places, records: tuple[Path, ...], as_json: bool) -> int:
    """Keep run records and judge them. What is there already is left alone, so that a call may be repeated.

    Exit codes: 0 all are in the history, 3 some could not be read, which are named.
    """
    from kernelgate.bench.system import progress
    from kernelgate.ci.document import formatting
    from kernelgate.ci.history import keep
    from kernelgate.ci.history.answer import AddedRecords

    archive = history_places.archive(places)
    new, failed = 0, dict[str, str]()
    for path in records:
        try:
            new += keep.add_record(archive, _bytes(path), str(path))
        except KernelgateError as error:
            if len(records) == 1 or not isinstance(error, _unreadable()):
                raise
            failed[str(path)] = str(error)
            progress.say(str(error))
    history_places.place_commits(archive.database)
    history_places.add_sessions(archive)
    known = len(records) - new - len(failed)
    if as_json:
        click.echo(AddedRecords(added=new, known=known, not_added=failed).shown())
        return KernelgateError.exit_code if failed else 0
    parts = [f"{formatting.counted(new, 'record')} added"]
    parts += [f"{known} known already"] if known else []
    parts += [f"{len(failed)} not added"] if failed else []
    click.echo(", ".join(parts))
    return KernelgateError.exit_code if failed else 0


@history.command()
@click.option("--card", help="Of this kernel.")
@click.option("--case", "case_id", help="Written as `kernelgate cards` lists them.")
@click.option("--gpu", help="A part of the GPU's name, such as h200.")
@click.option("--since", help="What was measured from this day on, such as 2026-08-01.")
@click.option("--json", "as_json", is_flag=True, help="One object with all points and comparisons (docs/history.md).")
@click.pass_obj
def show(
    places: Places, card: str | None, case_id: str | None, gpu: str | None, since: str | None, as_json: bool
) -> None:
    """Show how times have moved: each series in a line, or each commit of one that is asked for."""
    from kernelgate.ci.history import database, recent, shown, words
    from kernelgate.ci.history.entry import moment

    begin = moment(since)
    if since is not None and begin is None:
        raise UsageError(f"--since {since!r} is no date: give one such as 2026-08-01")
    with database.reading(history_places.existing(places)) as connection:
        wanted = shown.Wanted(card, case_id, gpu, begin)
        if as_json:
            said = shown.answer(shown.series(connection, wanted)).shown()
        else:
            said = words.text(recent.of_index(connection, wanted)).rstrip()
    click.echo(said)


@history.command()
@click.option("--card", help="Of this kernel.")
@click.option("--case", "case_id", help="Written as `kernelgate cards` lists them.")
@click.option("--gpu", help="A part of the GPU's name, such as h200.")
@click.option("--json", "as_json", is_flag=True, help="One object: `changes`, oldest first (docs/history.md).")
@click.pass_obj
def changes(places: Places, card: str | None, case_id: str | None, gpu: str | None, as_json: bool) -> None:
    """Show when times changed on the default branch: suspected by its nights, confirmed or refuted by comparisons of
    both commits, or accepted.
    """
    from kernelgate.ci.history import database, nights
    from kernelgate.ci.history.shown import Wanted
    from kernelgate.ci.policy import policy

    rules = policy.load(places.policy)
    with database.reading(history_places.existing(places)) as connection:
        found = nights.of_index(connection, Wanted(card, case_id, gpu), rules)
    click.echo(nights.answer(found).shown() if as_json else nights.text(found).rstrip())


@history.command()
@click.option("--json", "as_json", is_flag=True, help="One object: `pairs` and `postponed` (docs/history.md).")
@click.pass_obj
def tonight(places: Places, as_json: bool) -> None:
    """Print the commands that confirm or refute what is suspected, within the policy's GPU-seconds of a night."""
    from kernelgate.ci.history import database, nights, tonight
    from kernelgate.ci.history.shown import Wanted
    from kernelgate.ci.policy import policy

    rules = policy.load(places.policy)
    with database.reading(history_places.existing(places)) as connection:
        found = tonight.of_index(connection, nights.of_index(connection, Wanted(), rules), rules)
    click.echo(tonight.answer(found).shown() if as_json else tonight.text(found, rules))


@history.command("next")
@step_answer
@click.pass_obj
def next_(places: Places) -> None:
    """In a workflow: put out the comparison that this run is to make, of those that `history tonight` lists.

    The outputs are gpu (a label of the policy; empty where nothing is to be measured), target, base_sha, head_sha,
    cases and processes.
    """
    from datetime import UTC, datetime

    from kernelgate.bench.system import git
    from kernelgate.ci.github.actions import Step
    from kernelgate.ci.history import database, next_pair, nights
    from kernelgate.ci.history.shown import Wanted
    from kernelgate.ci.policy import policy

    rules, kept = policy.load(places.policy), history_places.store_of(places)
    with database.reading(history_places.existing(places)) as connection:
        found = nights.of_index(connection, Wanted(), rules)
        night = next_pair.ThisNight(datetime.now(UTC), git.default_branch_line(Path.cwd()) or ())
        chosen = next_pair.of_index(connection, kept, found, rules, night)
    Step().output(**next_pair.outputs(chosen))


@history.command()
@click.option("--json", "as_json", is_flag=True, help="One object: `culprits` and `searches` (docs/history.md).")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A folder for that, and for the comparisons.")
@click.pass_obj
def culprits(places: Places, as_json: bool, output: Path | None) -> None:
    """Show which commits made a case slower, as comparisons confirmed it, and what became of each since.

    With -o, `culprits.json` and the record of each comparison are put there: what `kernelgate step culprits` posts.
    """
    from kernelgate.bench.core import files
    from kernelgate.ci.history import culprits, database, nights, store
    from kernelgate.ci.history.shown import Wanted
    from kernelgate.ci.policy import policy

    rules, kept = policy.load(places.policy), history_places.store_of(places)
    with database.reading(history_places.existing(places)) as connection:
        found = culprits.of_index(connection, nights.of_index(connection, Wanted(), rules), rules)
    said = culprits.answer(found).shown()
    if output:
        output.mkdir(parents=True, exist_ok=True)
        files.write(output / "culprits.json", said + "\n")
        for name in {case.record for one in found.culprits for case in one.cases if case.record}:
            if (data := store.get(kept, "records", name)) is not None:
                (output / f"{name}.run.json").write_bytes(data)
    click.echo(said if as_json else culprits.text(found))


@history.command()
@as_json_option
@click.pass_obj
def rebuild(places: Places, as_json: bool) -> None:
    """Make the index again from the store. Others may add and read meanwhile; if it is ended early, run it again."""
    from kernelgate.bench.system import progress
    from kernelgate.ci.document import formatting
    from kernelgate.ci.history import keep
    from kernelgate.ci.history.answer import RebuiltIndex

    archive = history_places.archive(places)
    count = keep.rebuild(archive, progress.say)
    history_places.place_commits(archive.database)
    history_places.rebuild_sessions(archive)
    made = RebuiltIndex(index=archive.database.name, measurements=count)
    said = f"{made.index} holds {formatting.counted(count, 'measurement')}"
    click.echo(made.shown() if as_json else said)


@history.command()
@click.option("--release", help="A tag or commit that is compared with. Default: the default branch's newest tag.")
@as_json_option
@click.pass_obj
def condense(places: Places, release: str | None, as_json: bool) -> int:
    """Drop the samples of old records that can decide nothing more, as `[retention]` of the policy says. Verdicts stay
    as they are. If it is ended early, run it again.

    Exit codes: 0 done, 3 some records were left as they are, which are named.
    """
    from datetime import UTC, datetime

    from kernelgate.bench.system import git, progress
    from kernelgate.ci.document import formatting
    from kernelgate.ci.history import retention
    from kernelgate.ci.history.answer import CondensedRecords

    archive = history_places.archive(places)
    left: list[str] = []
    _, released = git.release(Path.cwd(), release) or ("", ())
    done = retention.condense(archive, frozenset(released), datetime.now(UTC), left.append)
    for line in left:
        progress.say(line)
    made = CondensedRecords(
        condensed=done.records,
        bytes_before=done.before,
        bytes_after=done.after,
        with_every_sample=done.raw,
        left=tuple(left),
    )
    sizes = f": {done.before / 1e6:,.1f} MB became {done.after / 1e6:,.1f} MB" if done.records else ""
    kept = f"{formatting.counted(done.raw, 'record')} with every sample"
    said = f"{formatting.counted(done.records, 'record')} condensed{sizes}; {kept}"
    click.echo(made.shown() if as_json else said)
    return KernelgateError.exit_code if left else 0


@history.command()
@click.option("--format", "form", type=click.Choice(["json", "parquet"]), default="json", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="A folder, for Parquet. JSON is printed.")
@click.option("--json", "as_json", is_flag=True, help="With Parquet: one JSON object, the `files` that were written.")
@click.pass_obj
def export(places: Places, form: Literal["json", "parquet"], output: Path | None, as_json: bool) -> None:
    """Write all points, comparisons, events, costs and sessions for other tools: one JSON object, or Parquet files."""
    from kernelgate.ci.history import database, export
    from kernelgate.ci.history.answer import ExportedFiles

    if (form == "parquet") != (output is not None):
        raise UsageError("--format parquet needs -o and a folder; --format json prints, and takes no -o")
    with database.reading(history_places.existing(places)) as connection:
        if output is None:
            for piece in export.as_json(connection):
                click.echo(piece, nl=False)
        else:
            files = tuple(map(str, export.as_parquet(connection, output)))
            click.echo(ExportedFiles(files=files).shown() if as_json else "\n".join(files))


@history.command("import")
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--gpu", help="What it was measured on, where the files do not say it.")
@click.option("--commit", help="Of a file in Bencher Metric Format: what was measured.")
@click.option("--date", help="Of a file in Bencher Metric Format: when, such as 2026-08-01T12:00.")
@as_json_option
@click.pass_obj
def import_(
    places: Places, results: Path, gpu: str | None, commit: str | None, date: str | None, as_json: bool
) -> None:
    """Bring the past of another tool: github-action-benchmark's data.js, asv's folder of results, or a file in Bencher
    Metric Format. Only times are taken. What is there already is left alone.

    Of another history: the JSON of its `export`, of which the sessions are taken. Of an earlier kernelgate:
    .ci/spreads.json, which then can be removed.
    """
    from kernelgate.ci.document import formatting
    from kernelgate.ci.history import foreign, keep, sessions
    from kernelgate.ci.history.answer import ImportedTimes

    carried = sessions.of_export(results)
    if carried is not None:
        news = history_places.keep_sessions(history_places.archive(places), carried)
        made = ImportedTimes(sessions=len(carried), new_sessions=news)
        whole = "measurements come by `history add`, or with their store"
        said = f"{formatting.counted(made.sessions, 'session')}, {news} new; {whole}"
        click.echo(made.shown() if as_json else said)
        return
    found = foreign.read(results, foreign.Told(gpu, commit, date))
    archive = history_places.archive(places)
    new = sum(keep.add_entry(archive, one) for one in found.entries)
    history_places.place_commits(archive.database)
    if as_json:
        made = ImportedTimes(
            runs=len(found.entries), new=new, times=found.times, left_out=found.left_out, spreads=found.spreads
        )
        click.echo(made.shown())
        return
    if found.spreads:
        again = "" if new else ", known already"
        click.echo(f"spreads of {formatting.counted(found.spreads, 'case')}{again}")
        return
    of = f"{formatting.counted(found.times, 'time')} of {formatting.counted(len(found.entries), 'run')}"
    out = f"; {formatting.counted(found.left_out, 'result')} left out: no times, or failed" if found.left_out else ""
    click.echo(f"{of}, {formatting.counted(new, 'run')} new{out}")


@history.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="A folder.")
@click.option("--release", help="A tag or commit that is compared with. Default: the default branch's newest tag.")
@click.option(
    "--uplot", type=click.Path(path_type=Path), help="The folder of npm's package uplot (docs/history-site.md)."
)
@as_json_option
@click.pass_obj
def site(places: Places, output: Path, release: str | None, uplot: Path | None, as_json: bool) -> None:
    """Write the dashboard: pages to open from a folder or to publish. Other files in the folder are left alone."""
    from dataclasses import replace

    from kernelgate.bench.core import files
    from kernelgate.bench.system import git
    from kernelgate.ci.document import formatting
    from kernelgate.ci.history import database, sessions
    from kernelgate.ci.history.answer import WrittenSite
    from kernelgate.ci.lab import session_entries
    from kernelgate.ci.policy import policy
    from kernelgate.ci.report import dashboard_load, dashboard_write

    library, rules = dashboard_write.chart_library(uplot), policy.load(places.policy)
    files.try_folder(output)
    yardstick = git.release(Path.cwd(), release)
    index = history_places.existing(places)
    with database.reading(index) as connection:
        shown = dashboard_load.dashboard(connection, rules, yardstick)
    listed = session_entries.of_index(sessions.listed(index), rules)
    dashboard_write.write(replace(shown, sessions=listed), library, output)
    made = WrittenSite(index=str(output / "index.html"), cases=len(shown.series))
    click.echo(made.shown() if as_json else f"{made.index}: {formatting.counted(made.cases, 'case')}")


# ---- where it lies ---------------------------------------------------------------------------------------------------


def _unreadable() -> tuple[type[KernelgateError], ...]:
    """What is wrong with one record alone."""
    from kernelgate.bench.core.errors import RecordError

    return (RecordError,)


def _bytes(path: Path) -> bytes:
    from kernelgate.bench.core.errors import RecordError

    try:
        return path.read_bytes()
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror}") from None
