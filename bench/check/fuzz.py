"""The fuzzer: random configurations of a kernel against its card's oracle in float64, a list of them or for hours.

The kernel runs in a process of its own, which may crash or hang.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from pathlib import Path
from time import monotonic

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.check import trial_process
from kernelgate.bench.check.trial_process import FailureFacts, TrialOutcome, TrialProcess
from kernelgate.bench.core.errors import KernelgateError
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.kernel.fuzz_trials import DISTRIBUTION, HUGE, PLAIN, REPEAT, WAY, KeptTrial, Trial
from kernelgate.bench.system import environment, progress
from kernelgate.bench.system.worker import WorkerPool

LOST_S = 150.0
"""Crashes and hangs, with the starts of processes after them, may take so long in all, beside the time limit; then the
rest of the list, which is as large as what crashed, is not run. A hang takes 120 s of it."""
MAX_BASE_CRASHES = 12
MAX_SHRUNK = 2
"""Failures of a card that are run again and made smaller: often all have one cause, and each takes seconds."""


@dataclass(frozen=True)
class FuzzLimits:
    seconds: float | None = None
    """For all of a card's trials; None is as long as they take."""
    gpu_seconds: float | None = None
    """In place of `seconds` where that is None, on a GPU."""
    smallest_first: bool = False
    """In place of the riskiest first, and none after the first that fails."""


NO_LIMITS = FuzzLimits()


def run(
    library: Library,
    card: CardFacts,
    seed: int,
    machine: record.Environment,
    ids: Sequence[str] = (),
    how: tuple[FuzzLimits, WorkerPool | None] = (NO_LIMITS, None),
    base: Library | None = None,
) -> record.Check:
    """Runs the card's kept failures, its list and what is risky besides, in this order, or what is named, as it is. A
    configuration on which the kernel crashes or hangs has failed. What fails is tried on the base, too.

    `how`: for how long, and processes that were started before, among which may be the one that this needs.
    Skipped where the card has nothing to fuzz on this machine. Raises KernelgateError where the library cannot be
    loaded, UsageError for an id that is not in the list.
    """
    device, (limits, workers) = environment.kind(machine), how
    if not (chosen := fuzz_trials.select(seed, card, device, machine.device.memory_bytes, ids)):
        return skipped(nothing_to_fuzz(card, device), card.name)
    if not ids:
        chosen = (*fuzz_trials.kept_failures(fuzz_trials.corpus_beside(card), card, device), *chosen)
    if limits.smallest_first:
        chosen = tuple(sorted(chosen, key=lambda one: case_axes.size(one.axes)))
    progress.say(f"fuzz: {sizes(card, chosen, device)}, seed {seed}")
    limit_s = limits.gpu_seconds if limits.seconds is None and device == "cuda" else limits.seconds
    limit_s = None if ids else limit_s
    shrunk = 0 if ids else MAX_SHRUNK
    with trial_process.trying(library, card, machine, workers) as process, BaseTrials(base, process) as beside:
        results, untried, late, why_late = _results(process, beside, chosen, limit_s, limits.smallest_first, shrunk)
    reasons = [f"{len(untried)} cannot be judged, such as {untried[0][0].id}: {untried[0][1]}"] if untried else []
    if beside.why_not:
        reasons.append(f"the base could not be tried: {beside.why_not}")
    if late:
        reasons.append(why_late)
    for reason in reasons:
        progress.say(f"fuzz: {reason}")
    failed = sum(result.fails for result in results)
    return record.Check(
        kind="fuzz",
        card=card.name,
        status="failed" if failed else "passed" if results else "skipped",
        reason="; ".join(reasons) or None,
        # What is risky besides the card's own list is tried for as long as there is time; what the card cannot judge of
        # its own list keeps the verdict open.
        asked=len(results) + sum(WAY not in one.axes for one in (*(trial for trial, _ in untried), *late)),
        run=len(results),
        failed=failed,
        unjudged=len(untried),
        seed=seed,
        tolerance=card.recorded_case(card.target).tolerance,
        results=tuple(results),
    )


