"""Reads every card of a folder, without torch: a worker's part, started by cards.py."""

from __future__ import annotations

import ast
import hashlib
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from math import isfinite, prod
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, Self, cast

from kernelgate.bench.build.sources import Command, Extension, Package
from kernelgate.bench.core import files
from kernelgate.bench.core.documentation import page
from kernelgate.bench.core.dtypes import DTYPES, known
from kernelgate.bench.core.errors import CardError, UsageError
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel import fuzz_trials
from kernelgate.bench.kernel.axes import DTYPE
from kernelgate.bench.kernel.card import (
    DISTRIBUTIONS,
    OPEN,
    AxisError,
    Between,
    CaseAxes,
    DeviceKind,
    Kernel,
    asked_for,
    call_by_name,
    call_needs,
    outputs_beside,
    short,
    takes,
)
from kernelgate.bench.kernel.cards import MOST_GPU_BYTES, CardFacts, CardMistake, CardQuestions, CardsAnswer, CaseFacts
from kernelgate.bench.kernel.loading import kernel_class, line_of, load_module, mistake_of
from kernelgate.bench.system.worker import Doing, Leader

LISTS = {"pr": "cases", "cpu": "cpu_cases"}
"""The members that have suites of their own."""
BEYOND = 2**31 + 2**27
"""Bytes, or elements, of the largest tensor: a signed 32-bit offset does not reach its end."""


def read(asked: CardQuestions, leader: Leader) -> CardsAnswer:
    """All cards of the folder, and the mistakes in those that cannot be used. The leader is told each file."""
    install()
    cards: list[CardFacts] = []
    mistakes: list[CardMistake] = []
    for path in sorted(path for path in asked.folder.glob("[!_]*.py") if path.name not in asked.without):
        leader.send(Doing(doing=path.name))
        try:
            if not re.fullmatch(r"[\w.-]+", path.stem, re.ASCII):
                text = f"rename it: the name of a card has letters of ASCII, digits, _, . and -, and no {path.stem!a}"
                raise CardError(str(path), None, "", text)
            if path.exists() and not path.is_file():  # to read a pipe would wait for a writer
                raise CardError(str(path), None, "", "a card is a file; this is none")
            facts = _Reader(path).facts(asked.cases.get(path.stem, ()), asked.tiles)
            open_ = tuple(_open(path))
            mistakes += open_
            cards += () if open_ else (facts,)
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            mistakes.append(CardMistake(**vars(error if isinstance(error, CardError) else mistake_of(path, "", error))))
    return CardsAnswer(cards=tuple(cards), mistakes=tuple(mistakes))


