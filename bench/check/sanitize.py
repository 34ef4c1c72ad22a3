"""compute-sanitizer over small cases: out-of-bounds and uninitialised accesses, races, misused barriers.

Each tool runs all cases in one process, since starting one under it takes seconds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

from kernelgate.bench import record
from kernelgate.bench.build import archs, machine_code
from kernelgate.bench.build.archs import sm, target
from kernelgate.bench.build.library import Library, Sides, imports
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.core.hardware import Capability
from kernelgate.bench.kernel import axes, cards, fuzz_trials, watched_call
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.kernel.watched_call import DONE, WarmProcesses, WatchedCall, Watching
from kernelgate.bench.record import CheckFinding
from kernelgate.bench.system import cuda_tools, progress, supervise
from kernelgate.bench.system.supervise import Running, TimeLimits
from kernelgate.bench.system.worker import Leader, Message, Ready, WorkerError, WorkerPool

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TIMEOUT_S = 300.0
FOUND = 7
"""The exit code that compute-sanitizer is told to give where it finds something."""
SANITIZER = "compute-sanitizer"
EACH_ALLOCATED = (("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"),)
"""Each tensor is memory of its own: in torch's pools nobody could see an access past its end."""
STARTING_S = 10.0
"""Of each tool, beyond its share of a card's seconds: on an H200, torch took 3 to 5 s to start under one."""
SEARCH_SHARE = 0.25
"""As a share of a card's seconds, and beyond them, for looking which cases launch its kernels, once torch is loaded:
where one is launched by none, all are tried."""
MAX_FINDINGS, MAX_LINES, MAX_TEXT = 50, 20_000, 500
"""Findings in a record, lines that are kept of a tool, and characters of one text."""
MAX_KERNELS = 1000
"""Kernels in a record that no case launches."""

# "=========     at kernel(float *, int)+0xc0 in file.cu:7", also "… access at kernel(float *)+0xa0 in race.cu:6".
_AT = re.compile(r"at (?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>\S+?):(?P<line>\d+))?$")
_HEAD = re.compile(
    r"^(?:Invalid |Uninitialized |Barrier error|Error: |Warning: |Potential |Misaligned |Malloc|Unused |Device-side)"
)
_MARK = "========="


@dataclass(frozen=True)
class ToolRun:
    findings: tuple[CheckFinding, ...]
    done: int
    """The cases that it came to the end of."""
    problem: str | None = None
    """Why it did not run all of them."""


@dataclass(frozen=True)
class SanitizerOptions:
    tools: tuple[str, ...] = TOOLS
    seconds: float | None = None
    """For the calls of one card under all tools, with `STARTING_S` more for each; None sets each tool a limit alone."""
    cases: tuple[CaseFacts, ...] = ()
    """Of the card; without any, those that reach every kernel."""


def check(
    card: CardFacts,
    sides: Sides,
    gpu: Capability,
    asked: SanitizerOptions,
    workers: WorkerPool,
    started: WarmProcesses | None = None,
) -> record.Check:
    """What the tools find in the head of a card; the base is looked at where they find something. `started`: the tools,
    if this card's were started before.

    Skipped, with the reason, where there is no case or no tool ran one. Raises NoDeviceError without compute-sanitizer.
    """
    sanitizer = cuda_tools.find(SANITIZER)
    if not asked.cases and not of_card(card):
        return skipped(f"the card {card.name} has no cases for a GPU", card.name)
    patience = TIMEOUT_S if asked.seconds is None else asked.seconds * SEARCH_SHARE
    with nullcontext(started) if started else loading(sanitizer, asked.tools, sides.head, card) as processes:
        reached = Reach(asked.cases) if asked.cases else choose(sides.head, card, gpu, patience, workers)
        progress.say(f"sanitize {card.name}: {', '.join(case.id for case in reached.cases)}")
        runs = watch(processes, card, reached.cases, asked)
    found = [one for run in runs for one in run.findings]
    on_base: list[bool | None] = [None] * len(found)
    problems = [run.problem for run in runs if run.problem]
    if found and sides.base is not None:
        again = tuple(tool for tool in asked.tools if any(one.tool == tool for one in found))
        with loading(sanitizer, again, sides.base, card) as processes:
            before = watch(processes, card, reached.cases, replace(asked, tools=again))
        on_base = known_to(found, [one for run in before for one in run.findings])
        if gone := [run.problem for run in before if run.problem]:
            problems.append(f"of the base: {gone[0]}")
            on_base = [known or None for known in on_base]
    if reached.unknown:
        problems.append(reached.unknown)
    ran = sum(run.done for run in runs)
    return record.Check(
        kind="sanitizer",
        card=card.name,
        status="failed" if found else "passed" if ran else "skipped",
        reason="; ".join(problems)[:MAX_TEXT] or None,
        asked=len(asked.tools) * len(reached.cases),
        run=ran,
        failed=len(found),
        findings=tuple(
            _recorded(one, sides.head, gpu, known)
            for one, known in list(zip(found, on_base, strict=True))[:MAX_FINDINGS]
        ),
        tools=asked.tools,
        cases=tuple(case.id for case in reached.cases),
        unreached=tuple(name[:MAX_TEXT] for name in reached.unreached[:MAX_KERNELS]),
    )


