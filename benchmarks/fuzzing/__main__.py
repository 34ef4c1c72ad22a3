"""How many planted bugs are caught: `python -m benchmarks.fuzzing --device cpu -o FILE`, then `… table FILE …`.

A run goes on where an earlier one with the same file ended. On two cores the CPU's bugs take about 20 minutes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.fuzzing import document, library, planting, results
from benchmarks.fuzzing.bug import Device
from benchmarks.fuzzing.detectors import DETECTORS, DetectorName
from benchmarks.fuzzing.measure import Asked, measure
from benchmarks.fuzzing.results import BugResult, BugResults
from kernelgate.bench.system import environment
from kernelgate.bench.system.progress import say

DOCUMENT = planting.ROOT / "docs" / "fuzzing.md"
DEFAULT: dict[Device, tuple[DetectorName, ...]] = {
    "cpu": ("fuzz", "accuracy"),
    "cuda": ("fuzz", "memcheck", "racecheck", "accuracy"),
}


@click.group(invoke_without_command=True)
@click.option("--kernel", "kernels", multiple=True, type=click.Choice(library.KERNELS), help="Default: all.")
@click.option("--bug", "names", multiple=True, help="A bug's name or id; default: all.")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), default="cpu", show_default=True)
@click.option("--detector", "detectors", multiple=True, type=click.Choice(list(DETECTORS)), help="In order.")
@click.option("--every", is_flag=True, help="Run all detectors on each bug, also once one has caught it.")
@click.option("--seed", default=1, show_default=True, help="Of `kernelgate fuzz`.")
@click.option("--limit", default=180.0, show_default=True, help="Seconds for one detector and one bug.")
@click.option("--jobs", default=max(1, planting.cores() // 2), show_default=True, help="Builds at a time.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("out/fuzzing.json"), show_default=True)
@click.pass_context
def main(
    context: click.Context,
    kernels: tuple[str, ...],
    names: tuple[str, ...],
    device: Device,
    detectors: tuple[DetectorName, ...],
    every: bool,
    seed: int,
    limit: float,
    jobs: int,
    output: Path,
) -> None:
    """Plant each bug in a copy of its kernel's repository, build it, and see what catches it."""
    if context.invoked_subcommand:
        return
    try:
        bugs = library.select(device, kernels, names)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    measured = results.read(output) if output.exists() else BugResults(machine=_machine())
    left = [bug for bug in bugs if measured.of(bug.id, device) is None]
    say(f"{len(left)} of {len(bugs)} bugs are left to be tried on the {device}")
    with tempfile.TemporaryDirectory(prefix="kernelgate-bugs-") as folder:
        asked = Asked(device, Path(folder), detectors or DEFAULT[device], every, seed, limit, jobs)
        for result in measure(left, asked):
            measured = measured.holding(result)
            results.write(measured, output)
            say(f"{len(measured.results)}: {_line(result)}")


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
def table(files: Sequence[Path]) -> None:
    """Write what came of all bugs into docs/fuzzing.md."""
    text = document.tables([results.read(file) for file in files])
    DOCUMENT.write_text(document.insert(DOCUMENT.read_text(encoding="utf-8"), text), encoding="utf-8")
    click.echo(text)


def _machine() -> str:
    found = environment.describe()
    return f"{found.device.name}, {planting.cores()} cores, torch {found.torch}"


def _line(result: BugResult) -> str:
    if not result.built:
        return f"{result.bug}: not built: {result.message}"
    last = result.looks[-1]
    how = f"caught by {result.caught_by}" if result.caught_by else "undecided" if result.undecided else "survives"
    return f"{result.bug}: {how}, {result.seconds:.1f} s. {last.message}"


if __name__ == "__main__":
    main()
