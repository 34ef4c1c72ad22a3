"""Nsight Compute reports: one `ProfiledKernel` for each profiled launch, read without ncu, driver or GPU.

NVIDIA's `ncu_report` package reads reports of many versions. What a report lacks is left out, never guessed.
"""

from __future__ import annotations

import math
import re
import resource
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, one_line
from kernelgate.bench.explain.metrics import METRICS
from kernelgate.bench.record import MAX_HOT_INSTRUCTIONS, MAX_HOT_LINES, MAX_HOT_TEXT, HotInstruction, HotLine, HotSpots
from kernelgate.bench.system import isolation
from kernelgate.bench.system.worker import ImportAhead, Message, WorkerError, WorkerFailedError, WorkerProcess

T = TypeVar("T")
K = TypeVar("K", int, tuple[str, int], str)

MAGIC = b"NVR\0"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PATIENCE_S = 60.0
MAX_MEMORY = 8 << 30
"""Bytes of address space for reading one report: a length in a damaged one may be anything."""

IN_WORDS = "second"
"""In units such as "nsecond", as Nsight Compute wrote them before 2024, in any of several sizes: not read."""


@dataclass(frozen=True)
class Rule:
    """One result of NVIDIA's own analysis."""

    identifier: str
    title: str
    message: str
    speedup_pct: float | None
    """Its estimate, in percent of the kernel's time where `whole_kernel`, else of one unit's efficiency."""
    whole_kernel: bool


@dataclass(frozen=True)
class ProfiledKernel:
    name: str
    """Demangled, with parameters, where the report has it."""
    device: str | None
    compute_capability: tuple[int, int] | None
    sm_count: int | None
    figures: Mapping[str, float]
    """By the keys of explain/metrics.py, in its units; stalls as `stall_<reason>`. Only what the report holds."""
    rules: tuple[Rule, ...]
    dtype: str = "fp16"
    """What the tensor cores multiply, as hardware.py names it: their peak depends on it. A case says it, no report."""
    work_flops: float | None = None
    """The operations that the case must do, where no counter counts them."""
    hot_spots: HotSpots | None = None
    """Where samples were taken, files as the line tables name them; None where the report has none by instruction."""


def is_report(path: Path) -> bool:
    """Whether the file begins as a report does. Raises KernelgateError where it cannot be read."""
    try:
        with files.reading(path) as file:
            return file.read(4) in (MAGIC, ZSTD_MAGIC)
    except OSError as error:
        raise KernelgateError(f"{path}: cannot be read: {error.strerror}") from None


def read(path: Path) -> tuple[ProfiledKernel, ...]:
    """The launches in the report, in its order. Raises KernelgateError where it is no whole report, or holds none."""
    with waiting() as reader:
        ask(path, reader)
        return answer(path, reader)


def waiting() -> WorkerProcess:
    """A process that reads one report: over a damaged one NVIDIA's library may end the process that it is in."""
    reader = WorkerProcess(f"{__name__}:launches_of", apart=isolation.of_sources())
    reader.send(ImportAhead(ahead=("ncu_report",)))
    return reader


def ask(path: Path, reader: WorkerProcess) -> None:
    """Raises KernelgateError where the file is no report."""
    if not is_report(path):
        raise KernelgateError(f"{path}: is not an Nsight Compute report; make one with: ncu -o REPORT COMMAND")
    reader.send(ReportFile(path=path.absolute()))


def answer(path: Path, reader: WorkerProcess) -> tuple[ProfiledKernel, ...]:
    """The launches, once they are read. Raises KernelgateError as `read` does."""
    try:
        kernels = reader.receive(ReportLaunches, PATIENCE_S).kernels
    except WorkerError as error:
        why = "" if isinstance(error, WorkerFailedError) else "cannot be read as a report: "
        raise KernelgateError(f"{path}: {why}{plain(str(error))}") from None
    if not kernels:
        raise KernelgateError(f"{path}: contains no kernel: the file is truncated or damaged, or nothing was profiled")
    return kernels


class ReportFile(Message):
    path: Path


class ReportLaunches(Message):
    kernels: tuple[ProfiledKernel, ...]


