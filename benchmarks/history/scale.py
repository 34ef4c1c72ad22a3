"""How the history grows: `python -m benchmarks.history.scale`, in records of 27 cases by 5 processes.

A kept record of an H200 gives the shape: its cases are repeated until there are 27, and its times are drawn anew for
each record. Each record is judged beforehand (the judge's own time is another benchmark's), then added as a file by
`keep.add_record`, as the verb does: the first thousand and, once the index holds copies of their rows up to the number
that was asked for (`fill`), the last 500, which are timed. Then 300 series of 1,000 nights join them.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click
import numpy as np

from benchmarks.history import fill
from kernelgate.bench import record
from kernelgate.bench.record import Environment, Run, RunRecord
from kernelgate.bench.system.progress import say
from kernelgate.ci.history import condensed, database, entry, index, judging, keep, nights, recent, store, words
from kernelgate.ci.history.entry import CaseEntry, ComparisonEntry, Entry, PointEntry
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.shown import Wanted
from kernelgate.ci.policy.policy import Bootstrap, Policy
from kernelgate.ci.report import dashboard_load as load
from kernelgate.ci.report import dashboard_write as write

ROOT = Path(__file__).parent.parent.parent
SHAPE = ROOT / "tests" / "data" / "cards" / "swiglu_slower.json"
CASES = 27
A_SERIES = 1000
"""Records of one environment: the next ones have another driver."""
LAST = 500
"""Records that are added to the full index."""
SERIES, NIGHTS = 300, 1000
"""Of the search for changes."""
PINNED = "f" * 40


@click.command()
@click.option("--records", "count", default=100_000, show_default=True, type=click.IntRange(A_SERIES), help="In all.")
@click.option("--database", "where", help="A Postgres URL; default: SQLite.")
def main(count: int, where: str | None) -> None:
    """Fill an index, add to it, show it, and print what each took."""
    with tempfile.TemporaryDirectory(prefix="kernelgate-scale-") as made:
        folder = Path(made)
        archive = Archive(store.at(made), database.at(where or folder / "index.sqlite"), Policy())
        for line in measured(archive, count, folder):
            click.echo(line)


def measured(archive: Archive, count: int, folder: Path) -> Iterator[str]:
    """What each part takes, as lines of a table."""
    made = records(archive.policy, A_SERIES + LAST)
    first = [added(archive, *next(made)) for _ in range(A_SERIES)]
    yield f"| add one of the first {A_SERIES:,}, median | {1e3 * np.median(first):.1f} ms |"
    yield from sizes(archive, next(store.names(archive.store, "records")))
    yield from timed(f"rebuild {A_SERIES:,} records", lambda: keep.rebuild(archive, say))
    with database.writing(archive.database) as connection:
        index.place(connection, [f"{number:040x}" for number in range(A_SERIES)])
    fill.copied(archive.database, count // A_SERIES - 1)
    last = [added(archive, *one) for one in made]
    yield f"| add one to {count:,}, median of {LAST} | {1e3 * np.median(last):.1f} ms |"
    yield f"| the same, 99th percentile | {1e3 * np.quantile(last, 0.99):.1f} ms |"
    held = _bytes(archive, folder)
    yield f"| database | {held / 1e6:.0f} MB, {held / count / 1e3:.1f} kB a record |"
    yield from timed("show one case", lambda: _show(archive, Wanted(card="swiglu", case="case_0")))
    yield from timed(f"show all {CASES} cases", lambda: _show(archive, Wanted()))
    yield from timed(f"site, {count:,} records", lambda: _site(archive, folder / "site"))
    _add_nights(archive)
    yield from timed("changes over 300 series of 1,000 nights", lambda: _changes(archive))


def added(archive: Archive, data: bytes, judged: Entry) -> float:
    """Seconds that one record takes, which was judged before."""
    name = store.name_of(data)
    store.put(archive.store, "judgements", f"{name}-{archive.rules}", entry.to_json(judged))
    begun = time.perf_counter()
    keep.add_record(archive, data, "run.json")
    return time.perf_counter() - begun


def sizes(archive: Archive, name: str) -> Iterator[str]:
    """What a record takes of the store, packed: with its judgement, and without its samples."""
    made = record.from_json(store.get(archive.store, "records", name) or b"", name)
    judged = store.size(archive.store, "judgements", f"{name}-{archive.rules}")
    yield f"| a record with its judgement | {(store.size(archive.store, 'records', name) + judged) / 1e3:.1f} kB |"
    short = condensed.to_json(condensed.of_record(name, made, keep.judgement(archive, name, made), archive.policy))
    own = store.name_of(short)
    store.put(archive.store, "condensed", own, short)
    yield f"| the same, condensed | {store.size(archive.store, 'condensed', own) / 1e3:.1f} kB |"
    store.remove(archive.store, "condensed", own)


def timed(name: str, part: Callable[[], object]) -> Iterator[str]:
    begun = _now()
    part()
    yield f"| {name} | {_since(begun)} |"


def _show(archive: Archive, wanted: Wanted) -> None:
    with database.reading(archive.database) as connection:
        words.text(recent.of_index(connection, wanted))


def _site(archive: Archive, folder: Path) -> None:
    with database.reading(archive.database) as connection:
        write.write(load.dashboard(connection, archive.policy, None), {}, folder)


def _changes(archive: Archive) -> None:
    with database.reading(archive.database) as connection:
        found = nights.of_index(connection, Wanted(card="nights"), archive.policy)
    say(f"{len(found)} cases, {sum(len(one.changes) for one in found)} changes")


def _add_nights(archive: Archive) -> None:
    """300 cases beside a pinned commit in 1,000 nights; every fifth has a step of 1%."""
    rng = np.random.default_rng(7)
    steps = [int(rng.integers(100, 900)) if case % 5 == 0 else NIGHTS for case in range(SERIES)]
    for begin in range(0, NIGHTS, keep.BATCH):
        with database.writing(archive.database) as connection:
            for night in range(begin, begin + keep.BATCH):
                index.add(connection, _night(night, steps, rng))
    with database.writing(archive.database) as connection:
        index.place(connection, [f"{night:039x}f" for night in range(NIGHTS)])


def _night(night: int, steps: Sequence[int], rng: np.random.Generator) -> Entry:
    head, cases = f"{night:039x}f", []
    for case, step in enumerate(steps):
        effect = 0.01 * (night >= step) + float(rng.normal(0, 0.001))
        sides = (("head", head, 100 * np.exp(effect)), (f"commit:{PINNED}", PINNED, 100.0))
        points = tuple(
            PointEntry(side=side, commit=sha, us=float(us), error=0.0005, processes=5, rounds=500)
            for side, sha, us in sides
        )
        beside = ComparisonEntry(base=PINNED, head=head, effect=effect, error=0.0005, spread_pct=0.1, processes=5)
        cases.append(CaseEntry(card="nights", case=f"case_{case}", points=points, comparisons=(beside,)))
    run = Run(head_sha=head, created_at=f"{2023 + night // 360}-{night // 30 % 12 + 1:02}-{night % 28 + 1:02}")
    name = store.name_of(f"night {night}".encode())
    return Entry(name=name, rules="r", run=run, environment=Environment(torch="2.11.0"), cases=tuple(cases))


def _bytes(archive: Archive, folder: Path) -> int:
    with archive.database.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            return int(connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one())
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "index.sqlite").stat().st_size


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begun: tuple[float, float]) -> str:
    """On a machine with other work, a core's own time says more than the clock."""
    wall, cpu = (now - then for now, then in zip(_now(), begun, strict=True))
    return f"{wall:.2f} s, of which {cpu:.2f} s on a core"


