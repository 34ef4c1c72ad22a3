"""What the profiler and compute-sanitizer watch: one library, one case, warm-up calls and one more.

python -m kernelgate.bench.kernel.watched_call REQUEST, a WatchedCall as JSON. The last call alone stands between
cudaProfilerStart and cudaProfilerStop.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from kernelgate.bench.build.library import Library, LibraryAt
from kernelgate.bench.kernel.cards import CardFacts, CaseFacts

WARM_UP = 2
"""Calls before the one that is profiled: the first loads the module, the second finds it in the caches."""
MODULE = "kernelgate.bench.kernel.watched_call"


class WatchedCall(BaseModel):
    """Which kernel on which case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    library: LibraryAt
    card: Path
    """The judging card."""
    axes: dict[str, bool | int | float | str]


def command(library: Library, card: CardFacts, case: CaseFacts) -> tuple[str, ...]:
    """The words that start this module."""
    request = WatchedCall(library=LibraryAt.of(library), card=card.file.absolute(), axes=case.axes)
    return (sys.executable, "-P", "-m", MODULE, request.model_dump_json())


def prepared(request: WatchedCall, device: str) -> Callable[[], Any]:
    """The call, with its inputs and outputs on the device."""
    from kernelgate.bench.kernel import calls, loading, operands
    from kernelgate.bench.kernel.card import CaseAxes
    from kernelgate.bench.kernel.draw import Draw

    judge, case = loading.load(request.card), CaseAxes(request.axes)
    bound = calls.bind(request.library.read(), judge, "head")
    given = operands.inputs(judge, case, Draw(case, device, 0))
    shapes = operands.output_shapes(judge, case, given)
    return bound.prepared(case, given, operands.empty_outputs(judge, shapes, device))


def run(request: WatchedCall) -> None:
    import torch

    from kernelgate.bench.kernel.package import cache as package_cache

    with package_cache.shared([request.library.folder]):
        call = prepared(request, "cuda")
        for _ in range(WARM_UP):
            call()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStart()  # type: ignore[no-untyped-call]
        call()
        torch.cuda.synchronize()
        torch.cuda.cudart().cudaProfilerStop()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    run(WatchedCall.model_validate_json(sys.argv[1]))
