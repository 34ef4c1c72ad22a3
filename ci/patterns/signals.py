"""The checks of patterns: each looks at plain data, and says in a clause the figure that makes the pattern apply now.

None: it does not apply, or that cannot be told from what was looked at. A check never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from kernelgate.bench.record import RunRecord, Timing, timed_cases
from kernelgate.ci.document import formatting
from kernelgate.ci.patterns.seen import Seen, Thresholds
from kernelgate.ci.sessions import log

Signal = Callable[[Seen, Thresholds], str | None]

UNDEFINED = re.compile(r"undefined (symbol|reference)", re.IGNORECASE)
HALF = r"(c10::|at::|\b__)(Half|half|BFloat16|nv_bfloat16)"
MIXED_TYPES = re.compile(rf"multiple definition|{HALF}.*(convert|mismatch)|(convert|mismatch).*{HALF}")
RESOURCES = re.compile(
    r"too many resources|invalid configuration|too much shared data|limit of shared memory|shared memory.*exceed",
    re.IGNORECASE,
)
LOST = re.compile(r"preempt|machine (was )?(lost|ended|taken)|SIGTERM", re.IGNORECASE)
SILENT = re.compile(r"\bsilen(t|ce)\b|printed nothing|said nothing", re.IGNORECASE)
ARCH_LIST = "TORCH_CUDA_ARCH_LIST"


def reference_unmeasured(seen: Seen, _: Thresholds) -> str | None:
    """Results are right, and nobody knows how fast the reference is."""
    if seen.record is not None:
        cases = [case for case in timed_cases(seen.record) if case.processes]
        tried = any(note.code == "no_reference" for note in seen.record.notes)  # it cannot be timed there
        if cases and not tried and not any(_has_reference(one.timing) for case in cases for one in case.processes):
            return f"the record times {formatting.counted(len(cases), 'case')} and no reference"
    if seen.gates("performance") or _closed(seen):
        return None
    if seen.tries:
        return f"{_counted_tries(seen)}, and the reference was never measured"
    if _passed(seen, "correctness"):
        return "results are right, and the reference was not measured yet"
    return None


def slow_without_profile(seen: Seen, limits: Thresholds) -> str | None:
    """Slower than the reference, and no profile says why."""
    if seen.record is not None and not any(one.side == "head" for one in seen.record.profile):
        found = _slowest(seen, limits.profile_below)
        if found:
            return f"{found}, and the record holds no profile"
    last = next((one for one in reversed(seen.gates("performance")) if speedup(one) is not None), None)
    times = speedup(last) if last else None
    if times is None or times >= limits.profile_below or _after(seen, last, "profile"):
        return None
    return f"{times:.2g}× the reference, and no profile since"


def blind_tries(seen: Seen, _: Thresholds) -> str | None:
    """Changes that nothing measured had asked for."""
    blind = [one.number for one in seen.tries if one.bottleneck is None and one.failed is None]
    return f"{_numbered(blind)} without a bottleneck that a profile named" if blind else None


def below_reference(seen: Seen, limits: Thresholds) -> str | None:
    """Somebody else's code for the same work is faster, and not by so much that something must be broken."""
    found = {case: times for case, times in seen.times.speedups.items() if times >= limits.stop_below}
    slow = _slowest_of(found, limits.profile_below)
    if slow:
        return slow
    times = next(filter(None, map(speedup, reversed(seen.gates("performance")))), None)
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
    return f"try {tried.number}: {tried.said}" if tried is not None and tried.failed == "correctness" else None


def timed_unchecked(seen: Seen, _: Thresholds) -> str | None:
    """Times of something that nobody knows to be right."""
    if seen.record is not None and seen.record.processes and not _checked(seen.record):
        return "the record holds times, and neither fuzz results nor errors of what was timed"
    first_right = _place(
        seen, lambda one: isinstance(one, log.GateAttempt) and one.gate == "correctness" and one.passed
    )
    first_timed = _place(seen, lambda one: isinstance(one, log.GateAttempt) and one.gate == "performance")
    early = first_timed is not None and (first_right is None or first_timed < first_right)
    return "speed was measured before results were known to be right" if early else None


