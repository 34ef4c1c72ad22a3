"""The policy: every number that decides something, with the reason beside it in `.ci/kernelgate.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernelgate.bench.errors import KernelgateError, UsageError

POLICY_FILE = Path(".ci/kernelgate.toml")
DEFAULT_PRESET = "default"
BUILT_IN_PRESETS: dict[str, Any] = {"strict": {"gates": {"regression_pct": 1.0}}}

Percent = Annotated[float, Field(gt=0, allow_inf_nan=False)]
PercentOrNone = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0, lt=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[int, Field(ge=1)]
DegreesOfFreedom = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PolicyError(KernelgateError):
    """The policy file cannot be read or does not say what a policy may say."""


class PolicySection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Gates(PolicySection):
    """What blocks, what counts as an improvement, and what counts as the same."""

    regression_pct: Percent = 3.0
    improvement_pct: Annotated[float, Field(gt=0, lt=100)] = 10.0
    p: Probability = 0.05
    cliffs_delta: Share = 0.3
    margin_pct: Percent = 1.0
    mean_regression_pct: Percent = 1.0
    mean_improvement_pct: Annotated[float, Field(gt=0, lt=100)] = 3.0


class Certainty(PolicySection):
    """How sure the judge must be before it says something."""

    alpha: Probability = 0.001
    baseline_alpha: Probability = 0.005
    equivalence_alpha: Probability = 0.01
    interval_level: Probability = 0.95
    power: Probability = 0.95
    resolution_pct: Percent = 0.4
    miss: Probability = 0.01
    spending_shape: Annotated[float, Field(ge=0, le=0.5)] = 0.5


class Processes(PolicySection):
    """How many processes and rounds a judgement needs."""

    minimum: Annotated[int, Field(ge=2)] = 2
    to_direct: Annotated[int, Field(ge=2)] = 4
    to_block: Annotated[int, Field(ge=2)] = 3
    limit: Annotated[int, Field(ge=2)] = 7
    minimum_rounds: Annotated[int, Field(ge=8)] = 20

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if not self.minimum <= self.to_block <= self.limit or self.to_direct > self.limit:
            raise ValueError("minimum, to_block and limit must not decrease, and to_direct is at most limit")
        return self


class Spread(PolicySection):
    """What is known beforehand of how far processes scatter, and of errors that no number of rounds removes."""

    change_pct: Percent = 0.045
    quiet_factor: Annotated[float, Field(gt=1)] = 1.35
    quiet_share: Probability = 0.4
    largest_pct: Percent = 10.0
    prior_cases: Positive = 4
    history_df: DegreesOfFreedom = 4.0
    history_share: Probability = 0.97
    history_memory_df: DegreesOfFreedom = 10.0
    history_to_direct_df: DegreesOfFreedom = 8.0
    level_pct: Percent = 0.15
    level_prior_processes: Positive = 10
    baseline_drift_pct: Percent = 1.0
    baseline_drift_df: Positive = 10
    baseline_days: Annotated[int, Field(ge=2)] = 4
    baseline_days_df: Positive = 5
    block_change_pct: Percent = 0.1
    block_bias_pct: PercentOrNone = 0.3
    alternating_bias_pct: PercentOrNone = 0.8


class WitnessRules(PolicySection):
    """When the times of base and head in processes of their own contradict the comparison."""

    tolerance_pct: Percent = 3.0
    cpu_tolerance_pct: Percent = 25.0
    cpu_spread_pct: Percent = 3.0
    prior_turns: Positive = 4


class Bootstrap(PolicySection):
    resamples: Annotated[int, Field(ge=100)] = 10_000
    seed: int = 20260801


class ValidityLimits(PolicySection):
    """Where something that is not a difference is named (`warn`), and where it forbids a verdict."""

    warn_cv_pct: Percent = 12.0
    warn_temperature_c: float = 80.0
    harmless_throttle_reasons: tuple[str, ...] = ("gpu_idle", "applications_clocks_setting", "display_clock_setting")
    throttled_share: Share = 0.5
    clock_change_pct: Percent = 2.0
    dependence_p: Probability = 2e-6
    dependence_pct: PercentOrNone = 0.1
    carry_over_pct: Percent = 0.5
    side_clock_pct: Percent = 0.5
    distinct_values: Positive = 3
    mode_distance_pct: Percent = 3.0
    mode_share: Share = 0.15
    mode_overlap: Share = 0.05
    mode_share_p: Probability = 1e-3
    drift_pct: Percent = 1.0
    drift_p: Probability = 1e-6
    disagree_p: Probability = 1e-4
    disagree_pct: Percent = 1.0
    lone_share: Share = 0.25
    floor_tolerance: Share = 0.05
    shortest_us: Annotated[float, Field(gt=0)] = 1e-3
    longest_us: Annotated[float, Field(gt=0)] = 1e10


class TimingRules(PolicySection):
    """How `kernelgate bench` treats the GPU's clock and power."""

    pause_when_capped: bool = True
    lock_clocks: bool = False


