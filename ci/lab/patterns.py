"""Patterns, the sections of docs/patterns.md: what each says, which apply now, and why.

A pattern names checks; each looks at plain data, and says in a clause the figure that makes the pattern apply now; None
where it does not, or where that cannot be told from what was looked at. A check never guesses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.record import CaseKey, RunRecord, rates, timed_cases
from kernelgate.bench.system.progress import say
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.explain.next_step import LAUNCH_SHARE, PROFILE_BELOW, LaunchShare
from kernelgate.ci.judge import reference
from kernelgate.ci.judge.case import CaseVerdict
from kernelgate.ci.judge.verdict import judge
from kernelgate.ci.lab import folder, log, state, variables
from kernelgate.ci.lab.log import Closed, Event, GateAttempt, GateName, Opened, TriedChange
from kernelgate.ci.lab.state import BISECT_AFTER_MINUTES, kept_since, times_as_fast
from kernelgate.ci.policy.policy import Policy

FILE = Path(".ci/patterns.md")
SHIPPED = Path(__file__).parent / "patterns.md"
"""Kernelgate's own: in a checkout a link to docs/patterns.md."""
SECTION = re.compile(r"^## (.+)\n((?:(?!## ).*\n?)*)", re.MULTILINE)
LINE = re.compile(r"^- (\w+): (.+)$", re.MULTILINE)
REQUIRED = ("When", "Do", "Run", "Check", "Evidence")
OPTIONAL = ("Saves",)


@dataclass(frozen=True)
class Pattern:
    name: str
    when: str
    do: str
    command: str
    signals: tuple[str, ...]
    evidence: str
    saves: str | None
    """What documents say that it saves; nobody measured it."""


def file_of(checkout: Path) -> Path:
    """The checkout's own patterns, where it has any; else kernelgate's."""
    own = checkout / FILE
    return own if own.is_file() else SHIPPED


def read_all(path: Path) -> tuple[Pattern, ...]:
    """All patterns of a file, in its order; a section that is none is said and left out. Raises KernelgateError."""
    found: list[Pattern] = []
    for name, lines in SECTION.findall(folder.text_of(path)):
        try:
            found.append(_pattern(path, name.strip(), lines))
        except KernelgateError as error:
            say(f"left out: {error}")
    if not found:
        raise KernelgateError(f"{path} has no pattern: each is a section, which begins with a line `## NAME`")
    return tuple(found)


def _pattern(path: Path, name: str, section: str) -> Pattern:
    said = dict(LINE.findall(section))
    if lacks := [one for one in REQUIRED if one not in said]:
        raise KernelgateError(f"{path}: pattern {name} has no line `- {lacks[0]}: …`")
    if strange := [one for one in said if one not in (*REQUIRED, *OPTIONAL)]:
        known = ", ".join((*REQUIRED, *OPTIONAL))
        raise KernelgateError(f"{path}: pattern {name} has a line `- {strange[0]}: …`; known are {known}")
    signals = tuple(re.findall(r"`(\w+)`", said["Check"]))
    if unknown := next((one for one in signals if one not in SIGNALS), None):
        known = ", ".join(SIGNALS)
        raise KernelgateError(f"{path}: pattern {name}: no signal is called {unknown!r}; there are {known}")
    command = said["Run"].strip("`")
    return Pattern(name, said["When"], said["Do"], command, signals, said["Evidence"], said.get("Saves"))


# ---- which apply now -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Applies:
    """A pattern, and what was seen, with its figure: nothing where it does not apply."""

    pattern: Pattern
    why: tuple[str, ...]


@dataclass(frozen=True)
class PatternsNow:
    """What `kernelgate patterns` answers."""

    looked_at: tuple[str, ...]
    patterns: tuple[Applies, ...]


def applying(patterns: Iterable[Pattern], seen: Seen, every: bool = False) -> tuple[Applies, ...]:
    """Those with a signal that fires, in their order; with `every` all, each with what was seen."""
    found = []
    for pattern in patterns:
        said = (SIGNALS[name](seen) for name in pattern.signals)
        found.append(Applies(pattern, tuple(dict.fromkeys(filter(None, said)))))
    return tuple(one for one in found if one.why or every)


NOTHING = "Nothing was looked at: no session is open. Give --session, --record or --doctor; --all lists all patterns."


def to_text(now: PatternsNow) -> str:
    """Each with why it applies and what to run; of all patterns also when they apply."""
    found = []
    for known in now.patterns:
        one = known.pattern
        why = [f"  now:  {said}" for said in known.why] or [f"  when: {one.when}"]
        found.append("\n".join([one.name, *why, f"  do:   {one.do}", f"  run:  {one.command}"]))
    looked = f"No pattern applies, by {' and '.join(now.looked_at)}." if now.looked_at else NOTHING
    return "\n\n".join(found) or looked


