"""Whether it is correct, how exact, why it takes so long, what it cost, and what the producer notes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kernelgate.bench.record.subjects import (
    Axes,
    CaseKey,
    CheckKind,
    Count,
    Finite,
    Flag,
    Microseconds,
    Model,
    NonNegative,
    Positive,
    Side,
    Tolerance,
    Whole,
    must_be_unique,
)

# ---- How far outputs lie from the oracle -----------------------------------------------------------------------------

MAX_DRAWS = 64
"""Of inputs, for one output of one case."""
Errors = Annotated[tuple[NonNegative, ...], Field(max_length=MAX_DRAWS)]
SignedErrors = Annotated[tuple[Finite, ...], Field(max_length=MAX_DRAWS)]


class UlpErrors(Model):
    """One side's errors in units in the last place (ulp), an entry for each draw of inputs.

    The unit of an element is the spacing of the output's dtype at the larger of |oracle| and the output's root mean
    square, and at least the step between subnormal numbers; of integers it is 1 (docs/statistics.md, "Accuracy").
    """

    mean: Errors
    """Of |output - oracle|."""
    maximum: Errors
    bias: SignedErrors
    """Mean of output - oracle."""
    outward: SignedErrors
    """Mean of |output| - |oracle|: below 0 where outputs are too near to zero, such as after truncation."""

    @property
    def draws(self) -> int:
        return len(self.mean)

    @model_validator(mode="after")
    def _one_entry_a_draw(self) -> Self:
        if len(set(map(len, (self.mean, self.maximum, self.bias, self.outward)))) > 1:
            raise ValueError("errors need one entry for each draw")
        return self


class OutputAccuracy(Model):
    """One output of one case, on inputs of one distribution: base and head called on the same draws."""

    case: Annotated[str, Field(min_length=1)]
    output: str = "out"
    distribution: str = "normal"
    """Of the inputs' values; timed cases have normal ones."""
    base: UlpErrors
    head: UlpErrors
    identical: Count = 0
    """Of the draws, those on which every bit of both sides' outputs is the same."""
    elements: Positive
    not_finite: Count = 0
    """Elements of all draws that were left out of the errors: NaN or Inf in an output or in the oracle."""

    @model_validator(mode="after")
    def _of_the_same_draws(self) -> Self:
        if self.base.draws != self.head.draws:
            raise ValueError(f"base has {self.base.draws} draws, head has {self.head.draws}")
        if self.identical > self.base.draws:
            raise ValueError(f"{self.identical} of {self.base.draws} draws cannot be identical")
        return self


# ---- Where a profiled kernel's warps were found when they were sampled -----------------------------------------------

MAX_HOT_LINES = 20
MAX_HOT_INSTRUCTIONS = 30
MAX_HOT_TEXT = 200
"""Characters of a line and of an instruction."""

Text = Annotated[str, Field(max_length=MAX_HOT_TEXT)]


class HotLine(Model):
    """One line of the sources and the samples in the code that it was compiled to."""

    file: Text
    """Of the commit, from the repository's root; of any other file its name alone, such as cuda_fp16.hpp."""
    line: Positive
    text: Text | None = None
    """As the commit has it; null of other files."""
    samples: Count
    stall: Text | None = None
    """What most of these samples waited for, as Nsight Compute names its warp states: "long_scoreboard"."""


class HotInstruction(Model):
    """One instruction of the machine code."""

    sass: Text
    file: Text | None = None
    line: Positive | None = None
    """What it was compiled from, as of a line; null where the code has no line table."""
    samples: Count
    stall: Text | None = None


class HotSpots(Model):
    """The samples of one launch. How many there are depends on how long it ran: only shares of them are compared."""

    samples: Positive
    """All of the kernel's; those listed are the most frequent."""
    lines: Annotated[tuple[HotLine, ...], Field(max_length=MAX_HOT_LINES)] = ()
    """The hottest first. Empty where the code has no line table."""
    instructions: Annotated[tuple[HotInstruction, ...], Field(max_length=MAX_HOT_INSTRUCTIONS)] = ()
    """The hottest first."""

    @model_validator(mode="after")
    def _holds_no_more_than_all(self) -> Self:
        for what, listed in (("lines", self.lines), ("instructions", self.instructions)):
            held = sum(one.samples for one in listed)
            if held > self.samples:
                raise ValueError(f"its {what} hold {held} samples, of {self.samples}")
        return self


# ---- Checks, profiles, notes and baselines ---------------------------------------------------------------------------


FaultKind = Literal["wrong", "wrote", "refused", "crashed", "hung"]
"""Wrong values, or none; memory written that is no output; an error of the kernel's own; one of the device, or the
process's end; no end."""
ALIKE = 1.01
"""An error is no larger than the base's where it is at most so many times as large: some round anew at each call."""


