"""How the history grows: `python -m benchmarks.history.scale`, in records of 27 cases by 5 processes.

A kept record of an H200 gives the shape: its cases are repeated until there are 27, and its times are drawn anew for
each record. Each record is judged beforehand (the judge's own time is another benchmark's), then added as a file by
`keep.add_record`, as the verb does.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from kernelgate.bench import record
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system.progress import say
from kernelgate.ci.history import database, entry, judging, keep, shown, store, words
from kernelgate.ci.history.entry import CaseEntry, Entry
from kernelgate.ci.history.keep import Archive
from kernelgate.ci.history.shown import Wanted
from kernelgate.ci.judge.policy import Bootstrap, Policy

ROOT = Path(__file__).parent.parent.parent
SHAPE = ROOT / "tests" / "data" / "cards" / "swiglu_slower.json"
CASES = 27
A_SERIES = 1000
"""Records of one environment: the next ones have another driver."""


@click.command()
@click.option("--records", "count", default=5000, show_default=True, type=click.IntRange(100), help="How many to add.")
@click.option("--database", "where", help="A Postgres URL; default: SQLite.")
def main(count: int, where: str | None) -> None:
    """Add so many records one by one, show a series, make the index again, and print what each took."""
    with tempfile.TemporaryDirectory(prefix="kernelgate-scale-") as made:
        folder = Path(made)
        archive = Archive(store.at(made), database.at(where or folder / "index.sqlite"), Policy())
        for line in measured(archive, count, folder / "index.sqlite"):
            click.echo(line)


def measured(archive: Archive, count: int, file: Path) -> Iterator[str]:
    """What each part takes, as lines of a table."""
    seconds = []
    size = 0
    for number, (data, judged) in enumerate(records(archive.policy, count)):
        name = store.name_of(data)
        store.put(archive.store, "judgements", f"{name}-{archive.rules}", entry.to_json(judged))
        begun = time.perf_counter()
        keep.add_record(archive, data, "run.json")
        seconds.append(time.perf_counter() - begun)
        size += len(data)
        if number % 500 == 499:
            say(f"{number + 1} records")
    last = seconds[-min(1000, count) :]
    yield f"| records | {count:,} of {size / count / 1e6:.2f} MB |"
    yield f"| add one without judging, median | {1e3 * np.median(seconds):.1f} ms |"
    yield f"| the same, the last {len(last):,} | {1e3 * np.median(last):.1f} ms |"
    yield f"| the same, 99th percentile | {1e3 * np.quantile(seconds, 0.99):.1f} ms |"
    if file.exists():
        with archive.database.engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        held = file.stat().st_size
        yield f"| SQLite database | {held / 1e6:.0f} MB, {held / count / 1e3:.1f} kB a record |"
    begun = _now()
    with database.reading(archive.database) as connection:
        found = shown.series(connection, Wanted(card="swiglu", case="case_0"))
    yield f"| show one case, {sum(len(one.points) for one in found):,} points | {_since(begun)} |"
    begun = _now()
    with database.reading(archive.database) as connection:
        words.text(shown.series(connection, Wanted(), whole=False))
    yield f"| show {CASES} cases | {_since(begun)} |"
    begun = _now()
    keep.rebuild(archive, say)
    yield f"| rebuild | {_since(begun)} |"


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
