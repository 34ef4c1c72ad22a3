"""Where a profiled kernel's warps were found when they were sampled: its hottest lines and instructions."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from kernelgate.bench.record.base import Count, Model, Positive

MAX_HOT_LINES = 20
MAX_HOT_INSTRUCTIONS = 30
MAX_HOT_TEXT = 200
"""Characters of a line and of an instruction."""

Text = Annotated[str, Field(max_length=MAX_HOT_TEXT)]


class HotLine(Model):
    """One line of the sources and the samples in the code that it was compiled to."""

    file: Text
    """Of the commit, from the repository's root; of any other file its name alone, such as cuda_fp16.hpp."""
    line: Positive
    text: Text | None = None
    """As the commit has it; null of other files."""
    samples: Count
    stall: Text | None = None
    """What most of these samples waited for, as Nsight Compute names its warp states: "long_scoreboard"."""


class HotInstruction(Model):
    """One instruction of the machine code."""

    sass: Text
    file: Text | None = None
    line: Positive | None = None
    """What it was compiled from, as of a line; null where the code has no line table."""
    samples: Count
    stall: Text | None = None


class HotSpots(Model):
    """The samples of one launch. How many there are depends on how long it ran: only shares of them are compared."""

    samples: Positive
    """All of the kernel's; those listed are the most frequent."""
    lines: Annotated[tuple[HotLine, ...], Field(max_length=MAX_HOT_LINES)] = ()
    """The hottest first. Empty where the code has no line table."""
    instructions: Annotated[tuple[HotInstruction, ...], Field(max_length=MAX_HOT_INSTRUCTIONS)] = ()
    """The hottest first."""

    @model_validator(mode="after")
    def _holds_no_more_than_all(self) -> Self:
        for what, listed in (("lines", self.lines), ("instructions", self.instructions)):
            held = sum(one.samples for one in listed)
            if held > self.samples:
                raise ValueError(f"its {what} hold {held} samples, of {self.samples}")
        return self
