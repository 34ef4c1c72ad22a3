"""What was compiled, and what the compiler made of each kernel."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kernelgate.bench.record.base import Count, Flag, Model, NonNegative, Side


class KernelFacts(Model):
    """What the compiler made of one kernel for one target."""

    target: str
    name: str
    registers: Count | None = None
    """A thread's."""
    spill_bytes: Count | None = None
    """What the code stores to local memory: spilled registers, and arrays that are not in registers."""
    static_shared_bytes: Count | None = None
    dynamic_shared_bytes: Count | None = None
    """What a launch asks for; null where nothing in the library says it."""
    stack_bytes: Count | None = None
    threads: Count | None = None
    """Of a block, as __launch_bounds__ gives them."""
    occupancy_pct: dict[str, NonNegative] = {}
    """Theoretical, by GPU that runs the target."""
    occupancy_limits: dict[str, str] = {}
    """What keeps another block off, by GPU."""
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
    """Whether the sources were those of `sha`."""
    seconds: NonNegative | None = None
    cached: Flag | None = None
    targets: tuple[str, ...] = ()
    library_sha256: str | None = None
    kernels: tuple[KernelFacts, ...] = ()
    warnings: Annotated[tuple[CompilerWarning, ...], Field(max_length=MAX_WARNINGS)] | None = None
    """What the compilers warn of in the sources; null where nobody looked."""
