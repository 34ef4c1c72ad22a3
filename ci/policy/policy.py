"""The policy: every number that decides something, with the reason beside it in `.ci/kernelgate.toml`."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from functools import cache
from inspect import cleandoc, getsource
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError, model_validator
from pydantic_core import ErrorDetails

from kernelgate.bench.core import files
from kernelgate.bench.core.errors import KernelgateError, UsageError
from kernelgate.bench.record import CheckKind

POLICY_FILE = Path(".ci/kernelgate.toml")
DEFAULT_PRESET = "default"
BUILT_IN_PRESETS: dict[str, Any] = {"strict": {"gates": {"regression_pct": 1.0}}}
"""Of a file without presets. The smallest change that a run of five processes detects on the traces of
docs/statistics.md is 0.1 to 0.4%."""
TO_DIRECT: Final = 4
"""A direction of any size takes so many processes: where each process draws its placement, 0.5% on either side in half
of them, all fall the same way in 12.5% of runs of two processes and in 0.8% of runs of four. Fewer, down to the
minimum, where the case's history excludes such a lottery, or where the change is larger than one (LOTTERY_PCT)."""
RESOLUTION_PCT: Final = 0.4
"""`kernelgate bench` stops once each case has a direction or would have shown a change of this size, and is on one side
of each gate. MISS is the probability that it stops on the wrong side."""
MOST_SHOWN = 60
MOST_FAULTS = 5
MOST_PROCESSES = 32
"""Of one case in a record: no policy may ask for more, and no artifact may hold more."""


def between(low: float, high: float) -> Any:
    """A number in this range, both ends in it. No text and no truth value is one."""
    return Field(ge=low, le=high, strict=True)


FileName = Annotated[str, Field(pattern=r"^[^\x00]*$")]
Percent = Annotated[float, between(1e-3, 1e3)]
Speedup = Annotated[float, between(1e-3, 99.9)]
"""Percent that a time can shrink by."""
ProcessCount = Annotated[int, between(2, MOST_PROCESSES)]
Action = Literal["fail", "warn", "ignore"]
SanitizerTool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]


class PolicySection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def ordered(section: PolicySection, lower: str, upper: str) -> None:
    """Raises ValueError where two numbers of a section contradict each other."""
    least, most = getattr(section, lower), getattr(section, upper)
    if least > most:
        raise ValueError(f"{lower} ({least:g}) must not be above {upper} ({most:g})")


class Gates(PolicySection):
    regression_pct: Percent = 3.0
    improvement_pct: Speedup = 10.0
    margin_pct: Percent = 1.0
    mean_regression_pct: Percent = 1.0
    mean_improvement_pct: Speedup = 3.0
    reference_min: Annotated[float, between(1e-6, 1.0)] = 0.5
    below_reference_min: Action = "warn"
    memory_max: Annotated[float, between(1e-6, 1e6)] = 2.0
    above_memory_max: Action = "ignore"
    sanitizer: Action = "fail"
    doubt: Literal["hold", "pass"] = "hold"

    @model_validator(mode="after")
    def _nothing_blocks_that_is_the_same(self) -> Self:
        ordered(self, "margin_pct", "regression_pct")
        ordered(self, "margin_pct", "improvement_pct")
        if (least := min(self.regression_pct, self.improvement_pct)) < RESOLUTION_PCT:
            raise ValueError(f"a gate ({least:g}) must not be below what is measured to ({RESOLUTION_PCT:g})")
        return self


class Certainty(PolicySection):
    alpha: Annotated[float, between(1e-12, 0.5)] = 0.001


class Processes(PolicySection):
    minimum: ProcessCount = 2
    to_block: ProcessCount = 3
    limit: Annotated[int, between(TO_DIRECT, MOST_PROCESSES)] = 7

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        ordered(self, "minimum", "to_block")
        ordered(self, "to_block", "limit")
        return self


class TimingRules(PolicySection):
    lock_clocks: StrictBool = False


class FuzzRules(PolicySection):
    gpu_limit_s: Annotated[float, between(1.0, 86_400.0)] = 30.0


class Static(PolicySection):
    """What the compiler made of the kernel: whether a change for the worse blocks, warns, or is ignored."""

    new_spills: Action = "fail"
    occupancy_loss: Action = "warn"


class SanitizerRules(PolicySection):
    tools: Annotated[tuple[SanitizerTool, ...], Field(min_length=1)] = ("memcheck", "racecheck")
    seconds: Annotated[float, between(1.0, 3600.0)] = 20.0


class AccuracyRules(PolicySection):
    action: Literal["fail", "warn"] = "warn"


class ChangeRules(PolicySection):
    """Changes over time, in the nightly series of docs/history.md."""

    gpu_seconds_a_night: Annotated[float, between(0.0, 86_400.0)] = 600.0
    """What comparisons may take of the GPU in a night."""


class AgentRules(PolicySection):
    """What an agent may take of a machine through `kernelgate mcp`, and cannot exceed."""

    gpu_seconds: Annotated[float, between(0.0, 1e7)] = 7200.0


