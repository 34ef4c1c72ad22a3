"""A case's id from its axes, and back: `dict(M=4096, N=1024, dtype="fp16")` is `m4096_n1024_fp16`.

Axes stand in the order of the card's first case, others after them by name. A number is its axis and value, a dtype its
name, a boolean axis its name where it is true and nothing where it is false, another word `axis-word`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from kernelgate.bench.core.dtypes import DTYPES

AxisValue = int | float | bool | str
DTYPE = "dtype"

RESERVED = ("distribution", "get", "items", "keys", "values", "way")
"""What a case has besides its axes."""

_AXIS = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_WORD = re.compile(r"[A-Za-z0-9.=-]+", re.ASCII)


def order(cases: Iterable[Mapping[str, AxisValue]]) -> tuple[str, ...]:
    """The axes of all cases, in the order in which ids name them."""
    listed = [tuple(case) for case in cases]
    first = listed[0] if listed else ()
    return (*first, *sorted({axis for axes in listed for axis in axes} - set(first)))


def size(case: Mapping[str, AxisValue]) -> int:
    """How large a case is, whatever its axes mean: the product of its numbers."""
    return math.prod(value for value in case.values() if isinstance(value, int) and value > 0)


def booleans(cases: Iterable[Mapping[str, AxisValue]]) -> frozenset[str]:
    """The axes that are true or false; a case that leaves one out means False."""
    return frozenset(axis for case in cases for axis, value in case.items() if isinstance(value, bool))


def complete(case: Mapping[str, AxisValue], axes: Iterable[str], boolean: Iterable[str]) -> dict[str, AxisValue]:
    """The case with its axes in order and the boolean ones that it leaves out."""
    whole = {**dict.fromkeys(boolean, False), **case}
    ranked = [*axes, *(axis for axis in whole if axis not in axes)]
    return {axis: whole[axis] for axis in ranked if axis in whole}


def mistake(axis: str, value: object) -> str | None:
    """Why this cannot be an axis of a case; None where it can."""
    if not _AXIS.fullmatch(axis):
        return f"the axis {axis!r} is not a name of letters and digits"
    if axis in RESERVED:
        return f"no axis may be called {axis!r}: a case has that besides its axes"
    if not isinstance(value, int | float | bool | str):
        return f"the axis {axis} is {value!r}; it may be a number, a word, True or False"
    if isinstance(value, float) and not math.isfinite(value):
        return f"the axis {axis} is {value}; a number must be finite"
    if axis == DTYPE and value not in DTYPES:
        return f"dtype is {value!r}; it may be {', '.join(DTYPES)}"
    if axis != DTYPE and isinstance(value, str) and not _WORD.fullmatch(value):
        return f"the axis {axis} is {value!r}; a word in an id has letters, digits, '.', '=' and '-' alone"
    return None


def case_id(case: Mapping[str, AxisValue]) -> str:
    return "_".join(filter(None, (_part(axis, value) for axis, value in case.items())))


def parse(text: str, example: Mapping[str, AxisValue]) -> dict[str, AxisValue] | None:
    """The axes of an id that is written like that of `example`; None where it is not."""
    pattern = "".join(_pattern(axis, value) for axis, value in example.items())
    if (found := re.fullmatch(pattern, f"_{text}", re.ASCII)) is None:
        return None
    return {axis: _value(value, found[axis]) for axis, value in example.items()}


def dtype(case: Mapping[str, AxisValue]) -> str:
    """The dtype of a case; float32 where its axes name none."""
    return str(case.get(DTYPE, "fp32"))


def label(case: Mapping[str, AxisValue | float]) -> str:
    """How people read a case whose card says nothing: "M=4096 N=1024 fp16"."""
    return " ".join(filter(None, (_word(axis, value) for axis, value in case.items())))


def _part(axis: str, value: AxisValue) -> str:
    if isinstance(value, bool):
        return axis.lower() if value else ""
    if isinstance(value, str):
        return value if axis == DTYPE else f"{axis.lower()}-{value}"
    return f"{axis.lower()}{str(value).removesuffix('.0')}"


def _pattern(axis: str, value: AxisValue) -> str:
    name = re.escape(axis.lower())
    if isinstance(value, bool):
        return f"(?P<{axis}>_{name})?"
    if axis == DTYPE:
        return f"_(?P<{axis}>{'|'.join(DTYPES)})"
    if isinstance(value, str):
        return f"_{name}-(?P<{axis}>[A-Za-z0-9.=-]+)"
    if isinstance(value, float):
        return rf"_{name}(?P<{axis}>-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
    return rf"_{name}(?P<{axis}>-?\d{{1,18}})"


def _value(example: AxisValue, text: str | None) -> AxisValue:
    if isinstance(example, bool):
        return text is not None
    if isinstance(example, str):
        return text or ""
    return float(text or 0) if isinstance(example, float) else int(text or 0)


def _word(axis: str, value: AxisValue) -> str:
    if isinstance(value, bool):
        return axis if value else ""
    if axis == DTYPE:
        return str(value)
    return f"{axis}={value:g}" if isinstance(value, float) else f"{axis}={value}"
