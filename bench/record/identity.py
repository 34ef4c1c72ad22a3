"""Who asked for what, where it ran, and which cases of which kernels: the record's identities."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from kernelgate.bench.record.base import Axes, Capability, CheckKind, Count, Flag, Model, NonNegative, Positive, Whole


class Shard(Model):
    """One of several jobs that share the cases of a run."""

    index: Count
    count: Positive


class Run(Model):
    """Which measurement this is: the one identity from plan to comment."""

    id: str | None = None
    producer: str | None = None
    version: str | None = None
    """Of the producer."""
    plan_hash: str | None = None
    """`expected_hash` of what the default branch asked for when this was planned."""
    repository: str | None = None
    pull_request: Whole | None = None
    event: str | None = None
    base_sha: str | None = None
    """What the head is compared with."""
    head_sha: str | None = None
    """A commit, or null for a working tree with changes."""
    merge_base_sha: str | None = None
    run_id: Whole | None = None
    run_attempt: Whole | None = None
    gpu: str | None = None
    """The label of the GPU in the policy, such as "l4"."""
    shard: Shard | None = None
    resumed_from: str | None = None
    """The id of the run whose processes this one goes on with."""
    ended: Literal["complete", "preempted", "cancelled", "failed"] | None = None
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
    """Generation and width of the link, such as "gen4 x16"."""


class Numerics(Model):
    """How torch computed references and oracles, on which times and float32 results depend."""

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
    """The kind of build, such as "extension"."""
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
    """The least number of processes that hold each case."""
    hash: str | None = None
    """Of the plan, as `expected_hash` has it."""


def expected_hash(expected: Expected) -> str:
    """The same for the same cards, cases, checks and processes, whichever GPU they are for."""
    asked = expected.model_dump(mode="json", include={"cards", "cases", "checks", "processes"}, exclude_defaults=True)
    return hashlib.sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
