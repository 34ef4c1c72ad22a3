"""Profiles base and head with Nsight Compute: the kernels of one call of each side after warm-up.

Whatever goes wrong with the profiler is one sentence and costs nothing else: timings and verdicts stand without it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Final, Literal

from kernelgate.bench.build.archs import only_gpu
from kernelgate.bench.build.compiler_output import HERE
from kernelgate.bench.build.library import Library, Sides, facts_missing, imports, sources_in
from kernelgate.bench.core.errors import KernelgateError, NoDeviceError
from kernelgate.bench.core.hardware import Capability
from kernelgate.bench.explain import metrics, ncu_reader
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.kernel import triton_build, watched_call
from kernelgate.bench.kernel.cards import ChosenCase
from kernelgate.bench.kernel.watched_call import AHEAD, DONE, WarmProcesses, WatchedCall, Watching
from kernelgate.bench.record import MAX_HOT_TEXT, HotLine, HotSpots, Note, Profile, RunRecord, Side, with_costs
from kernelgate.bench.system import cuda_tools, lock, progress
from kernelgate.bench.system.supervise import Running, TimeLimits
from kernelgate.bench.system.worker import WorkerProcess

PERMISSION = (
    "the driver lets only root read the GPU's counters (ERR_NVGPUCTRPERM): run as root or with CAP_SYS_ADMIN, or put "
    "`options nvidia NVreg_RestrictProfilingToAdminUsers=0` into /etc/modprobe.d/nvidia.conf and reload the driver"
)

MAX_KERNELS = 32
"""Launches of one call that are profiled."""
MAX_NAME = 200
"""Characters of a kernel's name that the record keeps."""
TIMEOUT_S: Final = 120.0
"""Per side. A profiler that takes longer is terminated, and the run continues without it."""


@dataclass(frozen=True)
class Options:
    out: Path
    """Where reports and summaries go."""
    capability: Capability
    """Of the GPU: counters have other names on others."""
    uuid: str | None = None
    """Of the GPU, which is held while profiles are made."""
    set: Literal["quick", "full"] = "quick"
    timeout_s: float = TIMEOUT_S
    kernel: str | None = None
    """Profile the kernels whose name matches this regular expression; None leaves that to the card, else all are."""
    reference: bool = False
    """Also of the card's reference, which has kernels of any name."""


@dataclass(frozen=True)
class ProfilingResult:
    profiles: tuple[Profile, ...]
    failures: tuple[str, ...]
    """Why a side has no profile, a sentence each."""


@dataclass(frozen=True)
class ProfilingJob:
    """One side of one case."""

    chosen: ChosenCase
    side: Side
    library: Library
    options: Options

    @property
    def where(self) -> str:
        return f"{self.side} at {self.chosen.case.id}"

    @property
    def report(self) -> Path:
        return self.options.out / f"{self.chosen.card.name}.{self.chosen.case.id}.{self.side}.ncu-rep"

    @property
    def pattern(self) -> str | None:
        """Which kernels alone are profiled."""
        return None if self.side == "reference" else self.options.kernel or self.chosen.card.kernel

    @property
    def own(self) -> str | None:
        """What matches the library's own kernels; None where nothing is known of them. A call may launch others, such
        as torch's."""
        known = sorted({re.escape(kernel.name.split("<")[0]) for kernel in self.library.manifest.kernels})
        return None if self.side == "reference" else "|".join(known) or None


@dataclass(frozen=True)
class Profiler:
    """What is to be profiled; the first processes wait for their turn."""

    jobs: tuple[ProfilingJob, ...]
    uuid: str | None
    """Of the GPU."""
    processes: WarmProcesses | None
    """None where there is nothing to profile with."""
    refusal: str = ""
    """Why not."""