TemplateRule = Literal["block", "warn", "ignore"]


class Template(PolicySection):
    """What a pull request's description must hold."""

    kernel_paths: Annotated[tuple[str, ...], Field(min_length=1)] = ("csrc/",)
    sections: TemplateRule = "block"
    claims: TemplateRule = "block"


class RunnerGpu(PolicySection):
    """One kind of runner that measures pull requests: a column of the comment."""

    label: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{0,30}$")]
    """Of its runners, beside self-hosted, linux, x64 and gpu."""
    target: Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$")]
    """Its compute capability: what the libraries are compiled for."""
    baseline: FileName | None = None
    """The baseline file of this GPU, from the root of the repository."""
    shards: Annotated[int, between(1, 8)] = 1
    """How many of its runners share the cases of a pull request."""


L4 = RunnerGpu(label="l4", target="8.9", baseline=".ci/baseline_s512.json")
MEASURED_PATHS = ("csrc/", "bench/", "setup.py", ".ci/", ".github/workflows/")


class Measure(PolicySection):
    paths: Annotated[tuple[str, ...], Field(min_length=1)] = MEASURED_PATHS
    skip_labels: tuple[str, ...] = ("documentation", "skip-performance")
    drafts: Literal["on_ready", "always"] = "on_ready"
    pinned: Annotated[str, Field(pattern=r"^([0-9a-f]{40})?$")] = ""
    """The commit of the default branch that each night times beside its head; empty: the head alone."""
    environment: FileName = ""
    """The file of the Python, with its own torch, that kernels run in; empty: the one that kernelgate runs in."""
    gpus: Annotated[tuple[RunnerGpu, ...], Field(min_length=1, max_length=15)] = (L4,)

    @model_validator(mode="after")
    def _labels_are_unique(self) -> Self:
        labels = [gpu.label for gpu in self.gpus]
        if len(set(labels)) < len(labels):
            raise ValueError(f"duplicate GPU label; got {', '.join(labels)}")
        return self


class GpuPrice(PolicySection):
    hour: Annotated[float, between(0.0, 1e6)]
    day: date
    source: Annotated[str, Field(min_length=1, max_length=200)]
    restart: Annotated[float, between(0.0, 1e6)] | None = None
    """What it costs to stop the machine and start it again, the waiting of those who need it included."""

    @property
    def idle_minutes(self) -> float | None:
        """After so long without a job the machine is better stopped: idling has then cost as much as a restart, so that
        the bill is at most twice the lowest that foresight could reach."""
        return 60 * self.restart / self.hour if self.restart is not None and self.hour else None


class Costs(PolicySection):
    gpu_hour: Mapping[str, GpuPrice] = {}
    """By the kind that a record names, such as "NVIDIA H200"."""
    currency: str = "USD"

    def of(self, gpu: str | None) -> GpuPrice | None:
        """A price is the device's by its whole name, since one of a larger model would be wrong."""
        return self.gpu_hour.get(gpu or "")


class Policy(PolicySection):
    gates: Gates = Gates()
    certainty: Certainty = Certainty()
    processes: Processes = Processes()
    timing: TimingRules = TimingRules()
    fuzz: FuzzRules = FuzzRules()
    static: Static = Static()
    sanitizer: SanitizerRules = SanitizerRules()
    accuracy: AccuracyRules = AccuracyRules()
    changes: ChangeRules = ChangeRules()
    agents: AgentRules = AgentRules()
    template: Template = Template()
    measure: Measure = Measure()
    costs: Costs = Costs()

    @property
    def checks(self) -> tuple[CheckKind, ...]:
        """What a pull request's measurement on a GPU holds beside its times."""
        return ("fuzz", "witness") if self.gates.sanitizer == "ignore" else ("fuzz", "sanitizer", "witness")


def load(path: Path | None = None, preset: str = DEFAULT_PRESET) -> Policy:
    """The policy in `path` (default: `.ci/kernelgate.toml` where there is one), with the changes of `preset`. Raises
    KernelgateError naming the key that does not fit, and UsageError for an unknown preset."""
    chosen = path or POLICY_FILE
    try:
        text = files.content(chosen).decode()
    except (OSError, UnicodeDecodeError) as error:
        if path is None and isinstance(error, FileNotFoundError) and not chosen.is_symlink():
            return parse("", "the built-in policy", preset)
        raise KernelgateError(f"{chosen}: the policy cannot be read: {getattr(error, 'strerror', error)}") from None
    return parse(text, str(chosen), preset)


def parse(text: str, name: str = "policy", preset: str = DEFAULT_PRESET) -> Policy:
    """The policy in TOML `text`: sections of `Policy`, and `presets.<name>` with the sections that it changes."""
    content, presets = _read(text, name)
    known = {DEFAULT_PRESET: _validated(content, name)}
    known |= {one: _validated(_merged(content, changes), name, one) for one, changes in presets.items()}
    if preset not in known:
        others = sorted(known.keys() - {DEFAULT_PRESET})
        raise UsageError(f"{name} has no preset {preset!r}; it has: {', '.join([DEFAULT_PRESET, *others])}")
    return known[preset]


