"""Who asked for what, where it ran, which cases of which kernels, what was compiled; first, what models are made of."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Side = Annotated[str, Field(pattern=r"^(?:base|head|reference|commit:[0-9a-f]{7,64})$")]
"""Whose code ran, which is not base or head alone: `reference` is what is timed beside, such as PyTorch's own operator,
and a search times other commits."""
Role = Literal["paired", "alternating", "block", "witness", "canary", "bisect"]
"""Why a process was started. `paired`: all sides in it, rounds interleaved at random; `alternating`: base and head in
processes that take turns; `block`: one side after the other, or one alone; `witness`: base and head each in a process
without the other, timed by the clock of a third one that loads neither."""
COMPARED: tuple[Role, ...] = ("paired", "alternating", "block")
"""The roles whose times are compared; the others answer questions of their own."""
CheckKind = Literal["fuzz", "sanitizer", "outputs", "witness", "accuracy"]

LARGEST = 1e21
"""No honest number is larger, whatever its unit, and its square can still be reckoned with."""
CANARY, EQUAL, MORE = "canary", "equal", "2% more"
"""The card and the cases of `kernelgate canary`."""
Microseconds = Annotated[float, Field(ge=1e-9, le=1e15, allow_inf_nan=False, strict=True)]
Finite = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False, strict=True)]
NonNegative = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0, le=1, strict=True)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**64, strict=True)]
Count = Annotated[int, Field(ge=0, lt=2**64, strict=True)]
Positive = Annotated[int, Field(ge=1, lt=2**64, strict=True)]
Flag = Annotated[bool, Field(strict=True)]
Capability = Annotated[str, Field(pattern=r"^[0-9]{1,2}\.[0-9]$")]
"""A compute capability, such as "8.9"."""
Axes = dict[str, Flag | Finite | str]
"""By name. True and false are themselves; every other number is a float, also 0 and 1."""


def without_nulls(data: Any) -> Any:
    return {key: value for key, value in data.items() if value is not None} if isinstance(data, dict) else data


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _null_means_left_out(cls, data: Any) -> Any:
        return without_nulls(data)


def must_be_unique(names: Iterable[str], what: str) -> None:
    twice = sorted(name.removeprefix("/") for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"{what} must be unique; duplicates: {', '.join(twice)}")


# ---- Identities ------------------------------------------------------------------------------------------------------


class Shard(Model):
    """A part of a measurement that several machines share, and what all parts must agree on to be put together."""

    number: Positive
    of: Positive
    seed: Whole
    policy: str | None = None
    """A digest of the numbers that said when to stop."""

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if self.number > self.of:
            raise ValueError(f"there is no shard {self} of a measurement in {self.of} shards")
        return self

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class Run(Model):
    """Which measurement this is: the one identity from plan to comment."""

    id: str | None = None
    producer: str | None = None
    version: str | None = None
    plan_hash: str | None = None
    """`expected_hash` of what the default branch asked for when this was planned."""
    repository: str | None = None
    pull_request: Whole | None = None
    event: str | None = None
    """What started it, such as "pull_request"; "try" where two commits of a clone were named."""
    cards: str | None = None
    """The folder, on the machine that measured, of the cards that stood in place of the commits' own."""
    pythons: tuple[str, ...] = ()
    """The files of the Pythons that kernels were to run in, where the call named some: one, or base's and head's."""
    base_sha: str | None = None
    head_sha: str | None = None
    """A commit, or null for a working tree with changes."""
    run_id: Whole | None = None
    run_attempt: Whole | None = None
    gpu: str | None = None
    resumed_from: str | None = None
    """The id of the run whose processes this one goes on with."""
    ended: Literal["complete", "preempted", "cancelled", "failed"] | None = None
    shard: Shard | None = None
    """Null where one machine measures all cases, and once all shards are merged."""
    created_at: str | None = None
    """ISO 8601, UTC."""


class Device(Model):
    name: str | None = None
    compute_capability: Capability | None = None
    """Null for a CPU."""
    uuid: str | None = None
    driver: str | None = None
    memory_bytes: Count | None = None
    sm_count: Count | None = None
    """Multiprocessors of a GPU, cores of a CPU."""
    l2_bytes: Count | None = None
    power_limit_w: NonNegative | None = None
    max_sm_mhz: NonNegative | None = None
    max_memory_mhz: NonNegative | None = None
    ecc: Flag | None = None
    mig: Flag | None = None
    pcie: str | None = None


class Numerics(Model):
    """How torch computed beside kernels and in references, on which times and float32 results depend."""

    matmul: str | None = None
    """How float32 products are rounded inside, in torch's words: "ieee" is not at all, "tf32" to 10 bits."""
    convolution: str | None = None
    deterministic: Flag | None = None
    """Whether operators that have an algorithm whose bits repeat use it."""
    variables: tuple[str, ...] = ()
    """Such as "NVIDIA_TF32_OVERRIDE=0": of the process, where they are set."""

    @property
    def words(self) -> str:
        repeat = {True: "deterministic", False: "not deterministic", None: "maybe deterministic"}[self.deterministic]
        products = f"products in {self.matmul or '?'}, convolutions in {self.convolution or '?'}"
        return ", ".join((f"float32 {products}", repeat, *self.variables))