def launches_of(report: ReportFile) -> ReportLaunches:
    """In at most MAX_MEMORY."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))
    return ReportLaunches(kernels=launches(str(report.path)))


def launches(path: str) -> tuple[ProfiledKernel, ...]:
    """The launches in the report, read in this very process. Raises KernelgateError, or ends the process."""
    try:
        import ncu_report
    except (ImportError, OSError) as error:
        raise KernelgateError(
            f"reports are read with NVIDIA's ncu_report package: pip install ncu-report ({error})"
        ) from None
    try:
        context = ncu_report.load_report(path)
        actions = [action for index in range(context.num_ranges()) for action in context.range_by_idx(index)]
        return tuple(kernel for action in actions if (kernel := _kernel(action)) is not None)
    except Exception as error:  # the package raises what its C++ does
        raise KernelgateError(f"cannot be read as a report: {error}") from None


def _told(question: Callable[[], T]) -> T | None:
    """What NVIDIA's package answers; None where it raises, as it does over what an old or a damaged report lacks."""
    try:
        return question()
    except Exception:
        return None


def _kernel(action: Any) -> ProfiledKernel | None:
    name = _told(lambda: action.name(action.NameBase_DEMANGLED))
    known = set(_told(action.metric_names) or ())
    if not name or not known:
        return None  # what a damaged report gives

    def value(counter: str) -> float | None:
        """The counter in SI units, or None where the report lacks it."""
        number = _told(lambda: _number(action.metric_by_name(counter))) if counter in known else None
        return number if number is not None and math.isfinite(number) else None

    device = "device__attribute_display_name"
    major, minor = (value(f"device__attribute_compute_capability_{part}") for part in ("major", "minor"))
    sms = value("device__attribute_multiprocessor_count") or value("launch__sm_count")
    return ProfiledKernel(
        name=str(name),
        device=(_told(lambda: action.metric_by_name(device).as_string()) or None) if device in known else None,
        compute_capability=(int(major), int(minor)) if major is not None and minor is not None else None,
        sm_count=int(sms) if sms else None,
        figures=_figures(value) | _code(action, known),
        rules=tuple(_rules(action)),
        hot_spots=_told(lambda: _hot_spots(action, known)),  # a damaged report's counters need not fit each other
    )


def _number(metric: Any) -> float | None:
    unit = (metric.unit() or "") if metric is not None and metric.has_value() else IN_WORDS
    return None if IN_WORDS in unit else float(metric.as_double()) * (1e-9 if unit == "ns" else 1.0)


SUMS = {
    "bank_conflicts": ("conflicts_ld", "conflicts_st"),
    "local_instructions": ("local_loads", "local_stores"),
    "shared_bytes": ("static_shared_bytes", "dynamic_shared_bytes"),
    "dram_bytes": ("dram_read_bytes", "dram_write_bytes"),
}


