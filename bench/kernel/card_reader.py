"""Reads every card of a folder in a process of its own, without torch, and prints what they say as JSON.

python -m kernelgate.bench.kernel.card_reader FOLDER QUESTIONS

QUESTIONS: JSON; `cases`: a card's name -> more cases (axes) to describe; `tiles`: what tile() is asked. The last line
is the answer, those before it are the names of the files that were begun. Started and read by cards.py. Imports nothing
slow.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from kernelgate.bench.core.dtypes import known
from kernelgate.bench.core.errors import CardError
from kernelgate.bench.kernel import axes as case_axes
from kernelgate.bench.kernel import import_stubs
from kernelgate.bench.kernel.axes import DTYPE
from kernelgate.bench.kernel.card import (
    DISTRIBUTIONS,
    CaseAxes,
    Extension,
    Kernel,
    Output,
    Package,
    by_name,
    call_by_name,
    call_needs,
)
from kernelgate.bench.kernel.card_ranges import drawn, extremes, is_real
from kernelgate.bench.kernel.import_stubs import Shaped, ShapeDraw, Unknown
from kernelgate.bench.kernel.loading import kernel_class, line_of, load_module, mistake_of

SUITES = ("pr", "cpu")
"""The names of `cases` and `cpu_cases` among the suites."""
REQUIRED = ("inputs", "call", "oracle")


def read(folder: Path, questions: Mapping[str, Any], begin: Callable[[Path], None]) -> dict[str, Any]:
    """All cards of the folder, and the mistakes in those that cannot be used. `begin` is told each file."""
    cards: list[dict[str, Any]] = []
    mistakes: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.py")):
        if path.name.startswith("_"):
            continue
        begin(path)
        try:
            reader = _Reader(path)
            more = questions.get("cases", {}).get(path.stem, [])
            cards.append(reader.describe(more) | {"tiles": [reader.tile(one) for one in questions.get("tiles", ())]})
        except CardError as mistake:
            mistakes.append(mistake.__dict__)
        except (Exception, SystemExit) as error:
            mistakes.append(mistake_of(path, "", error).__dict__)
    return {"cards": cards, "mistakes": mistakes}


class _Reader:
    """One card on its way to plain data; a mistake names the file, the line and the member."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kernel: Kernel = kernel_class(load_module(path), path)()
        self.tree = ast.parse(path.read_bytes())
        listed = [self._case_list("cases"), self._case_list("cpu_cases"), self._case_list("sanitize")]
        self.suites = {"pr": listed[0], "cpu": listed[1]}
        for name, cases in self._mapping("suites", self.kernel.suites).items():
            if name in SUITES:
                raise self.mistake("suites", f"{name!r} is the name of {'cases' if name == 'pr' else 'cpu_cases'}")
            self.suites[name] = self._case_list("suites", cases)
        self.sanitize = listed[2]
        every = [case for cases in self.suites.values() for case in cases]
        if not every:
            raise self.mistake("cases", "there are no cases: name at least one, such as dict(M=4096, dtype='fp16')")
        self.target = every[0]
        self.order = case_axes.order(every)
        fuzzed = self._mapping("fuzz", self.kernel.fuzz).items()
        booleans = ({axis: values[0]} for axis, values in fuzzed if isinstance(values, tuple) and _all_booleans(values))
        self.boolean = case_axes.booleans([*every, *booleans])
        lower = [axis.lower() for axis in self.order]
        twice = next((axis for axis in lower if lower.count(axis) > 1), None)
        if twice:
            raise self.mistake("cases", f"two axes are called {twice!r} in ids, which are in lower case")

    def describe(self, more: list[dict[str, Any]]) -> dict[str, Any]:
        for member in REQUIRED:
            if getattr(type(self.kernel), member) is getattr(Kernel, member):
                raise self.mistake(member, f"the card has no {member}(): docs/cards.md says what it does")
        if not call_by_name(self.kernel):
            raise self.mistake("call", "call() must take self, ops, case, and its outputs and inputs by name")
        suites = {name: [self.case(axes) for axes in cases] for name, cases in self.suites.items()}
        for name, cases in suites.items():
            ids = [case["id"] for case in cases]
            twice = next((id_ for id_ in ids if ids.count(id_) > 1), None)
            if twice is not None:
                member = {"pr": "cases", "cpu": "cpu_cases"}.get(name, "suites")
                raise self.mistake(member, f"two cases have the id {twice}")
        limits = self._limits()
        return {
            "name": self.path.stem,
            "label": type(self.kernel).__name__,
            "file": str(self.path),
            "sha256": hashlib.sha256(self.path.read_bytes()).hexdigest(),
            "build": self._build(),
            "suites": suites,
            "sanitize": [self.case(axes) for axes in self.sanitize],
            "asked": [self.case(axes) for axes in more],
            "reference": self._word("reference_name", self.kernel.reference_name),
            "kernel": self._pattern(),
            "fuzz": {device: self._configurations(device) for device in ("cuda", "cpu")},
            "limits": limits,
            "extremes": [self.case(axes) for axes in extremes(self.target, limits, self._largest)],
            "distributions": self._names("distributions"),
            "nonfinite": self._nonfinite(),
            "gives": self._gives(),
            "call_needs": list(call_needs(self.kernel)),
        }

    # Cases ------------------------------------------------------------------------------------------------------------

    def _case_list(self, member: str, cases: Any = None) -> list[dict[str, Any]]:
        listed = getattr(self.kernel, member) if cases is None else cases
        if not isinstance(listed, list | tuple) or not all(isinstance(case, Mapping) for case in listed):
            raise self.mistake(member, f"{member} is {_short(listed)}; it must be a list of dicts of axes")
        for case in listed:
            for axis, value in case.items():
                why = case_axes.mistake(str(axis), value)
                if why:
                    raise self.mistake(member, f"{_short(dict(case))}: {why}")
        return [dict(case) for case in listed]

    def case(self, axes: Mapping[str, Any]) -> dict[str, Any]:
        whole = case_axes.complete(axes, self.order, self.boolean)
        case = CaseAxes(whole)
        if not case_axes.case_id(whole):
            raise self.mistake("cases", f"{_short(dict(axes))} has no axis that an id could be made of")
        tolerance = self._asked("tolerance", lambda: self.kernel.tolerance(case))
        pair = isinstance(tolerance, tuple | list) and len(tolerance) == 2 and all(map(is_real, tolerance))
        if tolerance is not None and not pair:
            raise self.mistake("tolerance", f"tolerance() gave {_short(tolerance)}; it must give (atol, rtol) or None")
        moved = self._asked("bytes", lambda: self.kernel.bytes(case))
        if moved is None:  # inputs and outputs once each; None where their shapes cannot be known without torch
            tensors = self._given_and_made(case)
            moved = None if tensors is None else sum(tensor.bytes for tensor in tensors)
        label = self._asked("label", lambda: self.kernel.label(case))
        return {
            "id": case_axes.case_id(whole),
            "axes": whole,
            "label": self._word("label", label or case_axes.label(whole)),
            "flops": self._number("flops", self._asked("flops", lambda: self.kernel.flops(case))),
            "bytes": self._number("bytes", moved),
            "tolerance": tolerance and [float(part) for part in tolerance],
        }

    def _largest(self, axes: Mapping[str, Any]) -> tuple[float, float]:
        """The bytes of a case's largest tensor, and its elements; 0 where they are not known."""
        tensors = self._given_and_made(CaseAxes(case_axes.complete(axes, self.order, self.boolean))) or ()
        return max(((one.bytes, float(one.numel())) for one in tensors), default=(0.0, 0.0))

    def _given_and_made(self, case: CaseAxes) -> list[Shaped] | None:
        inputs = self._shapes_of("inputs", lambda: self.kernel.inputs(case, ShapeDraw(case_axes.dtype(case))))  # type: ignore[arg-type]
        if inputs is None:
            return None
        if not isinstance(inputs, Mapping):
            raise self.mistake("inputs", f"inputs() gave {_short(inputs)}; it must give a dict of named inputs")
        tensors = list(_tensors(inputs.values()))
        if None in tensors:
            return None
        said = self._shapes_of("outputs", lambda: self.kernel.outputs(case, **inputs))
        if not isinstance(said, Output | Mapping | None):
            raise self.mistake("outputs", f"outputs() gave {_short(said)}; write Output(M, N), or a dict of them")
        outputs = None if said is None else by_name(said)
        for name, output in (outputs or {}).items():
            if not isinstance(output, Output):
                raise self.mistake("outputs", f"outputs() gave {_short(output)} for {name}; write Output(M, N)")
            if name not in self._names("in_place"):
                shape, dtype = output.shape, output.dtype or case_axes.dtype(case)
                tensors.append(self._shapes_of("outputs", partial(_shaped, shape, dtype)))
        return None if outputs is None or None in tensors else [tensor for tensor in tensors if tensor]

    def _shapes_of(self, member: str, question: Callable[[], Any]) -> Any:
        """What a method answers; None where it fails for want of a module that is not there while listing."""
        before = Unknown.made
        try:
            return question()
        except Exception as error:
            if Unknown.made > before:
                return None
            raise self._at_fault(member, error) from None

    def _number(self, member: str, given: Any) -> float | None:
        if given is None:
            return None
        if not is_real(given) or given < 0:
            raise self.mistake(member, f"{member}() gave {_short(given)}; it must give a number that is not negative")
        return float(given)

    def tile(self, asked: Mapping[str, int]) -> Any:
        """What the card says of a tile: numbers, or a sentence."""
        said = self._asked("tile", lambda: self.kernel.tile(**asked))
        wanted = {"shared_bytes", "threads", "registers"}
        if not isinstance(said, str) and (not isinstance(said, Mapping) or set(said) != wanted):
            raise self.mistake("tile", f"tile() gave {_short(said)}; it must give {', '.join(sorted(wanted))}")
        return said

    # Fuzz -------------------------------------------------------------------------------------------------------------

    def _configurations(self, device: Any) -> dict[str, dict[str, Any]]:
        """Name -> axis -> what is drawn for it. Empty where the kernel has no path for the device."""
        for distribution in self._names("distributions"):
            if distribution not in (*DISTRIBUTIONS, "peaked"):
                raise self.mistake("distributions", f"{distribution!r} is none of {', '.join(DISTRIBUTIONS)}, peaked")
        cases = self.suites["cpu" if device == "cpu" else "pr"]
        if not cases:
            return {}
        if not self.kernel.fuzz:  # then the timed cases are what is known to be allowed
            whole = (case_axes.complete(case, self.order, self.boolean) for case in cases)
            return {case_axes.case_id(case): case for case in whole}
        dtypes = tuple(dict.fromkeys(case[DTYPE] for case in cases if DTYPE in case))
        basis = {DTYPE: dtypes, **self.kernel.fuzz} if dtypes else dict(self.kernel.fuzz)
        named = self._mapping(
            "configurations", self._asked("configurations", lambda: self.kernel.configurations(device))
        )
        return {
            str(name): {
                axis: self._range(axis, values)
                for axis, values in {**basis, **self._mapping("configurations", changed)}.items()
            }
            for name, changed in named.items()
        }

    def _limits(self) -> dict[str, Any]:
        given = self._mapping("limits", self.kernel.limits)
        known = {*self.order, *self._mapping("fuzz", self.kernel.fuzz)}
        for axis in given:
            if axis not in known:
                raise self.mistake("limits", f"{axis!r} is an axis of no case; there are {', '.join(sorted(known))}")
        return {axis: self._range(axis, values) for axis, values in given.items()}

    def _range(self, axis: str, values: Any) -> Any:
        try:
            return drawn(axis, values)
        except ValueError as error:
            raise self.mistake("fuzz", str(error)) from None

    def _nonfinite(self) -> list[str]:
        """The names of inputs that may hold NaN or Inf in some case that is listed."""
        found: dict[str, None] = {}
        for axes in (case for cases in self.suites.values() for case in cases):
            case = CaseAxes(case_axes.complete(axes, self.order, self.boolean))
            given = self._mapping("nonfinite", self._asked("nonfinite", lambda: self.kernel.nonfinite(case)))  # noqa: B023 - called here
            for name, values in given.items():
                wrong = next((one for one in values if not isinstance(one, float) or isfinite(one)), None)
                if wrong is not None:
                    raise self.mistake(
                        "nonfinite", f"nonfinite() gives {_short(wrong)} for {name}; give nan, inf, -inf"
                    )
            found |= dict.fromkeys(map(str, given))
        return list(found)

    # Build and call ---------------------------------------------------------------------------------------------------

    def _build(self) -> dict[str, Any]:
        build = getattr(self.kernel, "build", None)
        if isinstance(build, Package):
            self._word("build", build.name)
            return {"kind": "package", "package": build.name}
        if not isinstance(build, Extension):
            raise self.mistake("build", 'the card has no build: write Extension("csrc/name*") or Package("name")')
        if not build.sources:
            raise self.mistake("build", "Extension() names no sources: write Extension('csrc/name*')")
        for word in (*build.sources, *build.flags, *build.nvcc_flags, build.torch or ""):
            self._word("build", word)
        return {
            "kind": "extension",
            "sources": list(build.sources),
            "flags": list(build.flags),
            "nvcc_flags": list(build.nvcc_flags),
            "torch": build.torch,
        }

    def _gives(self) -> list[str] | None:
        """The names of inputs and outputs; None where they cannot be known without torch."""
        case = CaseAxes(case_axes.complete(self.target, self.order, self.boolean))
        try:
            inputs = self.kernel.inputs(case, ShapeDraw(case_axes.dtype(case)))  # type: ignore[arg-type]
            return sorted({*inputs, *by_name(self.kernel.outputs(case, **inputs))})
        except Exception:
            return None

    # Kinds ------------------------------------------------------------------------------------------------------------

    def _mapping(self, member: str, given: Any) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            raise self.mistake(member, f"{member} has {_short(given)} where a dict must stand")
        return given

    def _word(self, member: str, given: Any) -> str:
        if not isinstance(given, str):
            raise self.mistake(member, f"{member} has {_short(given)} where a string must stand")
        return given

    def _names(self, member: str) -> list[str]:
        given = getattr(self.kernel, member)
        if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
            raise self.mistake(member, f"{member} is {_short(given)}; it must be a list of names")
        return list(given)

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
            raise self._at_fault(member, error) from None

    def _at_fault(self, member: str, error: Exception) -> CardError:
        found = mistake_of(self.path, member, error)
        return found if found.line else self.mistake(member, found.text)

    def mistake(self, member: str, text: str) -> CardError:
        return CardError(str(self.path), line_of(self.tree, member), member, text)


def _shaped(shape: tuple[int, ...], dtype: str) -> Shaped:
    return Shaped(shape, known(dtype))


def _tensors(values: Any) -> Iterator[Shaped | None]:
    """The tensors among inputs; None for one whose shape is unknown."""
    for value in values:
        if isinstance(value, Shaped):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)
        elif isinstance(value, Unknown):
            yield None


def _all_booleans(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, bool) for value in values)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def main() -> None:
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a card prints must not mix with the answer
    import_stubs.install()

    def begin(path: Path) -> None:
        print(path.name, file=out, flush=True)

    json.dump(read(Path(sys.argv[1]), json.loads(sys.argv[2]), begin), out)
    out.close()


if __name__ == "__main__":
    main()