@contextmanager
def ready(libraries: Mapping[str, Sides], cases: Sequence[ChosenCase], options: Options) -> Iterator[Profiler]:
    """Starts what will profile every case on both sides of its card, so that it has loaded torch when its turn comes.

    All processes end with the block.
    """
    more = ("reference",) if options.reference else ()
    sides = [(chosen, libraries[chosen.card.name]) for chosen in cases]
    jobs = tuple(
        ProfilingJob(chosen, side, both.named.get(side, both.head), options)
        for chosen, both in sides
        for side in (*both.named, *more)
    )
    with ExitStack() as stack:
        try:
            ncu = cuda_tools.find("ncu")
            options.out.mkdir(parents=True, exist_ok=True)
            for job in jobs:
                job.report.unlink(missing_ok=True)
            watching = [
                Watching(
                    command(ncu, job),
                    WatchedCall.of(job.library, job.chosen.card, job.chosen.case, reference=job.side == "reference"),
                    (options.out,),
                    python=job.library.python,
                    ahead=imports({job.side: job.library}),
                )
                for job in jobs
            ]
            profiler = Profiler(jobs, options.uuid, stack.enter_context(watched_call.warm(watching)))
        except NoDeviceError as error:
            profiler = Profiler(jobs, options.uuid, None, str(error))
        except OSError as error:
            profiler = Profiler(jobs, options.uuid, None, f"ncu cannot be started: {error.strerror}")
        yield profiler


def profile(libraries: Mapping[str, Sides], cases: Sequence[ChosenCase], options: Options) -> ProfilingResult:
    """Profiles every case on both sides of its card."""
    with ready(libraries, cases, options) as profiler:
        return profiled(profiler)


def load(profiler: Profiler) -> None:
    """Lets the first processes load their libraries. They use the GPU, which the caller holds: until their turn nothing
    may be measured."""
    if profiler.processes is not None:
        profiler.processes.load(AHEAD)


def profiled(profiler: Profiler) -> ProfilingResult:
    """Makes the profiles, one after the other; their reports are in `options.out`."""
    if profiler.processes is None:
        return ProfilingResult((), (profiler.refusal,))
    making: list[Making] = []
    with lock.device(profiler.uuid), ExitStack() as stack:
        with progress.track("profile", len(profiler.jobs)) as advance:
            for at, job in enumerate(profiler.jobs):
                making.append(Making(job, stack.enter_context(ncu_reader.waiting())))
                making[at].start(profiler.processes, at)
                if at:
                    making[at - 1].finish()
                making[at].wait_for_call()
                advance(job.where)
        if making:
            making[-1].finish()
        made = [one.profile() for one in making]
    failures = dict.fromkeys(one for one in made if isinstance(one, str))
    return ProfilingResult(tuple(one for one in made if isinstance(one, Profile)), tuple(failures))


@dataclass
class Making:
    """One side's profile, step by step. While ncu writes the report of a call, the next side is called; while that one
    is profiled, the report is read. Nothing follows a step that failed."""

    job: ProfilingJob
    reader: WorkerProcess
    running: Running | None = None
    lines: list[str] = field(default_factory=list)
    """That ncu printed."""
    failed: str | None = None

    def start(self, processes: WarmProcesses, at: int) -> None:
        try:
            self.running = processes.go(at)
        except OSError as error:
            self.failed = f"ncu cannot be started: {error.strerror}"

    def wait_for_call(self) -> None:
        """Until ncu has profiled it, or ended."""
        begun = time.monotonic()
        self._follow(DONE)
        passes = next((found[1] for line in self.lines if (found := re.search(r"(\d+) pass(?:es)?$", line))), "?")
        progress.say(f"profiled {self.job.where}: {passes} passes, {time.monotonic() - begun:.1f} s")

    def finish(self) -> None:
        """Waits for the report, which is then read."""
        self._follow(None)
        if self.running is None or self.failed:
            return
        self.failed = failure(self.job, self.lines, self.running.process.wait())
        if not self.failed:
            with self._noting_failure():
                ncu_reader.ask(self.job.report, self.reader)

    def profile(self) -> Profile | str:
        """What the report says, or why there is none."""
        with self._noting_failure():
            if not self.failed:
                return profile_of(self.job, self.reader)
        return f"no profile of {self.job.where}: {self.failed}"

    def _follow(self, line: str | None) -> None:
        if self.running is None or self.failed:
            return
        seconds = self.job.options.timeout_s
        try:
            self.running.follow(
                TimeLimits(silence_s=30.0, total_s=seconds),
                self.lines.append,
                lambda silence_s: progress.say(f"ncu has printed nothing for {silence_s:.0f} s"),
                until=line,
            )
        except TimeoutError as error:
            self.failed = f"ncu was ended after {seconds:.0f} s; it had not finished; {error}"

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except KernelgateError as error:
            self.failed = str(error)


