"""The checks of patterns: each looks at plain data, and says in a clause the figure that makes the pattern apply now.

None: it does not apply, or that cannot be told from what was looked at. A check never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from kernelgate.bench.record import RunRecord, Timing, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.lab import log, variables
from kernelgate.ci.lab.seen import Seen, Thresholds
from kernelgate.ci.lab.state import failing_build_minutes, kept_since, times_as_fast

Signal = Callable[[Seen, Thresholds], str | None]

UNDEFINED = re.compile(r"undefined (symbol|reference)", re.IGNORECASE)
NAMED = re.compile(r"undefined (?:symbol:|reference to)\s*[`'\"]?([^'\"`\n]+)", re.IGNORECASE)
HALF = r"(c10::|at::|\b__)(Half|half|BFloat16|nv_bfloat16)"
MIXED_TYPES = re.compile(rf"multiple definition|{HALF}.*(convert|mismatch)|(convert|mismatch).*{HALF}")
RESOURCES = re.compile(
    r"too many resources|invalid configuration|too much shared data|limit of shared memory|shared memory.*exceed",
    re.IGNORECASE,
)
LOST = re.compile(r"preempt|machine (was )?(lost|ended|taken)|SIGTERM", re.IGNORECASE)
ARCH_LIST = "TORCH_CUDA_ARCH_LIST"


def reference_unmeasured(seen: Seen, _: Thresholds) -> str | None:
    """Results are right, and nobody knows how fast the reference is."""
    if seen.record is not None:
        cases = [case for case in timed_cases(seen.record) if case.processes]
        tried = any(note.code == "no_reference" for note in seen.record.notes)  # it cannot be timed there
        if cases and not tried and not any(_has_reference(one.timing) for case in cases for one in case.processes):
            return f"the record times {formatting.counted(len(cases), 'case')} and no reference"
    if any(map(speedup, seen.gates("performance"))) or _closed(seen):
        return None
    if seen.tries:
        return f"{_counted_tries(seen)}, and the reference was never measured"
    if (skipped := _skipped(seen, "performance")) is not None:
        return f"the reference was not measured: {skipped}"
    if _passed(seen, "correctness"):
        return "results are right, and the reference was not measured yet"
    return None


def slow_without_profile(seen: Seen, limits: Thresholds) -> str | None:
    """Slower than the reference, and no profile says why."""
    if seen.record is not None and not any(one.side == "head" for one in seen.record.profile):
        found = _slowest(seen, limits.profile_below)
        if found:
            return f"{found}, and the record holds no profile"
    if _is_of_cpu(seen):
        return None
    last, times = _last_timed(seen)
    if times is None or times >= limits.profile_below or _profiled_after(seen, last):
        return None
    reason = _skipped(seen, "profile")
    return f"{times:.2g}× the reference, and no profile since{f': {reason}' if reason else ''}"


def blind_tries(seen: Seen, _: Thresholds) -> str | None:
    """Changes that nothing measured had asked for."""
    if _is_of_cpu(seen) or _skipped(seen, "profile") is not None:
        return None
    blind = [one.number for one in seen.tries if one.bottleneck is None and one.failed is None]
    return f"{_numbered(blind)} without a bottleneck that a profile named" if blind else None


def below_reference(seen: Seen, limits: Thresholds) -> str | None:
    """Somebody else's code for the same work is faster, and not by so much that something must be broken."""
    found = {case: times for case, times in seen.times.speedups.items() if times >= limits.stop_below}
    slow = _slowest_of(found, limits.profile_below)
    if slow:
        return slow
    _, times = _last_timed(seen)
    near = times is not None and limits.stop_below <= times < limits.profile_below
    return f"{times:.2g}× the reference" if near else None


def launch_heavy(seen: Seen, limits: Thresholds) -> str | None:
    shares = {case: share for case, share in seen.times.launch_shares.items() if share > limits.launch_share}
    if not shares:
        return None
    case, share = max(shares.items(), key=lambda one: one[1])
    return f"the launch takes {100 * share:.0f}% of a call of {case}"


