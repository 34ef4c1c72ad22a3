"""The JSON-lines protocol between the leading process, the verifier and the measured processes. Needs no torch.

The leader alone talks to both: the verifier says which inputs a batch of calls reads and where its outputs go, a
measured process makes the calls, and the verifier then looks at the outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from kernelgate.bench import record
from kernelgate.bench.build.library import LibraryAt
from kernelgate.bench.system.environment import DeviceKind
from kernelgate.bench.system.nvml import Reading
from kernelgate.bench.system.worker import Message

Axes = dict[str, bool | int | float | str]
Values = float | int | str | bool | None


class Memory(Message):
    """A block of memory that processes share."""

    kind: Literal["file", "cuda", "local"]
    """`local`: of the measured process alone, in which the verifier works too."""
    bytes: int
    fd: int = -1
    handle: str = ""
    sealed: bool = False
    """Whether it can be read alone, by all but the verifier."""


class Place(Message):
    """Where tensors of one kind lie: the one at an index begins at offset + index % count * step."""

    offset: int
    step: int
    count: int
    bytes: int
    """From a tensor's first element to its last."""
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


class NamedInput(Message):
    name: str
    kind: Literal["one", "list", "tuple"] = "one"
    items: tuple[Place | tuple[Values, ...], ...]
    """A value that is no tensor is given for each index."""
    slotted: bool = False
    """Whether the kernel overwrites it, so that each call has its own."""

    def value(self, view: Callable[[Place, int], object], index: int, moved: int = 0) -> object:
        """What a call gets: `view` makes a place's tensor. `moved`: how many places further it lies than it would."""
        items = [
            view(item, index + moved) if isinstance(item, Place) else item[index % len(item)] for item in self.items
        ]
        return items[0] if self.kind == "one" else items if self.kind == "list" else tuple(items)


# The verifier's steps


class PrepareCase(Message):
    """Draw inputs of a case, and compute what is right."""

    ask: Literal["prepare"] = "prepare"
    id: str
    card_file: Path
    """The judging card: inputs, oracle and tolerance."""
    axes: Axes
    device: DeviceKind
    cache_bytes: int
    """What is read between two calls on the same inputs."""
    seed: str
    fds: tuple[int, int] | None
    """The files in memory on a CPU: of what is read, and of what is written."""
    shared: bool = True
    """Whether another process is to map the memory."""
    fresh_calls: int | None = None
    """Draw so many separate inputs that share nothing, each for one call, and no others: for the witness."""
    reference: bool = False
    """Try whether the card's reference can be timed, which no code of base or head decides here."""


class CasePrepared(Message):
    memory: Memory
    """Of what calls read."""
    written: Memory
    """Of what they write, and of probes."""
    inputs: tuple[NamedInput, ...]
    outputs: dict[str, Place]
    probes: Place
    """Two probes' words for each sample."""
    slots: int
    """Calls that have outputs of their own."""
    no_reference: str | None = None
    """Why the card's reference cannot be timed."""


class PlanCalls(Message):
    """Which inputs the next calls read, and where their outputs go."""

    ask: Literal["plan"] = "plan"
    count: int
    inputs: Literal["next", "again", "new"] = "next"
    """`again`: those of the last calls, for another process that has never read them; `new`: all are drawn anew."""


class Planned(Message):
    windows: tuple[int, ...]
    slots: tuple[int, ...]
    inputs: tuple[NamedInput, ...] = ()
    """All inputs, where numbers among them were drawn anew."""
    moved: int = 0
    """By how many places all inputs but the first lie elsewhere now, as an allocator would have them."""


class CheckCalls(Message):
    """Look at the outputs of the planned calls."""

    ask: Literal["check"] = "check"
    sides: tuple[record.Side, ...]
    """Of each call; a reference's are not compared."""
    busy_us: float
    """What the batch took: checking it must not take much of that."""
    samples: int = 0
    """Whose probes are read."""
    graph: bool = False
    """They were replayed from a CUDA graph."""


class ProbeReading(Message):
    """What the probes around one sample say."""

    started_us: float
    """Since the first of the case."""
    us: float
    """From the probe before to the probe after."""
    sm_mhz: float | None