def profile_of(job: ProfilingJob, reader: WorkerProcess) -> Profile:
    """One side's profile, by its report, which `reader` reads. Raises KernelgateError where that is none, or not about
    the library."""
    of_side = of_call(ncu_reader.answer(job.report, reader), job.pattern or job.own, whole=job.pattern is None)
    if of_side is None:
        text = f"none of the first {MAX_KERNELS} kernels of a call is the library's own: name some by --kernel"
        raise KernelgateError(text)
    figures, hot = of_side
    return Profile(
        card=job.chosen.card.name,
        case=job.chosen.case.id,
        side=job.side,
        metrics=figures,
        hot_spots=hot and quoted(hot, job.library),
        report=job.report.name,
        report_sha256=hashlib.sha256(job.report.read_bytes()).hexdigest(),
    )


def of_call(
    kernels: Sequence[ProfiledKernel], own: str | None = None, whole: bool = True
) -> tuple[dict[str, float | str | None], HotSpots | None] | None:
    """One call's figures: those of its longest launch among the kernels that are the library's own, which says most,
    and what all of its launches take. None where there may be own kernels among those that were not profiled.

    `own`: matches their names. `whole`: whether all that the call launches was to be profiled.
    """
    all_seen = len(kernels) < MAX_KERNELS
    known = [one for one in kernels if own is None or re.search(own, one.name)]
    if not known and not all_seen:
        return None
    most = max(known or kernels, key=lambda one: one.figures.get("duration_us", 0.0))
    times = [one.figures["duration_us"] for one in kernels if "duration_us" in one.figures]
    sums = {"launches": float(len(kernels)), "call_us": sum(times)}
    together = sums if whole and all_seen and len(times) == len(kernels) else {}
    return {**most.figures, **together, "kernel": most.name[:MAX_NAME]}, most.hot_spots


def command(ncu: Path, job: ProfilingJob) -> tuple[str, ...]:
    """ncu's own words, up to the program that it runs."""
    return (
        str(ncu),
        "--force-overwrite",
        "--export",
        str(job.report.resolve()),
        "--clock-control",
        "none",  # as while the kernels are timed; locking needs privileges that many machines do not grant
        "--profile-from-start",
        "off",  # watched_call.py says which call
        "--launch-count",
        str(MAX_KERNELS),
        *(("--kernel-name", f"regex:{job.pattern}") if job.pattern else ()),
        *(("--set", "full") if job.options.set == "full" else ()),
        "--metrics",
        ",".join(metrics.quick_counters(job.options.capability)),
    )


def failure(job: ProfilingJob, lines: Sequence[str], code: int) -> str | None:
    """Why there is no profile, from what ncu printed and left; None where there is one."""
    text = "\n".join(lines)
    if "ERR_NVGPUCTRPERM" in text:
        return PERMISSION
    if "No kernels were profiled" in text:
        names = [line.split(".", 1)[1].strip() for line in lines if re.match(r"\s*\d.*\.", line)]
        there = f"; it ran: {', '.join(names[:5])}" if names else ""
        return f"no kernel {f'whose name matches {job.pattern!r} ' if job.pattern else ''}was launched{there}"
    said = [line for line in lines if line.strip() and not line.startswith("==")]
    if said and "The application returned an error code" in text:
        return f"the profiled process failed: {ncu_reader.plain(said[-1])}"
    if errors := [line.split("==ERROR==", 1)[1].strip() for line in lines if "==ERROR==" in line]:
        return f"ncu reports: {ncu_reader.plain(errors[0]).rstrip('.')}"
    if code == 0 and job.report.exists():
        return None
    last = ncu_reader.plain(next((line for line in reversed(lines) if line.strip()), "nothing"))
    return f"ncu ended with {code}{' and wrote no report' if code == 0 else ''}; its last words: {last}"