def wrong_results(seen: Seen, _: Thresholds) -> str | None:
    """Something computes what it should not, now."""
    fuzzed = seen.record.fuzz if seen.record else None
    if fuzzed is not None and fuzzed.status == "failed":
        wrong = [one for one in fuzzed.results if not one.passed]
        count = f"{len(wrong)} of {len(fuzzed.results)} fuzz cases failed" if wrong else "fuzzing failed"
        return f"{count}; the first: {wrong[0].smallest or wrong[0].id}" if wrong else count
    last = next(iter(reversed([*seen.gates("correctness")])), None)
    if last is not None and not last.passed and not _closed(seen):
        return last.said
    tried = seen.tries[-1] if seen.tries else None
    if tried is None or tried.failed != "correctness" or _reverted(seen, tried):
        return None
    return f"try {tried.number}: {tried.said}"


def timed_unchecked(seen: Seen, _: Thresholds) -> str | None:
    """Times of something that nobody knows to be right."""
    if seen.record is not None and seen.record.processes and not _checked(seen.record):
        return "the record holds times, and neither fuzz results nor errors of what was timed"
    first_right = _place(seen, lambda one: _is_proven(one, "correctness"))
    first_timed = _place(seen, lambda one: isinstance(one, log.GateAttempt) and one.gate == "performance")
    early = first_timed is not None and (first_right is None or first_timed < first_right)
    if not early:
        return None
    skipped = _skipped(seen, "correctness")
    return f"speed was measured before results were known to be right{f': {skipped}' if skipped else ''}"


def several_variables(seen: Seen, _: Thresholds) -> str | None:
    mixed = [one for one in seen.tries if variables.several(one.variables)]
    return f"try {mixed[-1].number}: {variables.warning(mixed[-1].variables)}" if mixed else None


def kept_uncertain(seen: Seen, _: Thresholds) -> str | None:
    """A change that was kept although its effect is not certain to be a gain."""
    by_number = {one.number: one for one in seen.tries}
    kept = [one.number for one in seen.events if isinstance(one, log.Decided) and one.kept]
    loose = [number for number in kept if number in by_number and not _certain_gain(by_number[number])]
    return f"{_numbered(loose)} kept, and its effect is not certain to be a gain" if loose else None


def environment_unchecked(seen: Seen, _: Thresholds) -> str | None:
    """An open session whose environment nobody looked at, or a machine that is not fit."""
    failed = [one for one in seen.findings if one.failed]
    if failed:
        return f"doctor: {failed[0].name}: {failed[0].found}"
    if not seen.events or _closed(seen) or _passed(seen, "environment"):
        return None
    attempts = seen.gates("environment")
    return attempts[-1].said if attempts else "the session's environment was not looked at yet"


def environment_skipped(seen: Seen, _: Thresholds) -> str | None:
    """Work on a machine before it was known to be fit, or on another than the one that was looked at."""
    for place, event in enumerate(seen.events):
        if not isinstance(event, log.TriedChange) and not _is_later_gate(event):
            continue
        valid = [one for one in seen.events[:place] if _is_proven(one, "environment")]
        machines = {one.machine for one in valid if isinstance(one, log.GateAttempt)}
        if not valid:
            reason = _skipped(seen, "environment")
            return f"work began before the environment was known to be valid{f': {reason}' if reason else ''}"
        if None not in machines and (here := _machine(event)) is not None and here not in machines:
            return f"{_called(event)} was on another machine than the one whose environment was looked at"
    return None


def cold_starts(seen: Seen, _: Thresholds) -> str | None:
    """The session's work went on on another machine, or after another start of it."""
    known = [one for one in seen.events if _machine(one) is not None]
    changed = [(before, after) for before, after in pairwise(known) if _machine(before) != _machine(after)]
    if not changed:
        return None
    before, after = changed[-1]
    again = sum(one.seconds or 0.0 for one in seen.gates("environment")[1:]) / 60
    cost = f"; to look at the environment again took {again:.0f} min" if again >= 1 else ""
    return f"another machine, or a new start of it, between {_called(before)} and {_called(after)}{cost}"


def build_keeps_failing(seen: Seen, limits: Thresholds) -> str | None:
    """Longer than the policy gives a failing build: since its first failure, not the time of its attempts alone."""
    last = next((one.at for one in reversed(seen.events) if one.at is not None), None)
    minutes = failing_build_minutes(seen.events, last)
    if minutes < limits.build_minutes:
        return None
    attempts = len(seen.gates("build"))
    return f"the build has failed for {minutes:.0f} min, in {formatting.counted(attempts, 'attempt')}"