def exit_code(done: Sequence[record.Check]) -> int:
    """0 nothing found, 1 something found, 3 not everything that was asked for was run."""
    if any(check.status == "failed" for check in done):
        return 1
    whole = all(check.status == "passed" and (check.run or 0) >= (check.asked or 0) for check in done)
    return 0 if whole else KernelgateError.exit_code


def skipped(reason: str, card: str) -> record.Check:
    return record.Check(kind="sanitizer", card=card, status="skipped", reason=reason)


@contextmanager
def loading(sanitizer: Path, tools: Sequence[str], library: Library, card: CardFacts) -> Iterator[WarmProcesses]:
    """The tools with torch below each of them; which cases they call can be said later."""
    call, ahead = WatchedCall.of(library, card, warm_up=0), imports({"head": library})
    watching = [Watching(words(sanitizer, tool), call, variables=EACH_ALLOCATED, ahead=ahead) for tool in tools]
    try:
        with watched_call.warm(watching, len(tools)) as processes:
            yield processes
    except OSError as error:
        raise KernelgateError(f"{sanitizer} cannot be started: {error.strerror}") from None


def watch(
    processes: WarmProcesses, card: CardFacts, cases: Sequence[CaseFacts], asked: SanitizerOptions
) -> tuple[ToolRun, ...]:
    """What each tool finds in a compiled kernel. They run side by side, each for as long as all of them may take."""
    axes = tuple(case.axes for case in cases)
    processes.watching = [replace(one, call=one.call.model_copy(update={"cases": axes})) for one in processes.watching]
    limit = TIMEOUT_S if asked.seconds is None else asked.seconds + STARTING_S * len(asked.tools)
    with progress.track("sanitize", len(asked.tools)) as advance:

        def run(tool: str, running: Running) -> ToolRun:
            done = followed(tool, running, [case.id for case in cases], limit)
            advance(f"{tool}, {card.name}")
            return done

        started = [partial(run, tool, processes.go(at)) for at, tool in enumerate(asked.tools)]
        return tuple(supervise.side_by_side(started, len(started)))


def known_to(found: Sequence[CheckFinding], before: Sequence[CheckFinding]) -> list[bool | None]:
    """Whether each finding is the base's, too: at the same line, or else at another one of the same kernel.

    No more of them are the base's than it has: lines move, but a second race in a kernel is new.
    """
    left, known = list(map(_place, before)), [False] * len(found)
    for length in (5, 3):  # with file and line, and without
        for number, place in enumerate(map(_place, found)):
            same = next((one for one in left if one[:length] == place[:length]), None)
            if same is not None and not known[number]:
                left.remove(same)
                known[number] = True
    return list(known)


def _place(one: CheckFinding) -> tuple[object, ...]:
    return one.tool, one.text, one.kernel, one.file, one.line


