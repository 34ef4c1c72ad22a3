"""What the profiler and compute-sanitizer watch: one library, and for each case warm-up calls and one more.

python -m kernelgate.bench.kernel.watched_call FIFO. It loads torch and what it is told to import ahead, which takes
seconds, and waits for a WatchedCall, a line of JSON. It loads the library and the first case's inputs, makes the file
FIFO.loaded, and waits for an empty line: its turn. A case's last call alone stands between cudaProfilerStart and
cudaProfilerStop; a line `DONE` follows it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from kernelgate.bench.build.library import Library, LibraryAt
from kernelgate.bench.core.errors import why
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts
from kernelgate.bench.system import interpreter, isolation, lock, supervise
from kernelgate.bench.system.interpreter import ROOT
from kernelgate.bench.system.supervise import Running
from kernelgate.bench.system.worker import ImportAhead, Message, child_environment, widen

WARM_UP = 10
"""Calls before the one that is profiled, which warm caches and clocks; two calls of a short kernel do little. One more,
before the process's turn, loads modules and lets an autotuner choose."""
AHEAD = 2
"""So many processes load torch and wait while another one is watched, and so many load their library side by side."""
LOADING_S = 30.0
"""For that; then it is their turn whether they have or not, and whoever watches them limits it."""
MODULE = "kernelgate.bench.kernel.watched_call"
DONE = "kernelgate: the case is done"


class WatchedCall(Message):
    """Which kernel on which cases, one after the other."""

    library: LibraryAt
    card: Path
    """The judging card."""
    cases: tuple[dict[str, bool | int | float | str], ...]
    """The axes of each."""
    warm_up: int = WARM_UP
    """Without, an autotuned kernel runs with one of its configurations, which is not measured."""
    reference: bool = False
    """The card's, in the kernel's place."""

    @classmethod
    def of(cls, library: Library, card: CardFacts, *cases: CaseFacts, **how: Any) -> WatchedCall:
        axes = tuple(case.axes for case in cases)
        return cls(library=LibraryAt.of(library), card=card.file.absolute(), cases=axes, **how)


