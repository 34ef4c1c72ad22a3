"""Kernels in C++ and CUDA, by what binds them to Python (TORCH_LIBRARY, PYBIND11_MODULE, TVM-FFI's exports), and what
builds them, as setup.py and CMakeLists.txt say it: read as text, and never run."""

from __future__ import annotations

import ast
import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from itertools import chain, takewhile

from kernelgate.bench.core.documentation import page
from kernelgate.ci.document.formatting import counted
from kernelgate.ci.pipeline import found_kernels
from kernelgate.ci.pipeline.found_kernels import (
    Argument,
    ArgumentKind,
    Build,
    Finding,
    FoundKernel,
    Read,
    Skipped,
    named,
    parsed,
    quoted,
    with_outputs,
)

BLOCK = re.compile(
    r"(?:\b((?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_EXPAND)?|PYBIND11_MODULE)\s*\(\s*\w+\s*,"
    r"|\(\s*(?:py|pybind11)::module_?\s*&)\s*(\w+)\s*\)\s*\{|\b((?:torch|c10)::RegisterOperators)\s*\(\)"
)
"""Also a function that is handed the module, and a chain of `.op(…)`, up to its semicolon."""
BINDS = ("TORCH_LIBRARY", "PYBIND11_MODULE", "::module", "RegisterOperators", "TVM_FFI_DLL_EXPORT")
TVM_FFI = re.compile(r"^[ \t]*TVM_FFI_DLL_EXPORT_TYPED_FUNC\(\s*(\w+)\s*,\s*([\w:]+)\s*\)", re.MULTILINE)
DEFINED = re.compile(
    r"(?P<type>(?:::|\.)(?:class_|enum_|exception)\s*<)"
    r"|(?:(?P<variable>\w+)\s*=\s*)?\b\w+\s*\.\s*def_submodule\(\s*\"(?P<submodule>\w+)\""
    r"|(?P<owner>\w*)\s*\.(?:def|op)\(\s*(?:TORCH_SELECTIVE_\w+\(\s*)?"
    r"(?P<said>(?:\"(?:[^\"\\]|\\.)*\"\s*)+)"
    r"(?:,\s*(?:(?:\w+::overload_cast<|static_cast<[^()]*\(\*\)\s*\()(?P<types>[^()]*)\)?>\s*\(\s*)?&?\s*(?P<function>[A-Za-z_][\w:]*))?"
)
"""What is bound, and to what: without an owner to that of the one before, `m.def(…).def(…)`."""
SCHEMA = re.compile(r"([\w:.]+)\((.*)\)\s*->\s*(.*)", re.DOTALL)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(\"(?:[^\"\\\n]|\\.)*\")", re.DOTALL)
CLASSIC = re.compile(r"#\s*include\s*[<\"](?:torch/(?:all|extension|library|python|script|torch|types)\.h|ATen/|c10/)")
BEFORE = re.compile(r"^[ \t]*(?!return\b|else\b)([A-Za-z_][\w:<>,&*\s]*?[\s&*>])(?:\w+::)*\Z", re.MULTILINE)
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
    bound = [(file, *one) for file, text in texts.items() if any(map(text.count, BINDS)) for one in _bound(text)]
    if not bound:
        yield from _unbound(texts)
    for file, how, line, name, function, types, schema in bound:
        place = f"{file}:{line}"
        included = re.compile(rf'#\s*include.*\b{re.escape(posixpath.basename(file))}"')
        own = next((one for one in builds if file in one.sources), None) or next(
            (one for one in builds if any(included.search(texts.get(source, "")) for source in one.sources)), None
        )
        found = of_schema(schema) if schema else _of_function(function, types, file, texts)
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


def _bound(text: str) -> Iterator[tuple[str, int, str, str, str, str]]:
    """How, line, name below the module, C++ function, types of an overload and schema of what this file binds."""
    for block in BLOCK.finditer(text):
        end = text.find(";", block.end()) if block[3] else closing(text, block.end() - 1)
        body = text[block.end() : end]
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
                    how = block[1] or block[3] or "PYBIND11_MODULE"
                    yield how, line, f"{owner}{name}", one["function"] or "", one["types"] or "", schema
    for export in TVM_FFI.finditer(text):
        yield "TVM_FFI_DLL_EXPORT_TYPED_FUNC", _line_at(text, export.start(1)), export[1], export[2], "", ""


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


