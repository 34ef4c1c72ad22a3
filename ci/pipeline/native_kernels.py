"""Kernels in C++ and CUDA, by what binds them to Python: TORCH_LIBRARY, PYBIND11_MODULE, TVM-FFI's exports; and what
builds them."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch

from kernelgate.ci.pipeline.found_kernels import (
    Argument,
    ArgumentKind,
    Build,
    Finding,
    FoundKernel,
    Read,
    Skipped,
    parsed,
    quoted,
    sources,
)

BLOCK = re.compile(
    r"\b((?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_EXPAND)?|PYBIND11_MODULE)\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*\{"
    r"|\b(RegisterOperators)\(\)"
)
TVM_FFI = re.compile(r"^[ \t]*TVM_FFI_DLL_EXPORT_TYPED_FUNC\(\s*(\w+)\s*,\s*([\w:]+)\s*\)", re.MULTILINE)
DEFINED = re.compile(r"\.(?:def|op)\(\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)(?:,\s*&?\s*([A-Za-z_][\w:]*))?")
SCHEMA = re.compile(r"([\w:.]+)\((.*)\)\s*->\s*(.*)", re.DOTALL)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(\"(?:[^\"\\\n]|\\.)*\")", re.DOTALL)
CLASSIC = re.compile(r"#\s*include\s*[<\"](?:torch/(?:all|extension|library|script|torch|types)\.h|ATen/|c10/)")
OUTPUT_NAME = re.compile(r"out(?:put)?s?(?:_.*)?|o|dst|result|.*_out")
DTYPES = (("fp16", r"k?Half\b|\bhalf\b|float16"), ("bf16", r"BFloat16|bfloat16"), ("fp32", r"k?Float\b|float32"))
SOURCES = (".cpp", ".cc", ".cxx", ".cu", ".cuh", ".h", ".hpp")
Signature = tuple[tuple[Argument, ...], tuple[str, ...]]
"""Arguments, and the names of what is returned."""


def find(names: Sequence[str], read: Read, torch: str) -> Iterator[Finding]:
    """`torch`: the version for which sources of the classic ABI are compiled."""
    builds = extensions(names, read)
    found_sources = ((name, read(name)) for name in sources(names, *SOURCES))
    # Without comments, each line where it was.
    texts = {name: COMMENT.sub(lambda one: one[1] or "\n" * one[0].count("\n"), text) for name, text in found_sources}
    for file, text in texts.items():
        for how, line, name, function, schema in _bound(text):
            place = f"{file}:{line}"
            own = next((one for one in builds if file in one.sources), None)
            found = of_schema(schema) if schema else _of_function(function, file, texts)
            if found is None:
                why = f"its arguments cannot be read, for {function or 'its function'} is no plain one"
                yield Skipped(place, f"{name}: {why}")
                continue
            arguments, results = found
            if not any(one.kind == "tensor" for one in arguments):
                continue  # no kernel, such as a version's number
            whole = "\n".join(texts[one] for one in (own.sources if own else (file,)) if one in texts)
            yield FoundKernel(
                name=name,
                how=how,
                file=file,
                line=line,
                called=f"ops.{name}",
                build=_build(own, file, texts, torch),
                arguments=tuple(one for one in arguments if one.default is None),
                results=results,
                dtypes=tuple(one for one, words in DTYPES if re.search(words, whole)) or ("fp16", "bf16"),
            )


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _bound(text: str) -> Iterator[tuple[str, int, str, str, str]]:
    """How, line, name, C++ function and schema of all that this file binds."""
    for block in BLOCK.finditer(text):
        body = text[block.end() : closing(text, block.end() - 1) if block[1] else text.find(";", block.end())]
        for one in DEFINED.finditer(body):
            said = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', one[1]))
            schema = said if "->" in said else ""
            name = said.partition("(")[0].partition("::")[2] or said.partition("(")[0]
            if name.isidentifier():
                yield block[1] or block[4], _line_at(text, block.end() + one.start()), name, one[2] or "", schema
    for export in TVM_FFI.finditer(text):
        yield "TVM_FFI_DLL_EXPORT_TYPED_FUNC", _line_at(text, export.start(1)), export[1], export[2], ""


def closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes; the end of the text where it does not."""
    pairs = {"(": ")", "{": "}"}
    opened, closed, depth = text[start], pairs[text[start]], 0
    for at in range(start, len(text)):
        depth += (text[at] == opened) - (text[at] == closed)
        if depth == 0:
            return at
    return len(text)


