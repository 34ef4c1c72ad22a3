"""The text of a card for a kernel that was found. What the sources do not tell stands there as a guess, with a line
`# OPEN: …` before it, by which `kernelgate cards` calls the card unfinished."""

from __future__ import annotations

import re
from collections.abc import Iterator
from keyword import iskeyword

from kernelgate.bench.kernel.card import OPEN
from kernelgate.ci.adopt.bindings import split
from kernelgate.ci.adopt.found import ONE_ROW, Argument, FoundKernel

WIDTH = 110
WHOLE = re.compile(
    r"(?:.*_)?(?:ind(?:ex|ices)|idx|ids?|targets?|labels?|positions?|lens?|lengths?|seqlens?|indptr|table|offsets?)",
    re.IGNORECASE,
)
"""How arguments of whole numbers are called."""
TAKEN = frozenset({"case", "draw", "ops", "self"})


def lines(kernel: FoundKernel) -> Iterator[str]:
    tensors = [one for one in kernel.arguments if one.kind in ("tensor", "tensors") and not one.written]
    written = [one for one in kernel.arguments if one.kind == "tensor" and one.written]
    outputs = [_name(one) for one in written] or list(kernel.results) or ["out"]
    named = re.findall(r"(\w+)=\d", kernel.cases[0]) if kernel.cases else ["M", "N"]
    rows, columns = f"case.{named[0]}", f"case.{named[min(1, len(named) - 1)]}"
    fresh = [name if name not in map(_name, tensors) else f"{name}_result" for name in outputs]
    inputs = ", ".join(map(_name, tensors))
    kind = kernel.build.text.partition("(")[0]
    yield f'"""{kernel.name}: {kernel.how}, {kernel.place}."""'
    yield ""
    yield f"from kernelgate import {', '.join(sorted({kind, 'Kernel', 'Output'}))}"
    yield ""
    yield ""
    yield f"class {kernel.name.title().replace('_', '') or 'Found'}(Kernel):"
    for text in kernel.build.open:
        yield f"    # {OPEN} {text}"
    yield from _wrapped("    build = ", kernel.build.text)
    yield from _cases(kernel)
    yield ""
    yield "    def inputs(self, case, draw):"
    yield f"        # {OPEN} the shapes of {inputs or 'its inputs'}, as the kernel takes them"
    drawn = (f"{_name(one)}={_drawn(one, rows, columns)}" for one in tensors)
    yield from _wrapped("        return ", f"dict({', '.join(drawn)})")
    yield ""
    yield f"    def outputs(self, case{', ' if inputs else ''}{inputs}):"
    yield f"        # {OPEN} shapes and dtypes of {', '.join(fresh)}"
    shaped = (f"{name}=Output({rows}, {columns})" for name in fresh)
    yield from _wrapped("        return ", f"dict({', '.join(shaped)})")
    yield ""
    yield from _call(kernel, [_name(one) for one in written], inputs)
    yield ""
    yield f"    def oracle(self, case{', ' if inputs else ''}{inputs}):"
    where = f", from {kernel.oracle}" if kernel.oracle else ""
    yield f"        # {OPEN} the right result in torch{where}; its inputs are float64"
    yield f'        raise NotImplementedError("the oracle of {kernel.name} is not written yet")'


def _wrapped(begin: str, call: str) -> Iterator[str]:
    """A call, with an argument on each line where it is long."""
    indent = " " * (len(begin) - len(begin.lstrip()))
    name, _, inner = call.removesuffix(")").partition("(")
    if len(begin) + len(call) <= WIDTH:
        yield f"{begin}{call}"
        return
    yield f"{begin}{name}("
    for part in split(inner):
        listed, bracket, items = part.partition("=[")
        if not bracket or len(part) < WIDTH - len(indent) - 5:
            yield f"{indent}    {part},"
        else:
            yield f"{indent}    {listed}=["
            yield from (f"{indent}        {one}," for one in split(items.removesuffix("]")))
            yield f"{indent}    ],"
    yield f"{indent})"


def _cases(kernel: FoundKernel) -> Iterator[str]:
    dtype = "bf16" if "bf16" in kernel.dtypes else kernel.dtypes[0]
    yield f"    # {OPEN} which shapes are timed; the first is the target{', and its dtype' if kernel.cases else ''}"
    listed = kernel.cases or ("M=4096, N=4096",)
    yield "    cases = ["
    yield from (f'        dict({axes}, dtype="{dtype}"),' for axes in listed)
    yield "    ]"
    if not kernel.cases:
        dtypes = ", ".join(f'"{one}"' for one in kernel.dtypes) + ("," if len(kernel.dtypes) == 1 else "")
        yield f"    fuzz = dict(M=range(1, 300), N=range(1, 5000), dtype=({dtypes}))"


def _call(kernel: FoundKernel, written: list[str], inputs: str) -> Iterator[str]:
    names = ", ".join(filter(None, ["self", "ops", "case", *written, inputs]))
    yield f"    def call({names}):"
    for text in kernel.open:
        yield f"        # {OPEN} {text}"
    for one in kernel.arguments:
        if one.kind == "number" and one.default is None:
            yield f"        # {OPEN} the value of {one.name}"
    given = ", ".join(map(_value, kernel.arguments))
    given = f"({given},)" if kernel.as_tuple else given
    yield f"        {'' if written else 'return '}{kernel.called}({given})"


def _value(one: Argument) -> str:
    if one.kind in ("tensor", "tensors"):
        return _name(one)
    return one.default or ("None" if one.kind == "optional" else "1e-6" if "eps" in one.name else "1")


def _drawn(one: Argument, rows: str, columns: str) -> str:
    if one.kind == "tensors":
        return f"[draw({rows}, {columns})]"
    if WHOLE.fullmatch(one.name):
        return f"draw.integers(0, {columns}, {rows})"
    return f"draw({columns})" if ONE_ROW.fullmatch(one.name) else f"draw({rows}, {columns})"


def _name(one: Argument) -> str:
    """As a parameter of the card's methods."""
    return f"{one.name}_" if iskeyword(one.name) or one.name in TAKEN else one.name