def numbers(path: Path | None = None, preset: str = DEFAULT_PRESET) -> tuple[DecidingNumber, ...]:
    """Everything that decides, with its source: the policy's keys, then the constants. Raises as `load` does."""
    chosen = path or POLICY_FILE
    rules = load(path, preset)
    content, presets = _read(files.content(chosen).decode() if chosen.exists() else "", str(chosen))
    changed = {(section, key) for section, keys in presets.get(preset, {}).items() for key in keys}
    found = []
    for section, values in rules.model_dump(mode="json").items():
        lines = getsource(type(getattr(rules, section)))
        for key, value in values.items():
            behind = re.search(rf'^    {key}: .*\n    """(?s:(.+?))"""', lines, re.MULTILINE)
            reason = cleandoc(behind[1]) if behind else ""
            source = str(chosen) if key in content.get(section, {}) else "default"
            source = f"preset {preset}" if (section, key) in changed else source
            found.append(DecidingNumber(name=f"{section}.{key}", value=value, source=source, reason=reason))
    return (*found, *every_constant())


def _read(text: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        content = tomllib.loads(text.removeprefix("\ufeff"))  # a mark that editors on Windows write
    except (ValueError, RecursionError) as error:  # also of a number with thousands of digits
        raise KernelgateError(f"{name} is not TOML: {str(error).partition(';')[0]}") from None
    presets = content.pop("presets", BUILT_IN_PRESETS)
    if not isinstance(presets, dict) or not all(isinstance(changes, dict) for changes in presets.values()):
        raise KernelgateError(f"{name}: presets must be tables, such as [presets.strict.gates]")
    return content, presets


def _merged(content: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """`content` with the single keys that `changes` names replaced, section by section."""
    merged = dict(content)
    for section, values in changes.items():
        old = content.get(section, {})
        merged[section] = {**old, **values} if isinstance(old, dict) and isinstance(values, dict) else values
    return merged


def _validated(content: dict[str, Any], name: str, preset: str | None = None) -> Policy:
    try:
        return Policy.model_validate(content)
    except ValidationError as error:
        where = f"{name}, preset {preset}" if preset else name
        found = error.errors(include_url=False)
        rest = f"; and {len(found) - MOST_FAULTS} more" if len(found) > MOST_FAULTS else ""
        faults = "; ".join(map(_said, found[:MOST_FAULTS])) + rest
        raise KernelgateError(f"{where} does not fit: {faults}") from None


def _said(fault: ErrorDetails) -> str:
    """Such as "gates.memory_max is 0: input should be greater than or equal to 1e-06"."""
    key, value = ".".join(map(str, fault["loc"])), fault["input"]
    shown = "" if isinstance(value, dict | PolicySection) else f" is {repr(value)[:MOST_SHOWN]}"
    if fault["type"] == "model_type":
        wanted = globals()[fault["ctx"]["class_name"]].model_fields.items()
        needed = ", ".join(name for name, one in wanted if one.is_required())
        return f"{key}{shown}: must be a table{f' with {needed}' if needed else ''}"
    why = "there is no such key" if fault["type"] == "extra_forbidden" else fault["msg"].removeprefix("Value error, ")
    return f"{key}{shown}: {why[0].lower()}{why[1:]}".removeprefix(": ")


# ---- The numbers that decide and that no policy sets -----------------------------------------------------------------
# Constants of the modules that use them, read from their source. Such a constant is annotated with `Final` and has its
# reason behind it, as a docstring; one without shares the reason of the constant above it.

ROOT = Path(__file__).parents[2]
DECIDING = (
    *(f"ci/{package}" for package in ("policy", "judge", "history", "bisect", "explain", "lab", "github")),
    "bench/explain",
)
"""The packages whose numbers decide something."""


class DecidingNumber(BaseModel, frozen=True):
    name: str
    value: Any
    source: str
    """A constant's module, such as "ci/judge/prior.py"; of a key "default", its file, or "preset strict"."""
    reason: str


@cache
def every_constant() -> tuple[DecidingNumber, ...]:
    paths = [path for package in DECIDING for path in sorted((ROOT / package).rglob("*.py"))]
    return tuple(one for path in paths for one in _of_module(path))


def _of_module(path: Path) -> Iterator[DecidingNumber]:
    body = ast.parse(path.read_text(encoding="utf-8")).body
    reason = ""
    for node, after in zip(body, [*body[1:], None], strict=True):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="Final"), value=ast.expr() as value):
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    reason = " ".join(str(after.value.value).split())
                with suppress(ValueError):  # no literal
                    found = ast.literal_eval(value)
                    if name.isupper() and isinstance(found, int | float | tuple) and not isinstance(found, bool):
                        module = path.relative_to(ROOT).as_posix()
                        yield DecidingNumber(name=name, value=found, source=module, reason=reason)