def _of_function(function: str, types: str, file: str, texts: Mapping[str, str]) -> Signature | None:
    name = function.rpartition("::")[2]
    if not name:
        return None
    called = re.compile(rf"\b{re.escape(name)}\s*\(")
    for text in (texts[file], *(text for other, text in texts.items() if other != file)):
        for one in called.finditer(text) if name in text else ():
            defined = BEFORE.search(text, max(0, one.start() - 400), one.start())
            end = closing(text, one.end() - 1)
            declared = split(text[one.end() : end])
            if defined is None or (types and len(declared) != len(split(types))):
                continue
            returned = (TRAILING.match(text, end) or defined)[1]
            if not re.search(r"\b(?:void|auto)\s*$|Tensor", returned):
                return (), ()  # no kernel: it plans, or tells a size
            results = ("results",) if re.search("vector|auto", returned) else _names(returned.count("Tensor"))
            if not any("Tensor" in one and "ptional" not in one for one in declared):
                declared = [re.sub(r"[oO]ptional", "", one) if "Tensor" in one else one for one in declared]
            taken = [_cpp_argument(one) for one in declared]
            constant = [one.name for one, said in zip(taken, declared, strict=True) if "const" in said]
            return with_outputs(taken, bool(results), constant), results
    return None


def _cpp_argument(text: str) -> Argument:
    declared, _, default = text.partition("=")
    name = ["x", *re.findall(r"\w+", declared)][-1]
    kind: ArgumentKind = "number"
    if "ptional" in declared:
        kind = "optional"
    elif "Tensor" in declared:
        kind = "tensors" if re.search("vector|List|pair|tuple", declared) else "tensor"
    # As Python writes it, where it is a constant: what binds a function leaves the default out.
    constant = CONSTANT.fullmatch(default.strip())
    return Argument(name, kind, (constant[1] or constant[2].title()) if constant else None)


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


# setup.py -------------------------------------------------------------------------------------------------------------


EXTENSIONS = {"CUDAExtension", "CppExtension", "load"}
MAY_BUILD = re.compile(r"(CUDA|Cpp)Extension\(|cpp_extension")
SUFFIXES = (".cpp", ".cc", ".cxx", ".cu")
OURS = re.compile(
    r"-gencode.*|arch=.*|--generate-code.*|-arch.*|--threads.*|-t=?\d*|-lineinfo|-O3|(-Xcompiler=)?-fPIC|-shared|"
    r"-v|(-Xptxas|--ptxas-options)=(-v|--verbose)|-std=.*|-W(?![alp],).*|-O0|-g|-G|-fdiagnostics-.*|-D_GLIBCXX_USE_CXX11_ABI.*|-DTORCH_EXTENSION_NAME.*|-ccbin.*|--resource-usage"
)
"""Flags that the build sets by itself, that change no code, or that are for a debugger."""
OF_A_TOOL = re.compile(r"-X[a-z]+")


def extensions(names: Sequence[str], read: Read) -> tuple[Build, ...]:
    texts = [(name, read(name)) for name in names if name.endswith((".py", "CMakeLists.txt"))]
    python = [one for name, text in texts if MAY_BUILD.search(text) for one in _of_python(name, text, names)]
    cmake = [one for name, text in texts if name.endswith(".txt") for one in _of_cmake(name, text, names)]
    return (*python, *cmake)


def closing(text: str, start: int) -> int:
    """Where the bracket at `start` closes; the end of the text where it does not."""
    pairs = {"(": ")", "{": "}"}
    opened, closed, depth = text[start], pairs[text[start]], 0
    for at in range(start, len(text)):
        depth += (text[at] == opened) - (text[at] == closed)
        if depth == 0:
            return at
    return len(text)


def _of_python(name: str, text: str, names: Sequence[str]) -> Iterator[Build]:
    tree = parsed(text)
    reader = _Reader(tree, posixpath.dirname(name), names)
    classes = {one for one, given in reader.values.items() if any(named(value) & EXTENSIONS for value in given)}
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)]
    made = [one for one in calls if ast.unparse(one.func).rpartition(".")[2] in EXTENSIONS | classes]
    known = [build for one in made if (build := reader.extension(f"{name}:{one.lineno}", one))]
    unread = [f"its flags and maybe more sources, which {name} computes"]
    yield from known or (_extension(files, (), (), unread) for files in reader.lists(tree))