class Checked(Message):
    """Nobody is told before the end which calls were compared, and what came of it."""

    probed: tuple[ProbeReading, ...] = ()


class ShareMemory(Message):
    """Make a small block of memory that a process without any kernel is to map: whether that can be done at all."""

    ask: Literal["share"] = "share"
    device: DeviceKind
    fd: int


class CloseCase(Message):
    ask: Literal["close"] = "close"


class CaseChecked(Message):
    calls: dict[record.Side, record.Calls]
    errors: dict[record.Side, record.OutputErrors]
    notes: tuple[record.Note, ...] = ()
    seconds: float
    """What drawing, poisoning and comparing took of the device."""
    disturbed: str | None = None
    """What was done to the verifier, or to the inputs, while calls were made."""
    graphs: bool = True
    """Whether a CUDA graph holds what a call does."""


ToVerifier = PrepareCase | PlanCalls | CheckCalls | ShareMemory | CloseCase
VERIFIER_STEP: TypeAdapter[ToVerifier] = TypeAdapter(Annotated[ToVerifier, Field(discriminator="ask")])


# A measured process's steps


class TimingRequest(Message):
    """What a measured process loads: one card's libraries."""

    card: str
    card_file: Path
    """The judging card, for its reference."""
    device: DeviceKind
    uuid: str | None
    libraries: tuple[tuple[record.Side, LibraryAt], ...]
    """In the order of loading."""


class OpenCase(Message):
    ask: Literal["open"] = "open"
    id: str
    axes: Axes
    prepared: CasePrepared
    reference: bool
    """Whether the reference will be timed, too, if it can be."""
    alone: bool = False
    """Whether somebody else will hold the clock: then all that can be prepared is prepared now."""


class CaseOpened(Message):
    """The inputs are mapped."""

    clock_step_us: record.NonNegative
    returns: bool = False
    """Whether some calls return new tensors."""
    no_reference: str | None = None
    """Why the reference cannot be timed."""


class SampleCalls(Message):
    """The calls of one timed interval."""

    side: record.Side
    windows: tuple[int, ...]
    slots: tuple[int, ...]


class Batch(Message):
    """Time these samples, one after the other."""

    ask: Literal["batch"] = "batch"
    what: str
    samples: tuple[SampleCalls, ...] = ()
    pause_us: float = 0.0
    """Idle time before each."""
    inputs: tuple[NamedInput, ...] = ()
    """As `Planned` has them."""
    moved: int = 0
    graph: bool = False
    """Capture the calls of each as one graph, and time that."""


class Start(Message):
    """Make these calls, now, and answer when all is done: somebody else holds the clock, which runs already."""

    ask: Literal["start"] = "start"
    calls: SampleCalls
    pause_us: float = 0.0
    inputs: tuple[NamedInput, ...] = ()
    moved: int = 0


class Copy(Message):
    """The calls are made: put the new tensors that they have returned where the verifier looks."""

    ask: Literal["copy"] = "copy"


class BatchDone(Message):
    times_us: tuple[record.NonNegative, ...] = ()
    """Of each sample, all its calls together; empty where graphs cannot be captured."""
    started_us: tuple[record.NonNegative, ...] = ()
    """On a CPU, when each sample began since the first of the case."""
    held: bool = True
    """Whether all was queued before the device began: else it may have waited for the host."""
    waits: bool = False
    """Whether calls wait for the device, so that nothing can be queued before it begins."""
    queued_us: record.NonNegative = 0.0
    """What the host needed to queue the calls of Start."""
    stopped: bool = False
    """Whether another process stopped this one meanwhile."""
    readings: tuple[Reading, ...] = ()


class Finish(Message):
    """The case is done: what is known of it? Each side is called once more, in turn, as planned."""

    ask: Literal["finish"] = "finish"
    planned: Planned


class CaseDone(Message):
    autotuned: dict[record.Side, str]
    memory_bytes: dict[record.Side, record.Count] = Field(default_factory=dict)
    notes: tuple[record.Note, ...] = ()


ToWorker = OpenCase | Batch | Start | Copy | Finish | ToVerifier
WORKER_STEP: TypeAdapter[ToWorker] = TypeAdapter(Annotated[ToWorker, Field(discriminator="ask")])
"""What a measured process is asked; also what is the verifier's, where that works in it."""
