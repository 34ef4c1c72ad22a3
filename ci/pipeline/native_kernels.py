"""Kernels in C++ and CUDA, by what binds them to Python: TORCH_LIBRARY, PYBIND11_MODULE, TVM-FFI's exports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kernelgate.bench.core.documentation import page
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.pipeline import found_kernels
from kernelgate.ci.pipeline.found_kernels import Argument, ArgumentKind, Build, Finding, FoundKernel, Read, Skipped
from kernelgate.ci.pipeline.native_builds import closing, extensions

BLOCK = re.compile(
    r"\b((?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_EXPAND)?|PYBIND11_MODULE)\s*\(\s*\w+\s*,\s*(\w+)\s*\)\s*\{"
)
TVM_FFI = re.compile(r"^[ \t]*TVM_FFI_DLL_EXPORT_TYPED_FUNC\(\s*(\w+)\s*,\s*([\w:]+)\s*\)", re.MULTILINE)
DEFINED = re.compile(
    r"(?P<type>(?:::|\.)(?:class_|enum_|exception)\s*<)"
    r"|(?:(?P<variable>\w+)\s*=\s*)?\b\w+\s*\.\s*def_submodule\(\s*\"(?P<submodule>\w+)\""
    r"|(?P<owner>\w*)\s*\.(?:def|op)\(\s*(?:TORCH_SELECTIVE_\w+\(\s*)?"
    r"(?P<said>(?:\"(?:[^\"\\]|\\.)*\"\s*)+)(?:,\s*&?\s*(?P<function>[A-Za-z_][\w:]*))?"
)
"""What is bound, and to what: without an owner to that of the one before, `m.def(…).def(…)`."""
SCHEMA = re.compile(r"([\w:.]+)\((.*)\)\s*->\s*(.*)", re.DOTALL)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(\"(?:[^\"\\\n]|\\.)*\")", re.DOTALL)
CLASSIC = re.compile(r"#\s*include\s*[<\"](?:torch/(?:all|extension|library|script|torch|types)\.h|ATen/|c10/)")
OUTPUT_NAME = re.compile(r"out(?:put)?s?(?:_.*)?|o|c|C|dst|result|.*_out")
CONSTANT = re.compile(r"(-?\d[\d.]*(?:[eE][+-]?\d+)?)[fFlLuU]*|(true|false)")
ON_CPU = re.compile(r"TORCH_LIBRARY_IMPL\(\s*\w+\s*,\s*CPU\b")
KERNEL = re.compile(r"\b__global__\b[^;{]*\{")
TRAILING = re.compile(r"\)[\w\s]*->([^{;]*)")
DTYPES = (
    ("fp16", r"k?Half\b|\bhalf\b|[fF]loat16|_AND_HALF"),
    ("bf16", r"BFloat16|bfloat16"),
    ("fp32", r"k?Float\b|[fF]loat32|<float>|_FLOATING_TYPES"),
)
SOURCES = (".cpp", ".cc", ".cxx", ".cu", ".cuh", ".h", ".hpp")
Signature = tuple[tuple[Argument, ...], tuple[str, ...]]
"""Arguments, and the names of what is returned."""


def find(names: Sequence[str], read: Read, torch: str) -> Iterator[Finding]:
    """`torch`: the version for which sources of the classic ABI are compiled."""
    builds = extensions(names, read)
    found_sources = ((name, read(name)) for name in found_kernels.sources(names, *SOURCES))
    # Without comments, each line where it was.
    texts = {name: COMMENT.sub(lambda one: one[1] or "\n" * one[0].count("\n"), text) for name, text in found_sources}
    bound = [(file, *one) for file, text in texts.items() for one in _bound(text)]
    if not bound:
        yield from _unbound(texts)
    for file, how, line, name, function, schema in bound:
        place = f"{file}:{line}"
        own = next((one for one in builds if file in one.sources), None)
        found = of_schema(schema) if schema else _of_function(function, file, texts)
        if found is None:
            why = f"its arguments cannot be read, for {function or 'its function'} is no plain one"
            yield Skipped(place, f"{name}: {why}")
            continue
        arguments, results = found
        if not any(one.kind in ("tensor", "tensors") for one in arguments):
            continue  # no kernel, such as a version's number
        whole = "\n".join(texts[one] for one in (own.sources if own else (file,)) if one in texts)
        cuda = own is None or any(one.endswith(".cu") for one in own.sources)
        yield FoundKernel(
            name=name.rpartition(".")[2],
            how=how,
            file=file,
            line=line,
            called=f"ops.{name}",
            build=_build(own, file, texts, torch),
            arguments=tuple(one for one in arguments if one.default is None or not schema),
            results=results,
            dtypes=tuple(one for one, words in DTYPES if re.search(words, whole)) or ("fp16", "bf16"),
            lists=(*["cases"] * cuda, *["cpu_cases"] * bool(not cuda or ON_CPU.search(whole))),
        )


def _unbound(texts: Mapping[str, str]) -> Iterator[Skipped]:
    """Kernels of a repository that binds none in a way that is read, such as by ctypes or nanobind."""
    for file, text in texts.items():
        if made := [*KERNEL.finditer(text)]:
            what = f"{counted(len(made), '__global__ function')}: what binds this to Python is none of what init reads"
            why = f"{what}; a card's Command() builds it as the project does: {page('try.md#the-projects-own-build')}"
            yield Skipped(f"{file}:{_line_at(text, made[0].start())}", why)


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _bound(text: str) -> Iterator[tuple[str, int, str, str, str]]:
    """How, line, name below the module, C++ function and schema of every function that this file binds."""
    for block in BLOCK.finditer(text):
        body = text[block.end() : closing(text, block.end() - 1)]
        modules: dict[str, str | None] = {block[2]: ""}
        owner: str | None = ""  # None for a type, whose methods are no kernels
        for one in DEFINED.finditer(body):
            if one["type"]:
                owner = None
            elif one["submodule"]:
                owner = modules[one["variable"] or ""] = f"{one['submodule']}."
            else:
                owner = modules.get(one["owner"]) if one["owner"] else owner
                said = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', one["said"]))
                name = said.partition("(")[0].partition("::")[2] or said.partition("(")[0]
                if owner is not None and name.isidentifier():
                    line, schema = _line_at(text, block.end() + one.start("said")), said if "->" in said else ""
                    yield block[1], line, f"{owner}{name}", one["function"] or "", schema
    for export in TVM_FFI.finditer(text):
        yield "TVM_FFI_DLL_EXPORT_TYPED_FUNC", _line_at(text, export.start(1)), export[1], export[2], ""


def of_schema(schema: str) -> Signature | None:
    found = SCHEMA.fullmatch(schema.strip())
    if found is None:
        return None
    arguments = []
    for part in split(found[2]):
        words, _, default = part.partition("=")
        kind, _, name = words.strip().rpartition(" ")
        if name and name != "*":
            tensor = "Tensor" in kind
            of: ArgumentKind = "optional" if "?" in kind else "tensor" if tensor else "number"
            of = "tensors" if tensor and "[" in kind else of
            arguments.append(Argument(name, of, default.strip() or None, "!" in kind))
    returned = re.findall(r"Tensor(?!\([^)]*!)", found[3])
    return tuple(arguments), _names(len(returned))


def _of_function(function: str, file: str, texts: Mapping[str, str]) -> Signature | None:
    name = function.rpartition("::")[2]
    if not name:
        return None
    defined = re.compile(
        rf"^[ \t]*(?!return\b|else\b)([A-Za-z_][\w:<>,&*\s]*?[\s&*>])(?:\w+::)*{re.escape(name)}\s*\(", re.MULTILINE
    )
    for text in (texts[file], *(text for other, text in texts.items() if other != file)):
        if name in text and (one := defined.search(text)):
            end = closing(text, one.end() - 1)
            returned = (TRAILING.match(text, end) or one)[1]
            if not re.search(r"\bvoid\s*$|Tensor", returned):
                return (), ()  # no kernel: it plans, or tells a size
            results = ("results",) if "vector" in returned else _names(returned.count("Tensor"))
            declared = split(text[one.end() : end])
            if not any("Tensor" in one and "ptional" not in one for one in declared):
                declared = [re.sub(r"[oO]ptional", "", one) if "Tensor" in one else one for one in declared]
            taken = [_cpp_argument(one) for one in declared]
            known = {one.name for one in taken}
            gradients = (one.name[0] == "d" and one.name[1:] in known for one in taken)
            written = (replace(one, written=one.written or of) for one, of in zip(taken, gradients, strict=True))
            return tuple(written), results
    return None


def _cpp_argument(text: str) -> Argument:
    declared, _, default = text.partition("=")
    name = ["x", *re.findall(r"\w+", declared)][-1]
    kind: ArgumentKind = "number"
    if "ptional" in declared:
        kind = "optional"
    elif "Tensor" in declared:
        kind = "tensors" if "vector" in declared or "List" in declared else "tensor"
    written = kind == "tensor" and "const" not in declared and bool(OUTPUT_NAME.fullmatch(name))
    # As Python writes it, where it is a constant: what binds a function leaves the default out.
    constant = CONSTANT.fullmatch(default.strip())
    return Argument(name, kind, (constant[1] or constant[2].title()) if constant else None, written)


def split(text: str) -> list[str]:
    """At the commas that stand in no brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "(<[{") - (char in ")>]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _names(count: int) -> tuple[str, ...]:
    return ("out",) if count == 1 else tuple(f"out{number}" for number in range(count))


def _build(own: Build | None, file: str, texts: Mapping[str, str], torch: str) -> Build:
    missing = f"which sources belong to {file}? No setup.py or CMakeLists.txt here lists them"
    build = own or Build(f'Extension("{file}")', (file,), (missing,))
    classic = any(CLASSIC.search(texts[name]) for name in build.sources if name in texts)
    return replace(build, text=f'{build.text[:-1]}, torch="{torch}")') if classic else build
