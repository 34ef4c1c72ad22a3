"""A kernel as it was found in a repository's sources: how Python calls it, and what is known of its arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from kernelgate.bench.core.errors import one_line

Read = Callable[[str], str]
"""The text of a file, by its path from the repository's root."""
ArgumentKind = Literal["tensor", "tensors", "optional", "number"]
ONE_ROW = re.compile(r"(?i)(?:.*_)?(?:weight|bias|gamma|beta|w|b|scale|norm_weight)s?")
"""How arguments with one row are called."""
OUTPUT_NAME = re.compile(r"(?i)out(?:put)?s?(?:_.*)?|dst|dest(?:_.*)?|result|.*_out(?:put)?")
SHORT_OUTPUT = re.compile(r"[ocdyOCDY]")  # where nothing is returned
GRADIENT = re.compile(r"d_?|grad_")
LEFT_OUT = re.compile(
    r"\..*|3rdparty|benchmarks?|build|docs|examples?|external|test(s|ing)?|third_?party|tools|tutorials|vendor"
)
"""Folders whose kernels are not this repository's, or are there to try others."""


@dataclass(frozen=True)
class Argument:
    name: str
    kind: ArgumentKind
    default: str | None = None
    """As Python writes it."""
    written: bool = False
    """The kernel writes its result into it."""


@dataclass(frozen=True)
class Build:
    """What the card's `build` is made of, in Python."""

    text: str
    sources: tuple[str, ...]
    """Paths from the repository's root; a change to one is a change of the kernel."""
    open: tuple[str, ...] = ()


@dataclass(frozen=True)
class FoundKernel:
    name: str
    how: str
    """Such as "PYBIND11_MODULE"."""
    file: str
    line: int
    called: str
    """As `call` writes it, such as "ops.rms_norm"."""
    build: Build
    arguments: tuple[Argument, ...] = ()
    """Without those that `call` leaves to their defaults."""
    results: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ("fp16", "bf16")
    lists: tuple[str, ...] = ("cases",)
    """Of the card, by where the kernel runs: "cases" on a GPU, "cpu_cases" on the CPU."""
    cases: tuple[str, ...] = ()
    """As Python writes each; none where no source names any."""
    given: str = "({})"
    """How it is called with its arguments, such as "(({},))" where it takes them as one tuple."""
    shapes: str = ""
    """Where the shapes of its inputs can be read, such as "Operator.get_input_iter(), operator.py:40"."""
    oracle: str = ""
    """Where the right result can be read, such as "reference.py:40"."""
    open: tuple[str, ...] = ()
    """What the sources do not tell of `call`."""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Skipped:
    place: str
    text: str


Finding = FoundKernel | Skipped


def with_outputs(arguments: Sequence[Argument], returns: bool, constant: Sequence[str] = ()) -> tuple[Argument, ...]:
    """Known by their names: the gradients of a backward pass, or else the outputs, which are none of the constant."""
    known = {one.name for one in arguments}
    long, short = ({one for one in known if pattern.fullmatch(one)} for pattern in (OUTPUT_NAME, SHORT_OUTPUT))
    inputs = known - long - short
    gradients = {one for one in known if GRADIENT.match(one) and GRADIENT.sub("", one, count=1) in inputs}
    made = gradients or (long if returns else long | short).difference(constant)
    return tuple(replace(one, written=one.kind == "tensor" and one.name in made) for one in arguments)


def sources(names: Iterable[str], *ends: str) -> Iterator[str]:
    for name in names:
        *folders, last = name.split("/")
        if last.endswith(ends) and not any(map(LEFT_OUT.fullmatch, folders)):
            yield name


def parsed(text: str) -> ast.Module:
    """Empty where it is no Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def quoted(text: str) -> str:
    """Foreign text as a Python string, on one line."""
    shown = one_line(text)
    return f'"{shown}"' if '"' not in shown and "\\" not in shown else repr(shown)


def named(node: ast.expr) -> set[str]:
    """What an expression names, save what it calls: torch.log(x) is no kernel, whatever is called log elsewhere."""
    called = {one.func for one in ast.walk(node) if isinstance(one, ast.Call)}
    named = (one for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute) and one not in called)
    return {ast.unparse(one).rpartition(".")[2] for one in named}