# ---- the checks ------------------------------------------------------------------------------------------------------

PATTERNS_SILENT_S: Final = 120.0
"""A command of a session that printed nothing for so long went against the pattern cadence: a report every 2 to 3
minutes."""


@dataclass(frozen=True)
class DoctorFinding:
    """One of `kernelgate doctor --json`'s checks that did not pass: it failed, or warns."""

    name: str
    failed: bool
    found: str
    fix: str | None = None


def findings(path: Path) -> tuple[DoctorFinding, ...]:
    """What did not pass in a file that `kernelgate doctor --output` wrote. Raises KernelgateError."""
    try:
        checks = [one for one in json.loads(files.content(path))["checks"] if one["level"] != "passed"]
        rows = ((str(one["name"]), one["level"] == "failed", str(one["found"]), one.get("fix")) for one in checks)
        return tuple(DoctorFinding(*row) for row in rows)
    except OSError as error:
        raise KernelgateError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise KernelgateError(f"{path} is not what `kernelgate doctor --output {path}` writes") from None


@dataclass(frozen=True)
class Seen:
    """What is known now. What was not looked at is empty, and lets no pattern apply."""

    events: tuple[Event, ...] = ()
    record: RunRecord | None = None
    findings: tuple[DoctorFinding, ...] = ()
    policy: Policy = field(default_factory=Policy)

    @cached_property
    def judged(self) -> Mapping[CaseKey, CaseVerdict]:
        verdict = judge(self.record, self.policy) if self.record else None
        return {one.key: one for one in verdict.cases} if verdict else {}

    @cached_property
    def speedups(self) -> Mapping[str, float]:
        """By case: how many times as fast as the reference, where the judge that decides verdicts has it proven."""
        times = {_named(key): reference.times(one) for key, one in self.judged.items()}
        return {case: value for case, value in times.items() if value is not None}

    @cached_property
    def launch_shares(self) -> Mapping[str, float]:
        """By case: the launch's part of a call, from 0 to 1, where a graph's replay was timed."""
        us = {key: one.head_us for key, one in self.judged.items()}
        timed = timed_cases(self.record) if self.record else ()
        heads = ((case.key, rates.rate(case, "head", us.get(case.key))) for case in timed)
        shares = ((_named(key), LaunchShare(one.us, one.graph_us)) for key, one in heads if one and one.graph_us)
        return {case: one.launch_us / one.call_us for case, one in shares}

    @cached_property
    def tries(self) -> tuple[TriedChange, ...]:
        return log.tries(self.events)

    @cached_property
    def closed(self) -> Closed | None:
        return log.closed_of(self.events)

    @cached_property
    def work(self) -> list[GateAttempt | TriedChange]:
        return [one for one in self.events if isinstance(one, GateAttempt | TriedChange)]

    @cached_property
    def last_timed(self) -> tuple[GateAttempt, float] | None:
        """The last performance gate with figures, and how many times as fast as the reference the kernel is now: with
        what was kept since."""
        timed = ((one, one.speedup) for one in reversed(self.gates("performance")))
        found = next(((one, times) for one, times in timed if times), None)
        return found and (found[0], found[1] * times_as_fast(kept_since(self.events, found[0])))

    @property
    def is_of_cpu(self) -> bool:
        return any(isinstance(one, Opened) and one.gpu == "cpu" for one in self.events)

    def gates(self, name: GateName) -> tuple[GateAttempt, ...]:
        return log.gates(self.events, name)

    def failures(self, words: re.Pattern[str]) -> Iterator[str]:
        """What the tools said of things that failed and have not been passed since, the last first, where it holds
        these words. What the environment says of itself is no matter of the kernel's sources."""
        passed: set[str] = {"environment"}
        for event in reversed(self.work):
            if isinstance(event, TriedChange):
                last = event.failed and event.number == self.tries[-1].number
                said = f"try {event.number}: {event.said}" if last else ""
            else:
                said = "" if event.passed or event.gate in passed else event.said
                passed |= {event.gate} if event.passed else set()
            if words.search(said):
                yield said


Signal = Callable[[Seen], str | None]

UNDEFINED = re.compile(r"undefined (symbol|reference)", re.IGNORECASE)
HALF = r"(c10::|at::|\b__)(Half|half|BFloat16|nv_bfloat16)"
MIXED_TYPES = re.compile(rf"multiple definition|{HALF}.*(convert|mismatch)|(convert|mismatch).*{HALF}")
RESOURCES = re.compile(
    r"too many resources|invalid configuration|too much shared data|limit of shared memory|shared memory.*exceed",
    re.IGNORECASE,
)