def _open(path: Path) -> Iterator[CardMistake]:
    """What an unfinished card still asks its author."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        before, mark, asked = line.partition(f"# {OPEN}")
        if mark and not before.strip():
            text = f"unfinished: {asked.strip()}; then delete this comment"
            yield CardMistake(file=str(path), line=number, member="", text=text)


class _Reader:
    """One card on its way to plain data; a mistake names the file, the line and the member."""

    def __init__(self, path: Path) -> None:
        self.path, source = path, files.content(path)  # which says what is no text before Python does
        self.kernel: Kernel = kernel_class(load_module(path), path)()
        self.tree = ast.parse(source)
        self.doubts: dict[CardMistake, None] = {}
        self.suites = {name: self._case_list(member, getattr(self.kernel, member)) for name, member in LISTS.items()}
        for name, cases in self._mapping("suites", self.kernel.suites).items():
            self._must(name not in LISTS, "suites", f"{name!r} is the name of {LISTS.get(name)}")
            self.suites[name] = self._case_list("suites", cases)
        self.every = [case for cases in self.suites.values() for case in cases]
        self._doubt_dead_members()
        if self.doubts and not self.every:  # as where they are called cpu_case
            raise CardError(**next(iter(self.doubts)).model_dump())
        text = "there are no cases: name at least one, such as dict(M=4096, dtype='fp16')"
        self._must(bool(self.every), "cases", text)
        self.order = case_axes.order(self.every)
        fuzzed = self._mapping("fuzz", self.kernel.fuzz).items()
        choices = ((axis, values) for axis, values in fuzzed if isinstance(values, tuple) and values)
        booleans = ({axis: values[0]} for axis, values in choices if all(isinstance(one, bool) for one in values))
        self.boolean = case_axes.booleans([*self.every, *booleans])
        twice = _twice([axis.lower() for axis in self.order])
        self._must(twice is None, "cases", f"two axes are called {twice!r} in ids, which are in lower case")

    def facts(self, more: Iterable[Mapping[str, Any]], tiles: Iterable[Mapping[str, int]]) -> CardFacts:
        kernel = self.kernel
        for member in ("inputs", "call", "oracle"):
            given = getattr(type(kernel), member) is not getattr(Kernel, member)
            self._must(given, member, f"the card has no {member}(): {page('cards.md#members')} says what it does")
        for member in ("inputs", "outputs", "state", "oracle", "reference", "compare"):
            alone = "ops" not in (takes(getattr(kernel, member)) or ())
            self._must(alone, member, f"{member}() takes ops, which only call() gets: write {member}(self, case, …)")
        self._must(call_by_name(kernel), "call", "call() must take self, ops, case, and its outputs and inputs by name")
        suites = {name: tuple(map(self.case, cases)) for name, cases in self.suites.items()}
        for name, cases in suites.items():
            twice = _twice([case.id for case in cases])
            self._must(twice is None, LISTS.get(name, "suites"), f"two cases have the id {twice}")
        limits = self._limits()
        return CardFacts(
            name=self.path.stem,
            label=type(kernel).__name__,
            file=self.path,
            sha256=hashlib.sha256(self.path.read_bytes()).hexdigest(),
            build=self._build(),
            suites=suites,
            sanitize=tuple(map(self.case, self._case_list("sanitize", kernel.sanitize))),
            asked=tuple(map(self.case, more)),
            reference=self._word("reference_name", kernel.reference_name),
            kernel=self._pattern(),
            fuzz={device: self._configurations(device) for device in ("cuda", "cpu")},
            limits=limits,
            extremes=tuple(map(self.case, extremes(self.every[0], limits, self._largest))),
            distributions=self._names("distributions"),
            nonfinite=self._nonfinite(),
            gives=self._gives(),
            call_needs=call_needs(kernel),
            tiles=tuple(map(self._tile, tiles)),
            doubts=tuple(self.doubts),
        )

    # Cases ------------------------------------------------------------------------------------------------------------

    def _case_list(self, member: str, listed: Any) -> list[dict[str, Any]]:
        fits = isinstance(listed, list | tuple) and all(isinstance(case, Mapping) for case in listed)
        self._must(fits, member, f"{member} is {short(listed)}; it must be a list of dicts of axes")
        for case in listed:
            for axis, value in case.items():
                why = case_axes.mistake(str(axis), value)
                self._must(why is None, member, f"{short(dict(case))}: {why}")
        return [dict(case) for case in listed]

    def _axes(self, axes: Mapping[str, Any]) -> CaseAxes:
        return CaseAxes(case_axes.complete(axes, self.order, self.boolean))

    def case(self, axes: Mapping[str, Any]) -> CaseFacts:
        case = self._axes(axes)
        id_ = case_axes.case_id(case)
        self._must(bool(id_), "cases", f"{short(dict(axes))} has no axis that an id could be made of")
        tolerance = self._asked("tolerance", lambda: self.kernel.tolerance(case))
        numbers = tolerance if isinstance(tolerance, tuple | list) else ()
        pair = len(numbers) == 2 and all(_is_real(one) and one >= 0 for one in numbers)
        text = f"tolerance() gave {short(tolerance)}; it must give (atol, rtol) or None"
        self._must(pair or tolerance is None, "tolerance", text)
        moved = self._asked("bytes", lambda: self.kernel.bytes(case))
        if moved is None:  # inputs and outputs once each; None where their shapes cannot be known without torch
            tensors = self._given_and_made(case)
            moved = None if tensors is None else sum(tensor.bytes for tensor in tensors)
        return CaseFacts(
            id=id_,
            axes=dict(case),
            label=self._word("label", self._asked("label", lambda: self.kernel.label(case)) or case_axes.label(case)),
            flops=self._number("flops", self._asked("flops", lambda: self.kernel.flops(case))),
            bytes=self._number("bytes", moved),
            tolerance=tolerance and (float(tolerance[0]), float(tolerance[1])),
        )

    def _largest(self, axes: Mapping[str, Any]) -> tuple[float, float]:
        """The bytes of a case's largest tensor, and its elements; 0 where they are not known."""
        tensors = self._given_and_made(self._axes(axes)) or ()
        return max(((one.bytes, float(one.numel())) for one in tensors), default=(0.0, 0.0))

    def _given_and_made(self, case: CaseAxes) -> list[Shaped] | None:
        if (inputs := self._shapes_of("inputs", lambda: self._inputs(case))) is None:
            return None
        text = f"inputs() gave {short(inputs)}; it must give a dict of named inputs"
        self._must(isinstance(inputs, Mapping), "inputs", text)
        self._names("in_place")  # before it is used
        tensors = list(_tensors(inputs.values()))
        if None in tensors:
            return None
        outputs = self._shapes_of("outputs", lambda: outputs_beside(self.kernel, case, inputs))
        if outputs is None:
            return None
        for output in outputs.values():
            shaped = partial(ShapeDraw(case_axes.dtype(case)), *output.shape, dtype=output.dtype)
            tensors.append(self._shapes_of("outputs", shaped))
        return None if None in tensors else [tensor for tensor in tensors if tensor is not None]

    def _inputs(self, case: CaseAxes) -> dict[str, Any]:
        return self.kernel.inputs(case, cast(Any, ShapeDraw(case_axes.dtype(case))))

    def _shapes_of(self, member: str, question: Callable[[], Any]) -> Any:
        """What a method answers; None where it fails for want of a module that is not there while listing."""
        before = Unknown.made
        try:
            return self._asked(member, question)
        except CardError:
            if Unknown.made > before:
                return None
            raise

    def _tile(self, asked: Mapping[str, int]) -> Any:
        said = self._asked("tile", lambda: self.kernel.tile(**asked))
        wanted = {"shared_bytes", "threads", "registers"}
        fits = isinstance(said, str) or (isinstance(said, Mapping) and set(said) == wanted)
        self._must(fits, "tile", f"tile() gave {short(said)}; it must give {', '.join(sorted(wanted))}")
        return said

    # Fuzz -------------------------------------------------------------------------------------------------------------

    def _configurations(self, device: DeviceKind) -> dict[str, dict[str, Any]]:
        """Name -> axis -> what is drawn for it. Empty where the kernel has no path for the device."""
        distributions = self._names("distributions")
        self._must(bool(distributions), "distributions", "distributions is empty: name one, such as normal")
        for distribution in distributions:
            text = f"{distribution!r} is none of {', '.join(DISTRIBUTIONS)}, peaked"
            self._must(distribution in (*DISTRIBUTIONS, "peaked"), "distributions", text)
        if not (cases := self.suites["cpu" if device == "cpu" else "pr"]):
            return {}
        if not self.kernel.fuzz:  # then the timed cases are what is known to be allowed
            return {case_axes.case_id(case): dict(case) for case in map(self._axes, cases)}
        dtypes = tuple(dict.fromkeys(case[DTYPE] for case in cases if DTYPE in case))
        basis = {DTYPE: dtypes, **self.kernel.fuzz} if dtypes else self.kernel.fuzz
        asked = self._asked("configurations", lambda: self.kernel.configurations(device))
        named = self._mapping("configurations", asked).items()
        self._must(bool(named), "configurations", "configurations() gave none: then nothing is fuzzed")
        made = {str(name): self._drawn({**basis, **self._mapping("configurations", one)}) for name, one in named}
        for axes in {tuple(one): one for one in made.values()}.values():
            self._doubt_sizes(axes)
            self._doubt_axes({axis: fuzz_trials.draw(Random(0), values) for axis, values in axes.items()})  # noqa: S311
        return made

    def _limits(self) -> dict[str, Any]:
        given = self._mapping("limits", self.kernel.limits)
        listed = {*self.order, *self.kernel.fuzz}
        for axis, values in given.items():
            text = f"{axis!r} is an axis of no case; there are {', '.join(sorted(listed))}"
            self._must(axis in listed, "limits", text)
            if values and isinstance(values, range | tuple | list):
                for case in self.every:
                    text = f"a case has {axis}={case.get(axis)}, outside of the limits of what the kernel takes"
                    self._must(case.get(axis, values[0]) in values, "limits", text)
        return self._drawn(given)

    def _drawn(self, axes: Mapping[str, Any]) -> dict[str, Any]:
        for axis, values in axes.items():
            if isinstance(values, tuple) and len(values) == 2 and _is_meant_as_range(*values):
                low, high = values
                text = f"{axis}=({low}, {high}) draws one of these two: write {axis}=range({low}, {high + 1}) for all "
                self._doubt("fuzz", f"{text}between, or [{low}, {high}] for the two")
        try:
            return {axis: drawn(axis, values) for axis, values in axes.items()}
        except (ValueError, OverflowError) as error:  # of a range longer than memory
            raise self.mistake("fuzz", str(error)) from None

    def _nonfinite(self) -> tuple[str, ...]:
        """The names of inputs that may hold NaN or Inf in some case that is listed."""
        found: dict[str, None] = {}
        for case in map(self._axes, self.every):
            given = self._mapping("nonfinite", self._asked("nonfinite", partial(self.kernel.nonfinite, case)))
            for name, values in given.items():
                listed = values if isinstance(values, tuple | list) else [values]
                wrong = next((one for one in listed if not isinstance(one, float) or isfinite(one)), None)
                text = f"nonfinite() gives {short(wrong)} for {name}; give nan, inf, -inf"
                self._must(wrong is None, "nonfinite", text)
            found |= dict.fromkeys(map(str, given))
        return tuple(found)

    # What is hardly meant ---------------------------------------------------------------------------------------------

    def _doubt(self, member: str, text: str, error: Exception | None = None) -> None:
        found = mistake_of(self.path, member, error) if error else self.mistake(member, text)
        self.doubts[CardMistake(file=found.file, line=found.line, member=member, text=text)] = None

    def _doubt_dead_members(self) -> None:
        """A name that no card has and that nothing in the file uses is a typing error: `cpu_case`."""
        known = [*(name for name in vars(Kernel) if not name.startswith("_")), "build"]
        nodes = list(ast.walk(self.tree))
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        used |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        for name in vars(type(self.kernel)):
            if name not in known and name not in used and not name.startswith("_"):
                near = get_close_matches(name, known, 1)
                remedy = f"did you mean {near[0]}?" if near else "delete it, or begin its name with an underscore"
                self._doubt(name, f"a card has no {name}, and nothing here uses it: {remedy}")

    def _doubt_axes(self, example: Mapping[str, Any]) -> None:
        case = self._axes({**example, "distribution": "normal"})
        try:
            self.kernel.tolerance(case)
            outputs_beside(self.kernel, case, self._inputs(case))
        except AxisError as error:
            self._doubt("fuzz", f"{error}: add to fuzz each axis that the card reads, as its cases have it", error)
        except Exception:  # noqa: S110 - a value that does not suit the others: fuzzing says what that is
            pass

    def _doubt_sizes(self, axes: Mapping[str, Any]) -> None:
        """Whether one axis alone may become larger than any memory."""
        ranges = _ranges(axes)
        least = {axis: fuzz_trials.draw(Random(0), one) for axis, one in axes.items()}  # noqa: S311 - not for secrets
        least |= {axis: whole[0] for axis, whole in ranges.items()}
        for axis, whole in ranges.items():
            try:
                size, _ = self._largest({**least, axis: whole[-1], "distribution": "normal"})
            except CardError:  # said elsewhere
                return
            if size > MOST_GPU_BYTES:
                said = f"{axis}={whole[-1]} makes a tensor of {size / 2**30:,.0f} GiB, more than any GPU has"
                self._doubt("fuzz", f"{said}: end its range where it still fits")

    # Build and call ---------------------------------------------------------------------------------------------------

    def _build(self) -> Any:
        build: Any = getattr(self.kernel, "build", None)
        ways = 'Extension("csrc/name*"), Package("name") or Command("pip install …", "name")'
        self._must(isinstance(build, Extension | Package | Command), "build", f"the card has no build: write {ways}")
        text = "Extension() names no sources: write Extension('csrc/name*')"
        self._must(not isinstance(build, Extension) or bool(build.sources), "build", text)
        for word in (build.name,) if isinstance(build, Package) else build.words:
            self._word("build", word)
        return build

    def _gives(self) -> tuple[str, ...] | None:
        """The names of inputs and outputs; None where they cannot be known without torch."""
        case = self._axes(self.every[0])
        try:
            inputs = self._inputs(case)
            state = self.kernel.state(case, **asked_for(self.kernel.state, inputs))
            return tuple(sorted({*inputs, *state, *outputs_beside(self.kernel, case, inputs)}))
        except Exception:
            return None

    # Kinds ------------------------------------------------------------------------------------------------------------

    def _must(self, fits: bool, member: str, text: str) -> None:
        if not fits:
            raise self.mistake(member, text)

    def _mapping(self, member: str, given: Any) -> Mapping[str, Any]:
        self._must(isinstance(given, Mapping), member, f"{member} has {short(given)} where a dict must stand")
        return cast(Mapping[str, Any], given)

    def _word(self, member: str, given: Any) -> str:
        self._must(isinstance(given, str), member, f"{member} has {short(given)} where a string must stand")
        return cast(str, given)

    def _names(self, member: str) -> tuple[str, ...]:
        given = getattr(self.kernel, member)
        fits = isinstance(given, list | tuple) and all(isinstance(one, str) for one in given)
        self._must(fits, member, f"{member} is {short(given)}; it must be a list of names")
        return tuple(given)

    def _number(self, member: str, given: Any) -> float | None:
        text = f"{member}() gave {short(given)}; it must give a number that is not negative"
        self._must(given is None or (_is_real(given) and given >= 0), member, text)
        return None if given is None else float(given)

    def _pattern(self) -> str | None:
        given = self.kernel.kernel
        if given is not None:
            try:
                re.compile(self._word("kernel", given))
            except re.error as error:
                raise self.mistake("kernel", f"{given!r} is no regular expression: {error}") from None
        return given

    # Mistakes ---------------------------------------------------------------------------------------------------------

    def _asked(self, member: str, question: Callable[[], Any]) -> Any:
        """What a method answers; where it fails, the mistake is at its own line."""
        try:
            return question()
        except Exception as error:
            found = mistake_of(self.path, member, error)
            raise (found if found.line else self.mistake(member, found.text)) from None

    def mistake(self, member: str, text: str) -> CardError:
        return CardError(str(self.path), line_of(self.tree, member), member, text)