class BaseTrials(ExitStack):
    """The base in the trials that fail, in a process of its own that the first of them starts."""

    def __init__(self, library: Library | None, head: TrialProcess) -> None:
        super().__init__()
        self.head, self.why_not = head, ""
        self.process: TrialProcess | None = None
        if library is not None:
            self.process = self.enter_context(TrialProcess(library, head.card, head.device, head.workers, "base"))

    def beside(self, result: record.FuzzResult, trial: Trial, times: int = 1) -> record.FuzzResult:
        """The result with what the base did, the first that is alike of so many tries."""
        huge = trial.way == HUGE  # the memory holds the tensors of one
        for _ in range(times):
            if self.process is None or self.process.deaths >= MAX_BASE_CRASHES:
                break
            if huge:
                self.head.end()
            try:
                outcome = self.process.tried(trial)
            except KernelgateError as error:
                self.process, self.why_not = None, str(error)
                break
            if huge:
                self.process.end()
            if outcome.untried:
                break
            said = outcome.fault or (outcome.note if outcome.refused else None)
            base = record.BaseTrial(kind=outcome.kind, error_ratio=outcome.error_ratio, message=said)
            result = result.model_copy(update={"base": base})
            if result.on_base:
                break
        if result.on_base and result.kind == "refused":
            said = f"refused by an error, as the base does: {result.message}"
            return result.model_copy(update={"passed": True, "message": None, "note": said})
        return result


def _results(
    process: TrialProcess,
    base: BaseTrials,
    chosen: Sequence[Trial],
    limit_s: float | None,
    to_first_failure: bool,
    shrunk: int,
) -> tuple[list[record.FuzzResult], list[tuple[Trial, str]], Sequence[Trial], str]:
    """The results, what the card could not make or judge and why, and the trials that were not run, and why.

    A crash costs its own process, and what is at least as large in every size waits until the rest was tried.
    """
    results: list[record.FuzzResult] = []
    untried: list[tuple[Trial, str]] = []
    queue, crashed = list(chosen), list[Mapping[str, object]]()
    spent_s = lost_s = 0.0
    with progress.track("fuzz", len(chosen)) as advance:
        while queue:
            if limit_s is not None and spent_s >= limit_s:
                why = f"the {limit_s:g} s of the time limit were over before the last {len(queue)}, the least risky"
                return results, untried, queue, why
            if lost_s >= LOST_S:
                why = f"{len(queue)} not run, because crashes and hangs before had taken {lost_s:.0f} s"
                return results, untried, queue, why
            trial = queue.pop(0)
            begun, starting_s = monotonic(), process.starting_s
            outcome = process.tried(trial)
            took_s, starting_s = monotonic() - begun, process.starting_s - starting_s
            if len(queue) < len(chosen) - 1:  # the first waits for the process
                spent_s += 0.0 if outcome.last else took_s - starting_s
                lost_s += took_s if outcome.last else starting_s
            advance(trial.id)
            if outcome.inapplicable:
                continue
            if outcome.untried:
                untried.append((trial, outcome.untried))
                continue
            result = result_of(process.card, trial, outcome)
            if outcome.fault:
                # Once is enough where the head has failed alone before.
                alone = any(one.fails for one in results)
                result = base.beside(result, trial, 1 if alone else 1 + trial_process.AGAIN[outcome.ended])
            results.append(result)
            if result.fails:
                progress.say(failure(result))
                if shrunk:
                    shrunk -= 1
                    results[-1] = result = _with_facts(result, base, trial, outcome)
                if to_first_failure:
                    return results, untried, queue, f"the larger {len(queue)} are not run after the first that fails"
            if outcome.last:
                crashed.append(result.smallest_axes or trial.axes)
                queue.sort(key=lambda one: any(_as_large(one.axes, least) for least in crashed))
    return results, untried, (), ""


def _as_large(axes: Mapping[str, object], least: Mapping[str, object]) -> bool:
    """Whether a case is at least as large in every size."""
    sizes = ((axes.get(axis), size) for axis, size in least.items() if isinstance(size, int | float))
    return all(isinstance(one, int | float) and one >= size for one, size in sizes if not isinstance(size, bool))


