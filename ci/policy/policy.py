"""The policy: every number that decides something, with the reason beside it in `.ci/kernelgate.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StrictBool, ValidationError, model_validator
from pydantic_core import ErrorDetails

from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.record import CheckKind
from kernelgate.ci.policy.advice_rules import AdviceRules
from kernelgate.ci.policy.agent_rules import AgentRules
from kernelgate.ci.policy.bottleneck_rules import BottleneckRules
from kernelgate.ci.policy.bounds import (
    Chance,
    DegreesOfFreedom,
    Improbable,
    PartialShare,
    Percent,
    PercentOrNone,
    PolicySection,
    Positive,
    Probable,
    ProcessCount,
    Share,
    Speedup,
    Times,
    between,
    ordered,
)
from kernelgate.ci.policy.change_rules import BaselineRules, BisectRules, ChangeRules, HistoryRules, RetentionRules
from kernelgate.ci.policy.pattern_rules import PatternRules
from kernelgate.ci.policy.pull_request_rules import Measure, Template
from kernelgate.ci.policy.session_rules import SessionRules

POLICY_FILE = Path(".ci/kernelgate.toml")
DEFAULT_PRESET = "default"
BUILT_IN_PRESETS: dict[str, Any] = {"strict": {"gates": {"regression_pct": 1.0}}}
MOST_FAULTS = 3
"""That one message names."""
MOST_SHOWN = 60
"""Characters of a value that does not fit."""


class PolicyError(KernelgateError):
    """The policy file cannot be read or does not say what a policy may say."""


class Gates(PolicySection):
    """What blocks, what counts as an improvement, and what counts as the same."""

    regression_pct: Percent = 3.0
    improvement_pct: Speedup = 10.0
    p: Chance = 0.05
    cliffs_delta: Share = 0.3
    margin_pct: Percent = 1.0
    mean_regression_pct: Percent = 1.0
    mean_improvement_pct: Speedup = 3.0
    reference_min: Times = 0.5
    below_reference_min: Literal["fail", "warn", "ignore"] = "warn"
    memory_max: Times = 2.0
    above_memory_max: Literal["fail", "warn", "ignore"] = "ignore"
    memory_increase_pct: PercentOrNone = 1.0
    sanitizer: Literal["fail", "warn", "ignore"] = "fail"

    @model_validator(mode="after")
    def _nothing_blocks_that_is_the_same(self) -> Self:
        ordered(self, "margin_pct", "regression_pct")
        ordered(self, "margin_pct", "improvement_pct")
        return self


class Certainty(PolicySection):
    """How sure the judge must be before it says something."""

    alpha: Improbable = 0.001
    baseline_alpha: Improbable = 0.005
    equivalence_alpha: Improbable = 0.01
    interval_level: Probable = 0.95
    power: Probable = 0.95
    resolution_pct: Percent = 0.4
    miss: Improbable = 0.01
    spending_shape: Annotated[float, between(0.0, 0.5)] = 0.5


class Processes(PolicySection):
    """How many processes and rounds a judgement needs."""

    minimum: ProcessCount = 2
    to_direct: ProcessCount = 4
    to_block: ProcessCount = 3
    limit: ProcessCount = 7
    minimum_rounds: Annotated[int, between(8, 10_000)] = 20

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for lower, upper in (("minimum", "to_block"), ("to_block", "limit"), ("to_direct", "limit")):
            ordered(self, lower, upper)
        return self


class Spread(PolicySection):
    """What is known beforehand of how far processes scatter, and of errors that no number of rounds removes."""

    change_pct: Percent = 0.045
    quiet_factor: Annotated[float, between(1.001, 100.0)] = 1.35
    quiet_share: PartialShare = 0.4
    largest_pct: Percent = 10.0
    prior_cases: Positive = 4
    history_df: DegreesOfFreedom = 4.0
    history_share: PartialShare = 0.97
    history_memory_df: DegreesOfFreedom = 10.0
    history_to_direct_df: DegreesOfFreedom = 8.0
    level_pct: Percent = 0.15
    level_prior_processes: Positive = 10
    baseline_drift_pct: Percent = 1.0
    baseline_drift_df: Positive = 10
    baseline_days: Annotated[int, between(2, 1000)] = 4
    baseline_days_df: Positive = 5
    block_change_pct: Percent = 0.1
    block_bias_pct: PercentOrNone = 0.3
    alternating_bias_pct: PercentOrNone = 0.8

    @model_validator(mode="after")
    def _can_be_reached(self) -> Self:
        for usual in ("change_pct", "block_change_pct", "level_pct"):
            ordered(self, usual, "largest_pct")
        for needed in ("history_df", "history_to_direct_df"):
            ordered(self, needed, "history_memory_df")
        return self


class WitnessRules(PolicySection):
    """When the times of base and head in processes of their own contradict the comparison."""

    tolerance_pct: Percent = 3.0
    cpu_tolerance_pct: Percent = 25.0
    cpu_spread_pct: Percent = 3.0
    prior_turns: Positive = 4


class Bootstrap(PolicySection):
    resamples: Annotated[int, between(100, 100_000)] = 10_000
    seed: Annotated[int, between(0, 2**32 - 1)] = 20260801


class ValidityLimits(PolicySection):
    """Where something that is not a difference is named (`warn`), and where it forbids a verdict."""

    warn_cv_pct: Percent = 12.0
    warn_temperature_c: Annotated[float, between(0.0, 200.0)] = 80.0
    harmless_throttle_reasons: tuple[str, ...] = ("gpu_idle", "applications_clocks_setting", "display_clock_setting")
    throttled_share: Share = 0.5
    clock_change_pct: Percent = 2.0
    dependence_p: Chance = 2e-6
    dependence_pct: PercentOrNone = 0.1
    carry_over_pct: Percent = 0.5
    side_clock_pct: Percent = 0.5
    distinct_values: Positive = 3
    mode_distance_pct: Percent = 3.0
    mode_share: Annotated[float, between(0.0, 0.5)] = 0.15
    mode_overlap: Share = 0.05
    mode_share_p: Chance = 1e-3
    drift_pct: Percent = 1.0
    drift_p: Chance = 1e-6
    disagree_p: Chance = 1e-4
    disagree_pct: Percent = 1.0
    lone_share: Share = 0.25
    floor_tolerance: Share = 0.05
    unknown_device: Annotated[float, between(1.0, 100.0)] = 2.0
    beyond_reference: Annotated[float, between(1.001, 1e6)] = 100.0
    shortest_us: Annotated[float, between(1e-6, 1e12)] = 1e-3
    longest_us: Annotated[float, between(1e-6, 1e12)] = 1e10

    @model_validator(mode="after")
    def _leave_times_between(self) -> Self:
        ordered(self, "shortest_us", "longest_us")
        return self


class TimingRules(PolicySection):
    """How `kernelgate bench` treats the GPU's clock and power."""

    pause_when_capped: StrictBool = True
    lock_clocks: StrictBool = False


