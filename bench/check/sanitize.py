"""compute-sanitizer over small cases: out-of-bounds and uninitialised accesses, races, misused barriers.

Each tool runs all cases in one process, since starting one under it takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath

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

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TIMEOUT_S = 300.0
FOUND = 7
"""The exit code that compute-sanitizer is told to give where it finds something."""
SANITIZER = "compute-sanitizer"
EACH_ALLOCATED = (("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"),)
"""Each tensor is memory of its own: in torch's pools nobody could see an access past its end."""
STARTING_S = 10.0
"""Of each tool, beyond its share of a card's seconds: on an H200, torch took 3 to 5 s to start under one."""
MAX_FINDINGS, MAX_LINES, MAX_TEXT = 50, 20_000, 500
"""Findings in a record, lines that are kept of a tool, and characters of one text."""

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
    """Of the card; without any, its small ones."""


def check(
    card: CardFacts,
    sides: Sides,
    gpu: Capability,
    asked: SanitizerOptions,
    started: WarmProcesses | None = None,
) -> record.Check:
    """What the tools find in the head of a card; the base is looked at where they find something. `started`: the tools,
    if this card's were started before.

    Skipped, with the reason, where there is no case or no tool ran one. Raises NoDeviceError without compute-sanitizer.
    """
    sanitizer = cuda_tools.find(SANITIZER)
    if not (cases := asked.cases or of_card(card)):
        return skipped(f"the card {card.name} has no cases for a GPU", card.name)
    progress.say(f"sanitize {card.name}: {', '.join(case.id for case in cases)}")
    with nullcontext(started) if started else loading(sanitizer, asked.tools, sides.head, card) as processes:
        runs = watch(processes, card, cases, asked)
    found = [one for run in runs for one in run.findings]
    on_base: list[bool | None] = [None] * len(found)
    problems = [run.problem for run in runs if run.problem]
    if found and sides.base is not None:
        again = tuple(tool for tool in asked.tools if any(one.tool == tool for one in found))
        with loading(sanitizer, again, sides.base, card) as processes:
            before = watch(processes, card, cases, replace(asked, tools=again))
        on_base = known_to(found, [one for run in before for one in run.findings])
        if gone := [run.problem for run in before if run.problem]:
            problems.append(f"of the base: {gone[0]}")
            on_base = [known or None for known in on_base]
    ran = sum(run.done for run in runs)
    return record.Check(
        kind="sanitizer",
        card=card.name,
        status="failed" if found else "passed" if ran else "skipped",
        reason="; ".join(problems)[:MAX_TEXT] or None,
        asked=len(asked.tools) * len(cases),
        run=ran,
        failed=len(found),
        findings=tuple(
            _recorded(one, sides.head, gpu, known)
            for one, known in list(zip(found, on_base, strict=True))[:MAX_FINDINGS]
        ),
        tools=asked.tools,
        cases=tuple(case.id for case in cases),
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
    elsewhere = f" ({one.file}:{one.line})" if one.file and path is None else ""
    return one.model_copy(
        update={
            "text": f"{one.text}{elsewhere}"[:MAX_TEXT],
            "kernel": machine_code.short_names([one.kernel or ""])[one.kernel or ""][:MAX_TEXT],
            "file": path,
            "line": one.line if path else None,
            "on_base": on_base,
        }
    )


def sources_of(one: CheckFinding, library: Library, gpu: Capability) -> tuple[str, ...]:
    """The files of the commit that a finding may mean, from the repository's root, of what was compiled for this GPU.
    The tools give a file's name alone."""
    if one.file is None:
        return ()
    built = [target(name.removeprefix("sm_")) for name in library.manifest.targets]
    served = {sm(each) for each in archs.serving([gpu], built)}
    files = {path for name, paths in library.manifest.sources.items() if name in served for path in paths}
    return tuple(sorted(path for path in files if PurePosixPath(path).name == PurePosixPath(one.file).name))


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
        running.follow(
            TimeLimits(silence_s=60.0, total_s=limit_s),
            output.hear,
            lambda seconds: progress.say(f"{tool} has printed nothing for {seconds:.0f} s"),
        )
        code = running.process.wait()
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
    done: int = 0
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
            if (where := _AT.search(text)) is None:
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


# ---- Which cases are watched --------------------------------------------------------------------------------------

MOST_BYTES = 2.0**24
"""Of a case that a tool watches unless the card names it. On an H100, memcheck and racecheck took 25 s for 400 MB."""


def of_card(card: CardFacts) -> tuple[CaseFacts, ...]:
    """Those that the card names for it; else its smallest timed one, since the tools slow a kernel down a hundredfold,
    or where that is larger than MOST_BYTES, the largest fuzzed one that is not."""
    timed = sorted(card.suites["pr"], key=_bytes)[:1]
    if card.sanitize or all(_bytes(case) <= MOST_BYTES for case in timed):
        return card.sanitize or tuple(timed)
    trials = fuzz_trials.trials(0, card, "cuda")
    listed = [{axis: value for axis, value in one.axes.items() if axis != fuzz_trials.DISTRIBUTION} for one in trials]
    fuzzed = cards.with_cases(card, listed).asked if listed else ()
    small = [case for case in fuzzed if _bytes(case) <= MOST_BYTES]
    return (max(small, key=_bytes),) if small else tuple(timed)


def _bytes(case: CaseFacts) -> float:
    """Where the card does not say, as if it had one tensor of all sizes in single precision."""
    return case.bytes or 4.0 * axes.size(case.axes)