def _with_facts(
    result: record.FuzzResult, base: BaseTrials, failing: Trial, outcome: TrialOutcome
) -> record.FuzzResult:
    card = base.head.card

    def excused(trial: Trial, outcome: TrialOutcome) -> bool:
        return not base.beside(result_of(card, trial, outcome), trial).fails

    facts = trial_process.examined(base.head, failing, outcome, excused)
    _say_more(card, facts)
    return result.model_copy(
        update={
            "message": f"{result.message}; {facts.words}" if facts.words else result.message,
            "runs": facts.runs,
            "failed_runs": facts.failed,
            "smallest": facts.smallest and facts.smallest.id,
            "smallest_axes": result_of(card, facts.smallest, outcome).axes if facts.smallest else {},
            "smallest_message": facts.fault,
        }
    )


def try_case(library: Library, card: CardFacts, case: CaseFacts, machine: record.Environment) -> str | None:
    """What is wrong with the kernel on one case; None where its outputs are right.

    Raises KernelgateError where the library cannot be loaded.
    """
    trial = Trial(id=case.id, axes={**case.axes, DISTRIBUTION: card.distributions[0]}, run_seed=0, seed=0)
    with trial_process.trying(library, card, machine) as process:
        return process.tried(trial).fault


def nothing_to_fuzz(card: CardFacts, device: environment.DeviceKind) -> str:
    """Why a card's list is empty on this machine."""
    where = "a machine without a GPU" if device == "cpu" else "a GPU"
    return f"the card {card.name} has no cases for {where}"


def skipped(reason: str, card: str = "") -> record.Check:
    return record.Check(kind="fuzz", card=card, status="skipped", reason=reason)


def exit_code(done: Sequence[record.Check]) -> int:
    """0 all passed, 1 a case failed, 2 all skipped, 3 a card failed: in some of its cases, or before any."""
    statuses = {check.status for check in done}
    if "failed" in statuses:
        return 1
    if any(check.unjudged for check in done):
        return KernelgateError.exit_code
    return 0 if "passed" in statuses else 2


def summary(done: record.Check) -> str:
    about = f"fuzz {done.card}" if done.card else "fuzz"
    if done.status == "skipped":
        return f"{about}: skipped: {done.reason}"
    passed = sum(result.passed for result in done.results)
    said = f"{about}: {passed} of {len(done.results)} configurations passed, seed {done.seed}"
    if alike := sum(result.on_base for result in done.results if not result.passed):
        said += f"; the base does the same in {alike}"
    return f"{said}; {done.reason}" if done.reason else said


def sizes(card: CardFacts, chosen: Sequence[Trial], device: environment.DeviceKind) -> str:
    which = f"{len(chosen)} configurations" if len(chosen) > 1 else chosen[0].id
    return f"{which} of {card.name} on the {'GPU' if device == 'cuda' else 'CPU'}"


def failure(result: record.FuzzResult) -> str:
    """A failed configuration in two lines: what is wrong, and the command that runs it again."""
    return f"FAILED {result.id} (seed {result.seed}): {result.message}\n  repeat: {result.repeat}"


def _say_more(card: CardFacts, facts: FailureFacts) -> None:
    """What is known of a failed trial besides, in lines that follow `failure`."""
    if facts.words:
        progress.say(f"  {facts.words}")
    if facts.smallest:
        progress.say(f"  the smallest that fails: {facts.smallest.id}: {facts.fault}")
        progress.say(f"  repeat: {repeat(card, facts.smallest)}")


def repeat(card: CardFacts, trial: Trial) -> str:
    case = ("--seed", str(trial.run_seed), "--case", f"{card.name}/{trial.id}")
    return shlex.join(["kernelgate", "fuzz", *case, *card.again])


def result_of(card: CardFacts, trial: Trial, outcome: TrialOutcome) -> record.FuzzResult:
    return record.FuzzResult(
        id=trial.id,
        seed=trial.run_seed,
        axes=dict(trial.axes),
        passed=outcome.fault is None,
        kind=outcome.kind,
        timed=trial.case_id in card.timed and trial.way in (PLAIN, REPEAT),
        max_abs_error=outcome.max_abs_error,
        error_ratio=outcome.error_ratio,
        message=outcome.fault,
        note=outcome.note,
        repeatable=outcome.repeatable,
        repeat=repeat(card, trial),
    )


