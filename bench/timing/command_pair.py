"""Two commands, run in turn: the times that each prints, or how long it takes, as a run record.

A benchmark that somebody else wrote is compared with the statistics of a paired comparison, although its two sides
cannot share a process: an nvbench binary, a script that prints JSON, or any program at all. The sides alternate in
random order, and a process of the record is as many runs of each as give ROUNDS times.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import numpy as np

from kernelgate.bench import record
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import CaseKey, RunRecord
from kernelgate.bench.system import environment, lock, progress, supervise
from kernelgate.bench.system.supervise import TimeLimits

CARD: Final = "commands"
ROUNDS: Final = 20
"""Times of each side that one process has at least: fewer are not judged (MINIMUM_ROUNDS of the judge)."""
MAX_TIMES: Final = 1000
"""Times of one case and run that are kept, evenly spaced: more of one run add nothing to what the next run tells."""
MAX_RUNS: Final = 5
"""Runs of each command in which a process must have its ROUNDS, where a run prints several times."""
MAX_PRINTED: Final = 16 << 20
"""Characters that one run prints at most."""
TO_US: Final[Mapping[str, float]] = {"ns": 1e-3, "us": 1.0, "ms": 1e3, "s": 1e6}
OUT: Final = "{out}"
"""In a command: the file into which it writes its times."""
WALL: Final = "wall time"
"""The one case of commands that print no times."""
SAMPLES: Final = "nv/json/bin:nv/cold/sample_times"
MEAN: Final = "nv/cold/time/gpu/mean"

Times = Mapping[str, tuple[float, ...]]
"""Microseconds by case, of one run."""
Undecided = Callable[[RunRecord], frozenset[CaseKey]]


@dataclass(frozen=True)
class CommandPair:
    base: str
    head: str
    unit: str = "us"
    """Of the numbers that the commands print; nvbench's are seconds."""
    wall: bool = False
    """Whether whatever they print is ignored, and their duration is what counts."""
    timeout_s: float = 600.0
    """Of one run."""
    processes: int = 7
    seed: int = 0


def run(pair: CommandPair, undecided: Undecided, keep: Callable[[RunRecord], None]) -> RunRecord:
    """Runs both until `undecided` names no case, or the pair's processes are spent.

    `keep` gets the record after each process, and whole. Raises KernelgateError naming the side, and what it said last.
    """
    machine = environment.describe()
    made = RunRecord(
        run=record.Run(id=token_hex(8), producer="kernelgate", created_at=_now()),
        environments=(machine,),
        cards=(record.Card(name=CARD),),
        notes=(
            record.Note(code="commands", text=f"base: {pair.base}"),
            record.Note(code="commands", text=f"head: {pair.head}"),
            record.Note(code="seed", text=f"seed {pair.seed}"),
        ),
    )
    rng = random.Random(pair.seed)  # noqa: S311 - not for secrets
    with lock.device(machine.device.uuid):
        while len(made.processes) < pair.processes and (not made.processes or undecided(made)):
            number = len(made.processes) + 1
            begun, started = time.monotonic(), _now()
            progress.say(f"process {number} of at most {pair.processes}")
            timings = _timings(pair, rng)
            cases, known = [timing.case for timing in timings], [case.id for case in made.cases]
            if known and set(cases) != set(known):
                raise KernelgateError(f"the commands printed times of {_listed(cases)}, and of {_listed(known)} before")
            process = record.Process(
                id=str(number),
                role="alternating",
                loaded=("base", "head"),
                started_at=started,
                wall_seconds=time.monotonic() - begun,
                timings=timings,
            )
            recorded = tuple(record.Case(card=CARD, id=case) for case in cases)
            made = made.model_copy(update={"cases": recorded, "processes": (*made.processes, process)})
            keep(made)
    made = made.model_copy(update={"run": made.run.model_copy(update={"ended": "complete"})})
    keep(made)
    return made


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _timings(pair: CommandPair, rng: random.Random) -> tuple[record.Timing, ...]:
    """Runs of both, in random order in each round, until each case has ROUNDS times of each side."""
    times: dict[str, dict[str, list[float]]] = {"base": {}, "head": {}}
    positions: dict[str, dict[str, list[int]]] = {"base": {}, "head": {}}
    runs = 0
    while _least(times) < ROUNDS:
        for place, side in enumerate(rng.sample(("base", "head"), 2)):
            for case, printed in run_once(pair, side).items():
                times[side].setdefault(case, []).extend(printed)
                positions[side].setdefault(case, []).extend([place] * len(printed))
        runs += 1
        if times["base"].keys() != times["head"].keys():
            named = f"times of {_listed(times['base'])}, the head of {_listed(times['head'])}"
            raise KernelgateError(f"the base printed {named}: name them alike")
        if runs >= MAX_RUNS and runs < _least(times) < ROUNDS:
            few = f"{_least(times)} times of a case in {runs} runs"
            raise KernelgateError(f"a command prints too few times: {few}; let it print {ROUNDS}, or one")
    counts = {case: min(len(times[side][case]) for side in times) for case in times["base"]}
    return tuple(
        record.Timing(
            card=CARD,
            case=case,
            samples_us={side: tuple(times[side][case][:count]) for side in times},
            positions={side: tuple(positions[side][case][:count]) for side in times},
        )
        for case, count in counts.items()
    )