def symbol_undefined(seen: Seen, _: Thresholds) -> str | None:
    """Of a template, as far as the linker names it: a function of another library is not missing an instantiation."""
    for said in _failures(seen, UNDEFINED):
        names = NAMED.findall(said)
        if not names or any(map(_is_template, names)):
            return said
    return None


def types_mixed(seen: Seen, _: Thresholds) -> str | None:
    return next(_failures(seen, MIXED_TYPES), None)


def resources_exceeded(seen: Seen, _: Thresholds) -> str | None:
    """A kernel of which no block fits, by what the compiler counted; or that compiler or driver refused for it."""
    if seen.record is not None:
        names = [one.device.name or "" for one in seen.record.environments]
        for kernel in (kernel for one in seen.record.builds if one.side == "head" for kernel in one.kernels):
            for gpu, share in kernel.occupancy_pct.items():
                here = any(model in name.split() for name in names for model in gpu.split(" and "))
                if share == 0 and here:
                    limits = kernel.occupancy_limits.get(gpu, "its resources")
                    return f"no block of {kernel.name} fits a multiprocessor of {gpu}, by {limits}"
    return next(_failures(seen, RESOURCES), None)


def machine_lost(seen: Seen, _: Thresholds) -> str | None:
    """Of a session that kernelgate measured by its end and the record's; of one told of in a document by its words."""
    if seen.record is not None and seen.record.run.ended == "preempted":
        return "the record's run was preempted"
    closed = [one for one in seen.events if isinstance(one, log.Closed)]
    ended = next((one.said for one in closed if one.why == "machine"), None)
    if ended is not None or seen.opened is None or seen.opened.source == "measured":
        return ended
    return next((one.said for one in closed if LOST.search(one.said)), None) or next(_failures(seen, LOST), None)


def silent_work(seen: Seen, limits: Thresholds) -> str | None:
    """A command of the session that printed nothing for too long. Between commands nobody knows who works or thinks."""
    work = [one for one in seen.events if isinstance(one, log.GateAttempt | log.TriedChange)]
    silent = [one for one in work if (one.silent_s or 0.0) >= limits.silent_s]
    if not silent:
        return None
    most = max(silent, key=lambda one: one.silent_s or 0.0)
    return f"{_called(most)} printed nothing for {most.silent_s:.0f} s: {most.said}"


def foreign_target(seen: Seen, _: Thresholds) -> str | None:
    """Compiled for other GPUs than the one at hand."""
    left_out = next((one for one in seen.findings if one.name == ARCH_LIST and "leaves out" in one.found), None)
    if left_out:
        return f"doctor: {left_out.found}"
    if seen.record is None:
        return None
    capabilities = [one.device.compute_capability for one in seen.record.environments]
    devices = [f"sm_{capability.replace('.', '')}" for capability in capabilities if capability]
    targets = sorted({target for one in seen.record.builds if one.side == "head" for target in one.targets})
    native = {target.rstrip("af") for target in targets}
    foreign = next((device for device in devices if device not in native), None)
    return f"compiled for {_listed(targets)}, measured on {foreign}" if targets and foreign else None


def speedup(gate: log.GateAttempt) -> float | None:
    """Over the reference, from whichever figures the gate gives."""
    seen = gate.figures
    if seen.get("speedup"):
        return seen["speedup"]
    reference, ours = seen.get("reference_ms"), seen.get("ours_ms")
    return reference / ours if reference and ours else None


SIGNALS: Final[dict[str, Signal]] = {
    check.__name__: check
    for check in (
        reference_unmeasured, slow_without_profile, blind_tries, below_reference, launch_heavy, wrong_results,
        timed_unchecked, several_variables, kept_uncertain, environment_unchecked, environment_skipped, cold_starts,
        build_keeps_failing, symbol_undefined, types_mixed, resources_exceeded, machine_lost, silent_work,
        foreign_target,
    )
}  # fmt: skip


def _failures(seen: Seen, words: re.Pattern[str]) -> Iterator[str]:
    """What the tools said of things that failed and have not been passed since, the last first, where it holds these
    words. What the environment says of itself is no matter of the kernel's sources."""
    for event in reversed(seen.events):
        if isinstance(event, log.GateAttempt) and not event.passed and event.gate != "environment":
            said = None if _passed_after(seen, event) else event.said
        else:
            is_last = isinstance(event, log.TriedChange) and event is seen.tries[-1] and event.failed
            said = f"try {event.number}: {event.said}" if isinstance(event, log.TriedChange) and is_last else None
        if said is not None and words.search(said):
            yield said


