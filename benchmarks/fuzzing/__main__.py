"""How many planted bugs are caught: `python -m benchmarks.fuzzing --device cpu -o FILE`, then `… table FILE …`.

A run goes on where an earlier one with the same file ended. On two cores the CPU's bugs take about 20 minutes.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from benchmarks.fuzzing import bug as planting
from benchmarks.fuzzing import library
from benchmarks.fuzzing.bug import ROOT, Bug, Device
from benchmarks.fuzzing.detectors import DETECTORS, BugResult, BugResults, DetectorName, measure
from benchmarks.tables import markdown, put
from kernelgate.bench.core import files
from kernelgate.bench.system import environment
from kernelgate.bench.system.progress import say

DOCUMENT = ROOT / "docs" / "fuzzing.md"
LATENT = ROOT / "benchmarks" / "results" / "fuzzing_latent.json"
"""How many calls of each latent bug were made, and of how many a bit differed."""
DEFAULT: dict[Device, tuple[DetectorName, ...]] = {
    "cpu": ("fuzz", "accuracy"),
    "cuda": ("fuzz", "memcheck", "racecheck", "accuracy"),
}
SHORT = {"cpu": "CPU", "cuda": "GPU"}


@click.group(invoke_without_command=True)
@click.option("--kernel", "kernels", multiple=True, type=click.Choice(library.KERNELS), help="Default: all.")
@click.option("--bug", "names", multiple=True, help="A bug's name or id; default: all.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--detector", "detectors", multiple=True, type=click.Choice(list(DETECTORS)), help="In order.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("out/fuzzing.json"), show_default=True)
@click.pass_context
def main(
    context: click.Context,
    kernels: tuple[str, ...],
    names: tuple[str, ...],
    device: Device,
    detectors: tuple[DetectorName, ...],
    output: Path,
) -> None:
    """Plant each bug in a copy of its kernel's repository, build it, and see what catches it."""
    if context.invoked_subcommand:
        return
    try:
        bugs = library.select(device, kernels, names)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if output.exists():
        measured = BugResults.model_validate_json(output.read_bytes())
    else:
        machine = environment.describe()
        measured = BugResults(machine=f"{machine.device.name}, {planting.cores()} cores, torch {machine.torch}")
    left = [bug for bug in bugs if measured.of(bug.id, device) is None]
    say(f"{len(left)} of {len(bugs)} bugs are left to be tried on the {device}")
    with tempfile.TemporaryDirectory(prefix="kernelgate-bugs-") as folder:
        for result in measure(left, device, Path(folder), detectors or DEFAULT[device]):
            measured = measured.model_copy(update={"results": (*measured.results, result)})
            # Whole or not at all: a run may be ended at any moment.
            files.write(output, measured.model_dump_json(indent=1) + "\n")
            say(f"{len(measured.results)}: {result.bug}: {_outcome(result)}, {result.seconds:.1f} s {result.message}")


@main.command()
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def table(paths: Sequence[Path]) -> None:
    """Write what came of all bugs into docs/fuzzing.md."""
    text = tables([BugResults.model_validate_json(path.read_bytes()) for path in paths])
    put(DOCUMENT, "fuzz", text)
    click.echo(text)


# ---- tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    bug: Bug
    result: BugResult

    @property
    def on(self) -> str:
        return SHORT[self.result.device]

    @property
    def caught(self) -> str:
        return self.result.caught_by or ("undecided" if self.result.undecided else "–")

    @property
    def seconds(self) -> str:
        return f"{self.result.seconds:.1f}"


def tables(measured: Sequence[BugResults]) -> str:
    """Shares by kernel, survivors, equivalent changes, and every bug; of results whose bug is still in the library."""
    rows = list(_rows(measured))
    bugs = [row for row in rows if row.bug.changes_results]
    survivors = [[f"`{row.bug.id}`", row.on, row.bug.what, _why(row)] for row in bugs if row.result.caught_by is None]
    controls = [
        [f"{row.bug.kernel}, {row.bug.path}", row.on, _outcome(row.result), row.seconds]
        for row in rows
        if not row.bug.edits
    ]
    equivalent = [
        [f"`{row.bug.id}`: {row.bug.what}", row.on, row.bug.equivalent, _outcome(row.result)]
        for row in rows
        if row.bug.equivalent and row.bug.edits
    ]
    seen = json.loads(LATENT.read_bytes())["results"]
    calls = {one["bug"]: f"{one['differing']} of {one['calls']:,}" for one in seen}
    latent = [
        [f"`{row.bug.id}`", row.bug.what, row.bug.latent, calls.get(row.bug.id, "not measured"), _outcome(row.result)]
        for row in rows
        if row.bug.latent
    ]
    every = [[f"`{row.bug.id}`", row.on, row.bug.kind, row.bug.what, row.caught, row.seconds] for row in bugs]
    parts = (
        "Measured on: " + "; ".join(dict.fromkeys(one.machine for one in measured)) + ".",
        _shares(bugs),
        "**Survivors**, and those of which nothing is known:",
        _table(["bug", "on", "what it does", "why it survives"], survivors) if survivors else "None.",
        "**Kernels as they are**, which must pass:",
        _table(["kernel", "on", "outcome", "s"], controls),
        "**Changes of which no result differs**, and what was said of them:",
        _table(["change", "on", "why no result differs", "outcome"], equivalent),
        "**Latent bugs**: wrong by the machine's rules, while no call was seen of which a bit differs, under any load:",
        _table(["bug", "what it does", "why no result differs", "calls that differ", "outcome"], latent),
        "**All bugs:**",
        _table(["bug", "on", "kind", "what it does", "caught by", "s"], every),
    )
    return "\n\n".join(parts)


def _rows(measured: Sequence[BugResults]) -> Iterator[Row]:
    """In the library's order; where several files have a result, the last one's."""
    for bug in (*library.CONTROLS, *library.BUGS):
        for device in bug.devices:
            results = [one for file in measured if (one := file.of(bug.id, device))]
            if results:
                yield Row(bug, results[-1])


_table = partial(markdown, numbers=False)


def _shares(rows: Sequence[Row]) -> str:
    body = []
    for kernel in library.KERNELS:
        for on in SHORT.values():
            mine = [row.result for row in rows if (row.bug.kernel, row.on) == (kernel, on)]
            if mine:
                body.append([kernel, on, *_counts(mine)])
    body.append(["**all**", "", *_counts([row.result for row in rows])])
    return _table(["kernel", "on", "bugs", *DETECTORS, "undecided", "survive", "caught"], body)


def _counts(mine: Sequence[BugResult]) -> list[str]:
    """The bugs, those that each detector was the first to catch, and the rest."""
    by = [sum(one.caught_by == name for one in mine) for name in DETECTORS]
    undecided = sum(one.undecided for one in mine)
    numbers = (len(mine), *by, undecided, len(mine) - sum(by) - undecided)
    return [*map(str, numbers), f"{100 * sum(by) / max(1, len(mine)):.0f}%"]


def _why(row: Row) -> str:
    if row.result.undecided:
        return f"undecided: {_outcome(row.result)}"
    return library.SURVIVORS.get((row.bug.id, row.result.device), "not looked into yet")


def _outcome(result: BugResult) -> str:
    """Such as "passes fuzz, memcheck"."""
    if not result.built:
        return "does not compile"
    if result.caught_by:
        return f"caught by {result.caught_by}"
    unclear = [f"{look.detector} {look.message}" for look in result.looks if look.caught is None]
    return "; ".join(unclear) or f"passes {', '.join(look.detector for look in result.looks)}"


if __name__ == "__main__":
    main()
