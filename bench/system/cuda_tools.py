"""Finds NVIDIA's command-line tools: on PATH, among the Python packages, or where NVIDIA's installers put them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from kernelgate.bench.core.errors import NoDeviceError

ROOT = Path("/")
"""Below it lies what installers put in place; tests have another."""


@dataclass(frozen=True)
class CudaTool:
    purpose: str
    install: str
    installers: tuple[str, ...] = ("usr/local/cuda*/bin",)
    """The folders below the root where NVIDIA's installers put it."""


_COMPILER = 'pip install "cuda-toolkit[cccl,nvcc]==13.*"'
_DISASSEMBLERS = "pip install nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm"

TOOLS: dict[str, CudaTool] = {
    "nvcc": CudaTool("compiles CUDA", _COMPILER),
    "cuobjdump": CudaTool("reads registers and instructions from a library", _DISASSEMBLERS),
    "nvdisasm": CudaTool("is needed by cuobjdump", _DISASSEMBLERS),
    "ncu": CudaTool(
        "profiles kernels (Nsight Compute)",
        "apt-get install cuda-nsight-compute-13-0",
        ("usr/local/cuda*/bin", "opt/nvidia/nsight-compute/*"),
    ),
    "compute-sanitizer": CudaTool("finds faulty memory accesses", "apt-get install cuda-sanitizer-13-0"),
}


def find(name: str) -> Path:
    """The first of `candidates`. Raises NoDeviceError saying where it was looked for and what to install."""
    if (tool := next(candidates(name), None)) is None:
        raise NoDeviceError(f"{absent(name)}; install it: {TOOLS[name].install}")
    return tool


def candidates(name: str, root: Path | None = None) -> Iterator[Path]:
    """Every tool of this name, the one to use first: PATH, Python packages, installers, of each the newest first."""
    if on_path := shutil.which(name):
        yield Path(on_path)
    packages = util.find_spec("nvidia")
    places = (packages and packages.submodule_search_locations) or ()
    folders = [folder for place in places for folder in _newest_first(Path(place), "cu*/bin")]
    for pattern in TOOLS[name].installers:
        folders += _newest_first(ROOT if root is None else root, pattern)
    yield from (folder / name for folder in folders if (folder / name).is_file())


def absent(name: str) -> str:
    """What is missing, and where it was looked for."""
    places = ", ".join(f"/{pattern}" for pattern in TOOLS[name].installers)
    return (
        f"{name}, which {TOOLS[name].purpose}, is neither on PATH nor among the Python packages (nvidia/cu*/bin) "
        f"nor in {places}"
    )


def _newest_first(folder: Path, pattern: str) -> list[Path]:
    """By version numbers; a folder without one, such as the link cuda/ that an administrator set, comes first."""

    def version(path: Path) -> tuple[bool, tuple[int, ...]]:
        numbers = tuple(map(int, re.findall(r"\d+", str(path.relative_to(folder)))))
        return (not numbers, numbers)

    return sorted(folder.glob(pattern), key=version, reverse=True)