def _tensors(values: Any) -> Iterator[Shaped | None]:
    """The tensors among inputs; None for one whose shape is unknown."""
    for value in values:
        if isinstance(value, Shaped):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, Unknown):
            yield None


def _twice(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def _is_real(value: Any) -> bool:
    """Whether it is a number, and neither NaN nor a truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _is_meant_as_range(low: Any, high: Any) -> bool:
    """Whether two numbers look like the ends of a range: nobody names 1 and 300 for two sizes out of many."""
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (low, high))
    return whole and high - low > 16 and (low in (0, 1) or (high % low != 0 and high % 16 != 0))


def drawn(axis: str, values: Any) -> Any:
    """What `fuzz` or `limits` has for an axis, as fuzz_trials.draw reads it: a value, or an object with one key that
    says what is drawn. Raises ValueError saying what is wrong."""
    match values:
        case range():
            why = None if len(values) else f"the range of {axis} is empty"
            found: Any = {"range": [values.start, values.stop, values.step]}
        case Between(low, high):
            holds = _is_real(low) and _is_real(high) and low <= high
            why = None if holds else f"{axis} is between({low!r}, {high!r}), which holds no number"
            found = {"between": [low, high]}
        case tuple() | list():
            why = None if values else f"there is nothing to choose from for {axis}"
            found = {"choice": [drawn(axis, value) for value in values]}
        case _:
            why, found = case_axes.mistake(axis, values), values
    if why:
        raise ValueError(why)
    return found


def _ranges(axes: Mapping[str, Any]) -> dict[str, range]:
    """Of the axes that are drawn from a range, that."""
    return {axis: range(*one["range"]) for axis, one in axes.items() if isinstance(one, Mapping) and "range" in one}


def extremes(
    target: Mapping[str, Any], limits: Mapping[str, Any], largest: Callable[[Mapping[str, Any]], tuple[float, float]]
) -> Iterator[dict[str, Any]]:
    """For each axis with a range, cases with that axis at its largest and the others only as large as BEYOND asks for:
    once for bytes, once for elements. There 32-bit offsets and grid dimensions overflow. `largest`: the bytes of a
    case's largest tensor, and its elements."""
    wholes = _ranges(limits).items()
    ranges = {axis: whole[1:] if whole[0] == 0 and len(whole) > 1 else whole for axis, whole in wholes}
    made: list[dict[str, Any]] = []
    for unit in (0, 1):
        for axis in ranges:
            case = {**target, **{other: whole[0] for other, whole in ranges.items()}, axis: ranges[axis][-1]}
            for other in (other for other in reversed(ranges) if other != axis):
                whole = ranges[other]  # as small as makes the largest tensor exceed BEYOND, else at its largest
                enough = bisect_left(whole, True, key=lambda size: largest({**case, other: size})[unit] >= BEYOND)
                case[other] = whole[min(enough, len(whole) - 1)]
            if largest(case)[unit] >= BEYOND and case not in made:
                made.append(case)
                yield case


# ---- Stubs of torch and other heavy modules, so that a card can be imported where they are not installed -------------
# What a card does with them at import goes nowhere: attributes, calls, decorators and base classes are accepted.
# Methods that compute are called by the worker processes, which have the real modules.

HEAVY = frozenset({"torch", "triton", "numpy", "scipy", "cuda", "cutlass", "cupy"})


def _attribute(name: str) -> Unknown:
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return Unknown()


class Unknown:
    """Stands for any object of a module that is not there."""

    made = 0
    """How many there have been: whether what a card answers hangs on one."""

    def __init__(self) -> None:
        Unknown.made += 1

    def __repr__(self) -> str:
        return "an object of torch or another module that is not there while cards are listed"

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)

    def __call__(self, *args: Any, **_: Any) -> Any:
        # A decorator gives back what it decorates.
        return args[0] if len(args) == 1 and callable(args[0]) else Unknown()

    def __getitem__(self, _: Any) -> Any:
        return Unknown()

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __mro_entries__(self, _: Any) -> tuple[type, ...]:
        return ()


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
for _name in ("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", *_BINARY, *(f"r{_name}" for _name in _BINARY)):
    setattr(Unknown, f"__{_name}__", lambda *_: Unknown())