def several_variables(seen: Seen, _: Thresholds) -> str | None:
    mixed = [one for one in seen.tries if len(one.variables) > 1]
    return f"try {mixed[-1].number} varies {_listed(mixed[-1].variables)} at once" if mixed else None


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
    """Work on a machine before it was known to be fit."""
    valid = _place(seen, lambda one: isinstance(one, log.GateAttempt) and one.gate == "environment" and one.passed)
    worked = _place(seen, lambda one: isinstance(one, log.TriedChange) or _is_later_gate(one))
    skipped = worked is not None and (valid is None or worked < valid)
    return "work began before the environment was known to be valid" if skipped else None


def cold_starts(seen: Seen, _: Thresholds) -> str | None:
    passed = [one for one in seen.gates("environment") if one.passed]
    if len(passed) < 2:
        return None
    minutes = sum(one.seconds or 0.0 for one in passed) / 60
    return f"the environment was set up {len(passed)} times in this session" + (
        f", {minutes:.0f} min" if minutes else ""
    )


def build_keeps_failing(seen: Seen, limits: Thresholds) -> str | None:
    """Longer than the policy gives a failing build."""
    attempts = seen.gates("build")
    if not attempts or attempts[-1].passed:
        return None
    minutes = sum(one.seconds or 0.0 for one in attempts if not one.passed) / 60
    return f"the build has failed for {minutes:.0f} min" if minutes >= limits.build_minutes else None


def symbol_undefined(seen: Seen, _: Thresholds) -> str | None:
    return _matching(seen, UNDEFINED)


def types_mixed(seen: Seen, _: Thresholds) -> str | None:
    return _matching(seen, MIXED_TYPES)


def resources_exceeded(seen: Seen, _: Thresholds) -> str | None:
    return _matching(seen, RESOURCES)


def machine_lost(seen: Seen, _: Thresholds) -> str | None:
    closed = (one for one in seen.events if isinstance(one, log.Closed))
    ended = next((one.said for one in closed if one.why == "machine" or LOST.search(one.said)), None)
    return ended or _matching(seen, LOST)


def silent_work(seen: Seen, _: Thresholds) -> str | None:
    return _matching(seen, SILENT)


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
    figures = gate.figures
    if figures.get("speedup"):
        return figures["speedup"]
    reference, ours = figures.get("reference_ms"), figures.get("ours_ms")
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


def _matching(seen: Seen, words: re.Pattern[str]) -> str | None:
    """The last thing that failed, of doctor or session, where its sentence holds these words."""
    return next((said for said in _failures(seen) if words.search(said)), None)


def _failures(seen: Seen) -> Iterator[str]:
    yield from (f"doctor: {one.name}: {one.found}" for one in seen.findings)
    for event in reversed(seen.events):
        if isinstance(event, log.GateAttempt) and not event.passed and not _passed_after(seen, event):
            yield event.said
        if isinstance(event, log.TriedChange) and event is seen.tries[-1] and event.failed:
            yield f"try {event.number}: {event.said}"


def _has_reference(timing: Timing) -> bool:
    return "reference" in timing.samples_us or "reference" in timing.condensed


def _checked(record: RunRecord) -> bool:
    fuzzed = record.fuzz is not None and record.fuzz.status != "skipped"
    return fuzzed or any(timing.errors for process in record.processes for timing in process.timings)


def _passed(seen: Seen, gate: log.GateName) -> bool:
    return any(one.passed for one in seen.gates(gate))


def _passed_after(seen: Seen, failed: log.GateAttempt) -> bool:
    attempts = seen.gates(failed.gate)
    return any(one.passed for one in attempts[attempts.index(failed) + 1 :])


def _after(seen: Seen, event: log.Event | None, gate: log.GateName) -> bool:
    """Whether a gate was passed after an event."""
    later = seen.events[seen.events.index(event) + 1 :] if event else ()
    return any(isinstance(one, log.GateAttempt) and one.gate == gate and one.passed for one in later)


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
