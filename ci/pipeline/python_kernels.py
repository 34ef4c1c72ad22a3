"""Kernels in Python: what launches a function under @triton.jit, operators of tritonbench, and tasks of KernelBot."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from kernelgate.ci.pipeline import found_kernels
from kernelgate.ci.pipeline.found_kernels import Argument, Build, FoundKernel, Read, Skipped, named, parsed, quoted

Function = ast.FunctionDef | ast.AsyncFunctionDef
DTYPES = ("fp16", "bf16", "fp32")
JIT = re.compile(r"(?:triton\.|tl\.|gluon\.)?jit\b|triton_jit\b")
MAY_LAUNCH = re.compile(r"jit\b|\]\s*\(|BenchmarkOperator")
OF_TENSORS = {
    *("contiguous", "data_ptr", "device", "dtype", "element_size", "flatten", "is_contiguous", "is_cuda", "ndim"),
    *("new_empty", "numel", "permute", "reshape", "shape", "size", "stride", "transpose", "unsqueeze", "view"),
}
"""What code asks of tensors alone, so that an argument without an annotation is known for one."""
SHORT = re.compile(rf"d?[A-Z][A-Za-z]?|{found_kernels.ONE_ROW.pattern.removeprefix('(?i)')}")
"""What is handed to a launch under such a name is a tensor."""
HANDED = "it hands a kernel on or is given one, which is not followed: name a function that launches it"
OF_OBJECT = "it needs an object: name a function that launches the kernel"
SAVED = "autograd calls it with what forward saved, which a card's state() makes"


@dataclass(frozen=True)
class Module:
    file: str
    tree: ast.Module

    @property
    def functions(self) -> Iterator[tuple[Function, ast.ClassDef | None]]:
        """The functions at its top, also on a branch of a condition, and those of its classes."""
        for node in (nodes := [*self.tree.body]):
            nodes += node.body if isinstance(node, ast.If | ast.Try) else []
            if isinstance(node, Function):
                yield node, None
            elif isinstance(node, ast.ClassDef):
                yield from ((one, node) for one in node.body if isinstance(one, Function))


def modules(names: Sequence[str], read: Read) -> list[Module]:
    texts = ((name, read(name)) for name in found_kernels.sources(names, ".py"))
    return [Module(name, parsed(text)) for name, text in texts if "triton" in text and MAY_LAUNCH.search(text)]


def find(every: Sequence[Module], names: Sequence[str]) -> Iterator[found_kernels.Finding]:
    own, imported = zip(*(_named_in(module.tree) for module in every), strict=True) if every else ((), ())
    jitted = set().union(*own)
    for module, names_here, names_there in zip(every, own, imported, strict=True):
        seen = names_here | (names_there & jitted)
        for function, owner in module.functions:
            if function.name in jitted:
                continue
            called = f"{owner.name}.{function.name}" if owner else function.name
            of_autograd = owner is not None and "Function" in bases(owner)
            nodes = [*ast.walk(function)]
            if not _launches(nodes, jitted):
                if (line := _unclear(function, nodes, seen)) is not None:
                    yield Skipped(f"{module.file}:{line}", f"{called}: {HANDED}")
            elif owner is None or (of_autograd and function.name == "forward"):
                yield _kernel(module, function, owner, names)
            else:
                yield Skipped(f"{module.file}:{function.lineno}", f"{called}: {SAVED if of_autograd else OF_OBJECT}")


def _named_in(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Functions under a decorator, and NAME of NAME = triton.jit(function); and all names that are imported."""
    jitted, imported = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, Function) and any(JIT.match(ast.unparse(one)) for one in node.decorator_list):
            jitted.add(node.name)
        elif isinstance(node, ast.Assign) and JIT.match(ast.unparse(getattr(node.value, "func", node.targets[0]))):
            jitted.add(ast.unparse(node.targets[0]))
        elif isinstance(node, ast.ImportFrom):
            imported |= {one.name for one in node.names}
    return jitted, imported


def bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).rpartition(".")[2] for base in node.bases}


def _launches(nodes: Sequence[ast.AST], jitted: set[str]) -> bool:
    """Whether a function calls kernel[grid](…), maybe by a local name."""
    launched = [called for called, _ in _calls(nodes)]
    choices = (one for one in nodes if launched and isinstance(one, ast.Assign))
    local = {
        ast.unparse(one.targets[0])
        for one in choices
        if isinstance(one.value, ast.Name | ast.Attribute | ast.IfExp) and named(one.value) & jitted
    }
    return any(named(called) & (jitted | local) for called in launched)


