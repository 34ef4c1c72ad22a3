"""A package's library: copied Python sources, and Triton's cache with what it made of their kernels for each target.

Files alone: neither Triton nor torch is imported. Triton's cache has a folder for each compiled kernel, named by its
key: in it `<kernel>.cubin` is the machine code, `<kernel>.json` what a launch must know, `__grp__<kernel>.json` lists
both by absolute paths. A library's cache has that list by names, so that it can be carried to another machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from kernelgate.bench.build import machine_code
from kernelgate.bench.build.machine_code import Disassembler, MachineCode
from kernelgate.bench.core.errors import BuildError, KernelgateError, NoKernelError
from kernelgate.bench.record import KernelFacts
from kernelgate.bench.system.worker import Message

INDEX = "kernels.json"
"""In the cache: what was compiled, as `PackageKernel`s."""
LEFT_OUT = frozenset({".pyc", ".pyo", ".so", ".pyd"})
"""What was compiled from other files is no source, and need not be of this commit."""
WARP = 32
SOURCES_FD = 99
SOURCES = Path(f"/proc/self/fd/{SOURCES_FD}")
"""What a package's folder is called while it is compiled, for Triton writes paths of sources into machine code: the
same for every build. Unlike the current folder, a package cannot change it, and ptxas, which would note when a source
was changed, has none.
"""
_GROUP = "__grp__"


class PackageKernel(Message):
    """One Triton kernel, compiled for one target and one kind of arguments."""

    kind: Literal["kernel"] = "kernel"
    name: str
    """Unique among the timed kernels of a target: the kernel's, with the case where an earlier case has another one."""
    function: str
    """The kernel's own name, which its files have."""
    target: str
    """Such as "sm_90"."""
    entry: str
    """Its folder in the cache."""
    case: str
    """The id of the first case that needs it."""
    timed: bool
    """Whether that case is timed, not fuzzed alone."""
    config: str | None
    """One of several that @triton.autotune chooses from when it measures; None where there is no choice."""


_KERNELS = TypeAdapter(tuple[PackageKernel, ...])


# ----------------------------------------------------------------------------------------------------------------------
# Sources
# ----------------------------------------------------------------------------------------------------------------------


def sources(tree: Path, name: str) -> dict[str, bytes]:
    """The files of a package or module: path below the folder that must be on the import path -> contents.

    Raises NoKernelError where there is none, and BuildError where a file lies outside of the tree or has an odd name.
    """
    if not name.isidentifier():
        raise NoKernelError(f"Package({name!r}): the name of a package or module is one word, such as my_kernels")
    for root in (tree, tree / "src"):
        found = dict(_files(root, root / name, tree))
        if any(path.endswith(".py") for path in found):
            return found
        if (root / f"{name}.py").is_file():
            return dict([_file(root, root / f"{name}.py", tree)])
    places = f"{name}/ with Python files, {name}.py, src/{name}/ and src/{name}.py"
    raise NoKernelError(f"{tree} has no package {name}: looked for {places}")


def _files(root: Path, folder: Path, tree: Path) -> Iterator[tuple[str, bytes]]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if one != "__pycache__" and not one.startswith("."))
        for name in sorted(names):
            path = Path(parent, name)
            if path.suffix not in LEFT_OUT and not name.startswith(".") and path.is_file():
                yield _file(root, path, tree)


def _file(root: Path, path: Path, tree: Path) -> tuple[str, bytes]:
    name = path.relative_to(root).as_posix()
    if not name.isprintable():  # which what is no UTF-8 is not either
        raise BuildError(f"the file {name!r} needs another name, of letters and digits")
    if not path.resolve().is_relative_to(tree.resolve()):
        raise BuildError(f"{name} is a link that leads out of the repository")
    return name, path.read_bytes()


def triton_build() -> str | None:
    """The installed Triton, such as "3.9.0-1f0c8d2e9a7b"; None without one.

    The second half is a hash over its files, for Triton finds in a cache what the very same files compiled: a wheel for
    another version of Python is another Triton.
    """
    try:
        triton = metadata.distribution("triton")
    except metadata.PackageNotFoundError:
        return None
    hashes = sorted(f"{path} {path.hash.value}" for path in triton.files or () if path.hash and "triton" in path.parts)
    return f"{triton.version}-{hashlib.sha256(' '.join(hashes).encode()).hexdigest()[:12]}"