def reference_unmeasured(seen: Seen) -> str | None:
    """Results are right, and nobody knows how fast the reference is."""
    if seen.record is not None:
        cases = [case for case in timed_cases(seen.record) if case.processes]
        timings = [one.timing for case in cases for one in case.processes]
        unable = ("no_reference", "reference_fails")
        tried = any(note.code in unable for note in seen.record.notes)  # it cannot be timed there
        if cases and not tried and not any("reference" in {*one.samples_us, *one.condensed} for one in timings):
            return f"the record times {counted(len(cases), 'case')} and no reference"
    right = any(one.passed for one in seen.gates("correctness"))
    measured = seen.closed or any(one.speedup for one in seen.gates("performance"))
    return "results are right, and the reference was not measured yet" if right and not measured else None


def slow_without_profile(seen: Seen) -> str | None:
    """Slower than the reference, and no profile says why."""
    profiled = seen.record is None or any(one.side == "head" for one in seen.record.profile)
    if not profiled and (found := _slowest(seen.speedups)):
        return f"{found}, and the record holds no profile"
    if seen.is_of_cpu or seen.last_timed is None or seen.last_timed[1] >= PROFILE_BELOW:
        return None
    last, times = seen.last_timed
    later = seen.events[seen.events.index(last) + 1 :]
    if any(_is_proven(one, "profile") or (isinstance(one, TriedChange) and one.bottleneck) for one in later):
        return None  # the gate or a try, which profiles both sides, named a bottleneck since
    return f"{times:.2g}× the reference, and no profile since"


def blind_tries(seen: Seen) -> str | None:
    """Changes that nothing measured had asked for."""
    if seen.is_of_cpu or any(one.skipped for one in seen.gates("profile")[-1:]):
        return None
    blind = [one for one in seen.tries if one.bottleneck is None and one.failed is None]
    return f"{_numbered(blind)} without a bottleneck that a profile named" if blind else None


def below_reference(seen: Seen) -> str | None:
    """Somebody else's code for the same work is faster, and not by so much that something must be broken."""
    least = seen.policy.gates.reference_min
    if slow := _slowest({case: times for case, times in seen.speedups.items() if times >= least}):
        return slow
    times = seen.last_timed[1] if seen.last_timed else 0.0
    return f"{times:.2g}× the reference" if least <= times < PROFILE_BELOW else None


def launch_heavy(seen: Seen) -> str | None:
    case, share = max(seen.launch_shares.items(), key=lambda one: one[1], default=("", 0.0))
    return f"the launch takes {100 * share:.0f}% of a call of {case}" if share > LAUNCH_SHARE else None


def wrong_results(seen: Seen) -> str | None:
    """Something computes what it should not, now."""
    fuzzed = seen.record.fuzz if seen.record else None
    if fuzzed is not None and fuzzed.status == "failed":
        wrong = [one for one in fuzzed.results if one.fails]
        count = f"{len(wrong)} of {len(fuzzed.results)} fuzz cases failed" if wrong else "fuzzing failed"
        return f"{count}; the first: {wrong[0].smallest or wrong[0].id}" if wrong else count
    for attempt in seen.gates("correctness")[-1:]:
        if not attempt.passed and not seen.closed:
            return attempt.said
    wrongly = (one for one in seen.tries[-1:] if one.failed == "correctness" and one.decision != "reverted")
    return next((f"try {one.number}: {one.said}" for one in wrongly), None)


def timed_unchecked(seen: Seen) -> str | None:
    """Times of something that nobody knows to be right."""
    if seen.record is not None and seen.record.processes:
        fuzzed = seen.record.fuzz is not None and seen.record.fuzz.status != "skipped"
        if not fuzzed and not any(timing.errors for process in seen.record.processes for timing in process.timings):
            return "the record holds times, and neither fuzz results nor errors of what was timed"
    return None


def several_variables(seen: Seen) -> str | None:
    warned = ((one, variables.warning(one.variables)) for one in reversed(seen.tries))
    return next((f"try {one.number}: {said}" for one, said in warned if said), None)


def kept_uncertain(seen: Seen) -> str | None:
    """A change that was kept although its effect is not certain to be a gain."""
    kept = [one for one in seen.tries if one.decision == "kept"]
    loose = [tried for tried in kept if all(one.interval_pct[1] >= 0 for one in tried.outcomes)]
    return f"{_numbered(loose)} kept, and its effect is not certain to be a gain" if loose else None


def environment_unchecked(seen: Seen) -> str | None:
    """An open session whose environment nobody looked at, or a machine that is not fit."""
    for one in seen.findings:
        if one.failed:
            return f"doctor: {one.name}: {one.found}"
    attempts = seen.gates("environment")
    if not seen.events or seen.closed or any(one.passed for one in attempts):
        return None
    return attempts[-1].said if attempts else "the session's environment was not looked at yet"


