"""Fuzzing for hours: random trials without an end, and a corpus of those worth trying again.

Kept are failures, made smaller, and of each combination of dtype, booleans, values and way of calling the trial nearest
to its limit: the first to fail where a kernel becomes less accurate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from pathlib import Path

from kernelgate.bench import record
from kernelgate.bench.build.library import Library
from kernelgate.bench.check import fuzz, trials
from kernelgate.bench.check.trials import TrialOutcome, TrialProcess
from kernelgate.bench.kernel import fuzz_corpus, fuzz_trials
from kernelgate.bench.kernel.axes import AxisValue
from kernelgate.bench.kernel.cards import CardFacts
from kernelgate.bench.kernel.fuzz_corpus import KeptTrial
from kernelgate.bench.kernel.fuzz_trials import Trial
from kernelgate.bench.system import environment, progress
from kernelgate.bench.system.worker import WorkerPool

SAY_S = 15.0
"""How often progress is said."""
MAX_FAILURES = 20
"""After so many failures of a card its soak ends: most have one cause, and its author has enough to begin with."""
NEARER = 1.05
"""How much nearer to its limit a trial must come to take another's place in the corpus."""


@dataclass
class Soak:
    """One card's, and what has come of it so far."""

    card: CardFacts
    corpus: Path
    seconds: float
    begun: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)
    tried: int = 0
    untried: int = 0
    failed: int = 0
    kept: dict[str, str] = field(default_factory=dict)
    """Of each different failure, the command that repeats it."""
    nearest: dict[tuple[AxisValue, ...], tuple[Path, float]] = field(default_factory=dict)

    @property
    def left_s(self) -> float:
        return self.begun + self.seconds - time.monotonic()

    @property
    def over(self) -> bool:
        return self.left_s <= 0 or self.failed >= MAX_FAILURES

    def progress(self) -> str:
        """Such as "soak rmsnorm: 0:10:00 of 1:00:00, 0:50:00 left, 5120 tried, 0 failed"."""
        spent = time.monotonic() - self.begun
        times = f"{_clock(spent)} of {_clock(self.seconds)}, {_clock(max(0.0, self.left_s))} left"
        return f"soak {self.card.name}: {times}, {self.tried} tried, {self.failed} failed"

    def summary(self) -> str:
        """The end, also an early one, in one sentence, and the command for each failure."""
        early = f"; ended after {MAX_FAILURES} failures" if self.failed >= MAX_FAILURES else ""
        beyond = f", {self.untried} more that the card cannot make" if self.untried else ""
        spent = _clock(time.monotonic() - self.begun)
        head = f"soak {self.card.name}: {self.tried} tried in {spent}{beyond}, {self.failed} failed{early}"
        return "\n".join(
            [f"{head}; kept in {self.corpus / self.card.name}", *(f"  repeat: {one}" for one in self.kept.values())]
        )


def run(library: Library, soak: Soak, seed: int, machine: record.Environment, workers: WorkerPool) -> None:
    """Replays what is kept, then tries new trials until the time is over. An interrupt still says what was found.
    Raises KernelgateError where the library cannot be loaded, OutputError where the corpus cannot be written."""
    device = environment.kind(machine)
    drawn = fuzz_trials.drawn(seed, soak.card, device, machine.device.memory_bytes)
    with trials.trying(library, soak.card, machine, workers) as process:
        soak.begun = soak.said = time.monotonic()  # whoever had the device before took none of its time
        try:
            for trial in chain(_kept(soak, device), drawn):
                if soak.over:
                    break
                outcome = process.tried(trial)
                if outcome.untried:
                    soak.untried += 1
                else:
                    soak.tried += 1
                    (_failed if outcome.fault else _passed)(process, soak, trial, outcome)
                if time.monotonic() - soak.said >= SAY_S:
                    soak.said = time.monotonic()
                    progress.say(soak.progress())
        except KeyboardInterrupt:
            progress.say(soak.summary())
            raise


def _kept(soak: Soak, device: environment.DeviceKind) -> list[Trial]:
    """Failures, the repository's own first, then what came nearest to its limit."""
    corpora = dict.fromkeys((fuzz_corpus.beside(soak.card), soak.corpus))
    kept = [trial for corpus in corpora for trial in fuzz_corpus.failures(corpus, soak.card, device)]
    near = sorted(fuzz_corpus.read(soak.corpus, soak.card.name, "near"), key=lambda one: -(one[1].error_ratio or 0.0))
    for path, one in near:
        for trial in fuzz_corpus.trials([one], soak.card, device):
            soak.nearest.setdefault(_group(trial), (path, one.error_ratio or 0.0))
            kept.append(trial)
    return kept


def _failed(process: TrialProcess, soak: Soak, trial: Trial, outcome: TrialOutcome) -> None:
    """Kept at once, and once more when it is made smaller: the search may be interrupted."""
    soak.failed += 1
    card = soak.card
    path = fuzz_corpus.keep(soak.corpus, card.name, "failed", _as_kept(trial, outcome, outcome.fault or ""))
    facts = trials.examined(process, trial, outcome)
    smallest, why = facts.smallest or trial, facts.fault or outcome.fault or ""
    why = f"{why}; {facts.words}" if facts.words else why
    final = fuzz_corpus.keep(soak.corpus, card.name, "failed", _as_kept(smallest, outcome, why))
    if final != path:
        path.unlink(missing_ok=True)
    if smallest.id not in soak.kept:
        soak.kept[smallest.id] = fuzz.repeat(card, smallest)
        progress.say(fuzz.failure(fuzz.result_of(card, trial, outcome)))
        for line in fuzz.more(card, facts):
            progress.say(line)


def _passed(_: TrialProcess, soak: Soak, trial: Trial, outcome: TrialOutcome) -> None:
    if outcome.error_ratio is None:
        return
    group = _group(trial)
    before, ratio = soak.nearest.get(group, (None, 0.0))
    if before is not None and outcome.error_ratio <= NEARER * ratio:
        return
    why = f"error {outcome.error_ratio:.3g} times what is allowed"
    path = fuzz_corpus.keep(soak.corpus, soak.card.name, "near", _as_kept(trial, outcome, why))
    soak.nearest[group] = (path, outcome.error_ratio)
    if before is not None and before != path:
        before.unlink(missing_ok=True)


def _as_kept(trial: Trial, outcome: TrialOutcome, why: str) -> KeptTrial:
    return KeptTrial(id=trial.id, seed=trial.run_seed, why=why[:10_000], error_ratio=outcome.error_ratio)


def _group(trial: Trial) -> tuple[AxisValue, ...]:
    """Everything but numbers: dtype, booleans, words, the values' distribution and the way."""
    return tuple(value for value in trial.axes.values() if isinstance(value, bool | str))


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=int(seconds)))