class Shaped(Unknown):
    """A tensor of which shape and dtype alone are known. Arithmetic with numbers keeps both, and no more is known."""

    def __init__(self, shape: Sequence[int], dtype: str) -> None:
        self.shape = tuple(int(size) for size in shape)
        self.dtype = dtype
        if min(self.shape, default=0) < 0:
            raise UsageError(f"a tensor of shape {list(self.shape)}: no size is below 0")

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def bytes(self) -> float:
        return prod(self.shape) * DTYPES[self.dtype].bits / 8

    @property
    def T(self) -> Shaped:  # noqa: N802 - torch's name
        return Shaped(self.shape[::-1], self.dtype)

    def t(self) -> Shaped:
        return self.T

    def transpose(self, one: int, other: int) -> Shaped:
        shape = list(self.shape)
        shape[one], shape[other] = shape[other], shape[one]
        return Shaped(shape, self.dtype)

    def _same(self, *_: Any, **__: Any) -> Self:
        return self

    contiguous = clone = detach = __neg__ = __abs__ = _same
    abs = clamp = exp = log = log_softmax = relu = sigmoid = softmax = sqrt = square = tanh = _same

    def size(self, axis: int | None = None) -> Any:
        return self.shape if axis is None else self.shape[axis]

    def numel(self) -> int:
        return prod(self.shape)

    def __int__(self) -> int:
        Unknown.made += 1
        raise TypeError("its value is not known while cards are listed")

    __float__ = __index__ = item = __int__

    def __setitem__(self, _: Any, value: Any) -> None:
        """Changes neither shape nor dtype."""

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([Shaped(self.shape[1:], self.dtype)] * len(self))

    def _with(self, other: Any) -> Any:
        same = isinstance(other, int | float) or (isinstance(other, Shaped) and other.shape == self.shape)
        return self if same else Unknown()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = _with