LAYOUTS = ("offset", "gaps", "transposed")
"""Ways of calling in which a tensor lies in memory as the kernel may not support."""


class BaseTrial(Model):
    """What the base did in the same configuration, with the same inputs."""

    kind: FaultKind | None = None
    """Null where it was right."""
    error_ratio: NonNegative | None = None
    message: str | None = None


class FuzzResult(Model):
    """One configuration of the fuzz list, run on the head."""

    id: str
    seed: Whole
    axes: Axes = {}
    passed: Flag
    max_abs_error: NonNegative | None = None
    """Largest |output - oracle|; null where the output held NaN, Inf or an unwritten element."""
    error_ratio: NonNegative | None = None
    """Largest |output - oracle| / (atol + rtol * |oracle|): at most 1 in a pass; null as above."""
    message: str | None = None
    note: str | None = None
    """What is not wrong: that the kernel refused an unusual layout by an error, or what the base refuses, too, or that
    it gave other bits at another call."""
    kind: FaultKind | None = None
    """Of what is wrong, or was refused; null in older records, too."""
    timed: Flag = False
    """Whether the card times this very shape, in which the base excuses nothing."""
    base: BaseTrial | None = None
    """Null where nothing is wrong, there is no base, or the base could not be tried."""
    repeatable: Flag | None = None
    """Whether all calls on the same inputs gave the same bits; null where there was one."""
    runs: Count | None = None
    failed_runs: Count | None = None
    """How often this very case was run where it failed, and how often it failed then; null where it was run once."""
    smallest: str | None = None
    """The id of the smallest case found that fails in the same way, with the same seed; null where none was looked for,
    or none is smaller."""
    smallest_axes: Axes = {}
    smallest_message: str | None = None
    """What is wrong with it."""
    repeat: str | None = None

    @property
    def on_base(self) -> bool:
        """Whether the base does the same, and excuses it: the same kind of fault, with no smaller an error in a usual
        layout."""
        base = self.base
        if self.timed or base is None or self.kind is None or self.kind != base.kind:
            return False
        if self.kind in ("refused", "crashed", "hung") or self.axes.get("way") in LAYOUTS:
            return True  # how wrong a layout comes out that neither supports is up to what lies beside it
        if self.kind == "wrong" and self.error_ratio is not None and base.error_ratio is not None:
            return self.error_ratio <= ALIKE * base.error_ratio
        return self.message == base.message

    @property
    def fails(self) -> bool:
        return not self.passed and not self.on_base

    @model_validator(mode="after")
    def _passes_within_its_limit(self) -> Self:
        if self.passed and self.error_ratio is not None and self.error_ratio > 1:
            raise ValueError(f"it says passed, with an error {self.error_ratio:.3g} times its limit")
        if self.passed and self.kind not in (None, "refused"):
            raise ValueError(f"it says passed, and what is wrong: {self.kind}")
        return self


class CheckFinding(Model):
    """What a check found wrong, and where."""

    text: str
    kernel: str | None = None
    file: str | None = None
    """Of the commit, from the repository's root; of any other file, its name stands in the text."""
    line: Count | None = None
    tool: str | None = None
    times: Positive = 1
    on_base: Flag | None = None
    """Whether the base has it, too; null where that is not known."""


class Check(Model):
    """Whether the head computes what it should, by one kind of check."""

    kind: CheckKind
    card: str = ""
    status: Literal["passed", "failed", "skipped"]
    reason: str | None = None
    """Why it was skipped, or what the card itself could not make."""
    asked: Count | None = None
    run: Count | None = None
    failed: Count | None = None
    unjudged: Count | None = None
    """Cases that the card itself could not make, or judge; of a fuzz list."""
    seed: Whole | None = None
    tolerance: Tolerance | None = None
    """The float16 tolerance; other dtypes' stand in bench/kernel/cards.py and decide `error_ratio`."""
    results: tuple[FuzzResult, ...] = ()
    accuracies: tuple[OutputAccuracy, ...] = ()
    """Of the kind `accuracy`, which measures and never fails: whether the head is less accurate is for a judge."""
    findings: tuple[CheckFinding, ...] = ()
    tools: tuple[str, ...] = ()
    """Of compute-sanitizer's, those that were asked for: each runs every case, which `asked` and `run` count."""
    cases: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    """In older records: kernels of the library that none of these cases launches."""

    @model_validator(mode="after")
    def _agrees_with_what_it_holds(self) -> Self:
        wrong = sum(result.fails for result in self.results)
        failed = max(self.failed or 0, wrong, len(self.findings) if self.kind == "sanitizer" else 0)
        if failed and self.status != "failed":
            raise ValueError(f"it says {self.status}, and {failed} of its results failed")
        if self.results and self.run is not None and self.run != len(self.results):
            raise ValueError(f"it says that {self.run} ran, and has {len(self.results)} results")
        if self.results and self.status != ("failed" if wrong else "passed"):
            raise ValueError(f"it says {self.status}, and {wrong} of its {len(self.results)} results failed")
        if self.results and self.failed is not None and self.failed != wrong:
            raise ValueError(f"it says that {self.failed} failed, and {wrong} of its results did")
        must_be_unique((f"{one.id} of seed {one.seed}" for one in self.results), "results")
        must_be_unique((f"{one.case}/{one.output}/{one.distribution}" for one in self.accuracies), "accuracies")
        return self


