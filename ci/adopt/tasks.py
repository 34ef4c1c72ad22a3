"""What is there to be benchmarked: operators of tritonbench, and tasks of KernelBot, whose task.yml has the cases."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from kernelgate.ci.adopt.found import Argument, Build, FoundKernel, Read, quoted
from kernelgate.ci.adopt.triton_kernels import DTYPES, Function, Module, arguments, bases, package, parsed, snake

TASKS = ("task.yml", "task.yaml")


def is_operator(module: Module) -> bool:
    return any(isinstance(one, ast.ClassDef) and "BenchmarkOperator" in bases(one) for one in module.tree.body)


def operator(module: Module, names: Sequence[str]) -> Iterator[FoundKernel]:
    """Each registered implementation that is no baseline."""
    folder = posixpath.basename(posixpath.dirname(module.file))
    for function, owner in module.functions:
        marks = " ".join(ast.unparse(one) for one in function.decorator_list)
        if owner is None or "register_benchmark" not in marks or "baseline=True" in marks:
            continue
        method = f"{owner.name}.{function.name}"
        yield FoundKernel(
            name=snake(f"{folder}_{function.name}"),
            how="tritonbench",
            file=module.file,
            line=function.lineno,
            called=f"ops.{method}",
            build=package(module.file, names),
            arguments=tuple(Argument(one.name, "tensor") for one in arguments(function)[1:] if one.default is None),
            results=("out",),
            dtypes=DTYPES,
            oracle=f"the baseline in {module.file}",
            open=(f"what {method} calls: that takes an operator of tritonbench, and returns a function",),
        )


def folders(names: Sequence[str]) -> frozenset[str]:
    return frozenset(posixpath.dirname(name) for name in names if posixpath.basename(name) in TASKS)


def find(names: Sequence[str], read: Read) -> Iterator[FoundKernel]:
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
    module = parsed(reference, read) if reference in names else None
    defined = (one for one in (module.tree.body if module else ()) if isinstance(one, Function))
    oracle = next((one for one in defined if one.name == "ref_kernel"), None)
    copied = quoted(f'cp {folder or "."}/*.py "$KERNELGATE_OUT"')
    listed = (_case(one) for one in benchmarks if isinstance(one, dict))
    return FoundKernel(
        name=snake(posixpath.basename(folder)) or "task",
        how=posixpath.basename(name),
        file=name,
        line=1,
        called="ops.custom_kernel",
        build=Build(f'Command({copied}, "submission", [{quoted(folder or ".")}])', (folder or ".",)),
        arguments=tuple(Argument(one, "tensor") for one in _taken_apart(oracle)) or (Argument("data", "tensor"),),
        results=("out",),
        cases=tuple(filter(None, dict.fromkeys(listed))),
        oracle=f"ref_kernel(), {reference}:{oracle.lineno}" if oracle else "",
        as_tuple=True,
        open=("what else generate_input() puts into the tuple that custom_kernel() takes",),
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
            return [one.id for one in ast.walk(node.targets[0]) if isinstance(one, ast.Name) and one.id != "_"]
    return []