# ---- For hours -------------------------------------------------------------------------------------------------------
# Random trials without an end, and a corpus of those that failed, made smaller.

SAY_S = 15.0
MAX_FAILURES = 20
"""After so many failures of a card its soak ends: most have one cause, and its author has enough to begin with."""


@dataclass
class Soak:
    """One card's, and what has come of it so far."""

    card: CardFacts
    corpus: Path
    seconds: float
    begun: float = field(default_factory=monotonic)
    said: float = field(default_factory=monotonic)
    tried: int = 0
    untried: int = 0
    failed: int = 0
    kept: dict[str, str] = field(default_factory=dict)
    """Of each different failure, the command that repeats it."""

    @property
    def spent_s(self) -> float:
        return monotonic() - self.begun

    def progress(self) -> str:
        """Such as "soak rmsnorm: 0:10:00 of 1:00:00, 5120 tried, 0 failed"."""
        times = f"{_clock(self.spent_s)} of {_clock(self.seconds)}"
        return f"soak {self.card.name}: {times}, {self.tried} tried, {self.failed} failed"

    def summary(self) -> str:
        """The end, also an early one, in one sentence, and the command for each failure."""
        early = f"; ended after {MAX_FAILURES} failures" if self.failed >= MAX_FAILURES else ""
        beyond = f", {self.untried} more that the card cannot make" if self.untried else ""
        counts = f"{self.tried} tried in {_clock(self.spent_s)}{beyond}, {self.failed} failed{early}"
        commands = [f"  repeat: {one}" for one in self.kept.values()]
        return "\n".join([f"soak {self.card.name}: {counts}; kept in {self.corpus / self.card.name}", *commands])


def soak_card(library: Library, soak: Soak, seed: int, machine: record.Environment, workers: WorkerPool) -> None:
    """Replays what is kept, then tries new trials until the time is over. An interrupt still says what was found.
    Raises KernelgateError where the library cannot be loaded, OutputError where the corpus cannot be written."""
    device = environment.kind(machine)
    drawn = fuzz_trials.drawn(seed, soak.card, device, machine.device.memory_bytes)
    with trial_process.trying(library, soak.card, machine, workers) as process:
        soak.begun = soak.said = monotonic()  # whoever had the device before took none of its time
        corpora = dict.fromkeys((fuzz_trials.corpus_beside(soak.card), soak.corpus))
        kept = [trial for corpus in corpora for trial in fuzz_trials.kept_failures(corpus, soak.card, device)]
        try:
            for trial in chain(kept, drawn):
                if soak.spent_s >= soak.seconds or soak.failed >= MAX_FAILURES:
                    break
                outcome = process.tried(trial)
                if outcome.untried:
                    soak.untried += 1
                else:
                    soak.tried += 1
                    if outcome.fault:
                        _failed(process, soak, trial, outcome)
                if monotonic() - soak.said >= SAY_S:
                    soak.said = monotonic()
                    progress.say(soak.progress())
        except KeyboardInterrupt:
            progress.say(soak.summary())
            raise


def _failed(process: TrialProcess, soak: Soak, trial: Trial, outcome: TrialOutcome) -> None:
    """Kept at once, and once more when it is made smaller: the search may be interrupted."""

    def keep(one: Trial, why: str) -> Path:
        kept = KeptTrial(id=one.id, seed=one.run_seed, why=why[:10_000], error_ratio=outcome.error_ratio)
        return fuzz_trials.keep(soak.corpus, card.name, kept)

    soak.failed += 1
    card, fault = soak.card, outcome.fault or ""
    path = keep(trial, fault)
    facts = trial_process.examined(process, trial, outcome)
    smallest = facts.smallest or trial
    if keep(smallest, "; ".join(filter(None, (facts.fault or fault, facts.words)))) != path:
        path.unlink(missing_ok=True)
    if smallest.id not in soak.kept:
        soak.kept[smallest.id] = repeat(card, smallest)
        progress.say(failure(result_of(card, trial, outcome)))
        _say_more(card, facts)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