def _calls(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.expr, list[ast.expr]]]:
    for one in nodes:
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Subscript):
            yield one.func.value, one.args


def _unclear(function: Function, nodes: Sequence[ast.AST], jitted: set[str]) -> int | None:
    """The first line that hands a kernel on, compiles one, or launches what it is given."""
    given = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)} - {"self"}
    lines = [called.lineno for called, _ in _calls(nodes) if named(called) & given]
    for one in (one for one in nodes if isinstance(one, ast.Call)) if jitted else ():
        warmed = isinstance(one.func, ast.Attribute) and one.func.attr == "warmup" and named(one.func.value)
        handed = set().union(*map(named, (*one.args, *(each.value for each in one.keywords))))
        if (handed & jitted) or (warmed and warmed & (jitted | given)):
            lines.append(one.lineno)
    return min(lines, default=None)


def _kernel(module: Module, function: Function, owner: ast.ClassDef | None, names: Sequence[str]) -> FoundKernel:
    given = arguments(function)[1 if owner else 0 :]  # without ctx
    # `apply` takes no names, so that what comes before a tensor is given, too.
    last = max((at for at, one in enumerate(given) if one.kind == "tensor"), default=-1) if owner else -1
    name = owner.name if owner else function.name
    return FoundKernel(
        name=snake(name),
        how="autograd.Function" if owner else "@triton.jit",
        file=module.file,
        line=function.lineno,
        called=f"ops.{name}{'.apply' if owner else ''}",
        build=package(module.file, names),
        arguments=tuple(one for at, one in enumerate(given) if one.default is None or at <= last),
        results=_results(function),
        dtypes=DTYPES,
    )


def snake(name: str) -> str:
    """A name as cards have them; one that has underscores already is parted nowhere else."""
    words = name.strip("_")
    if "_" not in words:
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", words)
    return re.sub(r"\W+", "_", words).lower()


def package(file: str, names: Collection[str]) -> Build:
    """Of a module: a Package where that lies at the root or in src/, else a copy of it."""
    folder = posixpath.dirname(file)
    inside = f"{folder}/__init__.py" in names
    while folder and f"{posixpath.dirname(folder)}/__init__.py".lstrip("/") in names:
        folder = posixpath.dirname(folder)
    outside = posixpath.dirname(folder) if inside else "src" if file.startswith("src/") else ""
    dotted = file.removeprefix(f"{outside}/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    source = posixpath.join(outside, dotted.partition(".")[0])
    source = source if f"{source}.py" not in names else f"{source}.py"
    if outside in ("", "src"):
        return Build(f"Package({quoted(dotted)})", (source,))
    words = ", ".join(map(quoted, (f'cp -r {source} "$KERNELGATE_OUT"', dotted)))
    return Build(f"Command({words}, [{quoted(source)}])", (source,))


def arguments(function: Function) -> tuple[Argument, ...]:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    left = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    defaults = [*([None] * left), *given.defaults, *given.kw_defaults]
    attributes = (one for one in ast.walk(function) if isinstance(one, ast.Attribute) and one.attr in OF_TENSORS)
    asked = {one.value.id for one in attributes if isinstance(one.value, ast.Name)}
    handed = {one.id for _, words in _calls(ast.walk(function)) for one in words if isinstance(one, ast.Name)}
    tensors = asked | {name for name in handed if SHORT.fullmatch(name)}
    pairs = zip(named, defaults, strict=True)
    return tuple(Argument(one.arg, _kind(one, tensors), ast.unparse(value) if value else None) for one, value in pairs)


def _kind(one: ast.arg, tensors: set[str]) -> found_kernels.ArgumentKind:
    said = ast.unparse(one.annotation) if one.annotation else ""
    if "Tensor" not in said:
        return "tensor" if not said and one.arg in tensors else "number"
    if re.search(r"Optional|None", said):
        return "optional"
    return "tensors" if re.search(r"list|tuple|sequence", said, re.IGNORECASE) else "tensor"


def _results(function: Function) -> tuple[str, ...]:
    returned = [one for one in ast.walk(function) if isinstance(one, ast.Return) and one.value is not None]
    if not returned:
        return ()
    last = max(returned, key=lambda one: one.lineno).value
    parts = last.elts if isinstance(last, ast.Tuple) else [last]
    if len(parts) == 1:
        return ("out",)
    names = [one.id.lower() if isinstance(one, ast.Name) else f"out{at}" for at, one in enumerate(parts)]
    return tuple(name if names.count(name) == 1 else f"{name}{at}" for at, name in enumerate(names))


# Operators of tritonbench, and tasks of KernelBot, whose task.yml has the cases ---------------------------------------


TASKS = ("task.yml", "task.yaml")


def operator(module: Module, names: Sequence[str]) -> Iterator[FoundKernel]:
    """Each registered implementation that is no baseline: a method that takes an operator and returns a function."""
    folder = posixpath.basename(posixpath.dirname(module.file))
    methods = [(function, owner.name) for function, owner in module.functions if owner]
    marked = {function: " ".join(map(ast.unparse, function.decorator_list)) for function, _ in methods}
    baseline = next((one for one in methods if "baseline=True" in marked[one[0]]), None)
    shapes = next((one for one in methods if one[0].name == "get_input_iter"), None)
    for function, owner in methods:
        if "register_benchmark" not in marked[function] or "baseline=True" in marked[function]:
            continue
        asked = ", ".join(_asked_of_self(function))
        yield FoundKernel(
            name=snake(f"{folder}_{function.name}"),
            how="tritonbench",
            file=module.file,
            line=function.lineno,
            called=f"ops.{owner}.{function.name}",
            given="({})()",
            build=package(module.file, names),
            arguments=(
                Argument("self", "number", "None"),
                *(Argument(one.name, "tensor") for one in arguments(function)[1:] if one.default is None),
            ),
            results=("out",),
            dtypes=DTYPES,
            shapes=_place(module, shapes) if shapes else "",
            oracle=_place(module, baseline) if baseline else "",
            open=(f"{asked} of the operator: types.SimpleNamespace(...) in place of None",) if asked else (),
        )


def _place(module: Module, method: tuple[Function, str]) -> str:
    return f"{method[1]}.{method[0].name}(), {module.file}:{method[0].lineno}"


def _asked_of_self(function: Function) -> dict[str, None]:
    own = function.args.args[0].arg if function.args.args else ""
    reads = (one for one in ast.walk(function) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load))
    return dict.fromkeys(one.attr for one in reads if isinstance(one.value, ast.Name) and one.value.id == own)