class Static(PolicySection):
    """What the compiler made of the kernel: whether a change for the worse blocks, warns, or is ignored."""

    new_spills: Literal["fail", "warn", "ignore"] = "fail"
    occupancy_loss: Literal["fail", "warn", "ignore"] = "warn"


class Profiling(PolicySection):
    """How `kernelgate profile` measures."""

    clock_control: Literal["none", "base"] = "none"
    timeout_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 120.0


class Template(PolicySection):
    """What a pull request's description must hold, and how its claims are held against the measurement."""

    kernel_paths: Annotated[tuple[str, ...], Field(min_length=1)] = ("csrc/",)
    block_empty_hypothesis: bool = True
    block_contradicted_claim: bool = True
    claim_tolerance_pct: PercentOrNone = 1.0


class RunnerGpu(PolicySection):
    """One kind of runner that measures pull requests: a column of the comment."""

    label: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,30}$")]
    """Of its runners, beside self-hosted, linux, x64 and gpu."""
    target: Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$")]
    """Its compute capability: what the libraries are compiled for."""
    baseline: str | None = None
    """The baseline file of this GPU, from the root of the repository."""


L4 = RunnerGpu(label="l4", target="8.9", baseline=".ci/baseline_s512.json")


class Measure(PolicySection):
    """What is measured, where, and when not."""

    paths: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "csrc/",
        "bench/",
        "setup.py",
        ".ci/",
        ".github/workflows/",
    )
    skip_labels: tuple[str, ...] = ("documentation", "skip-performance")
    gpus: Annotated[tuple[RunnerGpu, ...], Field(min_length=1, max_length=15)] = (L4,)

    @model_validator(mode="after")
    def _labels_are_unique(self) -> Self:
        labels = [gpu.label for gpu in self.gpus]
        if len(set(labels)) < len(labels):
            raise ValueError(f"duplicate GPU label; got {', '.join(labels)}")
        return self


class Policy(PolicySection):
    gates: Gates = Gates()
    certainty: Certainty = Certainty()
    processes: Processes = Processes()
    spread: Spread = Spread()
    witness: WitnessRules = WitnessRules()
    bootstrap: Bootstrap = Bootstrap()
    limits: ValidityLimits = ValidityLimits()
    timing: TimingRules = TimingRules()
    static: Static = Static()
    profiling: Profiling = Profiling()
    template: Template = Template()
    measure: Measure = Measure()


def load(path: Path | None = None, preset: str = DEFAULT_PRESET) -> Policy:
    """The policy in `path` (default: `.ci/kernelgate.toml` where there is one), with the changes of `preset`.

    Raises PolicyError naming the key that does not fit, and UsageError for a preset that the file does not have.
    """
    chosen = path or POLICY_FILE
    if path is None and not chosen.exists():
        return parse("", "the built-in policy", preset)
    try:
        text = chosen.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"{chosen}: the policy cannot be read: {error}") from None
    return parse(text, str(chosen), preset)


def parse(text: str, name: str = "policy", preset: str = DEFAULT_PRESET) -> Policy:
    """The policy in TOML `text`: sections of `Policy`, and `presets.<name>` with the sections that it changes."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(f"{name} is not TOML: {error}") from None
    presets = content.pop("presets", BUILT_IN_PRESETS)
    if not isinstance(presets, dict) or not all(isinstance(changes, dict) for changes in presets.values()):
        raise PolicyError(f"{name}: presets must be tables, such as [presets.strict.gates]")
    plain = _validated(content, name)
    complete = {
        known: _validated(_merged(content, changes), f"{name}, preset {known}") for known, changes in presets.items()
    }
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


def _validated(content: dict[str, Any], name: str) -> Policy:
    try:
        return Policy.model_validate(content)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors(include_url=False)]
        raise PolicyError(f"{name} does not fit: {'; '.join(faults)}") from None
