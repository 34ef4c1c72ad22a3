"""The JSON-lines protocol between the leading process and the worker processes. Needs no torch.

The worker answers the TimingRequest, and each Go after it, with Ready or, at the end of a case, with CaseDone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kernelgate.bench import record
from kernelgate.bench.build.library import LibraryAt
from kernelgate.bench.system.worker_process import Message

ROUNDS_PER_TURN = 20


class AskedCase(Message):
    """A case, by its axes."""

    id: str
    axes: dict[str, bool | int | float | str]


class TimingRequest(Message):
    """What this process shall time: cases of one card."""

    card: str
    card_file: Path
    """The judging card: inputs, oracle and tolerance."""

    device: Literal["cuda", "cpu"]
    uuid: str | None
    libraries: tuple[tuple[record.Side, LibraryAt], ...]
    """In the order of loading."""
    cases: tuple[AskedCase, ...]
    rounds: int
    cache_bytes: int
    """What the input sets together must exceed."""
    seed: str


class Go(Message):
    """Take the next step: prepare the next case, time a turn of rounds, or finish the case."""

    inner_repeats: int


class Ready(Message):
    """The step is done."""

    kind: Literal["ready"] = "ready"
    inner_repeats: int = 1
    """What the case needs on this clock."""


class CaseDone(Message):
    """The case is done."""

    kind: Literal["done"] = "done"
    timing: record.Timing
    notes: tuple[record.Note, ...] = ()


class Doing(Message):
    """What comes next, so that the parent can say where a process died."""

    kind: Literal["doing"] = "doing"
    what: str
    loading: bool = False


class Failed(Message):
    """Why this process cannot go on."""

    kind: Literal["failed"] = "failed"
    why: str


FromChild = Annotated[Doing | Ready | CaseDone | Failed, Field(discriminator="kind")]