def summaries(profiles: Sequence[Profile]) -> dict[str, str]:
    """`profile.csv`, a row for each figure, and `profile.json`, a list of what the run record holds."""
    rows = io.StringIO(newline="")
    writer = csv.writer(rows)
    writer.writerow(("card", "case", "side", "metric", "label", "unit", "value"))
    for one in profiles:
        writer.writerows(
            (one.card, one.case, one.side, key, metrics.label(key), metrics.unit(key), value)
            for key, value in one.metrics.items()
        )
    content = json.dumps([one.model_dump() for one in profiles], indent=2)
    return {"profile.csv": rows.getvalue(), "profile.json": content + "\n"} if profiles else {}


# ---- The commit's own lines where samples were taken. A line table may name any file: no other one is opened ---------


def quoted(found: HotSpots, library: Library) -> HotSpots:
    """The same with files as the commit names them, and the text of its lines; of any other file its name alone."""
    folder = sources_in(library)
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    own = {path.relative_to(folder).as_posix(): path for path in files}
    # A package's may also be compiled where it is called.
    is_package = library.manifest.kind == "package"
    places = (f"{triton_build.SOURCES}/", f"{library.path.resolve()}/") if is_package else (HERE,)

    @cache
    def name_and_lines(file: str) -> tuple[str, list[str]]:
        """Its path in the commit; of a package, below the folder that it is imported from."""
        for place in places:
            path = normpath(file.removeprefix(place))
            if file.startswith(place) and path in own:
                return path, own[path].read_text(encoding="utf-8", errors="replace").splitlines()
        return PurePosixPath(file).name or file, []

    def line_of(one: HotLine) -> HotLine:
        name, held = name_and_lines(one.file)
        text = held[one.line - 1].strip()[:MAX_HOT_TEXT] if one.line <= len(held) else None
        return one.model_copy(update={"file": name, "text": text})

    instructions = (
        one.model_copy(update={"file": one.file and name_and_lines(one.file)[0]}) for one in found.instructions
    )
    return found.model_copy(update={"lines": tuple(map(line_of, found.lines)), "instructions": tuple(instructions)})


# ---- Profiles of a record --------------------------------------------------------------------------------------------


def with_profiles(record: RunRecord, libraries: Mapping[str, Sides], profiler: Profiler | None) -> RunRecord:
    """The record with the profiles and a note on each thing that is missing.

    Without a profiler, on a machine without a GPU, nothing is profiled. The kernels' registers and shared memory are in
    the record's builds already: they travel with the library.
    """
    missing = [why for sides in libraries.values() for why in facts_missing(sides)]
    notes = [*record.notes, *(Note(code="no_static_analysis", text=f"no static analysis of {why}") for why in missing)]
    changes: dict[str, object] = {}
    if profiler is not None:
        took = lock.stopwatch()
        done = profiled(profiler)
        notes += (Note(code="no_profile", text=failure) for failure in done.failures)
        changes = {"profile": done.profiles, "costs": with_costs(record.costs, profile=took())}
    return record.model_copy(update={"notes": tuple(notes), **changes})


@contextmanager
def profiling(
    libraries: Mapping[str, Sides],
    cases: Sequence[ChosenCase],
    out: Path,
    counters: Literal["quick", "full"] = "quick",
    uuid: str | None = None,
) -> Iterator[Profiler | None]:
    """A profiler of the cases on this machine, its processes started, reports in `out`; None where there is no GPU.
    `uuid`: of the GPU."""
    try:
        options = Options(out, only_gpu(), uuid, counters)
    except NoDeviceError:
        yield None
        return
    with ready(libraries, cases, options) as profiler:
        yield profiler