class Profile(Model):
    card: str = ""
    case: str
    side: Side
    metrics: dict[str, Finite | str | None] = {}
    hot_spots: HotSpots | None = None
    """Null where the report has no samples by instruction, which `kernelgate profile --set full` takes."""
    report: str | None = None
    report_sha256: str | None = None

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.card, self.case)


class Cost(Model):
    """How long one phase had the GPU. Of timing, `calls` and `witness` are the calls, `verifying` compares outputs, and
    `starting` is the rest: loading libraries, warming up."""

    phase: str
    gpu_seconds: NonNegative
    retried: Flag = False


def summed(costs: Iterable[Cost]) -> tuple[Cost, ...]:
    """One of each phase, in the order in which they came."""
    spent: dict[tuple[str, bool], float] = {}
    for cost in costs:
        key = cost.phase, cost.retried
        spent[key] = spent.get(key, 0.0) + cost.gpu_seconds
    return tuple(
        Cost(phase=phase, gpu_seconds=round(seconds, 6), retried=retried) for (phase, retried), seconds in spent.items()
    )


def with_costs(costs: Iterable[Cost], **seconds: float) -> tuple[Cost, ...]:
    """With so much more of each phase."""
    return summed((*costs, *(Cost(phase=phase, gpu_seconds=max(0.0, each)) for phase, each in seconds.items())))


class Note(Model):
    """What the producer wants known of how it measured. Any code may be used; these are known:

    no_card_on_base           the default branch has no card of the kernel yet: the head's own was used
    card_changed              the head changes the card: the default branch's was used
    card_gone                 the head lacks a card of the base, such as under its old name: nothing of it was measured
    head_alone                there is nothing to compare the head with, and the text says why
    same_library              base and head are one library, which was not timed
    same_machine_code         base and head of some cases are the same machine code and host, and were not timed
    measured_before           the queued pull request's record of the same machine code, and the text says which
    host_changed              some cases are the same machine code, called by another host, and were timed
    alternating               base and head took turns in separate processes, and the text says why
    no_cases                  no card has cases for the machine: nothing was timed
    no_reference              the reference could not be timed beside base and head, and the text says why
    reference_fails           nor could it without them: the card's own, or the machine, is the reason
    returns_new_tensors       calls allocate their outputs: no guards around them, and different addresses
    compiled_while_measuring  a kernel was compiled on the machine that measures
    fewer_inputs              inputs were read again, for want of memory or GPU time, and the text gives the figures
    compared_in_part          the oracle takes long, so only a part of each compared output was looked at
    verified_in_process       memory cannot be shared between processes: inputs and references lay in the measured one
    no_witness                base and head were not timed each in a process of its own, and the text says why
    load                      how busy a CPU was as its kernel began to be timed
    left_processes            processes that a library had started were still running, and were ended
    shard_missing             a shard of the measurement was lost, and the text names its cases
    measured_in_shards        several machines measured a part each
    resumed                   the measurement was interrupted, and the text says where it went on
    paused                    there were pauses before samples, since the GPU ran at its power limit
    """

    code: str = "note"
    card: str | None = None
    """The card that it is about; null where it is about the whole record."""
    text: str


class BaselineDay(Model):
    """What one case took on one day: together they show how far times drift while the code stays the same."""

    measured: str
    """The day, as in 2026-11-22."""
    code: str
    median_us: Microseconds


class BaselineSummary(Model):
    """One case of a baseline, for people to read in a diff."""

    median_us: Microseconds
    interval_us: tuple[Microseconds, Microseconds]
    """95% interval of the median."""
    gflops: NonNegative | None = None
    """1e9 floating-point operations in a second: the case's own work over the median; null where it states none."""
    samples: Count
    processes: Count
    days: tuple[BaselineDay, ...] = ()
    """This one and earlier ones."""
    measured: str | None = None
    """The day of these samples: cases of one baseline may be of several."""
    commit: str | None = None


class Summary(Model):
    """What makes a record a baseline: where it came from, and its numbers in short."""

    source: str
    release: str | None = None
    cases: dict[str, BaselineSummary]
    """By the case's id; by card/id where cases of two cards share the id."""