def of_schema(schema: str) -> Signature | None:
    """Of an operator's schema, such as "scale(Tensor(a!) out, Tensor x, float factor=1.0) -> ()"."""
    found = SCHEMA.fullmatch(schema.strip())
    if found is None:
        return None
    arguments = []
    for part in split(found[2]):
        words, _, default = part.partition("=")
        kind, _, name = words.strip().rpartition(" ")
        if name and name != "*":
            arguments.append(Argument(name, _schema_kind(kind), default.strip() or None, "!" in kind))
    returned = re.findall(r"Tensor(?!\([^)]*!)", found[3])
    return tuple(arguments), _names(len(returned))


def _schema_kind(kind: str) -> ArgumentKind:
    if "Tensor" not in kind:
        return "optional" if "?" in kind else "number"
    return "tensors" if "[" in kind else "optional" if "?" in kind else "tensor"


def _of_function(function: str, file: str, texts: Mapping[str, str]) -> Signature | None:
    """Of a C++ function: its definition, here or in another file."""
    name = function.rpartition("::")[2]
    if not name:
        return None
    defined = re.compile(
        rf"^[ \t]*(?!return\b|else\b)([A-Za-z_][\w:<>,&*\s]*?[\s&*>])(?:\w+::)*{re.escape(name)}\s*\(", re.MULTILINE
    )
    for text in (texts[file], *(text for other, text in texts.items() if other != file)):
        if name in text and (one := defined.search(text)):
            if not re.search(r"\bvoid\s*$|Tensor", one[1]):
                return (), ()  # no kernel: it plans, or tells a size
            inner = text[one.end() : closing(text, one.end() - 1)]
            results = ("results",) if "vector" in one[1] else _names(one[1].count("Tensor"))
            taken = [_cpp_argument(one) for one in split(inner)]
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
    return Argument(name, kind, default.strip() or None, written)


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
    missing = f"which sources belong to {file}? No setup.py here names it"
    build = own or Build(f'Extension("{file}")', (file,), (missing,))
    classic = any(CLASSIC.search(texts[name]) for name in build.sources if name in texts)
    return replace(build, text=f'{build.text[:-1]}, torch="{torch}")') if classic else build


# What a setup.py says of its extensions, read as text and never run ---------------------------------------------------


EXTENSIONS = {"CUDAExtension", "CppExtension", "load"}
MAY_BUILD = re.compile(r"(CUDA|Cpp)Extension\(|cpp_extension")
SUFFIXES = (".cpp", ".cc", ".cxx", ".cu")
OURS = re.compile(
    r"-gencode|arch=.*|--generate-code.*|-arch.*|--threads.*|-t=?\d*|-lineinfo|-O[0-3]|-fPIC|-shared|-v|-Xptxas|"
    r"--ptxas-options.*|-std=.*|-D_GLIBCXX_USE_CXX11_ABI.*|-DTORCH_EXTENSION_NAME.*|-ccbin.*|--resource-usage"
)
"""Flags that the build sets by itself, or that change no code."""


def extensions(names: Sequence[str], read: Read) -> tuple[Build, ...]:
    """The builds of every setup.py, and of what torch compiles when it is imported."""
    texts = ((name, read(name)) for name in names if name.endswith(".py"))
    return tuple(one for name, text in texts if MAY_BUILD.search(text) for one in _of_file(name, text, names))


