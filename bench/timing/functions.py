"""Two functions timed against each other in this process, by the rounds, checks and clock of a paired comparison.

The measured process and its verifier, which are processes of their own otherwise, work in here: whoever calls this
trusts the functions.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import torch

from kernelgate.bench import record
from kernelgate.bench.core.errors import UsageError
from kernelgate.bench.kernel import compare, operands
from kernelgate.bench.kernel.card import CaseAxes, Kernel, Output
from kernelgate.bench.kernel.cards import CaseFacts
from kernelgate.bench.kernel.operands import NAMES, Bound, Inputs, Tensors
from kernelgate.bench.record import RunRecord
from kernelgate.bench.system import environment, lock, nvml
from kernelgate.bench.system.worker import Message
from kernelgate.bench.timing import case_timing, protocol, timer
from kernelgate.bench.timing.case_timing import Runner, Team
from kernelgate.bench.timing.process import cache_bytes
from kernelgate.bench.timing.verifier import Verifier
from kernelgate.bench.timing.worker import Worker

CARD: Final = "functions"
CARD_FILE: Final = Path("functions")
"""Under which the verifier has the functions' card, in place of a file."""
A = TypeVar("A", bound=Message)


def timed(
    base: Callable[..., Any],
    head: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    name: str,
    rounds: int,
    tolerance: tuple[float, float] | None,
) -> RunRecord:
    """A record of one process. The head's results are compared with the base's, within (atol, rtol).

    Raises UsageError for what cannot be compared: a call without tensors, one that changes them, or returns none.
    """
    kernel = FunctionCard(base, args, kwargs, tolerance)
    device = next(iter(kernel.tensors.values())).device.type
    if device not in ("cuda", "cpu"):
        raise UsageError(f"the tensors lie on {device}; functions are timed on a GPU (cuda) or on the CPU")
    machine = environment.here("cuda" if device == "cuda" else "cpu")
    seed = random.SystemRandom().getrandbits(31)
    cache = cache_bytes(environment.kind(machine), machine.device.l2_bytes)
    case = CaseFacts(id=name, axes={}, label=name, flops=None, bytes=None, tolerance=tolerance)
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    asked = protocol.PrepareCase(
        id=name,
        card_file=CARD_FILE,
        axes={},
        device=environment.kind(machine),
        cache_bytes=cache,
        seed=str(seed),
        fds=None,
        shared=False,
    )
    with lock.device(machine.device.uuid), nvml.readings(device, machine.device.uuid) as source, torch.no_grad():
        begun, started = time.monotonic(), datetime.now(UTC)
        runner = InProcess(kernel, {"base": base, "head": head}, asked.device, source)
        team = Team(runner, (runner,))
        samples = case_timing.prepared(team, asked, case, rng, "leave")
        case_timing.warm_up(team, samples, case_timing.WARM_UP_S, pause_when_capped=device == "cuda")
        case_timing.time_rounds(team, samples, rounds, lambda: None)
        done = case_timing.finished(team, samples, CARD, device)
        # One more call of the head, which is compared whatever the draw of the others came to.
        calls, wrong = done.timing.calls.get("head", record.Calls()), not kernel.agrees(head)
        counts = {"made": (calls.made or 0) + 1, "compared": (calls.compared or 0) + 1, "failed": calls.failed + wrong}
        of_head = {"calls": {**done.timing.calls, "head": calls.model_copy(update=counts)}}
        took_s = time.monotonic() - begun
    process = record.Process(
        id=f"{os.getpid()}-{started:%H%M%S%f}",
        loaded=("base", "head"),
        seed=str(seed),
        started_at=started.isoformat(timespec="seconds"),
        wall_seconds=round(took_s, 3),
        timings=(done.timing.model_copy(update=of_head),),
    )
    return RunRecord(
        run=record.Run(producer="kernelgate", ended="complete", created_at=started.isoformat(timespec="seconds")),
        environments=(machine,),
        cards=(record.Card(name=CARD),),
        cases=(record.Case(card=CARD, id=name),),
        processes=(process,),
        notes=done.notes,
    )


