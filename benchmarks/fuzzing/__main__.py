"""How many planted bugs are caught: `python -m benchmarks.fuzzing --device cpu -o FILE`, then `… table FILE …`.

A run goes on where an earlier one with the same file ended. On two cores the CPU's bugs take about 20 minutes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
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
DEFAULT: dict[Device, tuple[DetectorName, ...]] = {
    "cpu": ("fuzz", "accuracy"),
    "cuda": ("fuzz", "memcheck", "racecheck", "accuracy"),
}
SHORT = {"cpu": "CPU", "cuda": "GPU"}


@click.group(invoke_without_command=True)
@click.option("--bug", "names", multiple=True, help="A kernel, or a bug's name or id; default: all.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--detector", "detectors", multiple=True, type=click.Choice(list(DETECTORS)), help="In order.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("out/fuzzing.json"), show_default=True)
@click.pass_context
def main(
    context: click.Context, names: tuple[str, ...], device: Device, detectors: tuple[DetectorName, ...], output: Path
) -> None:
    """Plant each bug in a copy of its kernel's repository, build it, and see what catches it."""
    if context.invoked_subcommand:
        return
    try:
        bugs = library.select(device, names)
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
    """Write how many bugs were caught, and by what, into docs/fuzzing.md."""
    text = tables([BugResults.model_validate_json(path.read_bytes()) for path in paths])
    put(DOCUMENT, "fuzz", text)
    click.echo(text)


Row = tuple[Bug, BugResult]


def tables(measured: Sequence[BugResults]) -> str:
    """Shares by kernel, survivors, and what right code was called; of results whose bug is still in the library."""
    rows = list(_rows(measured))
    real = [row for row in rows if row[0].changes_results]
    right = [one for bug, one in rows if bug.equivalent or not bug.edits]
    accused = sum(one.caught_by is not None for one in right)
    survivors = [f"- `{bug.id}` survives: {_why(bug, one)}" for bug, one in real if one.caught_by is None]
    parts = (
        "Measured on: " + "; ".join(dict.fromkeys(one.machine for one in measured)) + ".",
        _shares(real),
        "\n".join(survivors) or "None survives.",
        f"Kernels without a bug, and with a change that alters no result: {accused} of {len(right)} were called wrong.",
    )
    return "\n\n".join(parts)


def _rows(measured: Sequence[BugResults]) -> Iterator[Row]:
    """In the library's order; where several files have a result, the last one's."""
    for bug in (*library.CONTROLS, *library.BUGS):
        for device in bug.devices:
            results = [one for file in measured if (one := file.of(bug.id, device))]
            if results:
                yield bug, results[-1]


def _shares(rows: Sequence[Row]) -> str:
    of: dict[tuple[str, str], list[BugResult]] = {}
    for bug, one in sorted(rows, key=lambda row: (library.KERNELS.index(row[0].kernel), row[1].device)):
        of.setdefault((bug.kernel, SHORT[one.device]), []).append(one)
    body = [[*names, *_counts(mine)] for names, mine in of.items()]
    body.append(["**all**", "", *_counts([one for _, one in rows])])
    columns = ["kernel", "on", "bugs", *DETECTORS, "undecided", "survive", "caught"]
    return markdown(columns, body, numbers=False)


def _counts(mine: Sequence[BugResult]) -> list[str]:
    """The bugs, those that each detector was the first to catch, and the rest."""
    by = [sum(one.caught_by == name for one in mine) for name in DETECTORS]
    undecided = sum(one.undecided for one in mine)
    numbers = (len(mine), *by, undecided, len(mine) - sum(by) - undecided)
    return [*map(str, numbers), f"{100 * sum(by) / max(1, len(mine)):.0f}%"]


def _why(bug: Bug, one: BugResult) -> str:
    if one.undecided:
        return f"undecided: {_outcome(one)}"
    return library.SURVIVORS.get((bug.id, one.device), "not looked into yet")


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