class _Reader:
    """The constants of one setup.py: what a name or an entry was given last, and was extended by, on every branch."""

    def __init__(self, tree: ast.Module, folder: str, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names
        self.values: dict[str, list[ast.expr]] = {}
        chosen = {id(one) for choice in ast.walk(tree) if isinstance(choice, ast.If) for one in ast.walk(choice)}
        self.branched: set[str] = set()
        self.guessed = False  # whether words() came from a branch of a condition
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[target], value=value):
                    name = ast.unparse(target)
                    if not any(isinstance(one, ast.Name) and one.id == name for one in ast.walk(value)):
                        self.values[name] = []
                case (
                    ast.AugAssign(target=target, value=value)
                    | ast.Call(func=ast.Attribute(value=target, attr="append" | "extend"), args=[value])
                ):
                    pass
                case _:
                    continue
            self.values.setdefault(ast.unparse(target), []).append(value)
            self.branched |= {ast.unparse(target)} if id(node) in chosen else set()

    def words(self, node: ast.expr, seen: frozenset[str] = frozenset()) -> Iterator[str]:
        """Every text in an expression, in the order of its lists."""
        self.guessed |= isinstance(node, ast.IfExp) or (isinstance(node, ast.Name) and node.id in self.branched)
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
                joined = ["/".join([*folders[at:], word]) for at in range(len(folders))]
                tries = (*joined, word) if "*" in word else (word, *joined)
                found = (_matching(one, self.folder, self.names) for one in tries)
                yield from next(filter(None, found), ())
            else:
                folders.append(word)

    def lists(self, tree: ast.Module) -> Iterator[tuple[str, ...]]:
        """Every list that names sources of the repository alone, those with CUDA first."""
        written = [[*self.words(node)] for node in ast.walk(tree) if isinstance(node, ast.List)]
        found = [[_matching(word, self.folder, self.names) for word in words] for words in written if words]
        listed = [tuple(chain.from_iterable(files)) for files in found if all(files)]
        yield from sorted(listed, key=lambda files: not any(one.endswith(".cu") for one in files))

    def extension(self, place: str, call: ast.Call) -> Build | None:
        """None where it names no source of the repository."""
        given = {one.arg: one.value for one in call.keywords if one.arg}
        sources = given.get("sources") or (call.args[1] if len(call.args) > 1 else None)
        files = tuple(dict.fromkeys(self.files(sources))) if sources else ()
        arguments, name = given.get("extra_compile_args"), ""
        last = {one: given[-1] for one, given in self.values.items() if isinstance(given[-1], ast.Dict | ast.Name)}
        while isinstance(arguments, ast.Name) and arguments.id in last:
            name, arguments = arguments.id, last.pop(arguments.id)
        said = {"cxx": arguments} if arguments else {}
        if isinstance(arguments, ast.Dict):
            pairs = zip(arguments.keys, arguments.values, strict=True)
            said = {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
        later = {key: self.values.get(f"{name}[{key!r}]", []) for key in ("cxx", "nvcc")}
        self.guessed = False
        loaded = {"cxx": None, "nvcc": given.get("extra_cuda_cflags")}
        host, nvcc = (
            [flag for one in (said.get(key), *more, loaded[key]) if one for flag in _flags(self.words(one))]
            for key, more in later.items()
        )
        folders = [*self._folders(given.get("include_dirs"))]
        both = (
            *(one for one in host if one[:2] in ("-D", "-U", "-I")),
            *self._defined(given.get("define_macros")),
            *(one for one in folders if one.startswith("-I")),
        )
        unread = []
        if not all(isinstance(one, ast.List) or any(self.words(one)) for one in said.values()):
            unread.append(f"its flags, which {place} computes")
        if any(later.values()) or self.guessed:
            unread.append(f"the flags of {place}, where every branch of its conditions was taken")
        if gone := [one for one in folders if not one.startswith("-I")]:
            unread.append(f"{place} includes from {', '.join(gone)}, which is not here")
        if lost := [one for one in host if one not in both]:
            unread.append(f"the C++ compiler's own flags of {place} are left out: {' '.join(lost)}")
        return _extension(files, both, nvcc, unread) if files else None

    def _defined(self, node: ast.expr | None) -> Iterator[str]:
        given = self.values.get(node.id, []) if isinstance(node, ast.Name) else [node] if node else []
        for pair in (one for value in given for one in ast.walk(value)):
            match pair:
                case ast.Tuple(elts=[ast.Constant(value=str(name)), ast.Constant(value=None | str() | int() as value)]):
                    yield f"-D{name}" if value is None else f"-D{name}={value}"

    def _folders(self, node: ast.expr | None) -> Iterable[str]:
        """As flags those that are here, and the others as they are written."""
        given = self.values.get(node.id, []) if isinstance(node, ast.Name) else [node] if node else []
        for item in (each for one in given for each in (one.elts if isinstance(one, ast.List | ast.Tuple) else [one])):
            path = "/".join(filter(None, (word.strip("/") for word in self.words(item))))
            yield from [*_include(path, self.folder, self.names)] or filter(None, [path])


def _matching(pattern: str, folder: str, names: Sequence[str]) -> tuple[str, ...]:
    path = posixpath.normpath(posixpath.join(folder, pattern)).lstrip("/")
    exact = tuple(name for name in names if name == path)
    return exact or tuple(name for name in names if "*" in path and fnmatch(name, path))


def _flags(words: Iterable[str]) -> tuple[str, ...]:
    """Each once, an option of another tool, such as `-Xcompiler -Wall`, with its value."""
    each = iter(words)
    whole = (f"{one}={next(each, '')}" if OF_A_TOOL.fullmatch(one) else one for one in each)
    return tuple(one for one in dict.fromkeys(whole) if one.startswith("-") and not OURS.fullmatch(one))


def _include(written: str, folder: str, names: Sequence[str]) -> Iterator[str]:
    """Where there is such a folder here, or in a submodule, of which git names the top alone."""
    path = posixpath.normpath(posixpath.join(folder, written)).lstrip("/")
    if written and any(name.startswith(f"{path}/") or f"{path}/".startswith(f"{name}/") for name in names):
        yield f"-I{path}"


def _extension(files: Sequence[str], both: Sequence[str], nvcc: Iterable[str], unread: Sequence[str]) -> Build:
    named = {"flags": both, "nvcc_flags": [one for one in nvcc if one not in both]}
    lists = [f"{name}=[{', '.join(map(quoted, flags))}]" for name, flags in named.items() if flags]
    return Build(f"Extension({', '.join([*map(quoted, files), *lists])})", tuple(files), tuple(unread))


# CMake ----------------------------------------------------------------------------------------------------------------


CALL = re.compile(r"^[ \t]*(\w+)[ \t]*\(", re.MULTILINE)
WORD = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')
VARIABLE = re.compile(r"\$\{([\w-]+)\}")
HERE = ("CMAKE_CURRENT_SOURCE_DIR", "CMAKE_CURRENT_LIST_DIR", "CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR")
GIVEN = ("TORCH_INCLUDE_DIRS", "CUDAToolkit_INCLUDE_DIRS", "CUDA_INCLUDE_DIRS", "Python_INCLUDE_DIRS")
LANGUAGE = re.compile(r"\$<\$<COMPILE_LANGUAGE:(\w+)>:")
SCOPES = frozenset({"PRIVATE", "PUBLIC", "INTERFACE", "SYSTEM", "BEFORE", "AFTER"})
OPTIONS = frozenset({"add_compile_options", "target_compile_options", "add_definitions"})
NO_TARGET = frozenset({"install", "set_source_files_properties", "message", "if", "elseif", "foreach"})
EVERYWHERE = ""


def _of_cmake(name: str, text: str, names: Sequence[str]) -> tuple[Build, ...]:
    read = _CMake(posixpath.dirname(name), names)
    text = re.sub(r"#[^\n]*", "", text)
    for call in CALL.finditer(text):
        inner = text[call.end() : closing(text, call.end() - 1)]
        words = [one for word in WORD.finditer(inner) for one in read.expanded(word[1] or word[2] or "")]
        if words:
            line = text.count("\n", 0, call.start()) + 1
            read.hear(call[1].lower(), words, f"{name}:{line}")
    return tuple(read.builds())


class _CMake:
    """What the commands of one file have said so far. Every branch of a condition is taken, which the builds say."""

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names
        self.values: dict[str, list[str]] = {one: [f"/{folder}"] for one in HERE} | {one: [] for one in GIVEN}
        self.files: dict[str, list[str]] = defaultdict(list)
        self.both: dict[str, list[str]] = defaultdict(list)
        self.nvcc: dict[str, list[str]] = defaultdict(list)
        self.lost: dict[str, list[str]] = defaultdict(list)
        """Of each target, as those before, and of all of them under EVERYWHERE: what no build here can have."""
        self.places: dict[str, str] = {}

    def expanded(self, word: str) -> list[str]:
        if (whole := VARIABLE.fullmatch(word)) and whole[1] in self.values:
            return self.values[whole[1]]
        joined = VARIABLE.sub(lambda one: ";".join(self.values.get(one[1], [one[0]])), word)
        return [one for one in joined.split(";") if one]

    def hear(self, command: str, words: list[str], place: str) -> None:
        first, *rest = words
        target, said = (first, rest) if command.startswith("target_") else (EVERYWHERE, words)
        said = [one for one in said if one not in SCOPES]
        if command == "project":
            self.values["PROJECT_NAME"] = [first]
        elif command == "set":
            given = takewhile(lambda word: word not in ("CACHE", "PARENT_SCOPE"), rest)
            self.values[first] = [one for word in given for one in word.split()]
        elif command == "list" and first == "APPEND" and rest:
            self.values.setdefault(rest[0], []).extend(rest[1:])
        elif command == "file" and first.startswith("GLOB") and rest:
            self.values[rest[0]] = rest[1:]
        elif command.endswith("include_directories"):
            for one in (one for one in said if not one.startswith("$<INSTALL")):
                here = tuple(_include(one, self.folder, self.names))
                self.both[target] += here
                self.lost[target] += () if here else (posixpath.normpath(one).lstrip("/"),)
        elif command.endswith("compile_definitions"):
            for one in said:
                (self.lost if "$" in one else self.both)[target].append(f"-D{one.removeprefix('-D')}")
        elif command in OPTIONS:
            by_language = [*_by_language(said)]
            self.both[target] += (one for one, _ in by_language if one.startswith("-D"))
            for kept, cuda in ((self.nvcc, True), (self.lost, False)):
                words = [one for one, of in by_language if (of == "CUDA") == cuda and not one.startswith("-D")]
                kept[target] += _flags(words)
        elif command not in NO_TARGET and (not first.isupper() or command.endswith(("_library", "_module"))):
            self._target(first, rest, place)

    def _target(self, name: str, words: Sequence[str], place: str) -> None:
        """Whatever the command is called that names sources: projects wrap `add_library` in functions of their own."""
        found = {one: _matching(one, self.folder, self.names) for one in words if one.endswith((*SUFFIXES, "*"))}
        sources = {word: [one for one in files if one.endswith(SUFFIXES)] for word, files in found.items()}
        if any(sources.values()):
            self.places.setdefault(name, place)
            self.files[name] += chain.from_iterable(sources.values())
            self.lost[name] += (word for word, found in sources.items() if not found)
            self.nvcc[name] += _flags(one for one, _ in _by_language(words))

    def builds(self) -> Iterator[Build]:
        self.nvcc[EVERYWHERE] += _flags(self.values.get("CMAKE_CUDA_FLAGS", ()))
        for target, place in self.places.items():
            parts = (self.both, self.nvcc, self.lost)
            both, nvcc, lost = ([*dict.fromkeys((*one[EVERYWHERE], *one[target]))] for one in parts)
            unread = [f"the flags of {place}, where every branch of its conditions was taken"]
            if lost:
                unread.append(f"what {place} has from elsewhere, or for the C++ compiler alone: {' '.join(lost)}")
            yield _extension([*dict.fromkeys(self.files[target])], both, nvcc, unread)


def _by_language(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each word with the language that it is for; "" is every one."""
    language = ""
    for word in words:
        if begins := LANGUAGE.match(word):
            language, word = begins[1], word[begins.end() :]
        yield word.removesuffix(">"), language
        if word.endswith(">"):
            language = ""