class ShapeDraw:
    """`Draw` for listing: nothing is drawn, shapes are noted."""

    distribution = "normal"
    device = "cpu"
    dtype = Unknown()
    generator = Unknown()

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype

    def __call__(self, *shape: int, dtype: str | None = None) -> Shaped:
        return Shaped(shape, known(dtype or self._dtype))

    def normal(self, *shape: int) -> Shaped:
        return Shaped(shape, "fp32")

    def uniform(self, _low: float, _high: float, *shape: int) -> Shaped:
        return Shaped(shape, "fp32")

    def integers(self, _low: int, _high: int, *shape: int, dtype: str = "int64") -> Shaped:
        return Shaped(shape, known(dtype))

    def round(self, tensor: Any, dtype: str | None = None) -> Any:
        return Shaped(tensor.shape, known(dtype or self._dtype)) if isinstance(tensor, Shaped) else Unknown()


class _Module(ModuleType):
    __path__: list[str] = []  # noqa: RUF012 - a package, so that `import torch.nn` works

    def __getattr__(self, name: str) -> Any:
        return _attribute(name)


class _Stubs(MetaPathFinder, Loader):
    def find_spec(self, name: str, *_: Any) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in HEAVY else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def install() -> None:
    """From now on this process imports stubs of HEAVY."""
    sys.meta_path.insert(0, _Stubs())