def _recorded(one: CheckFinding, library: Library, gpu: Capability, on_base: bool | None) -> CheckFinding:
    """As a record has it: the kernel's short name, and a file of the commit."""
    fitting = sources_of(one, library, gpu)
    path = fitting[0] if len(fitting) == 1 else None
    which = f"one of {' and '.join(fitting)}" if fitting else "which is not a file of this commit"
    elsewhere = f" ({one.file}:{one.line}, {which})" if one.file and path is None else ""
    return one.model_copy(
        update={
            "text": f"{one.text}{elsewhere}"[:MAX_TEXT],
            "kernel": _short_name(one)[:MAX_TEXT],
            "file": path,
            "line": one.line if path else None,
            "on_base": on_base,
        }
    )


def _short_name(one: CheckFinding) -> str:
    return machine_code.short_names([one.kernel or ""])[one.kernel or ""]


def sources_of(one: CheckFinding, library: Library, gpu: Capability) -> tuple[str, ...]:
    """The files of the commit that a finding may mean, from the repository's root: of its kernel's target, else of this
    GPU, else any. The tools give a file's name alone, and often a function's instead of its kernel's."""
    if one.file is None:
        return ()
    sources = library.manifest.sources
    kernel = _short_name(one)
    here = targets_on(library, gpu) & sources.keys()
    compiled = {each.target for each in library.manifest.kernels if each.name == kernel} & here
    name = PurePosixPath(one.file).name
    for targets in (compiled, here, sources.keys()):
        files = {path for target in targets for path in sources[target]}
        if fitting := tuple(sorted(path for path in files if PurePosixPath(path).name == name)):
            return fitting
    return ()


def words(sanitizer: Path, tool: str) -> tuple[str | Path, ...]:
    # The process waits for its turn before it uses CUDA: by default the tool gives it up after 10 s.
    return (sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), "--launch-timeout", "0")


@contextmanager
def started(card: CardFacts, head: Library, tools: Sequence[str]) -> Iterator[Mapping[str, WarmProcesses]]:
    """The tools of one card, by its name, while they load what they need before their turn, which takes as long as all
    that they are for. None where they cannot be started: `check` says why."""
    with ExitStack() as stack:
        try:
            processes = stack.enter_context(loading(cuda_tools.find(SANITIZER), tools, head, card))
        except KernelgateError:
            yield {}
        else:
            yield {card.name: processes}


def followed(tool: str, running: Running, cases: Sequence[str], limit_s: float) -> ToolRun:
    """What a tool says until it ends. `cases`: the ids of those that the process says it is done with."""
    output = _Output()
    ended = ""
    try:
        code = running.follow(
            TimeLimits(silence_s=60.0, total_s=limit_s),
            output.hear,
            lambda seconds: progress.say(f"{tool} has printed nothing for {seconds:.0f} s"),
        )
    except TimeoutError:
        code, ended = FOUND, f"was stopped after {limit_s:.0f} s"
    found = parse(tool, output.lines)
    if not ended and (code not in (0, FOUND) or output.done < len(cases)):
        ended = f"exited with {code}"
    elif not ended and code == FOUND and not found:
        ended = "found something that it did not describe"
    if not ended:
        return ToolRun(found, len(cases))
    done = max(0, min(output.done, len(cases) - 1))  # a tool that did not end well may have more to say
    where = f" in the case {cases[done]}" if cases else ""
    return ToolRun(found, done, f"{tool} {ended}{where}; last line: {output.last[:MAX_TEXT]}")


@dataclass
class _Output:
    """What of a tool's output is kept, and of the output of the process below it."""

    lines: list[str] = field(default_factory=list)
    """The tool's."""
    done: int = 0
    """The cases that the process is done with."""
    words: str = ""
    """The last line of the process."""

    def hear(self, line: str) -> None:
        if line == DONE:
            self.done += 1
        elif not line.startswith(_MARK):
            self.words = line.strip() or self.words
        elif len(self.lines) < MAX_LINES:
            self.lines.append(line)

    @property
    def last(self) -> str:
        """What says most of why it ended."""
        said = (line.removeprefix(_MARK).strip() for line in reversed(self.lines))
        return self.words or next(filter(None, said), "nothing")


