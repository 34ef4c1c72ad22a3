"""What a setup.py says of its extensions, read as text: names, sources, flags. Nothing of it is run."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch

from kernelgate.ci.adopt.found import Build, Read, quoted

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
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
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
        elif isinstance(node, ast.List | ast.Tuple):
            for one in node.elts:
                yield from self.words(one, seen)
        elif isinstance(node, ast.BinOp | ast.Call | ast.Starred | ast.IfExp | ast.ListComp):
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
        loaded = self._flags(given["extra_cuda_cflags"]) if "extra_cuda_cflags" in given else ()
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