class FunctionCard(Kernel):
    """The functions as a card: their tensors are its inputs, and the base is the oracle."""

    def __init__(
        self,
        base: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        tolerance: tuple[float, float] | None,
    ) -> None:
        self.base = base
        self.args = dict(enumerate(args)) | dict(kwargs)
        self.tensors: Inputs = {_name(at): one for at, one in self.args.items() if isinstance(one, torch.Tensor)}
        self.within = tolerance
        if not self.tensors:
            raise UsageError("no argument is a tensor: pass what the functions read as arguments")
        odd = next((one.dtype for one in self.tensors.values() if one.dtype not in NAMES), None)
        if odd is not None:
            raise UsageError(f"an argument has the dtype {odd}, which is not supported")
        self.made = self._shapes()

    def _shapes(self) -> dict[str, Output]:
        copies = {name: one.clone() for name, one in self.tensors.items()}
        with torch.no_grad():
            results = _listed(self.called(self.base, copies))
        for name, before in self.tensors.items():
            bits = compare.bits_dtype(before.dtype)
            if not torch.equal(copies[name].view(bits), before.view(bits)):
                raise UsageError(f"the base changes {name}: compare functions that return what they compute")
        if not results or not all(isinstance(one, torch.Tensor) for one in results):
            kinds = ", ".join(type(one).__name__ for one in results)
            raise UsageError(f"the base returns {kinds or 'nothing'}; functions return a tensor, or a tuple of them")
        return {
            f"out{at}": Output(*one.shape, dtype=str(one.dtype).removeprefix("torch."))
            for at, one in enumerate(results)
        }

    def called(self, function: Callable[..., Any], given: Inputs) -> Any:
        """The function with these tensors in place of the caller's."""
        every = {at: given.get(_name(at), one) for at, one in self.args.items()}
        named = {at: one for at, one in every.items() if isinstance(at, str)}
        return function(*(one for at, one in every.items() if isinstance(at, int)), **named)

    def agrees(self, head: Callable[..., Any]) -> bool:
        """Whether the head makes of the caller's own tensors what the base does."""
        case, names = CaseAxes({}), tuple(self.made)
        copies = {name: one.clone() for name, one in self.tensors.items()}
        made = operands.named(self.called(head, copies), names, "the head")
        if any(made[name].shape != self.made[name].shape for name in names):
            return False
        right = compare.expected(self, case, self.tensors, names)
        return compare.outputs(self, case, made, right, lambda: self.tensors).passed

    def inputs(self, case: Any, draw: Any) -> dict[str, Any]:  # noqa: ARG002 - the caller's own, always
        return dict(self.tensors)

    def outputs(self, case: Any, **inputs: Any) -> Mapping[str, Output]:  # noqa: ARG002 - as the base returned them
        return self.made

    def oracle(self, case: Any, **inputs: Any) -> Any:  # noqa: ARG002 - a card's
        """What the base makes of the inputs in their own dtypes."""
        own = {name: one.to(self.tensors[name].dtype) for name, one in inputs.items()}
        return dict(zip(self.made, _listed(self.called(self.base, own)), strict=True))

    def tolerance(self, case: Any) -> tuple[float, float] | None:  # noqa: ARG002 - a card's
        return self.within


def _name(at: int | str) -> str:
    return f"argument {at}"


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, tuple | list) else [] if results is None else [results]


@dataclass(frozen=True)
class BoundFunction(Bound):
    """A function in place of a commit's library."""

    kernel: FunctionCard

    def returns(self, outputs: tuple[str, ...]) -> bool:  # noqa: ARG002 - it always does
        return True

    def prepared(self, case: Any, given: Inputs, outs: Tensors) -> Callable[[], Any]:  # noqa: ARG002 - it returns them
        call, function = self.kernel.called, self.ops
        return lambda: call(function, given)


class InProcess(Runner):
    """A measured process and its verifier, both of them this process."""

    def __init__(
        self,
        kernel: FunctionCard,
        functions: Mapping[record.Side, Callable[..., Any]],
        device: environment.DeviceKind,
        source: nvml.Source,
    ) -> None:
        clock = timer.timer(device)
        self.name, self.sides = "this process", ("base", "head")
        self._calls = Worker(
            request=protocol.TimingRequest(card=CARD, card_file=CARD_FILE, device=device, uuid=None, libraries=()),
            judge=kernel,
            bound={side: BoundFunction(kernel, function) for side, function in functions.items()},
            timer=clock,
            clock_step_us=timer.clock_step(clock),
            compiled=tuple,
            tell=lambda _: None,
            read=source,
            verifier=Verifier({CARD_FILE: kernel}),
        )

    def ask(self, message: Message, kind: type[A], calls_s: float | None = None) -> A:  # noqa: ARG002 - none is ended
        answer = self._calls.answer(protocol.WORKER_STEP.validate_python(message))
        if not isinstance(answer, kind):
            raise TypeError(f"{type(message).__name__} was answered by {type(answer).__name__}")
        return answer