def _of_file(name: str, text: str, names: Sequence[str]) -> Iterator[Build]:
    tree = parsed(text)
    reader = _Reader(tree, posixpath.dirname(name), names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in EXTENSIONS:
            given = {one.arg: one.value for one in node.keywords if one.arg}
            sources = given.get("sources") or (node.args[1] if len(node.args) > 1 else None)
            files = tuple(dict.fromkeys(reader.files(sources))) if sources else ()
            if files:
                yield reader.extension(f"{name}:{node.lineno}", files, given)


class _Reader:
    """The constants of one setup.py: what a name was given last, or was extended by."""

    def __init__(self, tree: ast.Module, folder: str, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names
        self.values: dict[str, list[ast.expr]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.values[node.targets[0].id] = [node.value]
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.values.setdefault(node.target.id, []).append(node.value)

    def words(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[str]:
        """Every text in an expression, in the order of its lists."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Name) and node.id not in seen:
            for value in self.values.get(node.id, ()):
                yield from self.words(value, seen | {node.id})
        elif isinstance(node, ast.List | ast.Tuple | ast.BinOp | ast.Call | ast.Starred | ast.IfExp | ast.ListComp):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    yield from self.words(child, seen)
                elif isinstance(child, ast.comprehension):
                    yield from self.words(child.iter, seen)

    def files(self, node: ast.expr) -> Iterator[str]:
        """The files of the repository that an expression names: as they are, in a folder, or by a pattern."""
        folders: list[str] = []
        for word in self.words(node):
            if word.endswith(SUFFIXES):
                tries = (word, *("/".join([*folders[at:], word]) for at in range(len(folders))))
                yield from next(filter(None, map(self._matching, tries)), ())
            else:
                folders.append(word)

    def _matching(self, pattern: str) -> tuple[str, ...]:
        path = posixpath.normpath(posixpath.join(self.folder, pattern))
        exact = tuple(name for name in self.names if name == path)
        return exact or tuple(name for name in self.names if "*" in path and fnmatch(name, path))

    def extension(self, place: str, files: tuple[str, ...], given: Mapping[str, ast.expr]) -> Build:
        arguments = given.get("extra_compile_args")
        while isinstance(arguments, ast.Name) and self.values.get(arguments.id):
            arguments = self.values[arguments.id][-1]
        flags: Mapping[str, tuple[str, ...]] = {}
        if isinstance(arguments, ast.Dict):
            pairs = zip(arguments.keys, arguments.values, strict=True)
            flags = {str(key.value): self._flags(value) for key, value in pairs if isinstance(key, ast.Constant)}
        elif arguments is not None:
            flags = {"cxx": self._flags(arguments)}
        host = flags.get("cxx", ())
        both = (*(one for one in host if one[:2] in ("-D", "-U", "-I")), *self._folders(given.get("include_dirs")))
        lost = [one for one in host if one not in both]
        unread = () if arguments is None or flags else (f"its flags, which {place} computes",)
        if lost:
            unread = (*unread, f"the C++ compiler's own flags of {place} are left out: {' '.join(lost)}")
        loaded = self._flags(given.get("extra_cuda_cflags", ast.List(elts=[])))
        named = {"flags": both, "nvcc_flags": [one for one in (*flags.get("nvcc", ()), *loaded) if one not in both]}
        lists = [f"{name}=[{', '.join(map(quoted, flags))}]" for name, flags in named.items() if flags]
        return Build(f"Extension({', '.join([*map(quoted, files), *lists])})", files, unread)

    def _flags(self, node: ast.expr) -> tuple[str, ...]:
        return tuple(one for one in dict.fromkeys(self.words(node)) if one.startswith("-") and not OURS.fullmatch(one))

    def _folders(self, node: ast.expr | None) -> Iterable[str]:
        if node is None:
            return
        for item in node.elts if isinstance(node, ast.List | ast.Tuple) else [node]:
            words = [word.strip("/") for word in self.words(item)]
            path = posixpath.normpath(posixpath.join(self.folder, *(word for word in words if word)))
            if words and any(name.startswith(f"{path}/") for name in self.names):
                yield f"-I{path}"
