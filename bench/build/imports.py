"""Which files of a package decide what a card's call runs: found by its imports, which are read and not run.

What a called module imports counts whole. What a package's `__init__` imports besides runs on the way, and could change
something only by what stands at its top: of such a module all counts but the bodies, parameters and Triton's decorators
of its functions, and constants and private functions that nothing at its top reads.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from kernelgate.bench.build.sources import Package

COMPUTED = frozenset({"import_module", "__import__", "iter_modules", "walk_packages"})
"""What imports modules by names that are no words of the source."""
OF_ITSELF = frozenset({"__package__", "__name__", "__path__"})
KEPT = 4096
"""Files whose reading is remembered: of two commits, and for several cards, most are the same."""


@dataclass(frozen=True)
class Followed:
    whole: frozenset[str]
    """The files that count whole; also all that are no Python."""
    tops: frozenset[str] = frozenset()
    """Those of which only what an import can do to others counts."""

    def digests(self, files: Mapping[str, bytes], host: bool = False) -> dict[str, str]:
        """By file: of Python neither comments nor layout. `host`: nor what is inside of Triton's kernels."""
        parts = {name: _code(name, files[name], host) for name in self.whole} | {
            name: _top(files[name]) for name in self.tops
        }
        return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(parts.items())}


def followed(files: Mapping[str, bytes], spec: Package, card: bytes) -> Followed:
    """`files`: of the package, by their paths below the folder that is imported from. All of them where the card, or
    what it leads to, finds modules in a way that cannot be read."""
    everything = Followed(frozenset(files))
    try:
        walk = _Walk({name: data for name, data in files.items() if name.endswith(".py")}, spec.root)
        for start in _starts(card, spec):
            walk.reach(*start)
        beside = walk.beside()
    except (_UnreadableError, SyntaxError, ValueError, RecursionError):
        return everything
    others = frozenset(name for name in files if not name.endswith(".py"))
    whole = frozenset(walk.modules[one].path for one in walk.whole | walk.parents)
    tops = frozenset(walk.modules[one].path for one in beside)
    return Followed(whole | others, tops - whole)


class _UnreadableError(Exception):
    pass


@dataclass(frozen=True)
class _Module:
    name: str
    path: str
    source: bytes

    @property
    def is_package(self) -> bool:
        return self.path.endswith("/__init__.py")

    @property
    def imports(self) -> tuple[tuple[str, str | None, str | None], ...]:
        return _imports(self.source, self.name if self.is_package else self.name.rpartition(".")[0])

    def computed(self, root: str) -> Iterator[str]:
        """Beginnings of the names of modules of the package that it imports by computed names."""
        of_itself, words = _computed(self.source)
        if of_itself:
            yield self.name if self.is_package else self.name.rpartition(".")[0]
        yield from (word for word in words if word == root or word.startswith(f"{root}."))


@lru_cache(KEPT)
def _imports(source: bytes, package: str) -> tuple[tuple[str, str | None, str | None], ...]:
    """Module, the name taken from it, and what that is called here. `package`: where relative imports start."""
    found: list[tuple[str, str | None, str | None]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [(base, alias.name, alias.asname or alias.name) for alias in node.names]
    return tuple(found)


@lru_cache(KEPT)
def _computed(source: bytes) -> tuple[bool, tuple[str, ...]]:
    """Of a module that imports by computed names, whether these may begin with its own, and the words that it has."""
    nodes = list(ast.walk(ast.parse(source)))
    variables = {node.id for node in nodes if isinstance(node, ast.Name)}
    names = variables | {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    names |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
    if not names & COMPUTED:
        return False, ()
    later = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values[1:]}
    said = (node for node in nodes if isinstance(node, ast.Constant) and id(node) not in later)
    words = tuple(node.value for node in said if isinstance(node.value, str))
    return bool(variables & OF_ITSELF) or any(word.startswith(".") for word in words), words


@dataclass
class _Walk:
    files: Mapping[str, bytes]
    root: str
    whole: set[str] = field(default_factory=set)
    parents: set[str] = field(default_factory=set)

    @cached_property
    def modules(self) -> dict[str, _Module]:
        names = {path: path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in self.files}
        return {name: _Module(name, path, self.files[path]) for path, name in names.items()}

    def reach(self, base: str, name: str | None) -> None:
        """`import base`, or `from base import name`; `name` may be a chain of attributes."""
        if base.partition(".")[0] != self.root:
            return
        for part in name.split(".") if name else ():
            inner, module = f"{base}.{part}", self.modules.get(base)
            named = module.imports if module is not None and module.is_package else []
            sources = [(source, taken) for source, taken, called in named if called == part and taken]
            for source, taken in sources:  # also where a module has that name: what is imported takes its place
                if (source, taken) != (base, part):
                    self._parents(inner)
                    self.reach(source, taken)
            if not any(one == inner or one.startswith(f"{inner}.") for one in self.modules):
                if not sources:
                    self._add(base)
                return
            base = inner
        module = self.modules.get(base)
        if module is not None and module.is_package and name is not None:
            self._parents(f"{base}.")  # of the package itself nothing is known to be used
        else:
            self._add(base)

    def _add(self, name: str) -> None:
        self._parents(name)
        if name in self.whole or name not in self.modules:
            return
        self.whole.add(name)
        for source, taken, _ in self.modules[name].imports:
            self.reach(source, None if taken == "*" else taken)
        for beginning in self.modules[name].computed(self.root):
            for one in self._beginning(beginning):
                self._add(one)

    def _parents(self, name: str) -> None:
        parts = name.split(".")[:-1]
        self.parents |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)} & self.modules.keys()

    def _beginning(self, beginning: str) -> list[str]:
        return [name for name in self.modules if name.startswith(beginning)]

    def beside(self) -> set[str]:
        """What the packages on the way import besides, and what that imports."""
        waiting, found = [*self.parents], set[str]()
        while waiting:
            module = self.modules[waiting.pop()]
            names = {one for source, taken, _ in module.imports for one in (source, f"{source}.{taken}")}
            names |= {one for beginning in module.computed(self.root) for one in self._beginning(beginning)}
            names |= {".".join(one.split(".")[:end]) for one in names for end in range(1, one.count(".") + 1)}
            new = names & self.modules.keys() - found
            found |= new
            waiting += new
        return found - self.whole - self.parents