def parse(tool: str, lines: Iterable[str]) -> tuple[CheckFinding, ...]:
    """The findings in compute-sanitizer's output, equal ones counted once."""
    found: list[CheckFinding] = []
    head: str | None = None
    for raw in lines:
        text = raw.removeprefix(_MARK).strip()
        if _HEAD.match(text):
            head = text
            where = _AT.search(text)
            if where is None:
                continue
            head = text[: where.start()].strip()
        else:
            where = _AT.match(text)
        if head is None or where is None:
            continue
        what = head.removeprefix("Error: ").removesuffix("access").rstrip(" .").replace("between Write", "at a write")
        line = int(where["line"]) if where["line"] else None
        found.append(CheckFinding(text=what, kernel=where["kernel"], file=where["file"], line=line, tool=tool))
        head = None
    return merged(found)


def merged(found: Iterable[CheckFinding]) -> tuple[CheckFinding, ...]:
    counts: dict[tuple[object, ...], CheckFinding] = {}
    for one in found:
        known = counts.get(_place(one))
        counts[_place(one)] = one.model_copy(update={"times": known.times + one.times}) if known else one
    return tuple(counts.values())


# ---- Which cases are watched: the smallest that together launch every kernel of a library ----------------------------
# Which kernels a case launches is asked of torch's profiler, in a process that calls each case once. It starts while
# the tools load torch, and is over before the first of them calls a kernel.

WORKER = f"{__name__}:launch_each"
LAUNCHES_STARTING_S = 30.0
"""For the process to load torch and the library, and for the profiler to start; on an H200 that took under 5 s."""

MOST_BYTES = 2.0**24
"""Of a case that a tool watches unless the card names it. On an H100, memcheck and racecheck took 25 s for 400 MB."""


class LaunchedKernels(Message):
    """The kernels of one case, as the profiler names them; none where the case could not be made, or was refused."""

    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reach:
    cases: tuple[CaseFacts, ...]
    unreached: tuple[str, ...] = ()
    """Kernels that no case of the card launches; none where not every case was tried."""
    unknown: str | None = None
    """What is not known of the kernels that are launched, and why."""


def of_card(card: CardFacts, fuzzed: Iterable[CaseFacts] = ()) -> tuple[CaseFacts, ...]:
    """Those that the card names for it; else its smallest timed one, since the tools slow a kernel down a hundredfold,
    or where that is larger than MOST_BYTES, the largest of `fuzzed` that is not."""
    timed = _by_size(card.suites["pr"])[:1]
    if card.sanitize or all(_bytes(case) <= MOST_BYTES for case in timed):
        return card.sanitize or tuple(timed)
    small = [case for case in fuzzed if _bytes(case) <= MOST_BYTES]
    return tuple(_by_size(small)[-1:] or timed)


def choose(library: Library, card: CardFacts, gpu: Capability, patience_s: float, workers: WorkerPool) -> Reach:
    """The card's own cases, and of its suites and fuzz list the smallest that launch a kernel which no earlier one
    launches, as far as that is found out in the time, which counts from when torch is loaded."""
    fuzzed = _fuzzed(card)
    own = of_card(card, fuzzed.values())
    names = [kernel.name for kernel in library.manifest.kernels if kernel.target in targets_on(library, gpu)]
    wanted = frozenset(machine_code.short_names(names).values())
    if library.manifest.kind == "package":  # those of its functions
        wanted = frozenset(name.partition(" at ")[0].partition("[")[0] for name in names)
    if not wanted:
        why = library.manifest.facts_missing or "nothing is known of the library's kernels"
        return Reach(own, unknown=f"which kernels these cases launch is not known: {why}")
    candidates = (*own, *_others(card, own, fuzzed))
    found, unknown = _launches(library, card, candidates, len(own), wanted, patience_s, workers)
    reached: set[str] = set()
    chosen: list[CaseFacts] = []
    for number, case in enumerate(candidates):
        new = found[number] & wanted - reached if number < len(found) else set()
        if number < len(own) or new:
            chosen.append(case)
            reached |= new
    missing = sorted(wanted - reached)
    if unknown is None and not reached:
        unknown = "the profiler saw no launch of any"
    if unknown and missing:
        seen = f"no case was seen to launch {len(missing)} of {len(wanted)} kernels, and the search is not whole"
        return Reach(tuple(chosen), unknown=f"{seen}: {unknown}")
    return Reach(tuple(chosen), tuple(missing))