def records(policy: Policy, count: int) -> Iterator[tuple[bytes, Entry]]:
    """Records as files, with what a judge would make of them: one is judged, the others differ by a factor."""
    shape = _of_27_cases(record.read(SHAPE))
    judged = judging.judged("", shape, policy.model_copy(update={"bootstrap": Bootstrap(resamples=100)}))
    text = record.to_json(shape)
    rng = np.random.default_rng(1)
    old = (f'"{shape.run.head_sha}"', f'"{shape.run.created_at}"', f'"{shape.environment.device.driver}"')
    for number in range(count):
        new = (f"{number:040x}", f"2026-01-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z")
        changed = text
        for was, now in zip(old, (*new, f"580.{number // A_SERIES}"), strict=True):
            changed = changed.replace(was, f'"{now}"')
        data = changed.encode()
        factors = rng.normal(1, 0.002, CASES).tolist()
        cases = tuple(_moved(*one, new[0]) for one in zip(judged.cases, factors, strict=True))
        run = judged.run.model_copy(update={"head_sha": new[0], "created_at": new[1]})
        device = judged.environment.device.model_copy(update={"driver": f"580.{number // A_SERIES}"})
        where = judged.environment.model_copy(update={"device": device})
        about = {"name": store.name_of(data), "rules": judging.rules_of(policy)}
        yield data, judged.model_copy(update={**about, "run": run, "environment": where, "cases": cases})


def _moved(case: CaseEntry, factor: float, head: str) -> CaseEntry:
    shas = {"head": head}
    points = (
        one.model_copy(update={"us": one.us * factor, "commit": shas.get(one.side, one.commit)}) for one in case.points
    )
    compared = (one.model_copy(update={"head": head}) for one in case.comparisons)
    return case.model_copy(update={"points": tuple(points), "comparisons": tuple(compared)})


def _of_27_cases(made: RunRecord) -> RunRecord:
    """The record with its cases repeated under other names."""
    chosen = list(itertools.islice(itertools.cycle(made.cases), CASES))
    cases = tuple(one.model_copy(update={"id": f"case_{number}"}) for number, one in enumerate(chosen))
    processes = []
    for process in made.processes:
        held = {timing.key: timing for timing in process.timings}
        timings = tuple(
            held[old.key].model_copy(update={"case": new.id})
            for old, new in zip(chosen, cases, strict=True)
            if old.key in held
        )
        processes.append(process.model_copy(update={"timings": timings}))
    return made.model_copy(update={"cases": cases, "processes": tuple(processes), "checks": (), "profile": ()})


if __name__ == "__main__":
    main()