class FuzzRules(PolicySection):
    """How long `kernelgate fuzz` takes."""

    gpu_limit_s: Annotated[float, between(1.0, 86_400.0)] = 30.0


class Static(PolicySection):
    """What the compiler made of the kernel: whether a change for the worse blocks, warns, or is ignored."""

    new_spills: Literal["fail", "warn", "ignore"] = "fail"
    occupancy_loss: Literal["fail", "warn", "ignore"] = "warn"


class Guidance(PolicySection):
    """What to do next, by how many times as fast as the reference a kernel is; below `gates.reference_min`: stop."""

    profile_below: Times = 1.0
    tune_below: Times = 1.5
    next_bottleneck_from: Times = 2.0
    launch_bound_us: Annotated[float, between(0.1, 1e6)] = 10.0
    launch_share: PartialShare = 0.33
    target: Times = 1.2
    keep_from: Annotated[float, between(1.0, 1e3)] = 1.2

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        ordered(self, "profile_below", "target")
        ordered(self, "profile_below", "tune_below")
        ordered(self, "tune_below", "next_bottleneck_from")
        return self


class SanitizerRules(PolicySection):
    """What compute-sanitizer looks for in a pull request, and for how long."""

    tools: Annotated[tuple[Literal["memcheck", "racecheck", "initcheck", "synccheck"], ...], Field(min_length=1)] = (
        "memcheck",
        "racecheck",
    )
    seconds: Annotated[float, between(1.0, 3600.0)] = 20.0


class AccuracyRules(PolicySection):
    """When the head is less accurate than the base, though both are within the tolerance."""

    action: Literal["fail", "warn"] = "warn"
    level: Improbable = 0.001
    margin_pct: Percent = 20.0
    maximum_pct: Percent = 100.0
    bias_ulp: Annotated[float, between(0.0, 1e3)] = 0.1
    bias_share: Share = 0.1
    floor_ulp: Annotated[float, between(1e-6, 1e3)] = 0.01


class Profiling(PolicySection):
    """How `kernelgate profile` measures."""

    clock_control: Literal["none", "base"] = "none"
    timeout_s: Annotated[float, between(1.0, 86_400.0)] = 120.0


class Costs(PolicySection):
    """What GPUs cost, for the dashboard of `kernelgate history site`."""

    gpu_hour: Mapping[str, Annotated[float, between(0.0, 1e6)]] = {}
    """By the kind that a record names, such as "NVIDIA H200"."""
    currency: str = "USD"