class Environment(Model):
    id: str = "0"
    device: Device = Device()
    torch: str | None = None
    cuda: str | None = None
    triton: str | None = None
    python: str | None = None
    interpreter: str | None = None
    """The file of the Python, on the machine that measured."""
    os: str | None = None
    host: str | None = None
    clock_policy: str | None = None
    """How clocks are held, such as "default" or "locked 1500 MHz"."""
    numerics: Numerics | None = None
    """Null in records from before it was set."""


class Work(Model):
    """What one call must do at least: used for TFLOP/s, GB/s and the physical floor."""

    flops: NonNegative | None = None
    bytes: NonNegative | None = None


class Tolerance(Model):
    atol: NonNegative | None = None
    rtol: NonNegative | None = None


class Card(Model):
    """The kernel that was measured, as its card describes it."""

    name: str
    label: str | None = None
    hash: str | None = None
    source: Literal["default branch", "head"] | None = None
    """Whose card gave cases, inputs and oracle."""
    build: str | None = None
    reference: str | None = None
    """The name of what is timed beside, such as "PyTorch"."""


@dataclass(frozen=True, order=True)
class CaseKey:
    """What identifies a case everywhere."""

    card: str
    id: str


class Case(Model):
    """One shape and dtype of a card's kernel; card and id together name it. The id is opaque to the judge."""

    card: str = ""
    id: Annotated[str, Field(min_length=1)]
    label: str | None = None
    """How people read the case, from its card; null: its axes."""
    axes: Axes = {}
    work: Work | None = None
    tolerance: Tolerance | None = None

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.card, self.id)


class Expected(Model):
    """What the plan asked for, from the default branch; a record is held against this and nothing else."""

    label: str | None = None
    target: Capability | None = None
    """The compute capability that the label's GPU has."""
    cards: tuple[Card, ...] = ()
    cases: tuple[Case, ...] = ()
    checks: tuple[CheckKind, ...] = ()
    processes: Positive | None = None
    hash: str | None = None


def expected_hash(expected: Expected) -> str:
    """The same for the same cards, cases, checks and processes, whichever GPU they are for."""
    asked = expected.model_dump(mode="json", include={"cards", "cases", "checks", "processes"}, exclude_defaults=True)
    return hashlib.sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


# ---- What was compiled, and what the compiler made of each kernel ----------------------------------------------------


class KernelFacts(Model):
    """What the compiler made of one kernel for one target."""

    target: str
    name: str
    registers: Count | None = None
    spill_bytes: Count | None = None
    """What the code stores to local memory: spilled registers, and arrays that are not in registers."""
    static_shared_bytes: Count | None = None
    dynamic_shared_bytes: Count | None = None
    """What a launch asks for; null where nothing in the library says it."""
    stack_bytes: Count | None = None
    threads: Count | None = None
    """Of a block, as __launch_bounds__ gives them."""
    occupancy_pct: dict[str, NonNegative] = {}
    """Theoretical, by GPU that runs the target; in a profile, this name is of what was achieved."""
    occupancy_limits: dict[str, str] = {}
    instructions: dict[str, Count] = {}
    """The SASS instruction mix, by kind; `total` counts all."""

    @property
    def shared_bytes(self) -> int | None:
        """Static and dynamic, of one block; static alone where the launch's part is unknown."""
        return None if self.static_shared_bytes is None else self.static_shared_bytes + (self.dynamic_shared_bytes or 0)


MAX_WARNING = 500
"""Characters of a warning."""
MAX_WARNINGS = 200
"""Of one build; as many are all that were kept, and there may be more."""


class CompilerWarning(Model):
    """What a compiler says of a line without refusing it."""

    file: str
    """Of the commit, from the repository's root."""
    line: Count | None = None
    """Null where the tool names none, as ptxas does."""
    text: Annotated[str, Field(max_length=MAX_WARNING)]


class Build(Model):
    card: str = ""
    side: Side
    sha: str | None = None
    key: str | None = None
    """The content address of the library in the build cache."""
    call_hash: str | None = None
    """Of the commit's own card file, whose `call` runs the library."""
    tree: Literal["clean", "changed"] | None = None
    seconds: NonNegative | None = None
    cached: Flag | None = None
    targets: tuple[str, ...] = ()
    python: str | None = None
    """Which ran it: the `interpreter` of an environment; null in records from before it was kept."""
    library_sha256: str | None = None
    host: str | None = None
    """A digest of what the host runs; null where that is not known."""
    code: dict[str, str] = {}
    """By the id of a case, or "" for all, a digest of the machine code that its call launches on the GPU of the record;
    a case that is not there launches what is not known."""
    kernels: tuple[KernelFacts, ...] = ()
    warnings: Annotated[tuple[CompilerWarning, ...], Field(max_length=MAX_WARNINGS)] | None = None
    """What the compilers warn of in the sources; null where nobody looked."""

    def same_code(self, other: Build, case: str = "") -> bool:
        """Whether a call of the case launches the same machine code, which is known of both."""
        mine, others = (one.code.get(case, one.code.get("")) for one in (self, other))
        return mine is not None and mine == others and self.call_hash == other.call_hash is not None

    def same_call(self, other: Build, case: str = "") -> bool:
        """Whether all that decides a call of the case is the same: the host's part, too."""
        return self.same_code(other, case) and self.host == other.host is not None and self.python == other.python
