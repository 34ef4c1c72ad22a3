"""Times and profiles every planted cause on the GPU at hand: `python -m benchmarks.explain -o tests/data/causes`.

Each cause's run record goes into the folder, small: a few processes' times, and the profiles of both sides. Whether the
explanation names what was planted is asserted by tests/benchmarks/explain, from these records alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from benchmarks.explain.causes import CAUSES, Cause
from benchmarks.fuzzing import bug as planting
from benchmarks.fuzzing.bug import KERNELGATE, Bug, Planted
from kernelgate.bench import record
from kernelgate.bench.record import Process, RunRecord, Timing
from kernelgate.bench.system import supervise
from kernelgate.bench.system.progress import say
from kernelgate.bench.system.supervise import TimeLimits

TARGETS = {"wgmma": "9.0a"}
"""Of the build, by path; 9.0 for the others."""
AT_A_TIME = 4
"""Commands that time: one holds the device, the others load torch meanwhile."""
SIZE = ("--processes", "2", "--rounds", "40")
LIMITS = TimeLimits(silence_s=120.0, total_s=300.0)


@click.command()
@click.option("--cause", "names", multiple=True, type=click.Choice([cause.name for cause in CAUSES]), help="All.")
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("out/causes"), show_default=True)
def main(names: tuple[str, ...], output: Path) -> None:
    """Build base and head of each cause, time them, profile them, and write what was measured into a folder."""
    causes = [cause for cause in CAUSES if not names or cause.name in names]
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kernelgate-causes-") as name:
        folder = Path(name)
        trees = build({bug.id: bug for cause in causes for bug in (cause.base, cause.head)}.values(), folder)
        say(f"built {len(trees)} libraries")
        causes = [cause for cause in causes if cause.base.id in trees and cause.head.id in trees]
        with ThreadPoolExecutor(AT_A_TIME) as commands:
            for cause, made in zip(causes, commands.map(lambda one: measure(one, trees, folder), causes), strict=True):
                if made is not None:
                    write(small(made), output / f"{cause.name}.json")
                    say(f"{cause.name}: {len(made.profile)} profiles")


def build(bugs: Iterable[Bug], folder: Path) -> dict[str, Planted]:
    """Those that could be built, by the bug's id."""

    def built(bug: Bug) -> Planted | None:
        one = planting.plant(bug, "cuda", folder)
        try:
            planting.build(one, TARGETS.get(bug.path, "9.0"))
        except planting.UnbuildableError as error:
            say(f"{bug.id} was not built: {error}")
            return None
        return one

    with ThreadPoolExecutor(planting.cores()) as builders:
        return {one.bug.id: one for one in builders.map(built, bugs) if one is not None}


def measure(cause: Cause, trees: dict[str, Planted], folder: Path) -> RunRecord | None:
    """What `kernelgate bench` and `kernelgate profile` measured; None where nothing could be timed."""
    base, head = trees[cause.base.id], trees[cause.head.id]
    path = folder / f"{cause.name}.json"
    both = ("--base-library", str(base.library), "--head-library", str(head.library), "--case", cause.case)
    for verb, *rest in (
        ("bench", *SIZE, "--seed", "1", "-o", str(path)),
        ("profile", "--set", "full", "--out", str(folder / "profile" / cause.name), "--record", str(path)),
    ):
        lines: list[str] = []
        code = supervise.run(
            (*KERNELGATE, verb, *both, *rest),
            cwd=base.tree,
            env=base.environment,  # with the variables that choose the code path
            limits=LIMITS,
            on_line=lines.append,
            on_silence=lambda _: None,
        )
        if code != 0:
            say(f"{cause.name}: {verb} exited with {code}: {' '.join(lines[-5:])}")
    return record.read(path) if path.exists() else None


def small(made: RunRecord) -> RunRecord:
    """What an explanation needs of the record: times of base and head, and the profiles."""
    return made.model_copy(
        update={
            "processes": tuple(_only_sides(process) for process in made.processes if process.role == "paired"),
            **dict.fromkeys(("builds", "checks", "costs", "notes"), ()),
            "expected": None,
            "profile": tuple(one.model_copy(update={"hot_spots": None}) for one in made.profile),
        }
    )


def _only_sides(process: Process) -> Process:
    timings = []
    for one in process.timings:
        kept = {name: getattr(one, name) for name in ("card", "case", "inner_repeats", "clock_step_us")}
        samples = {side: one.samples_us[side] for side in ("base", "head")}
        timings.append(Timing(samples_us=samples, **kept))
    return process.model_copy(update={"timings": tuple(timings)})


def write(made: RunRecord, path: Path) -> None:
    kept = json.loads(made.model_dump_json(exclude_defaults=True), parse_float=lambda word: float(f"{float(word):.6g}"))
    for environment in kept["environments"]:
        del environment["os"], environment["device"]["uuid"]
        environment.pop("host", None)
    path.write_text(json.dumps(kept, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