def _least(times: Mapping[str, Mapping[str, Sequence[float]]]) -> int:
    return min((len(printed) for side in times.values() for printed in side.values()), default=0)


def _listed(names: Iterable[str]) -> str:
    cases = list(names)
    return ", ".join(cases[:5]) + (f" and {len(cases) - 5} more" if len(cases) > 5 else "") or "nothing"


# ---- one run ---------------------------------------------------------------------------------------------------------


def run_once(pair: CommandPair, side: str) -> Times:
    """What one run of a side's command took, by case."""
    lines: list[str] = []
    command, left = pair.base if side == "base" else pair.head, MAX_PRINTED

    def hear(line: str) -> None:
        nonlocal left
        left -= len(line) + 1
        if left < 0:
            raise KernelgateError(f"the {side} printed more than {MAX_PRINTED >> 20} MiB: let it write times to {OUT}")
        lines.append(line)

    with tempfile.TemporaryDirectory(prefix="kernelgate-pair-") as folder:
        out = Path(folder, "times.json")
        begun = time.perf_counter()
        try:
            code = supervise.run(
                ["sh", "-c", command.replace(OUT, str(out))],
                cwd=Path.cwd(),
                env=os.environ,
                limits=TimeLimits(total_s=pair.timeout_s),
                on_line=hear,
                on_silence=lambda seconds: progress.say(f"the {side} has printed nothing for {seconds:.0f} s"),
            )
        except TimeoutError as error:
            raise KernelgateError(f"the {side} took more than {pair.timeout_s:g} s ({error}): --timeout") from None
        took_us = (time.perf_counter() - begun) * 1e6
        said = next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")[:200]
        if code:
            ended = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
            raise KernelgateError(f"the {side} {ended}: {command}: {said}")
        if pair.wall:
            return {WALL: (took_us,)}
        if OUT in command:
            if not out.is_file():
                raise KernelgateError(f"the {side} wrote nothing to {OUT}: {command}: {said}")
            if (found := printed_json(out.read_text(encoding="utf-8", errors="replace"))) is None:
                raise KernelgateError(f"what the {side} wrote to {OUT} is no JSON object")
        else:
            found = printed_json("\n".join(lines))
        if found is None:
            return {WALL: (took_us,)}
        try:
            return times_of(found, TO_US[pair.unit], Path(folder))
        except ValueError as error:
            raise KernelgateError(f"the {side} printed {error}; --wall takes how long it runs") from None


def printed_json(text: str) -> dict[str, Any] | None:
    """The last JSON object that begins a line of a program's output, among whatever else it prints."""
    decoder, found, at = json.JSONDecoder(), None, 0
    for line in text.splitlines(keepends=True):
        begins, at = at, at + len(line)
        if line.lstrip().startswith("{"):
            try:
                made, _ = decoder.raw_decode(text[begins:].lstrip())
            except ValueError:
                continue
            # An object within one that was read whole is no other output.
            if found is None or not line[0].isspace():
                found = made
    return found


def times_of(found: Mapping[str, Any], to_us: float, folder: Path) -> Times:
    """The times in what a command printed: of nvbench, or an object of a time, or a list of times, by case.

    `folder`: where nvbench's samples lie. Raises ValueError for what are no times.
    """
    made = dict(_of_nvbench(found, folder) if "benchmarks" in found else _plain(found, to_us))
    if not made:
        raise ValueError("no times")
    for case, times in made.items():
        odd = next((one for one in times if not (math.isfinite(one) and one > 0)), None)
        if odd is not None or not times:
            raise ValueError(f"{case!r} with {'no times' if odd is None else f'a time of {odd:g} µs'}")
    return made


def _plain(found: Mapping[str, Any], to_us: float) -> Iterator[tuple[str, tuple[float, ...]]]:
    for case, value in found.items():
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in values):
            raise ValueError(f"JSON in which {case!r} is neither a time nor a list of times")
        yield case, _spaced([float(one) * to_us for one in values])


def _of_nvbench(found: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Of each state that ran: its samples, where it was asked for them (--jsonbin), else its mean."""
    try:
        for benchmark in found["benchmarks"]:
            for state in benchmark["states"]:
                if state.get("is_skipped"):
                    continue
                facts = {
                    summary["tag"]: {one["name"]: one["value"] for one in summary["data"]}
                    for summary in state["summaries"]
                }
                if samples := facts.get(SAMPLES):
                    times = np.fromfile(folder / str(samples["filename"]), "<f4").astype(float).tolist()
                else:
                    times = [float(facts[MEAN]["value"])]
                yield f"{benchmark['name']} {state['name']}", _spaced([one * TO_US["s"] for one in times])
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(f"what is not as nvbench writes it ({error})") from None


def _spaced(times: Sequence[float]) -> tuple[float, ...]:
    step = max(1, -(-len(times) // MAX_TIMES))
    return tuple(times[::step])