def environment_skipped(seen: Seen) -> str | None:
    """Work on a machine before it was known to be fit, or on another than the one that was looked at."""
    machines: list[str | None] = []
    for event in seen.work:
        if _is_proven(event, "environment"):
            machines.append(event.machine)
        elif isinstance(event, TriedChange) or event.gate not in ("environment", "document"):
            if not machines:
                return "work began before the environment was known to be valid"
            if event.machine is not None and None not in machines and event.machine not in machines:
                return f"{_called(event)} was on another machine than the one whose environment was looked at"
    return None


def cold_starts(seen: Seen) -> str | None:
    """The session's work went on on another machine, or after another start of it."""
    known = [one for one in seen.work if one.machine is not None]
    for after, before in pairwise(reversed(known)):
        if before.machine != after.machine:
            return f"another machine, or a new start of it, between {_called(before)} and {_called(after)}"
    return None


def build_keeps_failing(seen: Seen) -> str | None:
    """For too long since its first failure, which is not the time of its attempts alone."""
    last = next((one.at for one in reversed(seen.events) if one.at), None)
    minutes = state.failing_build_minutes(seen.events, last)
    many = counted(len(seen.gates("build")), "attempt")
    return f"the build has failed for {minutes:.0f} min, in {many}" if minutes >= BISECT_AFTER_MINUTES else None


def symbol_undefined(seen: Seen) -> str | None:
    return next(seen.failures(UNDEFINED), None)


def types_mixed(seen: Seen) -> str | None:
    return next(seen.failures(MIXED_TYPES), None)


def resources_exceeded(seen: Seen) -> str | None:
    """A kernel of which no block fits, by what the compiler counted; or that compiler or driver refused for it."""
    if seen.record is not None:
        names = {word for one in seen.record.environments for word in (one.device.name or "").split()}
        for kernel in (kernel for one in seen.record.builds if one.side == "head" for kernel in one.kernels):
            for gpu, share in kernel.occupancy_pct.items():
                if share == 0 and names & set(gpu.split(" and ")):
                    limits = kernel.occupancy_limits.get(gpu, "its resources")
                    return f"no block of {kernel.name} fits a multiprocessor of {gpu}, by {limits}"
    return next(seen.failures(RESOURCES), None)


def machine_lost(seen: Seen) -> str | None:
    if seen.record is not None and seen.record.run.ended == "preempted":
        return "the record's run was preempted"
    return seen.closed.said if seen.closed and seen.closed.why == "machine" else None


def silent_work(seen: Seen) -> str | None:
    """A command of the session that printed nothing for too long. Between commands nobody knows who works or thinks."""
    most = max(seen.work, key=lambda one: one.silent_s or 0.0, default=None)
    if most and most.silent_s and most.silent_s >= PATTERNS_SILENT_S:
        return f"{_called(most)} printed nothing for {most.silent_s:.0f} s: {most.said}"
    return None


def foreign_target(seen: Seen) -> str | None:
    """Compiled for other GPUs than the one at hand."""
    if seen.record is None:
        return None
    targets = sorted({target for one in seen.record.builds if one.side == "head" for target in one.targets})
    for capability in (one.device.compute_capability for one in seen.record.environments):
        device = f"sm_{(capability or '').replace('.', '')}"
        if targets and capability and device not in {target.rstrip("af") for target in targets}:
            return f"compiled for {', '.join(targets)}, measured on {device}"
    return None


SIGNALS: Final[dict[str, Signal]] = {
    check.__name__: check
    for check in (
        reference_unmeasured, slow_without_profile, blind_tries, below_reference, launch_heavy, wrong_results,
        timed_unchecked, several_variables, kept_uncertain, environment_unchecked, environment_skipped, cold_starts,
        build_keeps_failing, symbol_undefined, types_mixed, resources_exceeded, machine_lost, silent_work,
        foreign_target,
    )
}  # fmt: skip


def _is_proven(event: Event, gate: GateName) -> bool:
    """Whether a gate was passed by being tried."""
    return isinstance(event, GateAttempt) and event.gate == gate and event.passed and not event.skipped


def _called(event: GateAttempt | TriedChange) -> str:
    return f"try {event.number}" if isinstance(event, TriedChange) else f"the gate {event.gate}"


def _slowest(speedups: Mapping[str, float]) -> str | None:
    case, times = min(speedups.items(), key=lambda one: one[1], default=("", PROFILE_BELOW))
    return f"{case} runs at {times:.2g}× the reference" if times < PROFILE_BELOW else None


def _numbered(tries: Sequence[TriedChange]) -> str:
    return f"{'try' if len(tries) == 1 else 'tries'} {', '.join(str(one.number) for one in tries)}"


def _named(key: CaseKey) -> str:
    return f"{key.card}/{key.id}" if key.card else key.id
