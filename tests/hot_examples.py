"""Real samples by line: kernels of tests/gpu/kernels/collection.cu, as the profiler saw them on an H200."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from kernelgate.bench.explain import ncu_reader
from kernelgate.bench.explain.ncu_reader import ProfiledKernel
from kernelgate.bench.record import HotSpots

TESTS = Path(__file__).parent
SOURCE = "gpu/kernels/collection.cu"
TEXTS = re.sub(r"(threadIdx\.x;)\n +(y = )", r"\1 \2", (TESTS / SOURCE).read_text(encoding="utf-8")).splitlines()
"""The two transposes as they stood in the file when they were profiled: both assignments on one line."""
REPORT = TESTS / "data" / "nsight" / "collection.ncu-repz"


@cache
def launches() -> dict[str, ProfiledKernel]:
    """By the kernel's name: with the files that the report names, and without text."""
    return {one.name.partition("(")[0]: one for one in ncu_reader.launches(str(REPORT))}


def quoted(name: str) -> HotSpots:
    """One of the transposes, with file and text as a record has them."""
    found = launches()[name].hot_spots
    assert found is not None
    lines = tuple(one.model_copy(update={"file": SOURCE, "text": TEXTS[one.line - 1].strip()}) for one in found.lines)
    instructions = tuple(one.model_copy(update={"file": SOURCE}) for one in found.instructions)
    return found.model_copy(update={"lines": lines, "instructions": instructions})