def _figures(value: Callable[[str], float | None]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for metric in METRICS.values():
        if (number := next((one for one in map(value, metric.counters) if one is not None), None)) is not None:
            figures[metric.key] = number * metric.scale
    for key, parts in SUMS.items():
        if all(part in figures for part in parts):
            figures[key] = sum(figures[part] for part in parts)
    return {key: number for key, number in figures.items() if math.isfinite(number)}


MAX_INSTRUCTIONS = 50_000
INSTRUCTION_BYTES = 16
_GLOBAL = re.compile(r"^\s*(?:@!?U?P\w+\s+)?(LDG|STG)((?:\.\w+)*)")
_WIDTHS = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def _code(action: Any, known: set[str]) -> dict[str, float]:
    """The widest global accesses in the kernel's machine code; nothing where the report came without that."""
    widest: dict[str, float] = {}
    if "launch__function_pcs" not in known:
        return widest
    with suppress(Exception):  # old reports hold no code
        start = action.metric_by_name("launch__function_pcs").as_uint64(0)
        for number in range(MAX_INSTRUCTIONS):
            if not (line := action.sass_by_pc(start + number * INSTRUCTION_BYTES)):
                break
            if access := _GLOBAL.match(line):
                key = {"LDG": "code_load_bytes", "STG": "code_store_bytes"}[access[1]]
                width = next((_WIDTHS[word] for word in access[2].split(".") if word in _WIDTHS), 4)
                widest[key] = max(widest.get(key, 0.0), float(width))
    return widest


def _rules(action: Any) -> Iterator[Rule]:
    for result in _told(action.rule_results_as_dicts) or ():  # versions before 2025 know none
        message = result.get("rule_message") or {}
        if (speedup := result.get("speedup_estimation")) is None:
            continue  # the rest comments on what the figures say already
        percent = float(speedup["speedup"])
        yield Rule(
            identifier=str(result.get("rule_identifier", "")),
            title=plain(str(message.get("title") or result.get("name") or "")),
            message=plain(str(message.get("message") or "")),
            speedup_pct=percent if math.isfinite(percent) else None,
            whole_kernel=int(speedup["type"]) == 2,  # SpeedupType.GLOBAL
        )


_LINK = re.compile(r"@(?:url|section|sass|source):([^@]*)@")


def plain(text: str) -> str:
    """A rule's message without its link marks and without control characters."""
    linked = _LINK.sub(lambda match: match[1].split(":")[-1 if "//" not in match[1] else 0], text)
    return " ".join(one_line(linked).split())


# ---- which lines and instructions took the samples -------------------------------------------------------------------
# Nsight Compute samples the warps of a launch at intervals, and counts for each instruction how often a warp was found
# at it, and in which state ("Source Counters"; the counters `smsp__pcsamp_*`). `--set full` collects them, a quick set
# does not.

SAMPLES = "smsp__pcsamp_sample_count"
STATE = "smsp__pcsamp_warps_issue_stalled_"
NOT_ISSUED = "_not_issued"
"""A second count of the same samples, of those cycles in which no warp was issued."""

_ADDRESS = re.compile(r" 0x[0-9a-f]{8,}$")
"""Behind a jump: where its target was in this very launch."""


def _hot_spots(action: Any, known: set[str]) -> HotSpots | None:
    """The hot spots of one launch, its files as the line tables name them; None where the report has no samples by
    instruction."""
    samples = _by_address(action, SAMPLES) if SAMPLES in known else Counter()
    if not samples.total():
        return None
    states: dict[int, Counter[str]] = defaultdict(Counter)
    for name in known:
        if name.startswith(STATE) and not name.endswith(NOT_ISSUED):
            for address, count in _by_address(action, name).items():
                states[address][name.removeprefix(STATE)] = count
    places = {address: _place(action, address) for address in samples}
    lines: Counter[tuple[str, int]] = Counter()
    line_states: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for address, place in places.items():
        if place is not None:
            lines[place] += samples[address]
            line_states[place] += states[address]
    instructions = []
    for address, count in _largest(samples, MAX_HOT_INSTRUCTIONS):
        file, line = places[address] or (None, None)
        sass = _ADDRESS.sub("", " ".join(str(action.sass_by_pc(address) or "").split()))[:MAX_HOT_TEXT]
        stall = _most(states[address])
        instructions.append(HotInstruction(sass=sass, file=file, line=line, samples=count, stall=stall))
    listed = tuple(
        HotLine(file=file, line=line, samples=count, stall=_most(line_states[file, line]))
        for (file, line), count in _largest(lines, MAX_HOT_LINES)
    )
    return HotSpots(samples=samples.total(), lines=listed, instructions=tuple(instructions))


def _largest(counts: Counter[K], most: int) -> list[tuple[K, int]]:
    """Of two alike the first by its key."""
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:most]


def _most(states: Counter[str]) -> str | None:
    """The state of most samples."""
    return _largest(states, 1)[0][0][:MAX_HOT_TEXT] if states else None


def _by_address(action: Any, name: str) -> Counter[int]:
    """A counter's value at each instruction's address, where it is not zero."""
    metric, counts = action.metric_by_name(name), Counter[int]()
    if metric is not None and metric.has_correlation_ids():
        addresses = metric.correlation_ids()
        for index in range(metric.num_instances()):
            counts[addresses.as_uint64(index)] += metric.as_uint64(index)
    return +counts


def _place(action: Any, address: int) -> tuple[str, int] | None:
    """File and line that an instruction was compiled from; None where there is no line table."""
    info = action.source_info(address)
    if info is None or not info.file_name() or info.line() < 1:
        return None
    return str(info.file_name())[-MAX_HOT_TEXT:], int(info.line())