def targets_on(library: Library, gpu: Capability) -> frozenset[str]:
    """Those of the library whose code runs on this GPU, such as "sm_90a"."""
    targets = [target(name.removeprefix("sm_")) for name in library.manifest.targets]
    return frozenset(sm(one) for one in archs.serving([gpu], targets))


def _others(card: CardFacts, own: Sequence[CaseFacts], fuzzed: Mapping[str, CaseFacts]) -> list[CaseFacts]:
    """The card's timed and fuzzed cases besides, the smallest first."""
    timed = {case.id: case for suite, cases in card.suites.items() if suite != "cpu" for case in cases}
    known = {case.id for case in own}
    return _by_size([case for id_, case in {**fuzzed, **timed}.items() if id_ not in known])


def _fuzzed(card: CardFacts) -> dict[str, CaseFacts]:
    trials = fuzz_trials.trials(0, card, "cuda")
    listed = [{axis: value for axis, value in one.axes.items() if axis != fuzz_trials.DISTRIBUTION} for one in trials]
    return {case.id: case for case in (cards.with_cases(card, listed).asked if listed else ())}


def _by_size(cases: Sequence[CaseFacts]) -> list[CaseFacts]:
    return sorted(cases, key=_bytes)


def _bytes(case: CaseFacts) -> float:
    """Where the card does not say, as if it had one tensor of all sizes in single precision."""
    return case.bytes or 4.0 * axes.size(case.axes)


def _launches(
    library: Library,
    card: CardFacts,
    candidates: Sequence[CaseFacts],
    least: int,
    wanted: frozenset[str],
    patience_s: float,
    workers: WorkerPool,
) -> tuple[list[set[str]], str | None]:
    """The kernels of each case, until all that are wanted are among them, of the first `least` anyway; and why some
    were not tried, where the time is over or the kernel takes the process down."""
    found: list[set[str]] = []
    deadline = None
    try:
        with workers.take(WORKER, imports({"head": library}), library.python) as worker:
            worker.ask(WatchedCall.of(library, card, *candidates), Ready, LAUNCHES_STARTING_S)
            deadline = time.monotonic() + patience_s
            while len(found) < len(candidates) and (len(found) < least or not wanted <= set().union(*found)):
                launched = worker.receive(LaunchedKernels, max(0.0, deadline - time.monotonic()))
                found.append(set(machine_code.short_names(launched.kernels).values()))
    except WorkerError as error:
        if deadline is not None and time.monotonic() >= deadline:
            return found, f"only {len(found)} of {len(candidates)} cases were tried in {patience_s:.0f} s"
        return found, str(error)
    return found, None


def launches(call: Callable[[], Any]) -> tuple[str, ...]:
    """The names of what a call runs on the GPU."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    events = profiler.events() or ()
    return tuple(dict.fromkeys(event.name for event in events if event.device_type.name == "CUDA"))


def launch_each(request: WatchedCall, leader: Leader) -> None:
    """Calls each case under torch's profiler, in order."""
    import torch

    from kernelgate.bench.kernel import loading, operands, triton_runtime

    with triton_runtime.shared([request.library.folder]):
        judge = loading.load(request.card)
        bound = operands.bind(request.library.read(), judge, "head")
        launches(lambda: None)  # the first time, the profiler takes seconds
        leader.send(Ready())
        for axes in request.cases:
            try:
                with triton_runtime.untuned(axes):
                    launched = LaunchedKernels(kernels=launches(watched_call.prepared_case(judge, bound, axes, "cuda")))
            except Exception:  # of the card's code, or of the kernel, which may refuse the case
                launched = LaunchedKernels()
                torch.cuda.synchronize()  # where the kernel has ended the context, that ends this process
            leader.send(launched)