def _starts(card: bytes, spec: Package) -> Iterator[tuple[str, str | None]]:
    """What the card imports of the package, and what its call takes from the one that it is handed."""
    yield from ((source, taken) for source, taken, _ in _imports(card, ""))
    calls = [node for node in ast.walk(ast.parse(card)) if isinstance(node, ast.FunctionDef) and node.name == "call"]
    if not calls or len(calls[0].args.args) < 2:
        raise _UnreadableError
    handed = calls[0].args.args[1].arg
    nodes = list(ast.walk(calls[0]))
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    if sum(_is(node, handed) for node in nodes) != sum(_is(node.value, handed) for node in attributes):
        raise _UnreadableError  # it is handed on, and may be asked for anything
    yield spec.name, ""
    yield from ((spec.name, chain) for chain in sorted({_chain(node, handed) for node in attributes} - {""}))


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _chain(node: ast.AST, handed: str) -> str:
    """ "swiglu.forward" of `package.swiglu.forward`; else empty."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join(reversed(names)) if _is(node, handed) else ""


@lru_cache(KEPT)
def _code(name: str, source: bytes, host: bool) -> bytes:
    """A file without comments, and maybe without Triton's kernels, where it is Python that can be read."""
    if not name.endswith(".py"):
        return source
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree) if host else ():
            if isinstance(node, ast.FunctionDef) and any(map(_is_jitted, node.decorator_list)):
                node.body = [ast.Pass()]
        return ast.dump(tree).encode()
    except (SyntaxError, ValueError, RecursionError):
        return source


def _is_jitted(decorator: ast.expr) -> bool:
    """Whether it is written @triton.jit or @triton.jit(…): what it makes is never run as Python."""
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(named, ast.Attribute) and named.attr == "jit" and _is(named.value, "triton")


@lru_cache(KEPT)
def _top(source: bytes) -> bytes:
    """What importing a module can do to others, without comments."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [ast.Pass()]
            node.args = ast.arguments([], [], None, [], node.args.kw_defaults, None, node.args.defaults)
            node.decorator_list = [one for one in node.decorator_list if not _is_of_triton(one)]
    defined = {one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    constants = {id(one): name for one in tree.body if (name := _constant(one)) and name not in defined}
    constants |= {id(one): one.name for one in tree.body if isinstance(one, ast.FunctionDef) and _is_private(one)}
    kept = [one for one in tree.body if id(one) not in constants]
    read: set[str] = set()
    while new := _loaded(kept) - read:
        read |= new
        kept = [one for one in tree.body if id(one) not in constants or constants[id(one)] in read]
    return ast.dump(ast.Module(kept, [])).encode()


def _constant(node: ast.stmt) -> str | None:
    """The name that it gives a value, where that is all it does: what calls something may do more."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if not name.startswith("__"):
            calls = (one for one in ast.walk(value) if isinstance(one, ast.Call))
            return name if all(map(_is_of_triton, calls)) else None
    return None


def _is_private(node: ast.FunctionDef) -> bool:
    """Whether no `import *` takes it and defining it does nothing else, such as a helper that a change adds."""
    defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    plain = not node.decorator_list and all(isinstance(one, ast.Constant) for one in defaults)
    return plain and node.name.startswith("_") and not node.name.startswith("__")


def _is_of_triton(node: ast.AST) -> bool:
    """Whether this is `triton.…`, `tl.…` or a call of that."""
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return isinstance(node, ast.Name) and node.id in {"triton", "tl"}


def _loaded(nodes: Iterable[ast.AST]) -> set[str]:
    every = (one for node in nodes for one in ast.walk(node))
    return {one.id for one in every if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