def _has_reference(timing: Timing) -> bool:
    return "reference" in timing.samples_us or "reference" in timing.condensed


def _checked(record: RunRecord) -> bool:
    fuzzed = record.fuzz is not None and record.fuzz.status != "skipped"
    return fuzzed or any(timing.errors for process in record.processes for timing in process.timings)


def _is_proven(event: log.Event, gate: log.GateName) -> bool:
    """Whether a gate was passed by being tried."""
    return isinstance(event, log.GateAttempt) and event.gate == gate and event.passed and not event.skipped


def _skipped(seen: Seen, gate: log.GateName) -> str | None:
    """Why a gate was passed over and never tried since."""
    last = next(iter(reversed(seen.gates(gate))), None)
    return last.skipped if last else None


def _is_of_cpu(seen: Seen) -> bool:
    return seen.opened is not None and seen.opened.gpu == "cpu"


def _last_timed(seen: Seen) -> tuple[log.GateAttempt | None, float | None]:
    """The last performance gate with figures, and how many times as fast as the reference the kernel is now: with what
    was kept since."""
    last = next((one for one in reversed(seen.gates("performance")) if speedup(one)), None)
    times = speedup(last) if last else None
    return last, times * times_as_fast(kept_since(seen.events, last)) if last and times else None


def _is_template(name: str) -> bool:
    """Whether a symbol has template arguments: read by c++filt, or mangled, where `I` outside of the identifiers, each
    of which has its length before it, begins them (Itanium C++ ABI, 5.1.5)."""
    if not name.startswith("_Z"):
        return "<" in name
    at = 2
    while at < len(name) and name[at] != "I":
        length = re.match(r"\d+", name[at:])
        at += len(length[0]) + int(length[0]) if length else 1
    return at < len(name)


def _machine(event: log.Event) -> str | None:
    return event.machine if isinstance(event, log.GateAttempt | log.TriedChange) else None


def _called(event: log.Event) -> str:
    if isinstance(event, log.TriedChange):
        return f"try {event.number}"
    return f"the gate {event.gate}" if isinstance(event, log.GateAttempt) else "the session"


def _reverted(seen: Seen, tried: log.TriedChange) -> bool:
    return any(isinstance(one, log.Decided) and one.number == tried.number and not one.kept for one in seen.events)


def _passed(seen: Seen, gate: log.GateName) -> bool:
    return any(one.passed for one in seen.gates(gate))


def _passed_after(seen: Seen, failed: log.GateAttempt) -> bool:
    attempts = seen.gates(failed.gate)
    return any(one.passed for one in attempts[attempts.index(failed) + 1 :])


def _profiled_after(seen: Seen, event: log.Event | None) -> bool:
    """Whether the gate or a try, which profiles both sides, named a bottleneck since."""
    later = seen.events[seen.events.index(event) + 1 :] if event else ()
    return any(_is_proven(one, "profile") or (isinstance(one, log.TriedChange) and one.bottleneck) for one in later)


def _closed(seen: Seen) -> bool:
    return any(isinstance(one, log.Closed) for one in seen.events)


def _place(seen: Seen, is_one: Callable[[log.Event], bool]) -> int | None:
    return next((place for place, event in enumerate(seen.events) if is_one(event)), None)


def _is_later_gate(event: log.Event) -> bool:
    return isinstance(event, log.GateAttempt) and event.gate not in ("environment", "document")


def _certain_gain(tried: log.TriedChange) -> bool:
    return any(one.interval_pct[1] < 0 for one in tried.outcomes)


def _slowest(seen: Seen, below: float) -> str | None:
    return _slowest_of(dict(seen.times.speedups), below)


def _slowest_of(speedups: dict[str, float], below: float) -> str | None:
    slow = {case: times for case, times in speedups.items() if times < below}
    if not slow:
        return None
    case, times = min(slow.items(), key=lambda one: one[1])
    return f"{case} runs at {times:.2g}× the reference"


def _counted_tries(seen: Seen) -> str:
    count = len(seen.tries)
    return f"{formatting.counted(count, 'change')} {'was' if count == 1 else 'were'} tried"


def _numbered(numbers: list[int]) -> str:
    return f"{'try' if len(numbers) == 1 else 'tries'} {_listed([str(one) for one in numbers])}"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