# ----------------------------------------------------------------------------------------------------------------------
# The cache
# ----------------------------------------------------------------------------------------------------------------------


def finish(cache: Path, kernels: Sequence[PackageKernel]) -> None:
    """Makes a library's cache of the folder in which Triton has just compiled `kernels`."""
    cache.mkdir(parents=True, exist_ok=True)
    for listing in cache.glob(f"*/{_GROUP}*.json"):
        names = json.loads(listing.read_bytes())["child_paths"]
        _write_group(listing, {name: name for name in names})
    (cache / INDEX).write_bytes(_KERNELS.dump_json(tuple(kernels), indent=2))


def install(caches: Iterable[Path], folder: Path) -> frozenset[Path]:
    """Puts copies of libraries' kernels in `folder`, which becomes TRITON_CACHE_DIR, and gives its cubins.

    Several libraries fit in one folder, for what has one key was compiled from the same source in the same way; the
    first one's copy is taken, so that a head cannot bring another kernel for its base.
    """
    for cache in caches:
        for entry in sorted(path for path in cache.iterdir() if path.is_dir()):
            if not (folder / entry.name).exists():
                _install(entry, folder / entry.name)
    return frozenset(cubins(folder))


def _install(entry: Path, copy: Path) -> None:
    shutil.copytree(entry, copy)
    for listing in copy.glob(f"{_GROUP}*.json"):
        names = json.loads(listing.read_bytes())["child_paths"]
        _write_group(listing, {name: str(copy.absolute() / name) for name in names})


def _write_group(listing: Path, children: dict[str, str]) -> None:
    listing.write_text(json.dumps({"child_paths": children}), encoding="utf-8")


def cubins(cache: Path) -> tuple[Path, ...]:
    """The machine code of every compiled kernel."""
    return tuple(sorted(cache.glob("*/*.cubin")))


def compiled_since(before: Collection[Path], cache: Path) -> tuple[str, ...]:
    """The kernels of which Triton has compiled more than `install` brought: what no case of the build needed."""
    return tuple(sorted({path.stem for path in cubins(cache) if path not in before}))


# ----------------------------------------------------------------------------------------------------------------------
# Facts
# ----------------------------------------------------------------------------------------------------------------------


def facts(cache: Path) -> MachineCode:
    """What is known of the kernels that timed cases launch; a missing tool or a damaged file costs all facts.

    Of a kernel that @triton.autotune chooses from several, nothing: which of them will run is known on the GPU alone,
    and that another one spills is no fault.
    """
    try:
        kernels = _KERNELS.validate_json((cache / INDEX).read_bytes())
        wanted = [one for one in kernels if one.timed and one.config is None]
        if not wanted:
            return MachineCode((), _why(kernels))
        tools = machine_code.find_tools()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = pool.map(lambda one: _facts(cache / one.entry, one, tools), wanted)
            return MachineCode(tuple(sorted(found, key=lambda one: (one.target, one.name))))
    except (OSError, ValidationError) as error:
        return MachineCode((), f"{cache / INDEX} cannot be read: {error}")
    except KernelgateError as error:
        return MachineCode((), str(error))


def _facts(entry: Path, kernel: PackageKernel, tools: Disassembler) -> KernelFacts:
    cubin = entry / f"{kernel.function}.cubin"
    try:
        launch = json.loads((entry / f"{kernel.function}.json").read_bytes())
        name = launch["name"]
        changed = {
            "target": kernel.target,  # for sm_90 Triton compiles sm_90a
            "name": kernel.name,
            "dynamic_shared_bytes": int(launch["shared"]),
            "threads": WARP * int(launch["num_warps"]),
        }
    except (OSError, ValueError, KeyError) as error:
        raise KernelgateError(f"{entry} is not what Triton writes: {type(error).__name__}: {error}") from None
    found = next((one for one in machine_code.read(cubin, tools) if one.name == name), None)
    if found is None:
        raise KernelgateError(f"{cubin} has no kernel {name}")
    return found.model_copy(update=changed)


def _why(kernels: Sequence[PackageKernel]) -> str:
    if any(one.timed for one in kernels):
        return "@triton.autotune chooses the kernel when it measures"
    return "no Triton kernel was compiled for a timed case"
