"""What every part of the record is made of: a strict model, and numbers with their bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Side = Annotated[str, Field(pattern=r"^(?:base|head|reference|commit:[0-9a-f]{7,64})$")]
"""Whose code ran: `reference` is what is timed beside, such as PyTorch's own operator."""
Role = Literal["paired", "alternating", "block", "witness", "canary", "bisect"]
"""Why a process was started. `paired`: all sides in it, rounds interleaved at random; `alternating`: base and head in
processes that take turns; `block`: one side after the other, or one alone; `witness`: base and head each in a process
without the other, timed by the clock of a third one that loads neither."""
COMPARED: tuple[Role, ...] = ("paired", "alternating", "block")
"""The roles whose times are compared; the others answer questions of their own."""
CheckKind = Literal["fuzz", "sanitizer", "outputs", "witness", "accuracy"]

LARGEST = 1e21
"""No honest number is larger, whatever its unit, and its square can still be reckoned with."""
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
    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _null_means_left_out(cls, data: Any) -> Any:
        return without_nulls(data)


def must_be_unique(names: Iterable[str], what: str) -> None:
    twice = sorted(_repeated(names))
    if twice:
        raise ValueError(f"{what} must be unique; duplicates: {', '.join(twice)}")


def _repeated(names: Iterable[str]) -> Iterator[str]:
    return (name.removeprefix("/") for name, count in Counter(names).items() if count > 1)