def folders(names: Sequence[str]) -> frozenset[str]:
    return frozenset(posixpath.dirname(name) for name in names if posixpath.basename(name) in TASKS)


def tasks(names: Sequence[str], read: Read) -> Iterator[FoundKernel]:
    for name in names:
        if posixpath.basename(name) in TASKS:
            try:
                said = yaml.safe_load(read(name))
            except (yaml.YAMLError, RecursionError):
                continue
            if isinstance(said, dict) and isinstance(said.get("benchmarks"), list):
                yield _task(name, said["benchmarks"], names, read)


def _task(name: str, benchmarks: Sequence[Any], names: Sequence[str], read: Read) -> FoundKernel:
    folder = posixpath.dirname(name)
    reference = posixpath.join(folder, "reference.py")
    tree = parsed(read(reference) if reference in names else "")
    defined = (one for one in tree.body if isinstance(one, Function))
    oracle = next((one for one in defined if one.name == "ref_kernel"), None)
    parts = _taken_apart(oracle)
    copied = quoted(f'cp {folder or "."}/*.py "$KERNELGATE_OUT"')
    listed = (_case(one) for one in benchmarks if isinstance(one, dict))
    return FoundKernel(
        name=snake(posixpath.basename(folder)) or "task",
        how=posixpath.basename(name),
        file=name,
        line=1,
        called="ops.custom_kernel",
        build=Build(f'Command({copied}, "submission", [{quoted(folder or ".")}])', (folder or ".",)),
        arguments=tuple(Argument(one, "tensor") for one in parts) or (Argument("data", "tensor"),),
        results=("out",),
        cases=tuple(filter(None, dict.fromkeys(listed))),
        oracle=f"ref_kernel(), {reference}:{oracle.lineno}" if oracle else "",
        given="(({},))" if parts else "({})",
        open=("what else generate_input() puts into what custom_kernel() takes",),
    )


def _case(axes: Mapping[Any, Any]) -> str:
    """As Python writes it; an axis has letters and digits alone. Empty where none is a number."""
    numbers = {
        str(key).replace("_", ""): value for key, value in axes.items() if isinstance(value, int) and key != "seed"
    }
    return ", ".join(f"{key}={value}" for key, value in numbers.items() if key.isidentifier())


def _taken_apart(function: Function | None) -> list[str]:
    """The names that it gives to the parts of its one argument."""
    data = {one.arg for one in function.args.args} if function else set()
    for node in ast.walk(function) if function else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in data:
            parts = [one.id for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name)]
            return [one if one != "_" else f"part{at}" for at, one in enumerate(parts)]
    return []