@dataclass(frozen=True)
class Watching:
    tool: tuple[str | Path, ...]
    """The tool's own words, up to the program that it runs."""
    call: WatchedCall
    writes: tuple[Path, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    python: Path = field(default_factory=interpreter.current)
    ahead: tuple[str, ...] = ()
    """What it may import before its turn."""


@dataclass
class WarmProcesses:
    """The processes of some watched calls, in order. Those that wait hold no GPU; whoever lets them go decides how
    many call their kernels at a time."""

    watching: Sequence[Watching]
    folder: Path
    stack: ExitStack
    """Ends them."""
    waiting: list[tuple[Running, int]]
    """Those started so far, each with the end of its FIFO."""
    told: int = 0
    """So many know what they are to call."""

    def prepare(self, count: int) -> None:
        """Starts processes until so many of them were started."""
        for at in range(len(self.waiting), min(count, len(self.watching))):
            fifo = self.folder / str(at)
            os.mkfifo(fifo, 0o600)
            gate = os.open(fifo, os.O_RDWR)  # held open, so that neither end waits for the other
            self.stack.callback(os.close, gate)
            widen(gate)
            watching = self.watching[at]
            words = (*watching.tool, *interpreter.command(watching.python, MODULE, fifo))
            apart = isolation.here().writing(self.folder, *watching.writes).around(words)
            started = supervise.running(
                apart, cwd=ROOT, env={**child_environment(python=watching.python), **dict(watching.variables)}
            )
            self.waiting.append((self.stack.enter_context(started), gate))
            _tell(gate, ImportAhead(ahead=watching.ahead))

    def load(self, count: int) -> None:
        """Lets so many load their library and make inputs, on the GPU: nothing may be measured meanwhile."""
        self.prepare(count)
        for at in range(self.told, min(count, len(self.watching))):
            _tell(self.waiting[at][1], self.watching[at].call)
            self.told = at + 1

    def go(self, at: int) -> Running:
        """Lets one call its kernel, once none is loading its library; the next ones load torch meanwhile. Raises
        OSError where a tool cannot be started."""
        self.prepare(at + 1 + AHEAD)
        if at >= self.told:
            self.load(at + AHEAD)
        deadline = time.monotonic() + LOADING_S
        for other in range(self.told):
            process, done = self.waiting[other][0].process, _loaded(self.folder / str(other))
            while process.poll() is None and not done.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        running, gate = self.waiting[at]
        os.write(gate, b"\n")
        return running


def _loaded(fifo: Path) -> Path:
    return fifo.with_suffix(".loaded")


def _tell(gate: int, message: Message) -> None:
    os.write(gate, message.model_dump_json().encode() + b"\n")


@contextmanager
def warm(watching: Sequence[Watching], first: int = AHEAD) -> Iterator[WarmProcesses]:
    """Starts the `first` ones. All end with the block."""
    with lock.temporary_folder("kernelgate-gates-") as folder, ExitStack() as stack:
        processes = WarmProcesses(watching, folder, stack, [])
        processes.prepare(first)
        yield processes


def prepared(request: WatchedCall, device: str) -> Iterator[tuple[Callable[[], None], Callable[[], Any]]]:
    """The call of each case, with its inputs and outputs on the device, behind what must run before each call: it gives
    back what the kernel overwrites, which need not be inputs of it. Raises what the card's own code raises."""
    from kernelgate.bench.kernel import loading, operands
    from kernelgate.bench.kernel.card import CaseAxes, asked_for
    from kernelgate.bench.kernel.operands import Draw

    judge = loading.load(request.card)
    bound = operands.bind(request.library.read(), judge, "head")
    for case in map(CaseAxes, request.cases):
        given = operands.inputs(judge, case, Draw(case, device, 0))
        if request.reference:
            call: Callable[[], Any] = partial(judge.reference, case, **asked_for(judge.reference, given))
        else:
            shapes = operands.output_shapes(judge, case, given)
            call = bound.prepared(case, given, operands.empty_outputs(judge, shapes, device))
        yield partial(_give_back, [(given[name], given[name].clone()) for name in judge.in_place]), call


def _give_back(overwritten: Sequence[tuple[Any, Any]]) -> None:
    """To each tensor its values."""
    from kernelgate.bench.kernel import operands

    for target, values in overwritten:
        operands.fill(target, values)


def run(request: WatchedCall, turn: Callable[[], object]) -> None:
    """`turn`: waits for it."""
    import torch

    from kernelgate.bench.kernel import triton_runtime

    with triton_runtime.shared([request.library.folder]):
        calls = prepared(request, "cuda")
        first = next(calls)
        if request.warm_up:
            first[1]()
        torch.cuda.synchronize()
        turn()
        for axes, (renew, call) in zip(request.cases, chain([first], calls), strict=True):
            for _ in range(request.warm_up):
                renew()
                call()
            renew()
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStart()  # type: ignore[no-untyped-call]
            with nullcontext() if request.warm_up else triton_runtime.untuned(axes):
                call()
            torch.cuda.synchronize()
            torch.cuda.cudart().cudaProfilerStop()  # type: ignore[no-untyped-call]
            print(DONE, flush=True)


def main() -> None:
    fifo = Path(sys.argv[1])
    with fifo.open(encoding="utf-8") as gate:  # before torch: who started this may be gone after it
        import torch  # noqa: F401 - so that it is there

        from kernelgate.bench.kernel.loading import error_message

        def turn() -> None:
            _loaded(fifo).touch()
            if not gate.readline():
                sys.exit()

        if ahead := gate.readline():
            ImportAhead.model_validate_json(ahead).run()
        if request := gate.readline():
            try:
                run(WatchedCall.model_validate_json(request), turn)
            except Exception as error:
                sys.exit(why(error_message(error)))  # tools quote the last line


if __name__ == "__main__":
    main()