class Policy(PolicySection):
    gates: Gates = Gates()
    certainty: Certainty = Certainty()
    processes: Processes = Processes()
    spread: Spread = Spread()
    witness: WitnessRules = WitnessRules()
    bootstrap: Bootstrap = Bootstrap()
    limits: ValidityLimits = ValidityLimits()
    timing: TimingRules = TimingRules()
    fuzz: FuzzRules = FuzzRules()
    static: Static = Static()
    guidance: Guidance = Guidance()
    bottleneck: BottleneckRules = BottleneckRules()
    advice: AdviceRules = AdviceRules()
    sanitizer: SanitizerRules = SanitizerRules()
    accuracy: AccuracyRules = AccuracyRules()
    profiling: Profiling = Profiling()
    baseline: BaselineRules = BaselineRules()
    history: HistoryRules = HistoryRules()
    changes: ChangeRules = ChangeRules()
    retention: RetentionRules = RetentionRules()
    bisect: BisectRules = BisectRules()
    patterns: PatternRules = PatternRules()
    session: SessionRules = SessionRules()
    agents: AgentRules = AgentRules()
    template: Template = Template()
    measure: Measure = Measure()
    costs: Costs = Costs()

    @property
    def checks(self) -> tuple[CheckKind, ...]:
        """What a pull request's measurement on a GPU holds beside its times."""
        return ("fuzz", "witness") if self.gates.sanitizer == "ignore" else ("fuzz", "sanitizer", "witness")

    @model_validator(mode="after")
    def _gates_are_seen(self) -> Self:
        least, gate = self.certainty.resolution_pct, min(self.gates.regression_pct, self.gates.improvement_pct)
        if least > gate:
            raise ValueError(f"certainty.resolution_pct ({least:g}) must not be above a gate ({gate:g})")
        stop, profile = self.gates.reference_min, self.guidance.profile_below
        if stop > profile:
            raise ValueError(f"gates.reference_min ({stop:g}) must not be above guidance.profile_below ({profile:g})")
        return self


def load(path: Path | None = None, preset: str = DEFAULT_PRESET) -> Policy:
    """The policy in `path` (default: `.ci/kernelgate.toml` where there is one), with the changes of `preset`.

    Raises PolicyError naming the key that does not fit, and UsageError for a preset that the file does not have.
    """
    chosen = path or POLICY_FILE
    try:
        text = chosen.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if path is None and not chosen.is_symlink():
            return parse("", "the built-in policy", preset)
        raise PolicyError(f"{chosen}: the policy cannot be read: {error.strerror}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{chosen}: the policy cannot be read: {getattr(error, 'strerror', error)}") from None
    return parse(text, str(chosen), preset)


def parse(text: str, name: str = "policy", preset: str = DEFAULT_PRESET) -> Policy:
    """The policy in TOML `text`: sections of `Policy`, and `presets.<name>` with the sections that it changes."""
    try:
        content = tomllib.loads(text)
    except ValueError as error:  # also of a number with thousands of digits
        raise PolicyError(f"{name} is not TOML: {str(error).partition(';')[0]}") from None
    except RecursionError:
        raise PolicyError(f"{name} is nested too deeply to be a policy") from None
    presets = content.pop("presets", BUILT_IN_PRESETS)
    if not isinstance(presets, dict) or not all(isinstance(changes, dict) for changes in presets.values()):
        raise PolicyError(f"{name}: presets must be tables, such as [presets.strict.gates]")
    plain = _validated(content, name, text)
    complete = {known: _validated(_merged(content, changes), name, text, known) for known, changes in presets.items()}
    if preset == DEFAULT_PRESET:
        return complete.get(preset, plain)
    if preset not in complete:
        raise UsageError(f"{name} has no preset {preset!r}; it has: {', '.join([DEFAULT_PRESET, *sorted(complete)])}")
    return complete[preset]


def _merged(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`content` with the single keys that `changes` names replaced, section by section."""
    merged = dict(content)
    for section, values in changes.items():
        old = content.get(section, {})
        merged[section] = {**old, **values} if isinstance(old, dict) and isinstance(values, dict) else values
    return merged


def _validated(content: dict[str, Any], name: str, text: str, preset: str | None = None) -> Policy:
    try:
        return Policy.model_validate(content)
    except ValidationError as error:
        where = f"{name}, preset {preset}" if preset else name
        found = error.errors(include_url=False)
        faults = "; ".join(_said(fault, text, preset) for fault in found[:MOST_FAULTS])
        rest = f"; and {len(found) - MOST_FAULTS} more" if len(found) > MOST_FAULTS else ""
        raise PolicyError(f"{where} does not fit: {faults}{rest}") from None


def _said(fault: ErrorDetails, text: str, preset: str | None) -> str:
    """Such as "gates.p (line 9) is 7: must be a number from 1e-12 to 0.5"."""
    key = ".".join(map(str, fault["loc"]))
    line = next(filter(None, (_line(text, f"presets.{preset}.{key}"), _line(text, key))), None)
    value = fault["input"]
    shown = "" if isinstance(value, dict | PolicySection) else f" is {repr(value)[:MOST_SHOWN]}"
    place = f"{key}{f' (line {line})' if line else ''}{shown}"
    why = "there is no such key" if fault["type"] == "extra_forbidden" else fault["msg"].removeprefix("Value error, ")
    return f"{place}: {why}".removeprefix(": ")


def _line(text: str, key: str) -> int | None:
    """Where a key is set, as people write it: below the header of its section."""
    section, _, name = key.rpartition(".")
    inside = not section
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("["):
            inside = line.split("#")[0].strip() == f"[{section}]"
        elif inside and line.partition("=")[0].strip() == name:
            return number
    return None
